"""The analysis of learning curves: accuracy by checkpoint, acquisition of every suite, dips, and orders."""

import math
from itertools import combinations

import numpy as np
import polars as pl

from felicity.core.schemas import Schema
from felicity.run import StudyFolder
from felicity.stats import (
    adjust_bh,
    compare_orders,
    estimate_judged,
    find_dip,
    find_reached,
    fit_sigmoid,
)

EVERYTHING = "all suites"
FEWEST_ORDERED = 3
TEXT, NUMBER = pl.String(), pl.Float64()
CURVES: Schema = {
    "training": TEXT,
    "suite": TEXT,
    "label": TEXT,
    "step": NUMBER,
    "n": pl.Int64(),
    "accuracy": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "interval": TEXT,
}
ACQUISITION: Schema = {
    "training": TEXT,
    "suite": TEXT,
    "first": NUMBER,
    "last": NUMBER,
    "reached": NUMBER,
    "reached_low": NUMBER,
    "reached_high": NUMBER,
    "held_share": NUMBER,
    "midpoint": NUMBER,
    "midpoint_low": NUMBER,
    "midpoint_high": NUMBER,
    "top": NUMBER,
    "r2": NUMBER,
}
DIPS: Schema = {
    "training": TEXT,
    "suite": TEXT,
    "before": NUMBER,
    "bottom": NUMBER,
    "after": NUMBER,
    "depth": NUMBER,
    "p": NUMBER,
    "p_bh": NUMBER,
}
ORDERS: Schema = {
    "first": TEXT,
    "second": TEXT,
    "suites": pl.Int64(),
    "tau": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
}


def analyse(folder: StudyFolder) -> dict[str, pl.DataFrame]:
    """Curves, acquisition, dips and orders, from the judgements of every checkpoint."""
    points = folder.read("checkpoints").sort("training", "step")
    judged = pl.concat([_read_answers(folder, row) for row in points.iter_rows(named=True)])
    settings = folder.record["settings"]
    acquisition, dips = [], []
    for (training, suite), part in judged.group_by("training", "suite", maintain_order=True):
        steps, answers = build_matrix(part)
        named = {"training": training, "suite": suite}
        acquisition.append(
            named
            | acquire(
                answers,
                steps,
                criterion=settings["criterion"],
                draws=settings["draws"],
                chance=part["chance"][0],
                seed=settings["seed"],
            )
        )
        dip = find_dip(answers)
        if dip is not None:
            places = {"before": steps[dip.before], "bottom": steps[dip.bottom], "after": steps[dip.after]}
            dips.append(named | places | {"depth": dip.depth, "p": dip.p})
    found = pl.DataFrame(acquisition, schema=ACQUISITION)
    return {
        "curves": draw_curves(judged),
        "acquisition": found,
        "dips": _adjust(pl.DataFrame(dips, schema={k: v for k, v in DIPS.items() if k != "p_bh"})),
        "orders": compare_trainings(found, draws=settings["draws"], seed=settings["seed"]),
    }


def _read_answers(folder: StudyFolder, point: dict[str, object]) -> pl.DataFrame:
    """The answers of one checkpoint on all datasets; of several, suites are named after theirs."""
    sets = folder.facts["sets"]
    parts = []
    for name in sets:
        judged = folder.run(str(point["model"]), name if len(sets) > 1 else "").read("judgements")
        judged = judged.filter(pl.col("measure") == judged["measure"][0])
        suite = pl.format("{}: {}", pl.lit(name), "suite") if len(sets) > 1 else pl.col("suite")
        item = pl.format("{}: {}", pl.lit(name), "item")
        chance = pl.lit(float(folder.facts["chance"][name]))
        parts.append(judged.select(item=item, suite=suite, passed="passed", chance=chance))
    named = {key: pl.lit(point[key]) for key in ("training", "label", "step")}
    return pl.concat(parts).with_columns(**named)


def draw_curves(judged: pl.DataFrame) -> pl.DataFrame:
    """Accuracy at every checkpoint: of every suite, and the mean over suites."""
    rows = []
    keys = ["training", "label", "step"]
    for (training, label, step), part in judged.group_by(keys, maintain_order=True):
        named = {"training": training, "label": label, "step": step}
        rows.append(named | {"suite": EVERYTHING} | estimate_judged(part, macro=True))
        for (suite,), own in part.group_by("suite", maintain_order=True):
            rows.append(named | {"suite": suite} | estimate_judged(own))
    return pl.DataFrame(rows).select(pl.col(name).cast(dtype) for name, dtype in CURVES.items())


def build_matrix(part: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and answers with one row per checkpoint and one column per item that all have answered."""
    wide = part.pivot("step", index="item", values="passed").drop_nulls()
    steps = sorted(part["step"].unique().to_list())
    answers = wide.drop("item").select([str(step) for step in steps]).to_numpy().T
    return np.array(steps), answers


def acquire(
    answers: np.ndarray, steps: np.ndarray, *, criterion: float, draws: int, chance: float, seed: int = 0
) -> dict[str, object]:
    """When a suite is reached and held, and its sigmoid from the accuracy of guessing on."""
    accuracy = answers.mean(axis=1)
    reached = find_reached(answers, steps, criterion=criterion, draws=draws, seed=seed)
    curve = fit_sigmoid(accuracy, steps, chance=chance)
    return {
        "first": float(accuracy[0]),
        "last": float(accuracy[-1]),
        "reached": reached.step,
        "reached_low": reached.low,
        "reached_high": reached.high,
        "held_share": reached.share,
        "midpoint": curve.midpoint if curve else None,
        "midpoint_low": curve.low if curve else None,
        "midpoint_high": curve.high if curve else None,
        "top": curve.top if curve else None,
        "r2": curve.r2 if curve else None,
    }


def _adjust(dips: pl.DataFrame) -> pl.DataFrame:
    adjusted = pl.Series(adjust_bh(dips["p"].to_numpy()) if len(dips) else [], dtype=pl.Float64)
    return dips.with_columns(p_bh=adjusted).sort("p", maintain_order=True)


def compare_trainings(acquisition: pl.DataFrame, *, draws: int, seed: int) -> pl.DataFrame:
    """Kendall's tau of the orders in which every two trainings reach the suites that both were tested on."""
    rows = []
    for first, second in combinations(acquisition["training"].unique(maintain_order=True), 2):
        sides = [
            acquisition.filter(training=name).select(
                "suite", pl.col("reached").fill_null(math.inf).alias(name)
            )
            for name in (first, second)
        ]
        both = sides[0].join(sides[1], on="suite")
        varied = all(both[name].n_unique() > 1 for name in (first, second))
        if len(both) >= FEWEST_ORDERED and varied:
            orders = [both[name].to_numpy() for name in (first, second)]
            found = compare_orders(*orders, draws=draws, seed=seed)
            rows.append((first, second, found.n, found.tau, found.low, found.high))
    return pl.DataFrame(rows, schema=ORDERS, orient="row")
