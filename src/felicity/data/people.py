"""What people answered to a dataset's items: how often they chose the good sentence, by suite."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import parse_excel, read_bytes
from felicity.core.registry import Registry
from felicity.core.schemas import Schema, conform
from felicity.data.entry import Entry
from felicity.data.locate import Copy
from felicity.data.tables import read_plain, read_table

# One row per suite that people judged: how many judgements (or people), and how many of them were right.
PEOPLE: Schema = {"suite": pl.String(), "n": pl.Int64(), "people": pl.Float64()}
ReadPeople = Callable[[Path, Entry], pl.DataFrame]
READERS: Registry[ReadPeople] = Registry("reader of people's answers")


def read_people(entry: Entry, copy: Copy) -> pl.DataFrame | None:
    """How often people chose the good sentence, by suite: a frame of PEOPLE.

    None if the dataset has no such file for this language, or the copy lacks it.
    """
    if not entry.people or entry.language not in entry.people.get("languages", entry.language):
        return None
    declared = Path(entry.files[0])
    root = copy.paths[0].parents[len(declared.parts) - 1]
    named = root / entry.people["file"]
    path = next((path for path in (named, named.with_name(f"{named.name}.gz")) if path.is_file()), None)
    if path is None:
        return None
    found = READERS[entry.people["format"]](path, entry)
    if entry.parts:
        found = found.with_columns((f"{entry.language}/" + pl.col("suite")).alias("suite"))
    return conform(found, PEOPLE)


@READERS.add("table")
def read_suites(path: Path, entry: Entry) -> pl.DataFrame:
    """A table with one row per suite; the entry names the columns `suite`, `n` and `share` or `right`."""
    named = entry.people
    table = pl.DataFrame(read_table(path).rows)
    missing = [name for key in ("suite", "n") if (name := named[key]) not in table.columns]
    if missing:
        raise BadInput(f"{path} has no column '{missing[0]}'; it is not the file of {entry.name}.")
    n = pl.col(named["n"]).cast(pl.Int64)
    share = pl.col(named.get("share") or named["right"]).cast(pl.Float64)
    return table.select(suite=named["suite"], n=n, people=share if "share" in named else share / n)


@READERS.add("columns")
def read_row(path: Path, entry: Entry) -> pl.DataFrame:
    """A table of accuracies with one column per suite, and one row for people (Kryvosheieva & Levy 2025)."""
    row = next(row for row in read_table(path).rows if row["model"] == entry.people["row"])
    language = entry.people["prefixes"][entry.language]
    shares = {name: float(str(cell)) for name, cell in row.items() if name.startswith(f"{language}-")}
    # How many answers each is the share of is not published.
    return pl.DataFrame({"suite": list(shares), "n": None, "people": list(shares.values())})


@READERS.add("votes")
def read_votes(path: Path, entry: Entry) -> pl.DataFrame:
    """JSON lines with one vote per column `annotator_N` for the side that `label` calls good (QFrBLiMP)."""
    table = pl.read_ndjson(read_bytes(path), infer_schema_length=None)
    votes = [name for name in table.columns if name.startswith("annotator_")]
    right = pl.mean_horizontal((pl.col(name) == pl.col("label")).cast(pl.Float64) for name in votes)
    suite = pl.col(entry.people["suite"]).cast(pl.String)
    shares = table.select(suite=suite, share=right).group_by("suite", maintain_order=True)
    return shares.agg(n=pl.len() * len(votes), people=pl.col("share").mean())


@READERS.add("choices")
def read_choices(path: Path, _: Entry) -> pl.DataFrame:
    """A long table with the number of people who chose each form, `mturk_count` (Gulordava et al. 2018)."""
    table = pl.read_csv(read_plain(path).encode(), separator="\t", infer_schema_length=None)
    keys = ["pattern", "constr_id", "sent_id", "type"]
    chosen = table.pivot("class", index=keys, values="mturk_count").drop_nulls(["correct", "wrong"])
    chosen = chosen.with_columns(n=pl.col("correct") + pl.col("wrong")).filter(pl.col("n") > 0)
    kind = pl.when(pl.col("type") == "original").then(pl.lit("original")).otherwise(pl.lit("nonce"))
    suite = kind + "/" + pl.col("pattern")
    shares = chosen.select(suite=suite, n="n", share=pl.col("correct") / pl.col("n"))
    return shares.group_by("suite", maintain_order=True).agg(pl.col("n").sum(), people=pl.col("share").mean())


@READERS.add("two lists")
def read_lists(path: Path, entry: Entry) -> pl.DataFrame:
    """Ratings of raters who each saw good and bad sentences of a suite, but one side of a pair (TurBLiMP).

    The share of a rater's pairs of a good and a bad sentence of one suite that are rated in the right order;
    a tie counts half.
    """
    frame = parse_excel(read_bytes(path), path, as_text=True)
    names = {column: frame[column][0] for column in frame.columns}
    ratings = frame.slice(1).cast(pl.Float64)
    maps = entry.maps["people"]
    found: dict[str, list[float]] = {}
    for row in ratings.iter_rows(named=True):
        sides: dict[tuple[str, str], list[float]] = {}
        for column, rating in row.items():
            suite, _, side = str(names[column]).rpartition("_")
            if rating is not None:
                sides.setdefault((suite, side), []).append(rating)
        for suite in dict.fromkeys(suite for suite, _ in sides):
            good, bad = (np.array(sides.get((suite, side), [])) for side in ("good", "bad"))
            if len(good) and len(bad):
                above = (np.sign(good[:, None] - bad[None, :]) + 1) / 2
                found.setdefault(maps[suite], []).append(float(above.mean()))
    rows = [(suite, len(shares), float(np.mean(shares))) for suite, shares in found.items()]
    return pl.DataFrame(rows, schema=PEOPLE, orient="row")
