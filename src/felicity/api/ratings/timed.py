"""Word times of self-paced reading and Maze: curves by region, differences, errors, outliers."""

import polars as pl

from felicity.api.ratings.contrasts import compare_to_first
from felicity.stats import adjust_holm, average_cells, clopper_pearson

CURVES: dict[str, pl.DataType] = {
    "region": pl.String(),
    "condition": pl.String(),
    "raters": pl.Int64(),
    "words": pl.Int64(),
    "left_out": pl.Int64(),
    "mean": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
}
DIFFERENCES: dict[str, pl.DataType] = {
    "region": pl.String(),
    "condition": pl.String(),
    "baseline": pl.String(),
    "raters": pl.Int64(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "p": pl.Float64(),
    "p_holm": pl.Float64(),
}
ERRORS: dict[str, pl.DataType] = {
    "position": pl.Int64(),
    "condition": pl.String(),
    "words": pl.Int64(),
    "errors": pl.Int64(),
    "share": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
}
OUTLIERS = ("fast", "slow", "deviant")
# A wrong choice in a Maze is no reading of the word.
USED = (pl.col("outlier") == "") & pl.col("correct").fill_null(True)


def analyse_timed(tables: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """Further tables of a timed study: curves, differences, outliers, and errors of a Maze.

    Only targets count; outliers and wrong choices are left out of the times. Empty for other studies.
    """
    if "words" not in tables:
        return {}
    targets = tables["words"].filter(pl.col("role") == "target")
    found = {
        "curves": draw_curves(targets),
        "differences": compare_conditions(targets, find_levels(tables["design"])),
        "outliers": count_outliers(tables["words"]),
    }
    if targets["correct"].is_not_null().any():
        found["errors"] = count_errors(targets)
    if "simulated" in targets.columns:
        return {name: frame.with_columns(pl.lit(True).alias("simulated")) for name, frame in found.items()}
    return found


def average_raters(words: pl.DataFrame) -> pl.DataFrame:
    """Each rater's mean time per word in every region and condition: rater, region, condition, rt_ms."""
    keys = ["rater", "region", "condition"]
    # A region may have more words in one trial than in another; every trial counts once.
    trials = words.filter(USED).group_by(*keys, "list", "trial", maintain_order=True)
    means = trials.agg(pl.col("rt_ms").mean()).group_by(keys, maintain_order=True)
    return means.agg(pl.col("rt_ms").mean())


def draw_curves(words: pl.DataFrame) -> pl.DataFrame:
    """Mean time per word of every region and condition, with Student's 95% interval over raters."""
    cells = average_cells(average_raters(words), y="rt_ms", x="region", by=["condition"])
    counts = words.group_by("region", "condition").agg(
        words=pl.len().cast(pl.Int64), left_out=(~USED).sum().cast(pl.Int64)
    )
    named = cells.rename({"series": "condition", "x": "region", "n": "raters"})
    whole = named.join(counts, on=["region", "condition"], how="left")
    order = pl.col("region").cast(pl.Int64)
    return whole.select(pl.col(name).cast(kind) for name, kind in CURVES.items()).sort(
        order, "condition", maintain_order=True
    )


def find_levels(design: pl.DataFrame) -> list[str]:
    """The conditions of the targets, in the order of the stimuli."""
    targets = design.filter(pl.col("role") == "target")
    return targets["condition"].unique(maintain_order=True).to_list()


def compare_conditions(words: pl.DataFrame, levels: list[str]) -> pl.DataFrame:
    """Every condition against the first in each region, within raters; p also adjusted (Holm)."""
    means = average_raters(words)
    parts = [pl.DataFrame(schema={name: DIFFERENCES[name] for name in DIFFERENCES if name != "p_holm"})]
    for region in sorted(words["region"].unique(), key=int):
        here = means.filter(pl.col("region") == region)
        found = compare_to_first(here, unit="rater", y="rt_ms", levels=levels).rename({"n": "raters"})
        parts.append(found.insert_column(0, pl.lit(region).alias("region")))
    whole = pl.concat(parts)
    tested = whole["p"].drop_nulls()
    adjusted = iter(adjust_holm(tested.to_numpy()) if len(tested) else ())
    holm = [None if p is None else float(next(adjusted)) for p in whole["p"]]
    return whole.with_columns(pl.Series("p_holm", holm, dtype=pl.Float64))


def count_errors(words: pl.DataFrame) -> pl.DataFrame:
    """Wrong first choices of a Maze by position and condition, with exact 95% intervals over words."""
    cells = words.group_by("position", "condition", maintain_order=True).agg(
        words=pl.len(), errors=(~pl.col("correct")).sum()
    )
    rows = []
    for row in cells.iter_rows(named=True):
        low, high = clopper_pearson(row["errors"], row["words"])
        rows.append(row | {"share": row["errors"] / row["words"], "low": low, "high": high})
    return pl.DataFrame(rows, schema=ERRORS).sort("position", "condition", maintain_order=True)


def count_outliers(words: pl.DataFrame) -> pl.DataFrame:
    """How many of each rater's word times are outliers, of which kind."""
    kinds = {kind: (pl.col("outlier") == kind).sum().cast(pl.Int64) for kind in OUTLIERS}
    share = (pl.col("outlier") != "").mean()
    return words.group_by("rater", maintain_order=True).agg(
        words=pl.len().cast(pl.Int64), **kinds, share=share
    )
