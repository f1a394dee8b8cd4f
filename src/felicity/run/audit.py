"""The audit: what could bias the result, counted before anything is scored."""

from collections.abc import Mapping, Sequence

import polars as pl

from felicity.core.contrasts import PAIR, Contrast
from felicity.core.errors import BadInput
from felicity.core.schemas import AUDIT, NOT_CHECKED
from felicity.data import Dataset, check_items

EXAMPLES = 3
OVERLONG = "over-long inputs"
# If at least this share of the pairs is of unequal length, the audit says what to do about it.
MANY_UNEQUAL = 0.05
ADVICE = "; --measure word_pmi reduces it, and `felicity bias` shows what it does"


def audit_requests(
    requests: pl.DataFrame,
    encodings: pl.DataFrame,
    *,
    items: pl.DataFrame,
    contrasts: Sequence[Contrast] = (),
    sentences: Mapping[str, str] | None = None,
) -> pl.DataFrame:
    """Rows of AUDIT: how many of how many, what it means, and the first few.

    contrasts: which conditions are compared; each is checked for identical texts and unequal lengths.
    If no whole sentences are compared, the audit says that lengths were not checked. sentences: what the
    dataset calls its conditions, if not by their own names.
    """
    encoded = requests.join(encodings, on="request")
    n_tokens = int(encoded["n_tokens"].sum())
    rows = [
        _row(
            "tokens unscored",
            encoded,
            "n_unscored",
            n_tokens,
            "first tokens with nothing before them, or unknown words left out",
        ),
        _row(
            "tokens across the boundary",
            encoded,
            "n_across",
            n_tokens,
            "tokens that contain context and text",
        ),
        _row("unknown tokens", encoded, "n_unknown", n_tokens, "text that the tokenizer has no token for"),
        *_audit_contrasts(encoded, items, contrasts, sentences or {}),
        _row(
            "context sentences dropped",
            encoded,
            "n_dropped",
            len(encoded),
            "oldest context dropped to fit the window",
        ),
        _requests(OVERLONG, encoded.filter(pl.col("n_over") > 0), len(encoded), "longer than the window"),
    ]
    unread = encoded.filter(pl.col("n_tokens").is_null())
    if len(unread):
        rows.append(
            _requests("inputs not tokenized", unread, len(encoded), "only the server knows their tokens")
        )
    return pl.DataFrame(rows, schema=AUDIT, orient="row")


def _audit_contrasts(
    encoded: pl.DataFrame,
    items: pl.DataFrame,
    contrasts: Sequence[Contrast],
    sentences: Mapping[str, str],
) -> list[tuple[object, ...]]:
    """Identical texts and unequal lengths of every two conditions that are compared."""
    names = encoded["item"].unique(maintain_order=True)
    if not contrasts:
        reason = "lengths and identity of conditions, since no two whole sentences are compared"
        return [(NOT_CHECKED, len(names), len(names), reason, "")]
    phenomena = items.select("item", "phenomenon").unique("item", maintain_order=True)
    rows: list[tuple[object, ...]] = []
    covered: set[str] = set()
    for contrast in contrasts:
        mine = phenomena if contrast.phenomenon is None else phenomena.filter(phenomenon=contrast.phenomenon)
        members = encoded.join(mine, on="item", how="semi", maintain_order="left")
        for worse in contrast.worse:
            pairs = _pair(members, contrast.better, worse)
            covered |= set(pairs["item"])
            rows += _audit_pairs(pairs, contrast.better, worse, sentences)
    left = names.filter(~names.is_in(list(covered)))
    if len(left):
        why = "lengths and identity, since the item lacks a condition that is compared"
        rows.append((NOT_CHECKED, len(left), len(names), why, ", ".join(left.head(EXAMPLES))))
    return rows


def _audit_pairs(
    pairs: pl.DataFrame, better: str, worse: str, sentences: Mapping[str, str]
) -> list[tuple[object, ...]]:
    plain = (better, worse) == (PAIR.better, PAIR.worse[0])
    better, worse = sentences.get(better, better), sentences.get(worse, worse)
    identical = "identical pairs" if plain else f"{better} identical to {worse}"
    longer, shorter = f"{better} longer", f"{better} shorter"
    if not plain:
        longer, shorter = f"{longer} than {worse}", f"{shorter} than {worse}"
    many = len(pairs) and (pairs["more"] != 0).sum() >= MANY_UNEQUAL * len(pairs)
    advice = ADVICE if many else ""
    return [
        _items(identical, pairs.filter(pl.col("same")), len(pairs), "both sentences are the same text"),
        _items(
            longer,
            pairs.filter(pl.col("more") > 0),
            len(pairs),
            f"pairs of unequal length: {better} has more tokens than {worse}{advice}",
        ),
        _items(
            shorter,
            pairs.filter(pl.col("more") < 0),
            len(pairs),
            f"pairs of unequal length: {better} has fewer tokens than {worse}{advice}",
        ),
    ]


# What the checks of a file find, and what that means for a result; other problems are refused on reading.
PROBLEM_MEANINGS = {
    "duplicate item": "the texts of an earlier item, counted as independent evidence",
    "reversed pair": "the texts of an earlier item the other way round",
    "stray space": "texts with doubled spaces, or spaces at an end or before punctuation",
    "identical texts": "conditions of one item with the same text",
    "curly quotes": "texts with typographic quotes or apostrophes, which are other tokens than straight ones",
    "mixed scripts": "texts with a word in letters of two scripts, which look alike but are other tokens",
    "missing full stop": "texts without final punctuation, which others have",
}
# These are counted by item, the others by text.
OF_ITEMS = ("duplicate item", "reversed pair", "identical texts")


def audit_rows(dataset: Dataset, items: pl.DataFrame, *, compares: bool) -> pl.DataFrame:
    """Rows of AUDIT known from the files alone: problems of the stimuli, rows left out, notes on the copy.

    The problems are those of `felicity stimuli check`. compares: whether the audit of the contrasts counts
    identical texts already.
    """
    rows = _audit_writing(items, compares=compares) + _audit_bars(dataset.barred, dataset.rows)
    for (reason,), part in dataset.left_out.group_by("reason", maintain_order=True):
        places = ", ".join(
            pl.select(pl.format("{} line {}", part["file"], part["line"])).to_series().head(EXAMPLES)
        )
        rows.append(("rows left out", len(part), dataset.rows, str(reason), places))
    rows += [("another version", len(dataset.items), len(dataset.items), note, "") for note in dataset.notes]
    return pl.DataFrame(rows, schema=AUDIT, orient="row")


def audit_texts(
    texts: Sequence[str],
    contexts: Sequence[str | None],
    encodings: pl.DataFrame,
    *,
    barred: Sequence[int] = (),
) -> pl.DataFrame:
    """Rows of AUDIT for single texts: how they are written, and what their tokens would bias.

    barred: the numbers of the texts from which bars between regions were taken out.
    """
    names = encodings["request"]
    written = {"item": names, "condition": ["text"] * len(texts), "text": texts, "context_text": contexts}
    items = pl.DataFrame(written, schema_overrides={"context_text": pl.String}, strict=False)
    numbered = items.with_row_index("line", offset=1)
    requests = items.select(request="item", item="item", condition="condition")
    about = audit_requests(requests, encodings, items=items).filter(pl.col("check") != NOT_CHECKED)
    rows = _audit_writing(numbered, compares=False) + _audit_bars(barred, len(texts))
    return pl.concat([about, pl.DataFrame(rows, schema=AUDIT, orient="row")])


def _audit_writing(items: pl.DataFrame, *, compares: bool) -> list[tuple[object, ...]]:
    """How often texts have each of the problems that a check of the file finds."""
    rows: list[tuple[object, ...]] = []
    problems = check_items(items)
    for problem, meaning in PROBLEM_MEANINGS.items():
        lines = problems.filter(problem=problem)["line"]
        if len(lines) and not (compares and problem == "identical texts"):
            of = items["item"].n_unique() if problem in OF_ITEMS else len(items)
            places = ", ".join(f"line {line}" for line in lines.head(EXAMPLES))
            rows.append(
                (f"{problem}s" if not problem.endswith("s") else problem, len(lines), of, meaning, places)
            )
    return rows


def _audit_bars(lines: Sequence[int], of: int) -> list[tuple[object, ...]]:
    if not lines:
        return []
    places = ", ".join(f"line {line}" for line in lines[:EXAMPLES])
    return [("region bars", len(lines), of, "bars between regions, taken out before scoring", places)]


def refuse_overlong(
    requests: pl.DataFrame,
    encodings: pl.DataFrame,
    *,
    model: str,
    window: int | None,
    slides: bool = False,
) -> None:
    """Refuse texts that do not fit into the model's window; `slides`: a text can be scored in windows.

    Raises BadInput naming the first text and what to do.
    """
    over = requests.join(encodings.filter(pl.col("n_over") > 0), on="request")
    if over.is_empty() or window is None:
        return
    first = over.row(0, named=True)
    can_drop = first["context"] is not None and first["n_dropped"] == 0
    step = "drop old context with --overflow drop" if can_drop else "shorten or remove it"
    step = "score it in windows with --overflow slide" if slides and not can_drop else step
    more = f" ({len(over)} such texts)" if len(over) > 1 else ""
    raise BadInput(
        f"The input of '{first['request']}' is {window + first['n_over']} tokens long, but '{model}' "
        f"reads at most {window}; {step}{more}."
    )


def _pair(encoded: pl.DataFrame, better: str, worse: str) -> pl.DataFrame:
    """One row per item that has both conditions, with the difference in tokens, better minus worse."""
    one, other = (
        encoded.filter(pl.col("condition") == condition)
        .unique("item", keep="first", maintain_order=True)
        .select("item", "context", "text", pl.col("n_tokens").cast(pl.Int64))
        for condition in (better, worse)
    )
    same = (pl.col("text") == pl.col("text_other")) & pl.col("context").eq_missing(pl.col("context_other"))
    return one.join(other, on="item", suffix="_other", maintain_order="left").select(
        "item", same.alias("same"), (pl.col("n_tokens") - pl.col("n_tokens_other")).alias("more")
    )


def _row(check: str, encoded: pl.DataFrame, column: str, of: int, meaning: str) -> tuple[object, ...]:
    met = encoded.filter(pl.col(column) > 0)["request"].head(EXAMPLES)
    return (check, int(encoded[column].sum()), of, meaning, ", ".join(met))


def _items(check: str, pairs: pl.DataFrame, of: int, meaning: str) -> tuple[object, ...]:
    return (check, len(pairs), of, meaning, ", ".join(pairs["item"].head(EXAMPLES)))


def _requests(check: str, encoded: pl.DataFrame, of: int, meaning: str) -> tuple[object, ...]:
    return (check, len(encoded), of, meaning, ", ".join(encoded["request"].head(EXAMPLES)))
