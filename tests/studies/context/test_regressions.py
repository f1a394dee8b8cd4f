import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.stats import compare_conclusions
from felicity.studies.context import regressions
from felicity.studies.context.sweep_tables import REGRESSIONS
from tests.studies.context.sweeps import judge, sweep, table

# lme4 1.1.31 on the same rows, unmerged, written out as CSV:
#   d$hit <- as.integer(d$passed == 1)
#   e <- subset(d, !(kind %in% c("none", "unrelated")))
#   e$matched <- ifelse(startsWith(e$kind, "matched"), 1, -1)
#   e$acceptable <- ifelse(endsWith(e$kind, "_acceptable"), 1, -1)
#   control <- glmerControl(optimizer = "bobyqa", optCtrl = list(maxfun = 1e6), tolPwrss = 1e-12)
#   glmer(hit ~ log(length) * matched * acceptable + (1 | phenomenon), e, binomial, control = control)
#   glmer(hit ~ log(length) + (1 | phenomenon), subset(d, kind == "unrelated"), binomial, control = control)
OWN = {
    ("context", "(Intercept)"): (1.04290814, 0.46441500),
    ("context", "log(length)"): (-0.03265983, 0.07889329),
    ("context", "matched"): (0.28844755, 0.44852767),
    ("context", "acceptable"): (-0.73625290, 0.44851162),
    ("context", "log(length):matched"): (-0.05798010, 0.07889807),
    ("context", "log(length):acceptable"): (0.23726467, 0.07890493),
    ("context", "matched:acceptable"): (-0.78773378, 0.44852882),
    ("context", "log(length):matched:acceptable"): (0.21192685, 0.07890400),
    ("unrelated", "(Intercept)"): (0.87327336, 0.8592619),
    ("unrelated", "log(length)"): (0.02427856, 0.1486442),
}
# The same calls with + (1 | series).
SHARED = {
    ("context", "(Intercept)"): (1.069410580, 0.36966646),
    ("context", "log(length)"): (-0.008261539, 0.05918054),
    ("context", "matched"): (0.129850008, 0.33912270),
    ("context", "acceptable"): (-0.865960742, 0.33914055),
    ("context", "log(length):matched"): (-0.028982078, 0.05917890),
    ("context", "log(length):acceptable"): (0.271828111, 0.05927762),
    ("context", "matched:acceptable"): (-0.931974467, 0.33919357),
    ("context", "log(length):matched:acceptable"): (0.251110241, 0.05926482),
    ("unrelated", "(Intercept)"): (1.03624053, 0.6409890),
    ("unrelated", "log(length)"): (0.01301122, 0.1088299),
}


# The first call with + (1 | item).
BY_ITEM = {
    "(Intercept)": (1.2671454468, 0.5020147040),
    "log(length)": (-0.0471404566, 0.0841572361),
    "matched": (0.3715860024, 0.4791669566),
    "acceptable": (-0.8426982740, 0.4793426191),
    "log(length):matched": (-0.0761011669, 0.0841845747),
    "log(length):acceptable": (0.2723862172, 0.0844050446),
    "matched:acceptable": (-0.9038946750, 0.4794450326),
    "log(length):matched:acceptable": (0.2434226549, 0.0843456900),
}


def fit_regressions(judgements: pl.DataFrame) -> pl.DataFrame:
    """Without the models that stand beside those of the paper."""
    terms = regressions.fit_regressions(judgements)
    return terms.filter(~pl.col("analysis").str.contains("items repeated", literal=True))


def own() -> pl.DataFrame:
    return sweep(tie_every=50)


def shared() -> pl.DataFrame:
    return sweep(items=24, groups=4)


@pytest.mark.parametrize(
    ("judgements", "expected"), [(own(), OWN), (shared(), SHARED)], ids=["own", "shared"]
)
def test_both_regressions_equal_lme4(
    judgements: pl.DataFrame, expected: dict[tuple[str, str], tuple[float, float]]
) -> None:
    found = {
        (row["analysis"], row["term"]): (row["estimate"], row["se"])
        for row in fit_regressions(judgements).to_dicts()
    }
    assert list(found) == list(expected)
    for term, (estimate, se) in expected.items():
        # glmer stops within about 1e-5 of the optimum; its errors come from a numerical Hessian.
        assert found[term][0] == pytest.approx(estimate, abs=5e-5), term
        assert found[term][1] == pytest.approx(se, rel=1e-3), term


def test_shared_contexts_are_a_random_effect_and_own_ones_are_not() -> None:
    apart, together = (fit_regressions(judgements).row(0, named=True) for judgements in (own(), shared()))
    assert apart["formula"] == "accuracy ~ log(length) * matched * acceptable + (1 | phenomenon)"
    assert apart["groups"] == "phenomenon 4 (SD 0.24)"
    assert together["formula"].endswith("+ (1 | phenomenon) + (1 | series)")
    # 8 suites x 4 contexts x 4 kinds; standard deviations as lme4 prints them.
    assert together["groups"] == "series 128 (SD 0.59), phenomenon 4 (SD 0.29)"


def test_the_number_of_judgements_leaves_out_baseline_and_other_kinds() -> None:
    sizes = dict(fit_regressions(own()).select("analysis", "n").unique().iter_rows())
    assert sizes == {"context": 8 * 12 * 4 * 3, "unrelated": 8 * 12 * 3}


def test_a_tie_counts_as_wrong() -> None:
    judgements = own()
    wrong = judgements.with_columns(pl.col("passed").replace(0.5, 0.0))
    assert (judgements["passed"] == 0.5).sum() > 20
    assert fit_regressions(judgements).equals(fit_regressions(wrong))


def test_one_phenomenon_leaves_suites_and_one_suite_items_as_the_random_effect() -> None:
    one = own().with_columns(pl.lit("p").alias("phenomenon"))
    assert fit_regressions(one)["formula"][0].endswith("(1 | suite)")
    assert fit_regressions(one.filter(suite="s0"))["formula"][0].endswith("(1 | item)")


def test_what_does_not_vary_is_left_out_and_said() -> None:
    few = own().filter(pl.col("length").is_in([0, 300]), pl.col("kind").str.contains("none|^matched"))
    terms = fit_regressions(few)
    assert terms["term"].to_list() == ["(Intercept)", "acceptable"]
    assert "log(length) does not vary and is left out." in terms["note"][0]
    assert "matched does not vary and is left out." in terms["note"][0]


def test_a_model_that_cannot_be_fitted_says_why_and_the_other_still_stands() -> None:
    judgements = own().with_columns(
        pl.when(pl.col("kind") == "unrelated").then(1.0).otherwise("passed").alias("passed")
    )
    failed = fit_regressions(judgements).filter(analysis="unrelated").row(0, named=True)
    assert failed["term"] is None
    assert "the same in every row" in failed["note"]
    assert fit_regressions(judgements).filter(analysis="context").height == 8


def test_models_and_perturbations_are_fitted_apart() -> None:
    judgements = own()
    other = judgements.with_columns(
        pl.lit("m2").alias("model"),
        pl.when(pl.col("kind") == "none")
        .then("perturbation")
        .otherwise(pl.lit("quotation"))
        .alias("perturbation"),
    )
    terms = fit_regressions(pl.concat([judgements, other]))
    names = terms.select("model", "analysis").unique(maintain_order=True).rows()
    assert names == [
        ("m", "context"),
        ("m", "unrelated"),
        ("m2", "context (quotation)"),
        ("m2", "unrelated (quotation)"),
    ]
    assert terms.filter(model="m")["estimate"].equals(terms.filter(model="m2")["estimate"])


def test_without_contexts_there_is_nothing_to_fit() -> None:
    terms = fit_regressions(table([judge("a/1", 1.0), judge("a/2", 0.0)]))
    assert terms.is_empty()
    assert terms.schema == pl.Schema(REGRESSIONS)


def test_several_measures_are_refused() -> None:
    with pytest.raises(BadInput, match="by lp and slor; analyse one measure at a time"):
        fit_regressions(table([judge("a/1", 1.0), judge("a/1", 1.0, measure="slor")]))


def test_the_model_with_items_equals_lme4_and_says_what_changes() -> None:
    terms = regressions.fit_regressions(own()).filter(analysis="context (items repeated)")
    for row in terms.to_dicts():
        estimate, se = BY_ITEM[row["term"]]
        assert row["estimate"] == pytest.approx(estimate, abs=2e-5)
        assert row["se"] == pytest.approx(se, abs=2e-4)
    assert set(terms["formula"]) == {
        "accuracy ~ log(length) * matched * acceptable + (1 | phenomenon) + (1 | item)"
    }
    assert "no conclusion changes" in terms["note"][0]


def test_a_term_that_loses_its_significance_is_named() -> None:
    plain = pl.DataFrame({"term": ["a", "b"], "p": [0.01, 0.2], "estimate": [1.0, 1.0]})
    repeated = pl.DataFrame({"term": ["a", "b"], "p": [0.06, 0.01], "estimate": [1.0, 1.0]})
    said = compare_conclusions(plain, repeated, against="the model without items")
    assert said == "Against the model without items, no longer significant: a; newly significant: b."


def test_a_formula_of_ones_own_is_fitted_beside_the_others() -> None:
    terms = regressions.fit_regressions(own(), formula="accuracy ~ log(length) + (1 | suite)")
    mine = terms.filter(analysis="context (own formula)")
    assert mine["term"].to_list() == ["(Intercept)", "log(length)"]


def test_a_degenerate_fit_is_no_check_and_a_penalized_one_takes_its_place() -> None:
    rng, rows = np.random.default_rng(11), []
    for suite in range(6):
        for i in range(4):
            item = f"s{suite}/{i}"
            right = (i + suite) % 3 != 0
            rows.append(judge(item, float(right), phenomenon=f"p{suite}"))
            for kind in (
                "matched_acceptable",
                "matched_unacceptable",
                "mismatched_acceptable",
                "mismatched_unacceptable",
            ):
                for length in (10, 40, 160):
                    # An item is right, or wrong, in nearly all of its contexts.
                    passed = float(right != (rng.random() < 0.01))
                    rows.append(judge(item, passed, kind, length, phenomenon=f"p{suite}"))
    terms = regressions.fit_regressions(table(rows))
    notes = dict(terms.select("analysis", "note").unique("analysis", maintain_order=True).iter_rows())
    repeated = notes["context (items repeated)"]
    assert "The fit is degenerate" in repeated
    assert "conclusion" not in repeated
    assert "significant" not in repeated
    assert "Against the model without items" in notes["context (items repeated, penalized)"]
