"""Training an n-gram model: from a corpus to an ARPA file."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from felicity.core.errors import FelicityError
from felicity.core.files import replacing
from felicity.core.ids import fingerprint
from felicity.core.policy import Casing
from felicity.core.progress import Progress
from felicity.engines.ngram.arpa import write_part
from felicity.engines.ngram.estimation import Grams, Smoothed, count_ngrams, estimate
from felicity.engines.ngram.model import NgramModel, build_model
from felicity.engines.tokenizing import read_lines
from felicity.engines.words import (
    BEGIN_ID,
    UNKNOWN_ID,
    WordCorpus,
    WordSplitting,
    encode_corpus,
    mark_lines,
    names_arpa,
    read_corpus,
)

HIGHEST_ORDER = 20


@dataclass(frozen=True, kw_only=True)
class NgramReport:
    """The result of a training.

    ngrams: how many of each order. fallback: orders whose discounts could not be estimated.
    perplexity: on held-out text, `</s>` included; unknown: how many of its words the model lacks.
    """

    lines: int
    tokens: int
    vocabulary: int
    ngrams: tuple[int, ...]
    fallback: tuple[int, ...]
    perplexity: float | None = None
    unknown: int | None = None


def train_ngram(
    corpus: Path,
    out: Path,
    *,
    order: int = 5,
    splitting: WordSplitting = "punctuation",
    casing: Casing = "keep",
    min_count: int = 1,
    valid: Path | None = None,
    progress: Progress | None = None,
) -> NgramReport:
    """Estimate an interpolated modified Kneser-Ney model and write it as an ARPA file.

    Words that occur less than `min_count` times are replaced by `<unk>`.

    Raises BadInput if the corpus cannot be read or is too small, FelicityError if `out` cannot be
    written.
    """
    refuse_order(order, "-n")
    if not names_arpa(out.name):
        raise FelicityError(
            f"{out} would not be recognized as an ARPA file; use a name that ends in .arpa or .arpa.gz."
        )
    with replacing(out) as part:
        lines = read_lines(corpus, progress=progress)
        text = read_corpus(lines, splitting=splitting, casing=casing, min_count=min_count, name=str(corpus))
        held = None
        if valid:
            held = encode_corpus(read_lines(valid), text.words, splitting=splitting, casing=casing)
        tables = count_ngrams(text, order, name=str(corpus))
        smoothed = estimate(tables)
        model = build_model(text.words, tables, smoothed, splitting=splitting, lower=casing == "lower")
        write_part(model, part, packed=out.suffix == ".gz")
    return _report(text, tables, smoothed, model, held)


def refuse_order(order: int, option: str) -> None:
    """Refuse an order that no n-gram model can have, or whose tables would fill the memory.

    Raises FelicityError.
    """
    if not 1 <= order <= HIGHEST_ORDER:
        raise FelicityError(
            f"The order of an n-gram model cannot be {order}; give {option} a number from 1 to "
            f"{HIGHEST_ORDER}."
        )


def _report(
    text: WordCorpus,
    tables: list[Grams],
    smoothed: list[Smoothed],
    model: NgramModel,
    held: WordCorpus | None,
) -> NgramReport:
    fallback = tuple(n for n, order in enumerate(smoothed, start=1) if order.fallback)
    return NgramReport(
        lines=len(text),
        tokens=len(text.ids),
        vocabulary=len(text.words),
        ngrams=tuple(len(table) for table in tables),
        fallback=fallback,
        perplexity=measure_perplexity(model, held) if held else None,
        unknown=int((held.ids == UNKNOWN_ID).sum()) if held else None,
    )


class NgramScores(NamedTuple):
    """The log-probability of each text, in nats.

    unknown: the share of their words that the model lacks. trained_on: how many words it was trained on.
    """

    lp: np.ndarray
    unknown: float
    trained_on: int


def score_by_ngram(
    corpus: Iterable[str], texts: Sequence[str], *, order: int = 5, name: str = "The corpus"
) -> NgramScores:
    """Texts scored by an n-gram model of a corpus, one sentence per line, in lower case.

    A word that the corpus lacks has the probability of `<unk>`, whatever it is.

    Raises BadInput if the corpus is too small.
    """
    refuse_order(order, "-n")
    text = read_corpus(corpus, splitting="punctuation", casing="lower", name=name)
    tables = count_ngrams(text, order, name=name)
    model = build_model(text.words, tables, estimate(tables), splitting="punctuation", lower=True)
    held = encode_corpus(texts, text.words, splitting="punctuation", casing="lower")
    stream, bounds = mark_lines(held)
    nats = np.where(stream == BEGIN_ID, 0.0, model.score(stream.astype(np.int64), bounds))
    unknown = float((held.ids == UNKNOWN_ID).mean()) if len(held.ids) else 0.0
    return NgramScores(np.add.reduceat(nats, bounds[:-1]), unknown, len(text.ids))


def compare_perplexity(text: WordCorpus, held: WordCorpus, *, order: int) -> float:
    """The perplexity on `held` of an n-gram model of `text`, to compare another model's with.

    Raises FelicityError if the order is too high, BadInput if no line is long enough for an n-gram of it.
    """
    refuse_order(order, "--ngram")
    tables = count_ngrams(text, order)
    model = build_model(text.words, tables, estimate(tables), splitting="space", lower=False)
    return measure_perplexity(model, held)


def keep_perplexity(path: Path, perplexity: float, *, order: int, key: str) -> None:
    """Write down what `compare_perplexity` found; key: equal for equal texts."""
    content = {"order": order, "perplexity": perplexity, "key": key}
    with replacing(path) as part:
        text = json.dumps(content | {"digest": fingerprint(content)}, indent=2)
        part.write_text(text + "\n", encoding="utf-8")


def find_perplexity(path: Path, *, order: int, key: str) -> float | None:
    """What was written down for this order and these texts; None if nothing was, or the file is damaged."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        digest = content.pop("digest")
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return None
    if digest != fingerprint(content) or (content.get("order"), content.get("key")) != (order, key):
        return None
    return float(content["perplexity"])


def measure_perplexity(model: NgramModel, held: WordCorpus) -> float:
    """exp of the mean surprisal over all words and the ends of lines."""
    stream, bounds = mark_lines(held)
    nats = model.score(stream.astype(np.int64), bounds)[stream != BEGIN_ID]
    return float(np.exp(-nats.mean()))
