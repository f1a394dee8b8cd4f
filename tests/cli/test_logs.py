"""What a log or a pipe gets: a line when a model is loaded, steady counts, errors before any loading."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.engines.runtime.devices import read_quota
from tests.conftest import Answer

Cli = Callable[..., Answer]
COUNT = re.compile(r"^(.+): (\d+)% \(([\d,]+) of ([\d,]+)\)$", re.MULTILINE)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """Forty pairs of sentences of many lengths, so that there are several batches."""
    path = tmp_path / "pairs.csv"
    nouns = ("cat", "dog", "cats", "dogs", "Tim")
    ends = [" and it" * number for number in range(8)]
    rows = [f"The {noun} sees it{end}.,The {noun} see it{end}." for end in ends for noun in nouns]
    path.write_text("good,bad\n" + "\n".join(rows) + "\n")
    return path


def test_a_piped_run_says_that_it_loads_and_counts_to_the_end(
    cli: Cli, pairs: Path, tiny_model: Path
) -> None:
    options = ("-m", tiny_model, "-o", pairs.parent / "run", "--no-report")
    said = cli("run", pairs, *options).err
    assert said.count(f"Loading {tiny_model.name} ...") == 1
    counts = COUNT.findall(said)
    assert counts, said
    assert counts[-1][1:] == ("100", "80", "80")
    assert len({total for *_, total in counts}) == 1
    shares = [int(share) for _, share, *_ in counts]
    assert shares == sorted(shares)
    # Nothing is loaded where everything is scored already.
    again = cli("run", pairs, *options).err
    assert "Loading" not in again


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--measure", "slr"), "did you mean 'slor'"),
        (("--measure", "slor"), "--unigram"),
        (("--suite", "non"), "non"),
        (("--bos", "none", "--policy", "pl=original"), "pl"),
    ],
)
def test_names_and_options_are_checked_before_a_model_is_looked_for(
    cli: Cli, pairs: Path, options: tuple[str, ...], said: str
) -> None:
    answer = cli("run", pairs, "-m", "no-such-folder/no-such-model", *options)
    assert answer.code == 2
    assert said in answer.err
    assert "no-such-model" not in answer.err


def test_a_misspelt_dataset_or_unit_is_named_before_the_model(cli: Cli, pairs: Path) -> None:
    for command, said in (
        (("run", "blmip"), "did you mean 'blimp'"),
        (("surprisal", pairs, "--text", "good", "--by", "wrod"), "did you mean 'word'"),
        (("surprisal", pairs, "--text", "good", "--unit", "bit"), "did you mean 'bits'"),
    ):
        answer = cli(*command, "-m", "no-such-folder/no-such-model")
        assert answer.code == 2
        assert said in answer.err


def test_the_share_of_a_container_limits_the_threads(tmp_path: Path) -> None:
    path = tmp_path / "cpu.max"
    path.write_text("150000 100000\n")
    assert read_quota(path) == 2
    path.write_text("max 100000\n")
    assert read_quota(path) is None
    assert read_quota(tmp_path / "missing") is None
