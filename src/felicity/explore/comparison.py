"""Models beside each other: margins of one against another's, and accuracy by suite with paired tests."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from felicity.explore.collections import Collection
from felicity.explore.index import Source
from felicity.explore.selection import PICKS, Selection, build_filters, pick_filter, take
from felicity.stats import adjust_holm, compare_pairs, pair_answers

MOST_POINTS = 2000
BINS = 48
# Margins beyond these shares of the items are drawn at the edge.
EDGES = (0.001, 0.999)


def compare_margins(collection: Collection, selection: Selection) -> dict[str, Any]:
    """The margins of the two models of a selection, as points, or as counts of squares if there are many.

    counts: how many judgements each kind of comparison selects, all other conditions being equal.
    """
    a, b = selection.a, selection.b
    free = build_filters(replace(selection, pick=""))
    picks = [pick_filter(name, a, b).fill_null(False).sum().alias(name) for name in PICKS]
    base = collection.scan().filter(pl.col("measure") == selection.measure, *free.values())
    counts = base.select(pl.len().alias("all"), *picks).collect().row(0, named=True)
    x, y = pl.col(f"margin_{a}").alias("x"), pl.col(f"margin_{b}").alias("y")
    verdicts = [pl.col(f"verdict_{model}").alias(name) for model, name in ((a, "va"), (b, "vb"))]
    frame = (
        take(collection, selection)
        .select("key", x, y, *verdicts)
        .filter(pl.col("x").is_finite() & pl.col("y").is_finite())
    )
    drawn = frame.collect()
    found: dict[str, Any] = {"counts": counts, "n": len(drawn)}
    if len(drawn) <= MOST_POINTS:
        return found | {"points": [list(row) for row in drawn.iter_rows()]}
    return found | bin_points(drawn["x"].to_numpy(), drawn["y"].to_numpy())


def bin_points(x: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Points counted in squares: lower corner of each square that has points, and their number."""
    x_low, x_high = (float(end) for end in np.quantile(x, EDGES))
    y_low, y_high = (float(end) for end in np.quantile(y, EDGES))
    x_step = (x_high - x_low) / BINS or 1.0
    y_step = (y_high - y_low) / BINS or 1.0
    column = np.clip(((x - x_low) / x_step).astype(int), 0, BINS - 1)
    line = np.clip(((y - y_low) / y_step).astype(int), 0, BINS - 1)
    places, sizes = np.unique(column * BINS + line, return_counts=True)
    cells = [
        [x_low + (place // BINS) * x_step, y_low + (place % BINS) * y_step, int(size)]
        for place, size in zip(places.tolist(), sizes.tolist(), strict=True)
    ]
    return {"cells": cells, "step": [x_step, y_step]}


def tabulate_suites(collection: Collection, measure: str, a: int, b: int) -> dict[str, Any]:
    """Accuracy of every model on every suite, and a test of models a and b on the items of each.

    Intervals are those of the runs' estimates. The test is that of `felicity compare`: over items within a
    suite, where it is McNemar's, with p adjusted over suites (Holm); over suites for `overall`.
    """
    numbers = range(len(collection.sources))
    base = collection.scan().filter(pl.col("measure") == measure)
    means = [pl.col(f"passed_{number}").mean().alias(f"accuracy_{number}") for number in numbers]
    table = base.group_by("suite", maintain_order=True).agg(
        pl.col("phenomenon").first(), pl.len().alias("n"), *means
    )
    estimates = [_estimate(source, measure) for source in collection.sources]
    rows = [
        {"suite": row["suite"], "phenomenon": row["phenomenon"], "n": row["n"]}
        | {"accuracy": [row[f"accuracy_{number}"] for number in numbers]}
        | {"interval": [own.get(("suite", row["suite"])) for own in estimates]}
        for row in table.collect().iter_rows(named=True)
    ]
    total = base.select(means).collect().row(0)
    whole = [next((own[key] for key in own if key[0] == "overall"), None) for own in estimates]
    found: dict[str, Any] = {"rows": rows, "overall": {"accuracy": list(total), "interval": whole}}
    if a == b:
        return found
    answers = base.select("row", "suite", pl.col(f"passed_{a}").alias("a"), pl.col(f"passed_{b}").alias("b"))
    both = answers.drop_nulls().collect()
    tests = {str(suite): _test(part) for (suite,), part in both.group_by("suite", maintain_order=True)}
    adjusted = dict(zip(tests, adjust_holm([test["p"] for test in tests.values()]).tolist(), strict=True))
    for row in rows:
        if row["suite"] in tests:
            row["test"] = tests[row["suite"]] | {"p_holm": adjusted[row["suite"]]}
    found["overall"]["test"] = _test(both, cluster="suite" if both["suite"].n_unique() > 1 else None)
    return found


def _estimate(source: Source, measure: str) -> dict[tuple[str, str], list[float]]:
    """The 95% intervals of a run by level and name, as its report has them; none where it stored none."""
    if not source.run.file("estimates").exists() or source.home.path != source.run.path:
        return {}
    table = source.run.read("estimates").filter(pl.col("measure") == measure)
    known = table.filter(pl.col("low").is_not_null(), pl.col("high").is_not_null())
    return {
        (row["level"], row["name"]): [row["low"], row["high"]]
        for row in known.filter(pl.col("level").is_in(["suite", "overall"])).iter_rows(named=True)
    }


def _test(answers: pl.DataFrame, cluster: str | None = None) -> dict[str, Any]:
    sides = [answers.select("row", "suite", pl.col(name).alias("passed")) for name in ("a", "b")]
    pairs = pair_answers(*sides, on="row", cluster=cluster)
    only_a, only_b = pairs.discordant
    found = compare_pairs(pairs)
    return {
        "n": pairs.n,
        "difference": float(found.estimate[0]),
        "only_a": only_a,
        "only_b": only_b,
        "p": float(found.p[0]),
        "test": f"score test over {'suites' if cluster else 'items'}",
    }
