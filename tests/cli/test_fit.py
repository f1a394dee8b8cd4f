"""felicity fit: ordinal and plain regressions, their printed output, and formulas that are refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Answer

Cli = Callable[..., Answer]

DATA = Path(__file__).parents[1] / "stats" / "mixed" / "data"
WINE, RATINGS, CAKE = DATA / "wine.csv", DATA / "ratings.csv", DATA / "cake.csv"


def test_an_ordinal_mixed_model_has_thresholds_beside_fixed_and_random(cli: Cli) -> None:
    # R: clmm(rating ~ temp + contact + (1 | judge), data = wine)
    answer = cli("fit", "rating ~ temp + contact + (1|judge)", WINE, "--family", "cumulative", "--json")
    assert answer.code == 0, answer.err
    told = json.loads(answer.out)
    assert [row["term"] for row in told["thresholds"]] == ["1|2", "2|3", "3|4", "4|5"]
    assert set(told["thresholds"][0]) == {"term", "estimate", "se"}
    assert told["thresholds"][0]["estimate"] == pytest.approx(-1.62367, abs=1e-5)
    assert [row["estimate"] for row in told["fixed"]] == pytest.approx([3.06300, 1.83490], abs=2e-5)
    assert [row["se"] for row in told["fixed"]] == pytest.approx([0.59538, 0.51254], abs=3e-5)
    assert told["random"] == [
        {"group": "judge", "term": "(Intercept)", "sd": pytest.approx(1.13114, abs=1e-5), "corr": None}
    ]
    assert (told["singular"], told["converged"], told["link"]) == (False, True, "logit")


def test_the_link_can_be_probit(cli: Cli) -> None:
    # R: clm(rating ~ temp + contact, data = wine, link = "probit")
    answer = cli(
        "fit", "rating ~ temp + contact", WINE, "--family", "cumulative", "--link", "probit", "--json"
    )
    told = json.loads(answer.out)
    assert [row["estimate"] for row in told["fixed"]] == pytest.approx([1.49937458, 0.86774354], abs=1e-7)
    assert told["random"] == []


def test_a_plain_logistic_regression_needs_no_random_term(cli: Cli) -> None:
    # R: glm(cbind(incidence, size - incidence) ~ factor(period), binomial, cbpp)
    formula = "cbind(incidence, size - incidence) ~ factor(period)"
    answer = cli("fit", formula, DATA / "cbpp.csv", "--family", "binomial", "--json")
    rows = json.loads(answer.out)["fixed"]
    assert [row["term"] for row in rows][1] == "factor(period)2"
    estimates = [-1.269023489, -1.170762725, -1.301405334, -1.782278635]
    assert [row["estimate"] for row in rows] == pytest.approx(estimates, rel=1e-8)


@pytest.mark.parametrize(
    ("formula", "options"),
    [
        ("rating ~ context + bias + (1|rater)", ("--family", "cumulative")),
        ("rating ~ context + bias", ("--family", "cumulative")),
        ("rating ~ context + bias + (1|rater)", ()),
        ("rating ~ context + bias", ()),
    ],
)
def test_each_coefficient_is_printed_once(cli: Cli, formula: str, options: tuple[str, ...]) -> None:
    answer = cli("fit", formula, RATINGS, *options)
    assert answer.code == 0, answer.err
    assert answer.out.count("contextnone") == 1
    assert "AIC" in answer.out


def test_sum_coded_terms_have_a_key(cli: Cli) -> None:
    answer = cli("fit", "angle ~ recipe + temp + (1|replicate)", CAKE, "--contrast", "recipe=sum")
    lines = [" ".join(line.split()) for line in answer.out.splitlines()]
    assert "recipe1 A against the mean of A, B, C (C is minus the sum)" in lines
    assert "recipe2 B against the mean of A, B, C (C is minus the sum)" in lines
    told = json.loads(cli("fit", "angle ~ recipe + temp", CAKE, "--contrast", "recipe=sum", "--json").out)
    assert told["codings"] == {"recipe1": {"A": 1, "B": 0, "C": -1}, "recipe2": {"A": 0, "B": 1, "C": -1}}


def test_treatment_coded_terms_name_their_reference(cli: Cli) -> None:
    answer = cli("fit", "angle ~ recipe * temp", CAKE)
    assert "each level against A" in answer.out
    told = json.loads(cli("fit", "angle ~ recipe * temp", CAKE, "--json").out)
    assert (told["references"], told["codings"]) == ({"recipe": "A"}, {})


def test_ties_of_a_run_are_dropped_and_counted(cli: Cli, tmp_path: Path) -> None:
    rows = [f"{'ab'[i % 2]},{(0, 0.5, 1)[i % 3]}" for i in range(60)]
    (tmp_path / "t.csv").write_text("cond,passed\n" + "\n".join(rows) + "\n")
    answer = cli("fit", "passed ~ cond", tmp_path / "t.csv", "--family", "binomial")
    assert "20 of 60 rows are ties and were dropped." in answer.out
    answer = cli("fit", "passed ~ cond", tmp_path / "t.csv", "--family", "binomial", "--ties", "wrong")
    assert "20 of 60 rows are ties and were counted as wrong." in answer.out


@pytest.mark.parametrize(
    ("formula", "options", "said"),
    [
        ("rating ~ " + "+".join(["bias"] * 3001), (), "more than 300 operators"),
        ("rating ~ bias + (0|rater)", (), "has no effects"),
        ("rating ~ bi\udcffas", (), "not UTF-8 text"),
        ("rating ~ __import__('os')", (), "has no meaning"),
        ("rating ~ np.log(bias)", (), "'np.log' is not a function of formulas"),
        ("bias ~ context", ("--family", "cumulative"), "whole numbers"),
        ("context ~ bias", ("--family", "cumulative"), "is text"),
        ("rating ~ bias", ("--family", "ordinal"), "There is no family 'ordinal'"),
        ("rating ~ bias", ("--link", "probit"), "There is no link 'probit'"),
        ("rating ~ bias", ("--family", "binomial"), "a binomial model needs 0 and 1"),
        ("rating ~ 1", ("--family", "cumulative", "--figure", "never.svg"), "no coefficients to draw"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_one_sentence(
    cli: Cli, formula: str, options: tuple[str, ...], said: str
) -> None:
    answer = cli("fit", formula, RATINGS, *options)
    assert answer.code == 2
    assert said in answer.err
    assert len(answer.err.strip().splitlines()) == 1
