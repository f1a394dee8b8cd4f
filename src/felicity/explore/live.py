"""Sentences that somebody types or changes: scored at once, laid out like those of a run, kept as pairs."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.explore.items import describe_layout
from felicity.explore.layout import ScoredText, Sentence, lay_out
from felicity.run import Model

LONGEST = 4000
MOST_SENTENCES = 12
MOST_ALTERNATIVES = 50
# What tokenizers write for the space before a word; letters that stand for single bytes of a character.
WORD_MARKS = ("Ġ", "▁")
BYTE_LETTERS = re.compile("[\u0100-\u0143]")
REST_OF_WORD = re.compile(r"\s*(?:[^\W_]|['’-])*")


def score_texts(
    models: Mapping[str, Model], texts: Sequence[str], context: str | Sequence[str] = ""
) -> dict[str, Any]:
    """Sentences scored by every model and laid over one another, with the verdict on the first two.

    context: what stands before each of them, or one text for each sentence.

    verdicts: for each model which of the first two sentences is more acceptable (0 or 1; None for a tie),
    the margin in nats, and whether it exceeds numerical noise.

    Raises BadInput if there is no sentence, too many, or one is too long.
    """
    each = [context] * len(texts) if isinstance(context, str) else list(context)
    if len(each) != len(texts):
        raise BadInput(f"There are {len(texts)} sentences and {len(each)} contexts; give each sentence one.")
    pairs = [(text.strip(), own.strip()) for text, own in zip(texts, each, strict=True) if text.strip()]
    given = [text for text, _ in pairs]
    _refuse(given, *(own for _, own in pairs))
    before = [own for _, own in pairs] if any(own for _, own in pairs) else None
    rows = {name: lm.tokens(given, context=before).to_dicts() for name, lm in models.items()}
    sentences = [
        Sentence(
            condition=f"sentence {number + 1}",
            text=text,
            scored={
                name: ScoredText(**{key: own[number][key] for key in ("tokens", "start", "end", "logprob")})
                for name, own in rows.items()
            },
        )
        for number, text in enumerate(given)
    ]
    shown = describe_layout(lay_out(sentences), sentences, list(models))
    verdicts = [_judge(shown, place, rows[name], lm) for place, (name, lm) in enumerate(models.items())]
    return shown | {
        "models": list(models),
        "context": context,
        "verdicts": verdicts if len(given) > 1 else [],
    }


def _judge(
    shown: Mapping[str, Any], place: int, rows: Sequence[Mapping[str, Any]], lm: Model
) -> dict[str, Any]:
    first, second = (
        (shown["sentences"][number]["lp"][place] for number in (0, 1)) if len(rows) > 1 else (0.0, 0.0)
    )
    same = len(rows) > 1 and rows[0]["tokens"] == rows[1]["tokens"]
    # Two scores of minus infinity are a tie, as in a run.
    margin = 0.0 if same or first == second else first - second
    better = None if margin == 0 else 0 if margin > 0 else 1
    return {"better": better, "margin": margin, "stable": abs(margin) > 2 * lm.possible_error, "same": same}


def list_alternatives(
    lm: Model, text: str, place: int, *, context: str = "", k: int = 10
) -> list[dict[str, Any]]:
    """The k most probable tokens in place of a token of a text, with their log-probabilities in nats.

    Raises BadInput if the text has no such token, NotPossible if the model gives log-probabilities only.
    """
    _refuse([text], context)
    row = lm.tokens(
        [text], context=context.strip() or None, rank=True, top=min(max(k, 1), MOST_ALTERNATIVES)
    ).row(0, named=True)
    if not 0 <= place < len(row["tokens"]) or row["top_tokens"][place] is None:
        raise BadInput(f"The text has no token number {place} that the model predicted; choose another.")
    found = zip(row["top_tokens"][place], row["top_logprob"][place], strict=True)
    marked = any(token.startswith(WORD_MARKS) for token in (*row["tokens"], *row["top_tokens"][place]))
    return [
        {
            "token": token,
            "logprob": value,
            "rank": rank + 1,
            "own": token == row["tokens"][place],
            "sentence": replace_word(text, row["start"][place], row["end"][place], token, marked=marked),
        }
        for rank, (token, value) in enumerate(found)
    ]


def replace_word(text: str, start: int, end: int, token: str, *, marked: bool) -> str | None:
    """The text with a token in place of what begins at a token of it, up to the end of the word.

    marked: tokens that begin a word carry a mark; without it each token is a word, unless it begins with ##.
    None if the token is no text of its own, such as a part of a character.

    >>> replace_word("The cats annoy Tim.", 8, 14, "Ġlove", marked=True)
    'The cats love Tim.'
    >>> replace_word("The cats annoy Tim.", 9, 14, "s", marked=True)
    'The catss Tim.'
    """
    begins = token.startswith(WORD_MARKS) if marked else not token.startswith("##")
    piece = token.removeprefix("##")[1 if marked and begins else 0 :]
    with suppress(UnicodeError):
        # Byte-level tokens spell characters beyond ASCII as their bytes.
        piece = piece.encode("latin-1").decode("utf-8")
    if not piece.strip() or BYTE_LETTERS.search(piece) or "<" in piece:
        return None
    rest = REST_OF_WORD.match(text, start)
    stop = max(end, rest.end() if rest else end)
    before = text[:start].rstrip()
    return f"{before}{' ' if begins and before else ''}{piece}{text[stop:]}"


def tabulate_pairs(pairs: Sequence[Mapping[str, str]]) -> pl.DataFrame:
    """Pairs that were kept, as a table that `felicity run` takes: one row per sentence.

    Each has `good`, `bad` and, if it has one, `context`.

    Raises BadInput if there is none or one lacks a sentence.
    """
    if not pairs:
        raise BadInput("No pair was kept; add one to the list first.")
    rows = []
    for number, pair in enumerate(pairs, start=1):
        for condition in ("good", "bad"):
            if not pair.get(condition, "").strip():
                raise BadInput(f"Pair {number} lacks a sentence; write two.")
            text, context = pair[condition].strip(), pair.get("context", "").strip()
            rows.append({"item": str(number), "condition": condition, "text": text, "context": context})
    table = pl.DataFrame(rows)
    return table.drop("context") if (table["context"] == "").all() else table


def _refuse(texts: Sequence[str], *contexts: str) -> None:
    if not texts:
        raise BadInput("There is no sentence; write one.")
    if len(texts) > MOST_SENTENCES:
        raise BadInput(f"There are {len(texts)} sentences; compare at most {MOST_SENTENCES} at once.")
    for text in (*texts, *contexts):
        if len(text) > LONGEST:
            raise BadInput(f"A text has {len(text):,} characters; write at most {LONGEST:,}.")
