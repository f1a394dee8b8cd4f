"""What would bias the result, counted before anything is scored."""

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import AUDIT
from felicity.data.catalogue import Dataset

EXAMPLES = 3
PAIR = ("good", "bad")


def audit_requests(requests: pl.DataFrame, encodings: pl.DataFrame) -> pl.DataFrame:
    """Rows of AUDIT: how many of how many, what it means, and the first few that are meant."""
    known = requests.join(encodings, on="request")
    pairs = _pairs(known)
    n_tokens = int(known["n_tokens"].sum())
    longer, shorter = pairs.filter(pl.col("more") > 0), pairs.filter(pl.col("more") < 0)
    rows = [
        _row(
            "tokens unscored",
            known,
            "n_unscored",
            n_tokens,
            "first tokens with nothing before them, or unknown words left out",
        ),
        _row("tokens across the boundary", known, "n_across", n_tokens, "tokens that hold context and text"),
        _row("unknown tokens", known, "n_unknown", n_tokens, "pieces the tokenizer has no token for"),
        _items(
            "identical pairs", pairs.filter(pl.col("same")), len(pairs), "both sentences are the same text"
        ),
        _items("good longer", longer, len(pairs), "pairs of unequal length: good has more tokens than bad"),
        _items(
            "good shorter", shorter, len(pairs), "pairs of unequal length: good has fewer tokens than bad"
        ),
        _row(
            "context sentences dropped",
            known,
            "n_dropped",
            len(known),
            "oldest context cut to fit the window",
        ),
        _requests(
            "over-long inputs", known.filter(pl.col("n_over") > 0), len(known), "longer than the window"
        ),
    ]
    unread = known.filter(pl.col("n_tokens").is_null())
    if len(unread):
        rows.append(
            _requests("inputs not tokenized", unread, len(known), "only the server knows their tokens")
        )
    return pl.DataFrame(rows, schema=AUDIT, orient="row")


def audit_rows(dataset: Dataset) -> pl.DataFrame:
    """Rows of AUDIT for rows of the files that are no stimuli, by reason, and for notes on the copy."""
    rows: list[tuple[object, ...]] = []
    for (reason,), part in dataset.left_out.group_by("reason", maintain_order=True):
        places = pl.select(pl.format("{} line {}", part["file"], part["line"])).to_series().head(EXAMPLES)
        rows.append(("rows left out", len(part), dataset.rows, str(reason), ", ".join(places)))
    rows += [("another version", len(dataset.items), len(dataset.items), note, "") for note in dataset.notes]
    return pl.DataFrame(rows, schema=AUDIT, orient="row")


def refuse_overlong(
    requests: pl.DataFrame, encodings: pl.DataFrame, *, model: str, window: int | None
) -> None:
    """Stop before a run that would have to cut a text.

    Raises BadInput naming the first text and what to do.
    """
    over = requests.join(encodings.filter(pl.col("n_over") > 0), on="request")
    if over.is_empty() or window is None:
        return
    first = over.row(0, named=True)
    can_drop = first["context"] is not None and first["n_dropped"] == 0
    step = "drop old context with --overflow drop" if can_drop else "shorten or remove it"
    more = f" ({len(over)} such texts)" if len(over) > 1 else ""
    raise BadInput(
        f"The input of '{first['request']}' is {window + first['n_over']} tokens long, but '{model}' "
        f"reads at most {window}; {step}{more}."
    )


def _pairs(known: pl.DataFrame) -> pl.DataFrame:
    """One row per pair with the difference in tokens, good minus bad."""
    return (
        known.group_by("item", maintain_order=True)
        .agg(
            pl.col("n_tokens").cast(pl.Int64).filter(pl.col("condition") == "good").first().alias("good"),
            pl.col("n_tokens").cast(pl.Int64).filter(pl.col("condition") == "bad").first().alias("bad"),
            (pl.col("text").n_unique() == 1).alias("same"),
            pl.col("condition").is_in(PAIR).sum().alias("members"),
        )
        .filter(pl.col("members") == len(PAIR))
        .with_columns((pl.col("good") - pl.col("bad")).alias("more"))
    )


def _row(check: str, known: pl.DataFrame, column: str, of: int, meaning: str) -> tuple[object, ...]:
    met = known.filter(pl.col(column) > 0)["request"].head(EXAMPLES)
    return (check, int(known[column].sum()), of, meaning, ", ".join(met))


def _items(check: str, pairs: pl.DataFrame, of: int, meaning: str) -> tuple[object, ...]:
    return (check, len(pairs), of, meaning, ", ".join(pairs["item"].head(EXAMPLES)))


def _requests(check: str, known: pl.DataFrame, of: int, meaning: str) -> tuple[object, ...]:
    return (check, len(known), of, meaning, ", ".join(known["request"].head(EXAMPLES)))
