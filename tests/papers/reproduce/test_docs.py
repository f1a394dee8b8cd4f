"""The claims file that the docs show works as it stands there."""

import re
from collections.abc import Callable
from pathlib import Path

from felicity.papers.reproduce import list_papers, read_paper
from tests.conftest import ROOT, Answer

PAGE = (ROOT / "docs" / "studies" / "reproduce.md").read_text(encoding="utf-8")


def test_the_example_of_the_docs_is_as_expected(tmp_path: Path, cli: Callable[..., Answer]) -> None:
    for language, name in (("csv", "ratings.csv"), ("toml", "claims.toml"), ("python", "analysis.py")):
        block = re.search(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
        assert block is not None
        (tmp_path / name).write_text(block[1], encoding="utf-8")
    answer = cli("reproduce", tmp_path / "claims.toml", "-o", tmp_path / "check")
    assert answer.code == 0, answer.out + answer.err
    assert "holds: 5, does not hold: 1" in answer.out


def test_the_docs_count_the_claims_of_every_paper() -> None:
    told = {name: int(count) for name, count in re.findall(r"^\| `(\w+)` \| (\d+) \|", PAGE, re.MULTILINE)}
    assert told == {name: len(read_paper(name).claims) for name in list_papers()}
