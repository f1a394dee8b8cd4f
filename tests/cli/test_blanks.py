"""The commands fill and generate, and the option --policy."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Answer
from tests.engines.shapes import make_masked

Cli = Callable[..., Answer]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_masked("bert", tmp_path_factory.mktemp("cli") / "tiny-bert")


def test_fill_shows_the_likeliest_words(cli: Cli, bert: Path) -> None:
    answer = cli("fill", "The ___ is here.", "-m", bert, "-k", 3)
    assert answer.code == 0, answer.err
    assert "The ___ is here." in answer.out
    assert [line.split()[0] for line in answer.out.splitlines()[-3:]] == ["1", "2", "3"]


def test_fill_gives_a_program_ranks_and_log_probabilities(cli: Cli, tiny_model: Path) -> None:
    told = json.loads(cli("fill", "The cat ___.", "-m", tiny_model, "-k", 4, "--json").out)
    assert [row["rank"] for row in told] == [1, 2, 3, 4]
    assert sorted((row["logprob"] for row in told), reverse=True) == [row["logprob"] for row in told]


def test_fill_scores_words_of_ones_own_and_says_what_was_not_read(cli: Cli, tiny_model: Path) -> None:
    answer = cli("fill", "The cat ___.", "-m", tiny_model, "-w", "annoys", "-w", "barked")
    assert "The text after the blank is ignored." in answer.err
    assert "annoys" in answer.out
    assert "barked" in answer.out


def test_generate_writes_prompts_on(cli: Cli, tiny_model: Path) -> None:
    answer = cli("generate", "The cats", "No dog", "-m", tiny_model, "--tokens", 3)
    assert answer.code == 0, answer.err
    told = json.loads(cli("generate", "The cats", "-m", tiny_model, "--tokens", 3, "--json").out)
    assert f"The cats{told[0]['continuation']}\n" in answer.out
    assert told[0]["n_tokens"] == 3


def test_a_field_of_the_policy_can_be_set_by_name(cli: Cli, bert: Path) -> None:
    told = json.loads(cli("models", "info", bert, "--policy", "pll=original", "--json").out)
    assert told["policy"]["pll"] == "original"
    assert told["can"] == ["score", "more", "fill"]
    usual = json.loads(cli("models", "info", bert, "--json").out)
    assert usual["policy"]["pll"] == "word_l2r"
    assert usual["key"] != told["key"]


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("pll=word_l2r", "of the family causal, which does not use --policy pll"),
        ("pll", "is not FIELD=VALUE"),
        ("ppl=original", "did you mean 'pll'"),
        ("pll=originl", "did you mean 'original'"),
    ],
)
def test_a_field_that_makes_no_sense_is_refused(cli: Cli, tiny_model: Path, field: str, said: str) -> None:
    answer = cli("judge", "He left.", "Him left.", "-m", tiny_model, "--policy", field)
    assert answer.code == 2
    assert said in answer.err


def test_compat_minicons_serves_causal_and_masked_models(cli: Cli, tiny_model: Path, bert: Path) -> None:
    for model, pll in ((tiny_model, "auto"), (bert, "original")):
        told = json.loads(cli("models", "info", model, "--compat", "minicons", "--json").out)
        assert told["policy"]["pll"] == pll
