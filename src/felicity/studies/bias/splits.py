"""Token-length bias (Ueda et al. 2024): does accuracy depend on which sentence of a pair is longer?

A is the acceptable sentence, U the unacceptable one. Each suite is split by their lengths in the
model's own tokens; accuracy is then computed within each split, and by the difference in length.
"""

import polars as pl

from felicity.core.contrasts import ACCURACY, Headline
from felicity.core.schemas import Schema
from felicity.run import StudyFolder
from felicity.stats import SLOPE_TESTS, SLOPES, compare_slopes, estimate_accuracy, fit_slopes
from felicity.studies.bias.debias import EVERYTHING, compare_sets
from felicity.studies.bias.lengths import BIASED, DEBIASED, SPLITS

# What the two sentences of a pair are called if the dataset has no words of its own.
SIDES = {"good": "acceptable", "bad": "unacceptable"}
INTERVALS = "95% intervals are Wilson's: over suites where the pairs come from several, else over pairs."
FOUND = ("suites", "accuracy", "low", "high", "interval")

SPLIT_TABLE: Schema = {
    "model": pl.String(),
    "measure": pl.String(),
    "suite": pl.String(),
    "split": pl.String(),
    "n": pl.Int64(),
    "suites": pl.Int64(),
    "accuracy": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "interval": pl.String(),
}
OF_SET: Schema = {"model": pl.String(), "set": pl.String()}
SLOPE_TABLE: Schema = OF_SET | SLOPES
TEST_TABLE: Schema = OF_SET | SLOPE_TESTS
CURVE_TABLE: Schema = {
    "model": pl.String(),
    "measure": pl.String(),
    "difference": pl.Int64(),
    "n": pl.Int64(),
    "suites": pl.Int64(),
    "accuracy": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "interval": pl.String(),
}


def analyse(folder: StudyFolder) -> dict[str, pl.DataFrame]:
    """Accuracy by split and difference in length, its slope, and both sets side by side if there are two."""
    lengths = folder.read("lengths")
    splits, curves, compared = [], [], []
    slopes, tests = [pl.DataFrame(schema=SLOPE_TABLE)], [pl.DataFrame(schema=TEST_TABLE)]
    for model in folder.models:
        judged = read_judged(folder, lengths, model)
        own = lengths.filter(model=model, set=BIASED)
        splits.append(split_suites(own, model, judgements=judged.get(BIASED)))
        if BIASED in judged:
            curves.append(draw_curves(own, model, judged[BIASED]))
        if DEBIASED in judged:
            compared.append(compare_sets(judged[BIASED], judged[DEBIASED], model=model))
        for label, answers in judged.items():
            names = [pl.lit(model).alias("model"), pl.lit(label).alias("set")]
            slopes.append(fit_slopes(answers).select(*names, *SLOPES))
            tests.append(compare_slopes(answers).select(*names, *SLOPE_TESTS))
    tables = {
        "splits": pl.concat(splits),
        "curves": pl.concat(curves) if curves else pl.DataFrame(schema=CURVE_TABLE),
        "slopes": pl.concat(slopes),
        "slope_tests": pl.concat(tests),
    }
    return tables | ({"debias": pl.concat(compared)} if compared else {})


def read_judged(folder: StudyFolder, lengths: pl.DataFrame, model: str) -> dict[str, pl.DataFrame]:
    """The judgements of a model by set, with split and difference of each pair; empty if not scored."""
    if model not in folder.facts["scored"]:
        return {}
    sets = [BIASED, DEBIASED] if folder.facts["debias"] else [BIASED]
    found = {}
    for label in sets:
        run = folder.run(model, label if len(sets) > 1 else "")
        judged = run.read("judgements").filter(pl.col("measure").is_in(folder.facts["measures"]))
        own = lengths.filter(model=model, set=label).select("item", "split", "difference")
        found[label] = judged.join(own, on="item", maintain_order="left")
    return found


def write_legend(headline: Headline = ACCURACY) -> str:
    """What A, U and the splits are, in the dataset's words."""
    a, u = (SIDES.get(name, name) for name in (headline.call("good"), headline.call("bad")))
    meaning = "" if headline.graded else f" {headline.describe('pair')}"
    return (
        f"A is the {a} sentence, U the {u} one; A=U, A>U and A<U compare their lengths in the model's own "
        f"tokens.{meaning}"
    )


def split_suites(
    lengths: pl.DataFrame, model: str, *, judgements: pl.DataFrame | None = None
) -> pl.DataFrame:
    """n and accuracy of every suite and split, and of all suites together: rows of SPLIT_TABLE.

    Without judgements the accuracies are null, and so is that of an empty split.
    """
    sizes = _sizes(lengths)
    if judgements is None:
        table = sizes.with_columns(pl.lit(None, dtype=pl.String).alias(name) for name in ("measure", *FOUND))
    else:
        own = judgements.drop("split", strict=False)
        found = _accuracies(own.join(lengths.select("item", "split"), on="item"))
        measures = judgements.select("measure").unique(maintain_order=True)
        table = measures.join(sizes, how="cross").join(
            found, on=["measure", "suite", "split"], how="left", maintain_order="left"
        )
    return table.with_columns(pl.lit(model).alias("model")).select(
        pl.col(name).cast(dtype) for name, dtype in SPLIT_TABLE.items()
    )


def draw_curves(lengths: pl.DataFrame, model: str, judgements: pl.DataFrame) -> pl.DataFrame:
    """Accuracy by difference in length, A minus U, for each measure: rows of CURVE_TABLE.

    The intervals are those of the splits: over suites if the pairs come from several.
    """
    own = judgements.drop("difference", strict=False)
    judged = own.join(lengths.select("item", "difference"), on="item")
    curves = (
        _estimate_by(judged, "difference").filter(level="overall").with_columns(pl.lit(model).alias("model"))
    )
    return curves.select(pl.col(name).cast(dtype) for name, dtype in CURVE_TABLE.items()).sort(
        "measure", "difference", maintain_order=True
    )


def _sizes(lengths: pl.DataFrame) -> pl.DataFrame:
    whole = lengths.with_columns(pl.lit(EVERYTHING).alias("suite"))
    counted = pl.concat([whole, lengths]).group_by("suite", "split").len(name="n")
    suites = [EVERYTHING, *lengths["suite"].unique(maintain_order=True)]
    cells = pl.DataFrame({"suite": suites}).join(pl.DataFrame({"split": SPLITS}), how="cross")
    sized = cells.join(counted, on=["suite", "split"], how="left", maintain_order="left")
    return sized.with_columns(pl.col("n").fill_null(0))


def _accuracies(judged: pl.DataFrame) -> pl.DataFrame:
    suite = pl.when(pl.col("level") == "overall").then(pl.lit(EVERYTHING)).otherwise("name")
    kept = _estimate_by(judged, "split").filter(pl.col("level").is_in(["overall", "suite"]))
    return kept.select("measure", suite.alias("suite"), "split", *FOUND)


def _estimate_by(judged: pl.DataFrame, column: str) -> pl.DataFrame:
    """The estimates of a run within each value of a column."""
    parts = [
        estimate_accuracy(part).with_columns(pl.lit(value).alias(column))
        for (value,), part in judged.group_by(column, maintain_order=True)
    ]
    return pl.concat(parts)


def count_nontrivial(splits: pl.DataFrame) -> pl.DataFrame:
    """The three counts over the suites with pairs of unequal length, by model."""
    single = splits.filter(pl.col("suite") != EVERYTHING).unique(
        ["model", "suite", "split"], maintain_order=True
    )
    uneven = (
        single.filter((pl.col("split") != SPLITS[0]) & (pl.col("n") > 0)).select("model", "suite").unique()
    )
    kept = single.join(uneven, on=["model", "suite"])
    return kept.group_by("model", "split", maintain_order=True).agg(
        pl.col("n").sum(), pl.col("suite").n_unique().cast(pl.Int64).alias("suites")
    )
