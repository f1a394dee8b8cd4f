"""The commands over stats/: that they ask the right question of the right tables."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.policy import Policy
from felicity.run.evaluate import evaluate, read_run
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
    assert (row["clusters"], row["test"], row["over"]) == (4, "score", "suites")
    row = json.loads(cli("compare", *runs, "--items", "--json").out)[0]
    assert (row["clusters"], row["over"]) == (4, "items")


# Right answers of two models to the same items, by phenomenon and suite: none, one and three suites, of few
# items; suites that agree perfectly, that contradict each other, and models that agree on every item.
FEW = {
    ("even", "a"): ([1, 1, 1, 0, 0, 0, 0, 0, 0, 0], [0] * 10),
    ("even", "b"): ([1, 1, 1, 0, 0, 0, 0, 0, 0, 0], [0] * 10),
    ("torn", "c"): ([1, 1, 1, 1, 1], [0] * 5),
    ("torn", "d"): ([0, 0, 0, 0, 1], [1, 0, 0, 0, 0]),
    ("same", "e"): ([1, 0, 1, 0], [1, 0, 1, 0]),
    ("same", "f"): ([1, 1, 1, 0], [1, 1, 1, 0]),
    ("lone", "g"): ([1, 1, 1, 1, 1, 0], [0, 0, 0, 1, 0, 0]),
    ("torn", "h"): ([1, 0, 1], [0, 0, 0]),
}


@pytest.fixture
def few_suites(cli: Cli, tmp_path: Path) -> list[Path]:
    """Two runs whose answers are those of FEW, replayed from scores."""
    folders = []
    for side in (0, 1):
        rows = ["item,suite,phenomenon,condition,value"]
        for (phenomenon, suite), answers in FEW.items():
            for number, passed in enumerate(answers[side]):
                item = f"{suite}/{number},{suite},{phenomenon}"
                rows += [f"{item},good,{passed}", f"{item},bad,0.5"]
        table = tmp_path / f"model{side}.csv"
        table.write_text("\n".join(rows) + "\n")
        folders.append(tmp_path / f"run{side}")
        assert cli("replay", table, "-o", folders[-1], "--no-report").code == 0
    return folders


def test_few_suites_have_intervals_that_are_possible_and_agree_with_their_p(
    cli: Cli, few_suites: list[Path]
) -> None:
    rows = json.loads(cli("compare", *few_suites, "--by", "phenomenon", "--json").out)
    assert {row["group"]: (row["clusters"], row["over"]) for row in rows} == {
        "even": (2, "suites"),
        "torn": (3, "suites"),
        "same": (2, "suites"),
        "lone": (1, "items"),
    }
    for row in rows:
        assert -1 <= row["low"] < row["high"] <= 1, row
        assert (row["low"] > 0 or row["high"] < 0) == (row["p"] < 0.05), row
    said = cli("compare", *few_suites, "--by", "phenomenon").out
    assert {"suites", "over", "least", "p"} <= set(said.splitlines()[1].split())
    assert "over items where there is one suite, and then not about others" in said
    flipped = cli("compare", *few_suites, "--by", "phenomenon", "--test", "permutation").out
    # Two suites allow no p below 2 / 2^2 and three none below 2 / 2^3; six items allow 2 / 2^6, and by Holm 4
    # times that.
    assert "4 of 4 comparisons cannot reach p < 0.05 after Holm's adjustment" in flipped


def test_accuracies_of_few_suites_say_over_what_they_are(cli: Cli, few_suites: list[Path]) -> None:
    estimates = read_run(few_suites[0]).accuracy("phenomenon")
    for row in estimates.to_dicts():
        assert 0 <= row["low"] < row["accuracy"] < row["high"] <= 1, row
        assert row["interval"] == ("Wilson over items" if row["suites"] == 1 else "Wilson over suites")


def test_run_takes_items_or_suites_as_independent(cli: Cli, tiny_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = [f"s{i % 4},The cats {i} annoy Tim.,The cats {i} annoys Tim." for i in range(12)]
    path.write_text("suite,good,bad\n" + "\n".join(rows) + "\n")
    for option, over in (((), "suites"), (("--suites",), "suites"), (("--items",), "items")):
        answer = cli("run", path, "-m", tiny_model, "-o", tmp_path / "run", "--no-report", "-q", *option)
        assert answer.code == 0, answer.err
        (row,) = read_run(tmp_path / "run").accuracy().to_dicts()
        assert row["interval"] == f"Wilson over {over}"
        assert f"4 suites; interval over {over}" in answer.out


def test_mcnemars_exact_test_of_several_suites_is_refused(cli: Cli, runs: tuple[Path, Path]) -> None:
    answer = cli("compare", *runs, "--test", "exact")
    assert answer.code == 2
    assert "takes items as independent, but these come from 4 suites" in answer.err
    assert "--items" in answer.err


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
        cli(
            "power",
            "--only-first",
            165 / 1500,
            "--only-second",
            121 / 1500,
            "-n",
            1500,
            "--test",
            "exact",
            "--json",
        ).out
    )
    assert told["power"] == pytest.approx(0.722, abs=5e-4)
    assert told["items_needed"] > 1500
    assert told["curve"][0]["n"] < told["curve"][-1]["n"]


def test_power_is_that_of_the_test_that_compare_runs(cli: Cli, few_suites: list[Path]) -> None:
    compared = json.loads(cli("compare", *few_suites, "--json").out)[0]
    told = json.loads(cli("power", *few_suites, "--json").out)
    assert (told["test"], told["suites"], told["n"]) == (
        compared["test"],
        compared["clusters"],
        compared["n"],
    )
    assert told["suites_needed"] > 8
    assert told["between"] > 0.1
    said = cli("power", *few_suites).out
    assert "the score test over suites on 47 items of 8 suites" in said
    over_items = json.loads(cli("power", *few_suites, "--suites", 1, "--json").out)
    assert over_items["power"] > told["power"]
    assert over_items["items_needed"] > 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("power", "--only-first", "0.1", "--only-second", "0.05", "-n", "80", "--suites", "4"), "--between"),
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
