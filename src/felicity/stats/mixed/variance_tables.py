"""Variance components, correlations and conditional modes as tables in lme4's order and names."""

from collections.abc import Iterator

import numpy as np
import polars as pl

from felicity.stats.frames import Vector
from felicity.stats.mixed.random_effects import Block, RandomEffects

SINGULAR_BELOW = 1e-4


def covariances(effects: RandomEffects, theta: Vector, sigma: float) -> list[Vector]:
    """Covariance matrix of each block's effects, in the units of the data."""
    out = []
    for block, factor in zip(effects.blocks, effects.factors(theta), strict=True):
        own = sigma * factor / block.scale[:, None]
        out.append(own @ own.T)
    return out


def is_singular(effects: RandomEffects, theta: Vector) -> bool:
    """Whether a variance is zero or a correlation exactly 1, by lme4's rule and tolerance."""
    factors = zip(effects.blocks, effects.factors(theta), strict=True)
    return any((np.diag(f) / block.scale < SINGULAR_BELOW).any() for block, f in factors)


def variance_table(
    effects: RandomEffects, theta: Vector, sigma: float | None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Standard deviations with the residual's last, and the correlation of every pair within a term."""
    rows, pairs = [], []
    for block, covariance, label, columns in _terms(effects, covariances(effects, theta, sigma or 1.0)):
        sds = np.sqrt(np.diag(covariance))
        for a, i in enumerate(columns):
            corr = _correlation(covariance, sds, columns[0], i) if a else None
            rows.append({"group": label, "term": block.names[i], "sd": float(sds[i]), "corr": corr})
            for j in columns[:a]:
                pair = {"group": label, "term": block.names[i], "with": block.names[j]}
                pairs.append(pair | {"corr": _correlation(covariance, sds, j, i)})
    if sigma is not None:
        rows.append({"group": "Residual", "term": None, "sd": sigma, "corr": None})
    schema = {"group": pl.String, "term": pl.String, "sd": pl.Float64, "corr": pl.Float64}
    pair_schema = {"group": pl.String, "term": pl.String, "with": pl.String, "corr": pl.Float64}
    return pl.DataFrame(rows, schema=schema), pl.DataFrame(pairs, schema=pair_schema)


def modes_table(effects: RandomEffects, modes: Vector) -> pl.DataFrame:
    """Conditional modes, one row per level and effect, in the units of the data."""
    starts = np.cumsum([0] + [block.size for block in effects.blocks])
    tables = []
    for label in effects.labels:
        for block, start in zip(effects.blocks, starts, strict=False):
            values = modes[start : start + block.size].reshape(-1, block.width) / block.scale
            for i, (name, own) in enumerate(zip(block.names, block.labels, strict=True)):
                if own == label:
                    columns = {"group": label, "level": block.levels, "term": name, "value": values[:, i]}
                    tables.append(pl.DataFrame(columns))
    return pl.concat(tables)


def _terms(effects: RandomEffects, matrices: list[Vector]) -> Iterator[tuple[Block, Vector, str, list[int]]]:
    for label in effects.labels:
        for block, matrix in zip(effects.blocks, matrices, strict=True):
            columns = [i for i, own in enumerate(block.labels) if own == label]
            if columns:
                yield block, matrix, label, columns


def _correlation(covariance: Vector, sds: Vector, i: int, j: int) -> float | None:
    if sds[i] * sds[j] == 0:
        return None
    return float(np.clip(covariance[i, j] / (sds[i] * sds[j]), -1.0, 1.0))
