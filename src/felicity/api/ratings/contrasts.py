"""Conditions against the first of them, within raters or items: differences with their intervals."""

import numpy as np
import polars as pl
from scipy import stats

CONTRASTS: dict[str, pl.DataType] = {
    "condition": pl.String(),
    "baseline": pl.String(),
    "n": pl.Int64(),
    "difference": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "p": pl.Float64(),
}


def compare_to_first(frame: pl.DataFrame, *, unit: str, y: str, levels: list[str]) -> pl.DataFrame:
    """Every further level of `condition` minus the first, within units: mean, Student's 95% interval, p.

    frame: unit, condition, y; a unit's rows in a condition are averaged. Units without one of the two are
    left out; a level that fewer than two units share with the first has no row.
    """
    means = frame.group_by(unit, "condition", maintain_order=True).agg(pl.col(y).mean())
    wide = means.pivot("condition", index=unit, values=y)
    rows = []
    for level in levels[1:]:
        if level not in wide.columns or levels[0] not in wide.columns:
            continue
        gaps = (wide[level] - wide[levels[0]]).drop_nulls().to_numpy()
        n = len(gaps)
        if n < 2:
            continue
        mean, error = float(gaps.mean()), float(gaps.std(ddof=1)) / n**0.5
        half = float(stats.t.ppf(0.975, n - 1)) * error
        # Without any spread the test has no p.
        p = float(2 * stats.t.sf(abs(mean) / error, n - 1)) if error > 0 else np.nan
        row = {"condition": level, "baseline": levels[0], "n": n, "difference": mean}
        rows.append(row | {"low": mean - half, "high": mean + half, "p": p})
    return pl.DataFrame(rows, schema=CONTRASTS).with_columns(pl.col("p").fill_nan(None))
