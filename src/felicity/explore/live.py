"""Sentences that somebody types: scored at once, laid out like those of a run, kept as a file of pairs."""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.explore.items import describe_layout
from felicity.explore.layout import ScoredText, Sentence, lay_out
from felicity.run import Model

LONGEST = 4000
MOST_SENTENCES = 12
MOST_ALTERNATIVES = 50


def score_texts(models: Mapping[str, Model], texts: Sequence[str], context: str = "") -> dict[str, Any]:
    """Sentences scored by every model and laid over one another, with the verdict on the first two.

    verdicts: for each model which of the first two sentences is more acceptable (0 or 1; None for a tie),
    the margin in nats, and whether it exceeds numerical noise.

    Raises BadInput if there is no sentence, too many, or one is too long.
    """
    given = [text.strip() for text in texts if text.strip()]
    _refuse(given, context)
    before = context.strip() or None
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
    return [
        {"token": token, "logprob": value, "rank": rank + 1, "own": token == row["tokens"][place]}
        for rank, (token, value) in enumerate(found)
    ]


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


def _refuse(texts: Sequence[str], context: str) -> None:
    if not texts:
        raise BadInput("There is no sentence; write one.")
    if len(texts) > MOST_SENTENCES:
        raise BadInput(f"There are {len(texts)} sentences; compare at most {MOST_SENTENCES} at once.")
    for text in (*texts, context):
        if len(text) > LONGEST:
            raise BadInput(f"A text has {len(text):,} characters; write at most {LONGEST:,}.")
