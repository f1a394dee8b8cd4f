"""Which explorer's page a report leads to, and which runs of a study have items to show there."""

import json
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.explore.collections import _leave_out_words
from felicity.report import holds_run
from felicity.run.evaluate import _find_explorer
from felicity.studies.reading.reading_page import _answer


def test_a_page_above_is_linked_only_if_it_has_the_run(tmp_path: Path) -> None:
    for name in ("b", "c"):
        (tmp_path / name).mkdir()
    assert not holds_run(tmp_path / "explore.html", tmp_path / "b")
    (tmp_path / "explore.html").write_text('{"models": [{"name": "x", "run": "b"}]}', encoding="utf-8")
    assert _find_explorer(tmp_path / "b", None) == "../explore.html#run=b"
    assert _find_explorer(tmp_path / "c", None) == "explore.html"


def test_words_of_reading_tasks_are_not_explored_as_judgements(tmp_path: Path) -> None:
    tasks = [{"dataset": "blimp", "score": "macro"}, {"dataset": "times", "score": "self_paced"}]
    (tmp_path / "study.json").write_text(json.dumps({"facts": {"tasks": tasks}}), encoding="utf-8")
    runs = [tmp_path / "models" / "x" / name for name in ("blimp", "times", "times_without_space")]
    assert _leave_out_words(tmp_path, runs) == runs[:1]
    with pytest.raises(BadInput, match="reading times alone"):
        _leave_out_words(tmp_path, runs[1:])


@pytest.mark.parametrize(
    ("tested", "begins"),
    [
        ((0.3, 0.002), "Yes: surprisal of m adds most for go past, 4.00"),
        ((0.3, 0.4), "No detectable difference"),
        ((None, None), "Surprisal of m adds most for first pass, 9.00"),
    ],
)
def test_yes_is_said_of_what_was_detected(tested: tuple[float | None, ...], begins: str) -> None:
    """The larger gain was not detected, the smaller one was; in sample nothing is tested."""
    lead = pl.DataFrame(
        {
            "model": ["m", "m"],
            "measure": ["first_pass", "go_past"],
            "delta_ll": [0.009, 0.004],
            "low": [-0.002, 0.001],
            "high": [0.02, 0.007],
            "n": [1000, 1000],
            "p_holm": pl.Series(tested, dtype=pl.Float64),
        }
    )
    schema = {"lead": pl.Boolean, "lag": pl.Int64, "measure": pl.String, "model": pl.String}
    assert _answer(lead, {"slopes": pl.DataFrame(schema=schema)}).startswith(begins)  # type: ignore[arg-type]
