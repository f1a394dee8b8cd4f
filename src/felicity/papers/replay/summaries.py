"""Replayed answers by item, and published accuracies by suite: BLiMP's summaries and human validation."""

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import ESTIMATES, JUDGEMENTS, conform
from felicity.data import Table, find_entry
from felicity.papers.replay.replayed import Replayed
from felicity.run import Verdicts
from felicity.stats import estimate_suites

SYNTAXGYM = "syntaxgym"
RIGHT = {"true": 1.0, "1": 1.0, "false": 0.0, "0": 0.0}
DATASET = "blimp"
PAIRS = 1000
PEOPLE = {"Condition", "accepted", "total_mean", "count"}
ITEMS_OF_A_SUITE = 5
MOST_ANSWERS = 1_000_000
SHARES = {
    "suite": pl.String(),
    "phenomenon": pl.String(),
    "measure": pl.String(),
    "share": pl.Float64(),
    "n": pl.Int64(),
}


def replay_answers(table: Table, dataset: str | None) -> Replayed:
    """Right or wrong by item: the results of SyntaxGym, whose items are numbered from 0."""
    name = dataset or SYNTAXGYM
    phenomena = _phenomena(name)
    rows = []
    for row, line in zip(table.rows, table.lines, strict=True):
        answer = str(row["correct"]).strip().lower()
        if answer not in RIGHT:
            raise BadInput(f"{table.path}, line {line}: 'correct' is {row['correct']!r}, not true or false.")
        suite = str(row["suite"])
        rows.append(
            {
                "item": f"{suite}/{_from_one(row['item'], name, table.path, line)}",
                "suite": suite,
                "phenomenon": phenomena(suite),
                "measure": str(row.get("model") or "answers"),
                "rule": "published",
                "passed": RIGHT[answer],
                "margin": float("nan"),
                "stable": True,
            }
        )
    judged = pl.DataFrame(rows, schema=JUDGEMENTS)
    twice = judged.filter(judged.select("item", "measure").is_duplicated())
    if len(twice):
        raise BadInput(f"{table.path} answers item '{twice['item'][0]}' more than once for one model.")
    items = judged.select(
        "item", "suite", "phenomenon", pl.lit("answer").alias("condition"), pl.lit("").alias("text")
    ).unique(maintain_order=True)
    return Replayed(
        form="answers",
        dataset=name,
        items=items,
        verdicts=Verdicts(judgements=judged),
        measures=tuple(judged["measure"].unique(maintain_order=True)),
    )


def _from_one(item: object, dataset: str, path: Path, line: int) -> str:
    if dataset != SYNTAXGYM:
        return str(item)
    text = str(item).strip()
    if not text.isdecimal():
        raise BadInput(f"{path}, line {line}: 'item' is {item!r}, not a number from 0 on.")
    return str(int(text) + 1)


def _phenomena(dataset: str) -> Callable[[str], str]:
    patterns = find_entry(dataset).maps.get("phenomena", {})

    def find(suite: str) -> str:
        return next((what for pattern, what in patterns.items() if fnmatchcase(suite, pattern)), suite)

    return find


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
    names = [str(row[name]) for row in rows]
    twice = next((suite for suite in names if names.count(suite) > 1), None)
    if twice:
        raise BadInput(f"{table.path} names the suite '{twice}' more than once; each counts once.")
    shares = pl.DataFrame(
        _people(rows, table) if people else _models(rows, table), schema=SHARES, orient="row"
    )
    skipped = len(table.rows) - len(rows)
    notes = (("rows that are not one of BLiMP's 67 suites", skipped, len(table.rows)),) if skipped else ()
    return replay_shares(shares, dataset=DATASET, notes=notes)


def replay_shares(
    shares: pl.DataFrame, *, dataset: str, notes: tuple[tuple[str, int, int], ...] = ()
) -> Replayed:
    """Published accuracies by suite: rows of SHARES."""
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
    return Replayed(
        form="summary",
        dataset=dataset,
        items=items,
        verdicts=Verdicts(judgements=judged),
        measures=tuple(shares["measure"].unique(maintain_order=True)),
        estimates=estimate_shares(shares),
        notes=notes,
    )


def estimate_shares(shares: pl.DataFrame) -> pl.DataFrame:
    """Rows of ESTIMATES from the accuracy and size of each suite."""
    rows: list[dict[str, object]] = []
    for (measure,), part in shares.group_by("measure", maintain_order=True):
        groups = [("overall", "all", part), ("macro", "all", part)]
        groups += [
            ("phenomenon", str(name), g) for (name,), g in part.group_by("phenomenon", maintain_order=True)
        ]
        groups += [("suite", str(name), g) for (name,), g in part.group_by("suite", maintain_order=True)]
        rows += [
            {"measure": str(measure), "level": level, "name": name, "ties": 0, "unstable": 0}
            | estimate_suites(
                group["share"].to_numpy(), group["n"].to_numpy().astype(float), macro=level == "macro"
            )
            for level, name, group in groups
        ]
    return pl.DataFrame(rows, schema=ESTIMATES)


def _models(rows: list[dict[str, object]], table: Table) -> list[tuple[str, str, str, float, int]]:
    """One accuracy per column; a suite of BLiMP has 1000 pairs."""
    phenomena = find_entry(DATASET).maps["phenomena"]
    models = [name for name in table.columns if name not in ("UID", "linguistics_term", "field")]
    found = []
    for row in rows:
        term = str(row.get("linguistics_term") or row["UID"])
        for model in models:
            share = _share(row.get(model), model, table)
            found.append((str(row["UID"]), phenomena.get(term, term), model, share, PAIRS))
    return found


def _people(rows: list[dict[str, object]], table: Table) -> list[tuple[str, str, str, float, int]]:
    """The share of correct answers, and of items that the majority got right."""
    found = []
    for row in rows:
        suite = str(row["Condition"])
        answers = _share(row.get("total_mean"), "total_mean", table)
        count = str(row.get("count"))
        if not count.isdecimal() or not 0 < int(count) <= MOST_ANSWERS:
            raise BadInput(f"Column 'count' of {table.path} has {count[:60]!r}, not a number of answers.")
        found.append((suite, suite, "individual", answers, int(count)))
        items = _share(row.get("accepted"), "accepted", table, most=ITEMS_OF_A_SUITE)
        found.append((suite, suite, "majority", items / ITEMS_OF_A_SUITE, ITEMS_OF_A_SUITE))
    return found


def _share(value: object, model: str, table: Table, *, most: int = 1) -> float:
    try:
        share = float(str(value))
    except ValueError as error:
        raise BadInput(
            f"Column '{model}' of {table.path} contains {str(value)[:60]!r}, not an accuracy."
        ) from error
    if not 0 <= share <= most:
        raise BadInput(
            f"Column '{model}' of {table.path} contains {share:g}; accuracies are between 0 and {most}."
        )
    return share
