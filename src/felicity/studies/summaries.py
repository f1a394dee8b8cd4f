"""Published accuracies by suite: BLiMP's model summaries and its human validation."""

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import ESTIMATES, JUDGEMENTS, conform
from felicity.data.catalogue import find_entry
from felicity.data.tables import Table
from felicity.run.rules import Verdicts
from felicity.stats.proportions import bootstrap_suites, wilson_interval
from felicity.studies.replay import Replayed

DATASET = "blimp"
PAIRS = 1000
PEOPLE = {"Condition", "accepted", "total_mean", "count"}
ITEMS_OF_A_SUITE = 5
SHARES = {
    "suite": pl.String(),
    "phenomenon": pl.String(),
    "measure": pl.String(),
    "share": pl.Float64(),
    "n": pl.UInt32(),
}


def is_summary(table: Table) -> bool:
    """Whether a table gives accuracies by suite."""
    return "UID" in table.columns or set(table.columns) >= PEOPLE


def replay_summary(table: Table) -> Replayed:
    """Accuracies of BLiMP's 67 suites; rows of anything else (averages, dropped suites) are left out."""
    known = {name.rpartition("/")[2].removesuffix(".jsonl") for name in find_entry(DATASET).files}
    people = set(table.columns) >= PEOPLE
    name = "Condition" if people else "UID"
    rows = [row for row in table.rows if str(row.get(name)) in known]
    if not rows:
        raise BadInput(f"No row of {table.path} is about a suite of BLiMP; column '{name}' names the suite.")
    shares = pl.DataFrame(_people(rows) if people else _models(rows, table), schema=SHARES, orient="row")
    judged = conform(
        shares.select(
            pl.col("suite").alias("item"),
            "suite",
            "phenomenon",
            "measure",
            pl.lit("summary").alias("rule"),
            pl.col("share").alias("passed"),
            pl.lit(float("nan")).alias("margin"),
            pl.lit(True).alias("stable"),
        ),
        JUDGEMENTS,
    )
    items = judged.select(
        "item", "suite", "phenomenon", pl.lit("suite").alias("condition"), pl.lit("").alias("text")
    ).unique(maintain_order=True)
    skipped = len(table.rows) - len(rows)
    return Replayed(
        form="summary",
        dataset=DATASET,
        items=items,
        verdicts=Verdicts(judgements=judged),
        measures=tuple(shares["measure"].unique(maintain_order=True)),
        estimates=estimate_shares(shares),
        notes=(("rows that are not one of BLiMP's 67 suites", skipped, len(table.rows)),) if skipped else (),
    )


def estimate_shares(shares: pl.DataFrame, *, seed: int = 0) -> pl.DataFrame:
    """Rows of ESTIMATES from the accuracy and size of each suite."""
    rows: list[dict[str, object]] = []
    for (measure,), part in shares.group_by("measure", maintain_order=True):
        groups = [("overall", "all", part), ("macro", "all", part)]
        groups += [
            ("phenomenon", str(name), g) for (name,), g in part.group_by("phenomenon", maintain_order=True)
        ]
        groups += [("suite", str(name), g) for (name,), g in part.group_by("suite", maintain_order=True)]
        rows += [_estimate(str(measure), level, name, group, seed) for level, name, group in groups]
    return pl.DataFrame(rows, schema=ESTIMATES)


def _estimate(measure: str, level: str, name: str, part: pl.DataFrame, seed: int) -> dict[str, object]:
    share, n = part["share"].to_numpy(), part["n"].to_numpy()
    macro = level == "macro"
    centre = float(share.mean() if macro else np.average(share, weights=n))
    if len(part) > 1:
        suites = [np.full(size, value) for size, value in zip(n, share, strict=True)]
        low, high = bootstrap_suites(suites, seed=seed, macro=macro)
    else:
        low, high = wilson_interval(float(share[0] * n[0]), int(n[0]))
    return {
        "measure": measure,
        "level": level,
        "name": name,
        "n": int(n.sum()),
        "suites": len(part),
        "accuracy": centre,
        "low": low,
        "high": high,
        "interval": "bootstrap over suites" if len(part) > 1 else "Wilson",
        "ties": 0,
        "unstable": 0,
    }


def _models(rows: list[dict[str, object]], table: Table) -> list[tuple[str, str, str, float, int]]:
    """One accuracy a column; a suite of BLiMP has 1000 pairs."""
    phenomena = find_entry(DATASET).maps["phenomena"]
    models = [name for name in table.columns if name not in ("UID", "linguistics_term", "field")]
    found = []
    for row in rows:
        term = str(row.get("linguistics_term") or row["UID"])
        for model in models:
            share = _share(row.get(model), model, table)
            found.append((str(row["UID"]), phenomena.get(term, term), model, share, PAIRS))
    return found


def _people(rows: list[dict[str, object]]) -> list[tuple[str, str, str, float, int]]:
    """The share of single answers that were right, and of items that the majority got right."""
    found = []
    for row in rows:
        suite = str(row["Condition"])
        answers, items = float(str(row["total_mean"])), float(str(row["accepted"]))
        found.append((suite, suite, "individual", answers, int(str(row["count"]))))
        found.append((suite, suite, "majority", items / ITEMS_OF_A_SUITE, ITEMS_OF_A_SUITE))
    return found


def _share(value: object, model: str, table: Table) -> float:
    try:
        share = float(str(value))
    except ValueError as error:
        raise BadInput(f"Column '{model}' of {table.path} holds {value!r}, not an accuracy.") from error
    if not 0 <= share <= 1:
        raise BadInput(f"Column '{model}' of {table.path} holds {share:g}; accuracies lie between 0 and 1.")
    return share
