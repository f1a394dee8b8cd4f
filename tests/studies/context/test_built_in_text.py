"""Unrelated contexts where WikiText-103 is missing."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.studies.context.sweep_design import BUILT_IN_TEXT, find_text
from tests.conftest import Answer, make_tiny_model


@pytest.fixture
def no_wikitext(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("FELICITY_DATA", str(tmp_path / "data"))


@pytest.mark.usefixtures("no_wikitext")
def test_the_built_in_text_stands_in_and_is_noted_on_stderr_and_in_the_record(
    cli: Callable[..., Answer], tmp_path: Path
) -> None:
    folder = tmp_path / "study"
    model = make_tiny_model(tmp_path / "wide-gpt2", seed=3, window=512)
    answer = cli(
        "context", "starter", "-m", model, "--phenomenon", "binding", "--sample", "2", "--kind",
        "unrelated", "--lengths", "0,20", "--no-report", "-o", folder,
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert "unrelated contexts are drawn from the built-in text" in " ".join(answer.err.split())
    record = json.loads((folder / "study.json").read_text(encoding="utf-8"))
    assert any("built-in text" in note for note in record["notes"])
    assert find_text(None, ("unrelated",)) == BUILT_IN_TEXT


@pytest.mark.usefixtures("no_wikitext")
def test_other_kinds_need_no_text() -> None:
    assert find_text(None, ("matched_acceptable",)) is None


def test_wikitext_is_preferred_where_it_is_present(published: Callable[[str], Path]) -> None:
    assert find_text(None, ("unrelated",)) == published("wikitext103/wiki.test.raw.gz")
