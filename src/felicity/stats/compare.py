"""Any number of models on the same items: every pair tested, and p-values adjusted for it."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, Literal

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.bootstrap import DRAWS, bootstrap_difference
from felicity.stats.frames import Frame
from felicity.stats.mcnemar import mcnemar_p
from felicity.stats.multiplicity import adjust_bh, adjust_holm
from felicity.stats.pairing import Pairs, Ties, pair_answers
from felicity.stats.permutation import permute_pairs
from felicity.stats.wording import say_number, say_p, say_share

Test = Literal["exact", "mid", "permutation"]


def compare_all(
    runs: Mapping[str, Frame],
    *,
    on: str | Sequence[str] = "item",
    value: str = "passed",
    cluster: str | None = None,
    ties: Ties = "wrong",
    test: Test | None = None,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> pl.DataFrame:
    """Test every pair of models on the items they share, one row a pair.

    runs: a table of answers per model, by name. cluster: the suite of an item; the interval and the
        permutation test then treat suites, not items, as independent.
    test: which p is adjusted by Holm and by Benjamini and Hochberg: McNemar's 'exact' or 'mid' p, or
        'permutation'. By default the permutation test where there are clusters, which McNemar's
        cannot see, or ties counted half; else the exact one.

    Raises BadInput for fewer than two models and for items that do not pair.
    """
    if len(runs) < 2:
        raise BadInput("A comparison needs at least two models.")
    if test is None:
        test = "permutation" if cluster is not None or ties == "half" else "exact"
    if test not in ("exact", "mid", "permutation"):
        raise UnknownName("test", str(test), ("exact", "mid", "permutation"))
    if ties == "half" and test != "permutation":
        raise BadInput("Ties counted as half leave no table for McNemar's test; choose the permutation test.")
    rows = []
    for first, second in combinations(runs, 2):
        pairs = pair_answers(runs[first], runs[second], on=on, value=value, cluster=cluster, ties=ties)
        rows.append({"first": first, "second": second} | _compare(pairs, ties, level, draws, seed))
    table = pl.DataFrame(rows, infer_schema_length=None)
    p = table[{"exact": "p_exact", "mid": "p_mid", "permutation": "p_permutation"}[test]].to_numpy()
    return table.with_columns(
        pl.lit(test).alias("test"),
        pl.Series("p", p),
        pl.Series("p_holm", adjust_holm(p)),
        pl.Series("p_bh", adjust_bh(p)),
    )


def _compare(pairs: Pairs, ties: Ties, level: float, draws: int, seed: int) -> dict[str, Any]:
    interval = bootstrap_difference(pairs, level=level, draws=draws, seed=seed)
    permuted = permute_pairs(pairs, draws=draws, seed=seed)
    b, c = pairs.discordant if ties != "half" else (None, None)
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
        "p_exact": mcnemar_p(b, c) if b is not None and c is not None else None,
        "p_mid": mcnemar_p(b, c, mid=True) if b is not None and c is not None else None,
        "p_permutation": permuted.p,
        "permutation_exact": permuted.exact,
    }


def describe_comparison(table: pl.DataFrame, *, level: float = 0.95) -> str:
    """The comparison in words, a sentence a pair, the way a paper states it."""
    return " ".join(_sentence(row, level, many=table.height > 1) for row in table.to_dicts())


def _sentence(row: dict[str, Any], level: float, *, many: bool) -> str:
    better, worse = ("first", "second") if row["difference"] >= 0 else ("second", "first")
    sign = 1.0 if row["difference"] >= 0 else -1.0
    ends = sorted((sign * row["low"], sign * row["high"]))
    names = {"exact": "exact McNemar test", "mid": "McNemar mid-p test", "permutation": "permutation test"}
    found = names[row["test"]]
    if row["test"] != "permutation":
        found += f" on {row['only_first']} against {row['only_second']} discordant items"
    shares = [say_share(row[f"accuracy_{side}"]) for side in (better, worse)]
    points = [say_number(100.0 * value) for value in (abs(row["difference"]), *ends)]
    text = (
        f"{row[better]} is right on {shares[0]} of {row['n']} items, {row[worse]} on {shares[1]}: "
        f"a difference of {points[0]} points, {level:.0%} CI [{points[1]}, {points[2]}]"
    )
    if row["clusters"] is not None:
        text += f" over {row['clusters']} clusters"
    text += f" ({found}, {say_p(row['p'])}"
    return text + (f", Holm-adjusted {say_p(row['p_holm'])})." if many else ").")
