"""Comparisons of any number of models on the same items: one test per pair, with adjusted p-values."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.bootstrap import DRAWS, bootstrap_difference
from felicity.stats.frames import Codes, Frame, Vector, as_polars, column, numbers
from felicity.stats.paired_tests import Pairs, Ties, mcnemar_p, pair_answers, permute_pairs
from felicity.stats.wording import ALPHA, NO_DIFFERENCE, format_number, format_p, format_share, is_detected


def adjust_holm(p_values: Sequence[float] | Vector) -> Vector:
    """Adjusted so that the chance of any false discovery stays below alpha (Holm 1979).

    >>> adjust_holm([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.06, 0.06]
    """
    p = _check(p_values)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(len(p), 0, -1)
    return _put_back(np.minimum(np.maximum.accumulate(scaled), 1.0), order)


def adjust_bh(p_values: Sequence[float] | Vector) -> Vector:
    """Adjusted so that the share of false discoveries stays below alpha (Benjamini & Hochberg 1995).

    >>> adjust_bh([0.01, 0.04, 0.03]).round(4).tolist()
    [0.03, 0.04, 0.04]
    """
    p = _check(p_values)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * len(p) / np.arange(1, len(p) + 1)
    return _put_back(np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0), order)


def _check(p_values: Sequence[float] | Vector) -> Vector:
    p = numbers(p_values, "p-values")
    if ((p < 0) | (p > 1)).any():
        raise BadInput("A p-value lies outside 0 to 1; pass p-values, not statistics.")
    return p


def _put_back(values: Vector, order: Codes) -> Vector:
    out = np.empty_like(values)
    out[order] = values
    return out


Test = Literal["exact", "mid", "permutation"]


def compare_all(
    runs: Mapping[str, Frame],
    *,
    on: str | Sequence[str] = "item",
    value: str = "passed",
    cluster: str | None = None,
    ties: Ties = "half",
    test: Test | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> pl.DataFrame:
    """Test every pair of models on the items they share, one row per pair.

    runs: a table of answers per model, by name. cluster: the suite of an item; the interval and the
        permutation test then treat suites, not items, as independent.
    test: which p is adjusted by Holm and by Benjamini and Hochberg: McNemar's 'exact' or 'mid' p, or
        'permutation'. By default the permutation test if there are clusters or ties, which McNemar's
        test cannot use; else the exact one. McNemar's tests leave tied items out (column `left_out`).

    Raises BadInput for fewer than two models and for items that do not pair.
    """
    if len(runs) < 2:
        raise BadInput("A comparison needs at least two models.")
    if test not in (None, "exact", "mid", "permutation"):
        raise UnknownName("test", str(test), ("exact", "mid", "permutation"))
    rows: list[dict[str, Any]] = []
    for first, second in combinations(runs, 2):
        pairs = pair_answers(runs[first], runs[second], on=on, value=value, cluster=cluster, ties=ties)
        rows.append({"first": first, "second": second} | _compare(pairs, level, draws, seed))
    if test is None:
        several = cluster is not None or any(row["left_out"] for row in rows)
        test = "permutation" if several else "exact"
    table = pl.DataFrame(rows, infer_schema_length=None)
    p = table[{"exact": "p_exact", "mid": "p_mid", "permutation": "p_permutation"}[test]].to_numpy()
    return table.with_columns(
        pl.lit(test).alias("test"),
        pl.Series("p", p),
        pl.Series("p_holm", adjust_holm(p)),
        pl.Series("p_bh", adjust_bh(p)),
    )


def compare_groups(
    runs: Mapping[str, Frame], *, by: str, cluster: str | None = None, **options: Any
) -> pl.DataFrame:
    """`compare_all` within each group of items, such as a phenomenon; p-values adjusted over all groups.

    cluster: as in `compare_all`; a group that lies within one cluster is compared item by item.
    """
    frames = {name: as_polars(frame) for name, frame in runs.items()}
    for frame in frames.values():
        column(frame, by)
    groups = next(iter(frames.values()))[by].unique(maintain_order=True).to_list() if frames else []
    tables = []
    for group in groups:
        parts = {name: frame.filter(pl.col(by) == group) for name, frame in frames.items()}
        several = cluster is not None and all(part[cluster].n_unique() > 1 for part in parts.values())
        found = compare_all(parts, cluster=cluster if several else None, **options)
        tables.append(found.with_columns(pl.lit(group).alias("group")))
    table = pl.concat(tables, how="vertical_relaxed")
    p = table["p"].to_numpy()
    return table.with_columns(pl.Series("p_holm", adjust_holm(p)), pl.Series("p_bh", adjust_bh(p)))


def _compare(pairs: Pairs, level: float, draws: int, seed: int) -> dict[str, Any]:
    interval = bootstrap_difference(pairs, level=level, draws=draws, seed=seed)
    permuted = permute_pairs(pairs, draws=draws, seed=seed)
    b, c = pairs.discordant
    return {
        "n": pairs.n,
        "clusters": interval.units if pairs.clusters is not None else None,
        "accuracy_first": float(pairs.first.mean()),
        "accuracy_second": float(pairs.second.mean()),
        "difference": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "only_first": b,
        "only_second": c,
        "ties": pairs.ties,
        "left_out": int((~pairs.decided).sum()),
        "p_exact": mcnemar_p(b, c),
        "p_mid": mcnemar_p(b, c, mid=True),
        "p_permutation": permuted.p,
        "permutation_exact": permuted.exact,
    }


def describe_comparison(
    table: pl.DataFrame, *, level: float = 0.95, passed: str = "judged right", alpha: float = ALPHA
) -> str:
    """The comparison in words, one sentence per pair, as in a paper.

    passed: what completes "80% of 20 items ...". A difference whose p, adjusted if there are several pairs,
    is above alpha is reported as no detectable difference.
    """
    return " ".join(_sentence(row, level, passed, alpha, many=table.height > 1) for row in table.to_dicts())


def _sentence(row: dict[str, Any], level: float, passed: str, alpha: float, *, many: bool) -> str:
    higher, lower = ("first", "second") if row["difference"] >= 0 else ("second", "first")
    sign = 1.0 if row["difference"] >= 0 else -1.0
    ends = sorted((sign * row["low"], sign * row["high"]))
    names = {"exact": "exact McNemar test", "mid": "McNemar mid-p test", "permutation": "permutation test"}
    found = names[row["test"]]
    if row["test"] != "permutation":
        found += f" on {row['only_first']} against {row['only_second']} discordant items"
        found += f", {row['left_out']} tied items left out" if row["left_out"] else ""
    shares = [format_share(row[f"accuracy_{side}"]) for side in (higher, lower)]
    points = [format_number(100.0 * value) for value in (abs(row["difference"]), *ends)]
    text = (
        f"{row[higher]}: {shares[0]} of {row['n']} items {passed}, {row[lower]}: {shares[1]}; "
        f"a difference of {points[0]} points, {level:.0%} CI [{points[1]}, {points[2]}]"
    )
    if row["clusters"] is not None:
        text += f" over {row['clusters']} clusters"
    text += f" ({found}, {format_p(row['p'])}"
    text += f", Holm-adjusted {format_p(row['p_holm'])})" if many else ")"
    detected = is_detected(row["p_holm"] if many else row["p"], alpha=alpha)
    return text + ("." if detected else f": {NO_DIFFERENCE}.")
