"""Contexts handed on, studies taken up again, and what a study refuses before it scores anything."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.settings import check_settings
from felicity.run import StudyFolder, read_record
from felicity.studies import STUDIES, NamedModel
from felicity.studies.context.settings import parse_lengths
from felicity.studies.driver import begin_study
from tests.conftest import Answer, make_tiny_model

CROSSED = {"contexts_per_suite": 3, "lengths": (0, 10, 20), "kinds": ("matched_acceptable",)}
WORDS = ("cat", "dog", "cow", "pig", "fox", "hen", "owl", "bee", "ant", "elk", "yak", "emu")


@pytest.fixture(autouse=True)
def _count_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lengths are counted in words."""
    monkeypatch.setattr(
        "felicity.studies.context.sweep_plan.open_counter",
        lambda _: lambda texts: [len(text.split()) for text in texts],
    )


def write_pairs(path: Path, names: tuple[str, ...] = WORDS) -> Path:
    rows = [
        f"{suite},The {name} {verb}s now.,The {name} {verb} now."
        for suite, verb in (("a", "run"), ("b", "sleep"))
        for name in names
    ]
    path.write_text("suite,good,bad\n" + "\n".join(rows) + "\n")
    return path


def plan(folder: Path, dataset: Path, **changes: Any) -> StudyFolder:
    """A study that is begun and not scored; contexts that are given determine the rest."""
    asked = {"dataset": str(dataset)} | ({} if "contexts" in changes else CROSSED) | changes
    settings = check_settings(STUDIES["context"].settings, asked)
    model = NamedModel(name="words", spec="words", opener=lambda _: pytest.fail("nothing is scored"))
    begin_study(STUDIES["context"], settings, [model], folder)
    return StudyFolder(folder, read_record(folder))


def stands_in_own_context(study: StudyFolder) -> int:
    texts = study.read("contexts").select("context", "origins").unique("context")
    behind = study.read("requests").join(texts, on="context")
    return behind.filter(pl.col("origins").list.contains(pl.col("item"))).height


def test_contexts_bring_their_items_and_groups_with_them(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.csv")
    first = plan(tmp_path / "one", pairs, sample=8, seed=4)
    second = plan(tmp_path / "two", pairs, contexts=tmp_path / "one" / "contexts.parquet")
    assert second.read("requests").equals(first.read("requests"))
    assert stands_in_own_context(second) == 0
    assert second.facts["design"] == first.facts["design"]
    assert (second.facts["design"]["sample"], second.facts["design"]["seed"]) == (8, 4)


def test_contexts_drawn_for_other_items_are_refused(tmp_path: Path) -> None:
    plan(tmp_path / "one", write_pairs(tmp_path / "pairs.csv"))
    table = tmp_path / "one" / "contexts.parquet"
    other = write_pairs(tmp_path / "other.csv", tuple(reversed(WORDS)))
    with pytest.raises(BadInput, match="drawn for other items"):
        plan(tmp_path / "two", other, contexts=table)
    with pytest.raises(BadInput, match="There is no file"):
        plan(tmp_path / "three", tmp_path / "pairs.csv", contexts=tmp_path / "nowhere.parquet")
    alone = tmp_path / "elsewhere.parquet"
    alone.write_bytes(table.read_bytes())
    with pytest.raises(BadInput, match=r"no study\.json beside it"):
        plan(tmp_path / "three", tmp_path / "pairs.csv", contexts=alone)


def test_a_dataset_changed_between_two_calls_is_noticed(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.csv")
    plan(tmp_path / "one", pairs)
    write_pairs(pairs, (WORDS[-1], *WORDS[:-1]))
    with pytest.raises(BadInput, match="data of the study .* has changed"):
        plan(tmp_path / "one", pairs)


def test_a_study_goes_on_only_with_the_contexts_it_had(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.csv")
    plan(tmp_path / "one", pairs)
    plan(tmp_path / "two", pairs, seed=1)
    given = tmp_path / "one" / "contexts.parquet"
    plan(tmp_path / "three", pairs, contexts=given)
    assert plan(tmp_path / "three", pairs, contexts=given).read("contexts").height > 0
    with pytest.raises(BadInput, match="another"):
        plan(tmp_path / "three", pairs, contexts=tmp_path / "two" / "contexts.parquet")
    with pytest.raises(BadInput, match="another"):
        plan(tmp_path / "three", pairs)


def test_a_suite_too_small_for_a_context_does_not_stop_the_next_call(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.csv")
    with pairs.open("a") as more:
        more.write("tiny,It rains here.,It rain here.\n")
    first = plan(tmp_path / "one", pairs)
    assert any("tiny: too few sentences" in note for note in first.record["notes"])
    again = plan(tmp_path / "one", pairs)
    assert again.record["notes"] == first.record["notes"]
    assert again.read("requests").equals(first.read("requests"))


def test_the_folder_of_a_run_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    with pytest.raises(BadInput, match="contains a run"):
        plan(folder, write_pairs(tmp_path / "pairs.csv"))
    assert [path.name for path in folder.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"perturbations": ("none",)}, "omit 'none'"),
        ({"perturbations": ("adverb_before", "adverb_before")}, "requested twice"),
        ({"from_suites": ("a", "a")}, "named twice"),
        ({"seed": -1}, "at least 0"),
        ({"lengths": (0, 5_000_000_000)}, "Contexts are limited"),
        ({"conditions": Path("nowhere.toml")}, r"no file nowhere\.toml"),
        ({"measure": "sloor"}, "slor"),
        ({"measure": "slor"}, "choose lp"),
    ],
)
def test_what_would_spoil_a_study_is_refused_before_it_begins(
    tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    with pytest.raises(FelicityError, match=said):
        plan(tmp_path / "one", write_pairs(tmp_path / "pairs.csv"), **changes)


def test_one_side_of_a_named_suite_can_be_asked_for_alone(tmp_path: Path) -> None:
    pairs = write_pairs(tmp_path / "pairs.csv")
    found = plan(tmp_path / "one", pairs, kinds=("from_acceptable",), from_suites=("a",))
    assert found.read("contexts")["kind"].unique().to_list() == ["from_acceptable"]
    every = plan(tmp_path / "two", pairs, kinds=(), from_suites=("all", "a"))
    assert sorted(every.read("contexts")["source"].unique()) == ["a", "b"]


@pytest.mark.parametrize("grid", ["0:10000000000:1", "0:10:3"])
def test_lengths_that_miss_their_end_or_are_too_many_are_refused(grid: str) -> None:
    with pytest.raises(BadInput, match="step"):
        parse_lengths(grid)


def write_suite(path: Path) -> Path:
    items = "\n".join(
        f'[[items]]\nright = ["The {name}", "runs."]\nwrong = ["The {name}", "run."]\n' for name in WORDS
    )
    path.write_text(
        'name = "own"\nregions = ["subject", "verb"]\npredictions = ["(2;%right%) < (2;%wrong%)"]\n\n' + items
    )
    return path


def test_a_table_of_conditions_opens_a_suite_of_ones_own(tmp_path: Path) -> None:
    suite = write_suite(tmp_path / "own.toml")
    with pytest.raises(NotPossible, match="--conditions"):
        plan(tmp_path / "one", suite)
    table = tmp_path / "conditions.toml"
    table.write_text('[[suites]]\nnames = ["own"]\nacceptable = ["right"]\nunacceptable = ["wrong"]\n')
    found = plan(tmp_path / "two", suite, conditions=table)
    assert found.read("contexts")["sentences"].explode().str.ends_with("runs.").all()
    text = tmp_path / "text.txt"
    text.write_text(" ".join(f"It was day {number} of the long rain." for number in range(40)))
    unrelated = plan(tmp_path / "three", suite, kinds=("unrelated",), text=text)
    assert unrelated.read("items")["item"].n_unique() == len(WORDS)


def test_options_that_decide_contexts_do_not_go_with_contexts_that_are_given(
    cli: Callable[..., Answer], tmp_path: Path
) -> None:
    pairs = write_pairs(tmp_path / "pairs.csv")
    plan(tmp_path / "one", pairs)
    model = make_tiny_model(tmp_path / "tiny", seed=1)
    asked = ("context", pairs, "--contexts", tmp_path / "one" / "contexts.parquet", "-o", tmp_path / "two")
    for option in (("--seed", 1), ("--kind", "unrelated"), ("--lengths", "0,5"), ("--draws", 2)):
        answer = cli(*asked, *option, "-m", model)
        assert answer.code == 2
        assert "omit one of the two" in answer.err
    with pytest.raises(BadInput, match="its sample"):
        fe.context(pairs, models=str(model), out=tmp_path / "two", contexts=asked[3], sample=2)  # type: ignore[attr-defined]
