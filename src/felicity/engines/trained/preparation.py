"""A corpus file made ready: vocabulary, training and validation text, and the key of the training."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from felicity.core.errors import BadInput
from felicity.core.ids import fingerprint, hash_file
from felicity.engines.counting import read_lines
from felicity.engines.trained.embeddings import read_embeddings
from felicity.engines.trained.settings import TrainingSettings
from felicity.engines.trained.text import TrainingText, build_text, split_documents
from felicity.engines.trained.vocabulary import WordTable, build_table
from felicity.engines.words.corpus import encode_corpus, read_corpus

FEWEST_LINES = 2


@dataclass(frozen=True)
class Prepared:
    """All that a training reads; `corpus` tells of the files, `key` is equal for equal trainings.

    vectors: word vectors to begin with, NaN for words without; None where there are none.
    """

    table: WordTable
    text: TrainingText
    valid: TrainingText
    corpus: dict[str, Any]
    key: str
    vectors: np.ndarray | None = None


def prepare(
    corpus: Path,
    settings: TrainingSettings,
    *,
    valid: Path | None = None,
    embeddings: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Prepared:
    """Read a corpus; without a validation file some of its lines, drawn by the seed, are held out.

    Raises BadInput where a file cannot be read or is too small.
    """
    lines = list(read_lines(corpus, progress=progress))
    held = list(read_lines(valid)) if valid else []
    if not valid:
        lines, held = _hold_out(lines, settings, corpus)
    documents, counts = _cut(lines, settings)
    text = read_corpus(
        documents, cut=settings.cut, casing=settings.casing, min_count=settings.min_count, name=str(corpus)
    )
    table = build_table(text.words, text.counts, settings.topic)
    held_documents, held_counts = _cut(held, settings)
    other = encode_corpus(held_documents, text.words, cut=settings.cut, casing=settings.casing)
    built = build_text(text, counts, table)
    if settings.topic and not len(built.content):
        raise BadInput(
            f"{corpus} has no content words that occur {settings.min_count} times; lower --min-count or give "
            "more text."
        )
    vectors = read_embeddings(embeddings, text.words, size=settings.embedding) if embeddings else None
    digests = [hash_file(path) if path else None for path in (corpus, valid, embeddings)]
    told = {
        "name": corpus.name,
        "sha256": digests[0],
        "lines": len(lines),
        "tokens": len(text.ids),
        "held_lines": len(held),
        "held_tokens": len(other.ids),
    }
    key = fingerprint([settings.key, *digests])
    return Prepared(table, built, build_text(other, held_counts, table), told, key, vectors)


def _hold_out(lines: list[str], settings: TrainingSettings, corpus: Path) -> tuple[list[str], list[str]]:
    if len(lines) < FEWEST_LINES:
        raise BadInput(
            f"{corpus} has too few lines to hold some out for validation; put a sentence or paragraph on a "
            "line, or give other text with --valid."
        )
    n_held = max(1, round(settings.held * len(lines)))
    chosen = np.random.default_rng(settings.seed).permutation(len(lines))[:n_held]
    held = set(chosen.tolist())
    return [line for i, line in enumerate(lines) if i not in held], [lines[i] for i in sorted(held)]


def _cut(lines: list[str], settings: TrainingSettings) -> tuple[Iterable[str], np.ndarray]:
    """The sequences of a corpus, and how many stand in each document."""
    if not settings.topic:
        return lines, np.ones(len(lines), dtype=np.int64)
    documents = list(split_documents(lines))
    counts = np.array([len(sentences) for sentences in documents], dtype=np.int64)
    return [sentence for sentences in documents for sentence in sentences], counts
