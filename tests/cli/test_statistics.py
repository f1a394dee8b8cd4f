"""The commands over stats/: that they ask the right question of the right tables."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.policy import Policy
from felicity.run.evaluate import evaluate
from felicity.run.model import open_model
from tests.conftest import Answer

Cli = Callable[..., Answer]

# The first five herds of lme4's cbpp.
CBPP = """herd,hits,n,period
1,2,14,p1
1,3,12,p2
1,4,9,p3
1,0,5,p4
2,3,22,p1
2,1,18,p2
2,1,21,p3
3,8,22,p1
3,2,16,p2
3,0,16,p3
3,2,20,p4
4,2,10,p1
4,0,10,p2
4,2,9,p3
4,0,6,p4
5,5,18,p1
5,0,25,p2
5,0,24,p3
5,1,4,p4
"""

# print(fixef(m), digits = 8) of the model in the test below, R 4.2, lme4, bobyqa.
GLMER_ESTIMATES = [-1.1997525, -1.3267335, -1.1220545, -1.2401416]


@pytest.fixture
def runs(tmp_path: Path, tiny_model: Path) -> tuple[Path, Path]:
    """Two runs of the same pairs, with and without the begin token."""
    path = tmp_path / "pairs.csv"
    words = ["cats", "dogs", "birds", "boys", "girls", "lions"]
    rows = [f"s{i % 4},The {w} {i} annoy Tim.,The {w} {i} annoys Tim." for i in range(5) for w in words]
    path.write_text("suite,good,bad\n" + "\n".join(rows) + "\n")
    for name, bos in (("one", "auto"), ("two", "none")):
        evaluate(str(path), open_model(str(tiny_model), policy=Policy(bos=bos)), out=tmp_path / name)
    return tmp_path / "one", tmp_path / "two"


def test_compare_counts_the_items_the_runs_differ_on(cli: Cli, runs: tuple[Path, Path]) -> None:
    row = json.loads(cli("compare", *runs, "--items", "--test", "exact", "--json").out)[0]
    one, two = (pl.read_parquet(run / "judgements.parquet").sort("item")["passed"] for run in runs)
    assert (row["only_first"], row["only_second"]) == ((one > two).sum(), (one < two).sum())
    assert row["difference"] == pytest.approx(one.mean() - two.mean())


def test_compare_takes_suites_as_wholes_unless_told_otherwise(cli: Cli, runs: tuple[Path, Path]) -> None:
    row = json.loads(cli("compare", *runs, "--json").out)[0]
    assert (row["clusters"], row["test"]) == (4, "permutation")


def test_compare_says_it_in_words_and_draws_it(cli: Cli, runs: tuple[Path, Path], tmp_path: Path) -> None:
    answer = cli("compare", *runs, "--figure", tmp_path / "differences.svg")
    assert "items judged right" in answer.out
    assert "no detectable difference" in answer.out
    assert (tmp_path / "differences.svg").read_text().startswith("<svg")


def test_runs_of_other_items_are_refused(
    cli: Cli, runs: tuple[Path, Path], tiny_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "other.csv"
    path.write_text("good,bad\nHe left.,Him left.\nShe left.,Her left.\n")
    evaluate(str(path), open_model(str(tiny_model)), out=tmp_path / "three")
    answer = cli("compare", runs[0], tmp_path / "three")
    assert answer.code == 2
    assert len(answer.err.strip().splitlines()) == 1


def test_fit_gives_glmers_numbers_on_counts(cli: Cli, tmp_path: Path) -> None:
    # R: m <- glmer(cbind(hits, n - hits) ~ period + (1|herd), cbpp[1:19, ], family = binomial)
    (tmp_path / "cbpp.csv").write_text(CBPP)
    formula = "cbind(hits, n - hits) ~ period + (1|herd)"
    answer = cli("fit", formula, tmp_path / "cbpp.csv", "--family", "binomial", "--json")
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    assert [row["term"] for row in told["fixed"]] == ["(Intercept)", "periodp2", "periodp3", "periodp4"]
    assert {"criterion", "n", "singular", "r2_marginal", "r2_conditional", "random"} <= set(told)
    assert [row["estimate"] for row in told["fixed"]] == pytest.approx(GLMER_ESTIMATES, abs=2e-3)


def test_fit_on_a_run_takes_its_judgements(cli: Cli, runs: tuple[Path, Path], tmp_path: Path) -> None:
    answer = cli("fit", "margin ~ 1 + (1|suite)", runs[0], "--json")
    told = json.loads(answer.out)
    margins = pl.read_parquet(runs[0] / "judgements.parquet")["margin"]
    assert told["n"] == len(margins)
    assert told["fixed"][0]["estimate"] == pytest.approx(margins.mean(), abs=0.05)
    drawn = cli("fit", "margin ~ 1 + (1|suite)", runs[0], "--figure", tmp_path / "c.png")
    assert "linear mixed model" in drawn.out
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_power_of_assumed_shares_is_the_published_one(cli: Cli) -> None:
    # Shivagunde et al. (2023), ROLE-1500, as published: 165 and 121 of 1500 items, power .722.
    told = json.loads(
        cli("power", "--only-first", 165 / 1500, "--only-second", 121 / 1500, "-n", 1500, "--json").out
    )
    assert told["power"] == pytest.approx(0.722, abs=5e-4)
    assert told["items_needed"] > 1500
    assert told["curve"][0]["n"] < told["curve"][-1]["n"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fit", "y ~ x", "absent.csv"), "absent.csv"),
        (("fit", "y ~ x", "{dir}"), "not a run folder"),
        (("compare", "{dir}", "{dir}"), "not a run folder"),
        (("power", "--only-first", "0.1"), "Give two runs, or all of"),
        (("power", "--only-first", "2", "--only-second", "0.1", "-n", "10"), "."),
    ],
)
def test_wrong_use_is_one_sentence(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], said: str) -> None:
    answer = cli(*(text.replace("{dir}", str(tmp_path)) for text in arguments))
    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_a_figure_of_another_kind_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("y,x\n1,2\n2,3\n3,5\n4,4\n")
    answer = cli("fit", "y ~ x", tmp_path / "t.csv", "--figure", tmp_path / "f.pdf")
    assert answer.code == 2
    assert ".svg or .png" in answer.err
