"""How accurate each method is, and how far two methods agree about the same pairs."""

from itertools import combinations

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import Schema
from felicity.run import StudyFolder
from felicity.stats import cohen_kappa, correlate, estimate_accuracy, wilson_interval

ACCURACY_TABLE: Schema = {
    "model": pl.String(),
    "method": pl.String(),
    "level": pl.String(),
    "name": pl.String(),
    "n": pl.Int64(),
    "suites": pl.Int64(),
    "accuracy": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "interval": pl.String(),
}
AGREEMENT_TABLE: Schema = {
    "model": pl.String(),
    "first": pl.String(),
    "second": pl.String(),
    "n": pl.Int64(),
    "agreement": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "kappa": pl.Float64(),
    "kappa_low": pl.Float64(),
    "kappa_high": pl.Float64(),
    "r": pl.Float64(),
    "r_low": pl.Float64(),
    "r_high": pl.Float64(),
}


def analyse(folder: StudyFolder) -> dict[str, pl.DataFrame]:
    """Accuracy by method, overall and by suite, and the agreement of every two methods."""
    accuracy, agreement = [], [pl.DataFrame(schema=AGREEMENT_TABLE)]
    for model in folder.models:
        judged = {
            str(method): folder.run(model, method).read("judgements") for method in folder.facts["methods"]
        }
        for method, answers in judged.items():
            names = [pl.lit(model).alias("model"), pl.lit(method).alias("method")]
            kept = estimate_accuracy(answers).filter(pl.col("level").is_in(["overall", "suite"]))
            accuracy.append(kept.with_columns(names).select(list(ACCURACY_TABLE)))
        rows = [
            {"model": model, "first": first, "second": second} | compare(judged[first], judged[second])
            for first, second in combinations(judged, 2)
        ]
        agreement.append(pl.DataFrame(rows, schema=AGREEMENT_TABLE))
    return {"accuracy": pl.concat(accuracy), "agreement": pl.concat(agreement)}


def compare(first: pl.DataFrame, second: pl.DataFrame) -> dict[str, object]:
    """The share of items with the same verdict, Cohen's kappa, and the correlation of margins.

    Ties are left out. Kappa and r are null where a method gives one verdict or one margin only.
    """
    both = first.select("item", "passed", "margin").join(
        second.select("item", "passed", "margin"), on="item", maintain_order="left"
    )
    told = both.filter(pl.col("passed") != 0.5, pl.col("passed_right") != 0.5)
    same = int((told["passed"] == told["passed_right"]).sum())
    low, high = wilson_interval(same, len(told))
    found: dict[str, object] = {"n": len(told)}
    if len(told):
        found |= {"agreement": same / len(told), "low": low, "high": high}
    try:
        kappa = cohen_kappa(told["passed"], told["passed_right"]).row(0, named=True)
        found |= {"kappa": kappa["kappa"], "kappa_low": kappa["low"], "kappa_high": kappa["high"]}
    except BadInput:
        pass
    try:
        r = correlate(told["margin"], told["margin_right"]).row(0, named=True)
        found |= {"r": r["r"], "r_low": r["low"], "r_high": r["high"]}
    except BadInput:
        pass
    return found
