"""Comparisons of any number of models on the same items: one test per pair, with adjusted p-values."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.wording import (
    ALPHA,
    NO_DIFFERENCE,
    format_interval,
    format_number,
    format_p,
    format_share,
    is_detected,
)
from felicity.stats.frames import Codes, Frame, Vector, as_polars, numbers, take_column
from felicity.stats.inference import Clusters, Estimates, compare_shares, least_p, spread_clusters
from felicity.stats.paired_tests import Pairs, Ties, mcnemar_p, pair_answers, permute_pairs, sum_by_cluster


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


Test = Literal["score", "exact", "mid", "permutation"]
TESTS: dict[Test, str] = {
    "score": "score test",
    "exact": "exact McNemar test",
    "mid": "McNemar mid-p test",
    "permutation": "permutation test",
}
PERMUTATIONS = 5_000


def compare_pairs(pairs: Pairs, *, level: float = 0.95) -> Estimates:
    """The difference in accuracy with its interval and p, over clusters if there are several, else items.

    The arrays have one entry. Over items p is McNemar's, without continuity correction.
    """
    differences = pairs.differences
    gained, lost = (np.maximum(sign * differences, 0.0).mean(keepdims=True) for sign in (1.0, -1.0))
    return compare_shares(gained, lost, np.array([float(pairs.n)]), _spread(pairs), level=level)


def _spread(pairs: Pairs) -> list[Clusters]:
    if pairs.clusters is None:
        return []
    sizes = np.bincount(pairs.clusters).astype(np.float64)
    sums = sum_by_cluster(pairs.differences, pairs.clusters)
    return [spread_clusters(np.zeros(len(sums), dtype=np.int64), sums, sizes, 1)]


def compare_all(
    runs: Mapping[str, Frame],
    *,
    on: str | Sequence[str] = "item",
    value: str = "passed",
    cluster: str | None = None,
    items: bool = False,
    ties: Ties = "half",
    test: Test = "score",
    level: float = 0.95,
    seed: int = 0,
) -> pl.DataFrame:
    """Test every pair of models on the items they share, one row per pair.

    runs: a table of answers per model, by name. cluster: the suite of an item; interval and p then treat
        suites, not items, as independent, unless there is only one, or `items` asks for it. Column `over`
        says which.
    test: which p is adjusted by Holm and by Benjamini and Hochberg. The interval is always that of the
        score test: it excludes 0 exactly where that test's p is below 1 - level. McNemar's 'exact' and 'mid'
        p take items as independent and leave tied items out (column `left_out`); a 'permutation' swaps
        whole suites. `least_p` is the smallest p that so many items or suites allow.

    Raises BadInput for fewer than two models, for items that do not pair, and for McNemar's test of
    several suites.
    """
    if len(runs) < 2:
        raise BadInput("A comparison needs at least two models.")
    if test not in TESTS:
        raise UnknownName("test", str(test), tuple(TESTS))
    rows: list[dict[str, Any]] = []
    for first, second in combinations(runs, 2):
        pairs = pair_answers(runs[first], runs[second], on=on, value=value, cluster=cluster, ties=ties)
        row = _compare(pairs, items=items, test=test, level=level, seed=seed)
        rows.append({"first": first, "second": second} | row)
    return _adjust(pl.DataFrame(rows, infer_schema_length=None))


def compare_groups(runs: Mapping[str, Frame], *, by: str, **options: Any) -> pl.DataFrame:
    """`compare_all` within each group of items, such as a phenomenon; p-values adjusted over all groups."""
    frames = {name: as_polars(frame) for name, frame in runs.items()}
    for frame in frames.values():
        take_column(frame, by)
    groups = next(iter(frames.values()))[by].unique(maintain_order=True).to_list() if frames else []
    tables = []
    for group in groups:
        parts = {name: frame.filter(pl.col(by) == group) for name, frame in frames.items()}
        tables.append(compare_all(parts, **options).with_columns(pl.lit(group).alias("group")))
    return _adjust(pl.concat(tables, how="vertical_relaxed"))


def _adjust(table: pl.DataFrame) -> pl.DataFrame:
    """The table with p adjusted over its rows, and the smallest Holm-adjusted p that each row allows."""
    p, least = table["p"].to_numpy(), table["least_p"].to_numpy()
    reach = [adjust_holm(np.where(np.arange(len(p)) == row, least, p))[row] for row in range(len(p))]
    return table.with_columns(
        pl.Series("p_holm", adjust_holm(p)),
        pl.Series("p_bh", adjust_bh(p)),
        pl.Series("least_p_holm", reach, dtype=pl.Float64),
    )


def _compare(pairs: Pairs, *, items: bool, test: Test, level: float, seed: int) -> dict[str, Any]:
    clusters = None if pairs.clusters is None else int(pairs.clusters.max()) + 1
    over_clusters = clusters is not None and clusters > 1 and not items
    if over_clusters and test in ("exact", "mid"):
        raise BadInput(
            f"The {TESTS[test]} takes items as independent, but these come from {clusters} suites; "
            "compare over items (--items), or use the score test."
        )
    kept = pairs if over_clusters else replace(pairs, clusters=None)
    comparison = compare_pairs(kept, level=level)
    permuted = permute_pairs(kept, draws=PERMUTATIONS, seed=seed)
    b, c = pairs.discordant
    chances = {
        "score": float(comparison.p[0]),
        "exact": mcnemar_p(b, c),
        "mid": mcnemar_p(b, c, mid=True),
        "permutation": permuted.p,
    }
    units = clusters if over_clusters and clusters else pairs.n
    lowest = {
        "score": float(least_p(pairs.n)),
        "exact": min(1.0, 2.0 ** (1 - int(pairs.decided.sum()))),
        "mid": 2.0 ** -int(pairs.decided.sum()),
        "permutation": min(1.0, max(2.0 ** (1 - units), 0.0 if permuted.exact else 1 / (PERMUTATIONS + 1))),
    }
    return {
        "n": pairs.n,
        "clusters": clusters,
        "over": "suites" if over_clusters else "items",
        "accuracy_first": float(pairs.first.mean()),
        "accuracy_second": float(pairs.second.mean()),
        "difference": float(comparison.estimate[0]),
        "low": float(comparison.low[0]),
        "high": float(comparison.high[0]),
        "only_first": b,
        "only_second": c,
        "ties": pairs.ties,
        "left_out": int((~pairs.decided).sum()),
        "p_exact": chances["exact"],
        "p_mid": chances["mid"],
        "p_permutation": chances["permutation"],
        "permutation_exact": permuted.exact,
        "test": test,
        "p": chances[test],
        "least_p": lowest[test],
    }


def describe_test(table: pl.DataFrame, *, alpha: float = ALPHA) -> list[str]:
    """What interval and p of a comparison generalize over, and what it cannot show, in sentences."""
    test: Test = table["test"][0]
    said = ["Intervals and p are those of the score test."]
    if test != "score":
        said = [
            f"p is that of the {TESTS[test]}; intervals are those of the score test, and may disagree with "
            "it near .05."
        ]
    over, counts = set(table["over"]), table["clusters"].drop_nulls()
    if over == {"suites"}:
        said.append("They are over suites: suites, not items, are taken as independent.")
    elif over == {"suites", "items"}:
        said.append("They are over suites; over items where there is one suite, and then not about others.")
    elif counts.len():
        one = "; with one suite they say nothing about others" if (counts == 1).all() else ""
        said.append(f"They are over items{one or ' of these suites, and say nothing about other suites'}.")
    else:
        said.append("They are over items.")
    beyond = int((table["least_p_holm"] >= alpha).sum())
    if beyond:
        rows = f"{beyond} of {table.height} comparisons" if table.height > 1 else "This comparison"
        said.append(
            f"{rows} cannot reach p < {alpha:g} after Holm's adjustment with so few items or suites, "
            "whatever the difference."
        )
    return said


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
    test = TESTS[row["test"]]
    if row["test"] in ("exact", "mid"):
        test += f" on {row['only_first']} against {row['only_second']} discordant items"
        test += f", {row['left_out']} tied items left out" if row["left_out"] else ""
    shares = [format_share(row[f"accuracy_{side}"]) for side in (higher, lower)]
    points = format_number(100.0 * abs(row["difference"]))
    span = format_interval(100.0 * ends[0], 100.0 * ends[1], format_number)
    over = f" over {row['clusters']} suites" if row["over"] == "suites" else " over items"
    text = (
        f"{row[higher]}: {shares[0]} of {row['n']} items {passed}, {row[lower]}: {shares[1]}; "
        f"a difference of {points} points, {level:.0%} CI {span}{over} "
        f"({test}, {format_p(row['p'])}"
    )
    text += f", Holm-adjusted {format_p(row['p_holm'])})" if many else ")"
    detected = is_detected(row["p_holm"] if many else row["p"], alpha=alpha)
    return text + ("." if detected else f": {NO_DIFFERENCE}.")
