"""What training reads: the vocabulary, sequences and documents, word vectors, and batches."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from felicity.core.errors import BadInput
from felicity.core.files import read_text, replacing
from felicity.core.ids import fingerprint, hash_file
from felicity.core.progress import Progress
from felicity.engines.tokenizing import read_lines, split_at_sentences
from felicity.engines.trained.settings import TopicSettings, TrainingSettings
from felicity.engines.words import SPECIAL, UNKNOWN_ID, WordCorpus, encode_corpus, mark_lines, read_corpus

STOPWORDS = "stopwords.txt"
HEADER_FIELDS = 2
# Batches whose sequences are sorted by length together: little padding, and a mostly random order.
POOL = 50
FEWEST_LINES = 2


@dataclass(frozen=True)
class WordTable:
    """One entry per word; content: whether the word may occur in a document of the topic model."""

    words: list[str]
    counts: np.ndarray
    content: np.ndarray

    def __len__(self) -> int:
        return len(self.words)


def build_table(words: list[str], counts: np.ndarray, topic: TopicSettings | None) -> WordTable:
    """The vocabulary of a corpus, special words first, then by frequency.

    Content words have a letter, do not start with an apostrophe, are not stop words, and are not among the
    most frequent types.
    """
    content = np.zeros(len(words), dtype=bool)
    if topic:
        stop = load_stopwords()
        frequent = len(SPECIAL) + int(topic.frequent * (len(words) - len(SPECIAL)))
        for place, word in enumerate(words):
            letters = any(letter.isalpha() for letter in word) and word[0] not in "'’"
            content[place] = place >= frequent and letters and word.lower() not in stop
    return WordTable(words, counts, content)


def load_stopwords() -> frozenset[str]:
    """English function words, which indicate no topic."""
    text = files("felicity.engines.trained").joinpath(STOPWORDS).read_text(encoding="utf-8")
    return frozenset(text.split())


def write_word_counts(table: WordTable, path: Path) -> None:
    """One line `word<TAB>count<TAB>content` per word."""
    rows = zip(table.words, table.counts.tolist(), table.content.tolist(), strict=True)
    with replacing(path) as part:
        part.write_text(
            "".join(f"{word}\t{count}\t{int(content)}\n" for word, count, content in rows), encoding="utf-8"
        )


def read_word_counts(path: Path) -> WordTable:
    """The vocabulary that `write_table` wrote.

    Raises BadInput naming the line that is not a word, a count and 0 or 1.
    """
    rows = []
    for number, line in enumerate(read_text(path).split("\n")[:-1], start=1):
        parts = line.split("\t")
        if len(parts) != 3 or not parts[1].isdecimal() or parts[2] not in ("0", "1"):
            raise BadInput(f"{path}, line {number}: not a word, a count and 0 or 1; train the model again.")
        rows.append(parts)
    if [row[0] for row in rows[: len(SPECIAL)]] != list(SPECIAL):
        raise BadInput(f"{path} does not start with {', '.join(SPECIAL)}; train the model again.")
    counts = np.array([int(row[1]) for row in rows])
    return WordTable([row[0] for row in rows], counts, np.array([row[2] == "1" for row in rows]))


@dataclass(frozen=True)
class TrainingText:
    """Sequence i is `ids[bounds[i]:bounds[i+1]]` with `<s>` and `</s>`; its document is `document[i]`.

    content: the content words of all documents, flat; those of sequence i are
    `content[content_bounds[i]:content_bounds[i+1]]`. document_bounds: the first sequence of each document.
    """

    ids: np.ndarray
    bounds: np.ndarray
    document: np.ndarray
    document_bounds: np.ndarray
    content: np.ndarray
    content_bounds: np.ndarray

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Predicted words of each sequence: its words and its end."""
        return np.diff(self.bounds) - 1

    @property
    def predicted(self) -> int:
        """Predicted words of all sequences."""
        return int(self.lengths.sum())

    def spans(self, document: int) -> tuple[int, int]:
        """The range of a document's content words."""
        first, last = self.document_bounds[document : document + 2]
        return int(self.content_bounds[first]), int(self.content_bounds[last])

    def others(self, sequence: int) -> np.ndarray:
        """The content words of a sequence's document, without its own."""
        begin, end = self.spans(int(self.document[sequence]))
        first, behind = self.content_bounds[sequence], self.content_bounds[sequence + 1]
        return np.concatenate([self.content[begin:first], self.content[behind:end]])


def split_documents(lines: Iterable[str]) -> Iterator[list[str]]:
    """The sentences of every document."""
    for line in lines:
        parts = line.split("\t") if "\t" in line else split_at_sentences(line)
        yield [part for part in parts if part.strip()]


def build_text(corpus: WordCorpus, documents: np.ndarray, table: WordTable) -> TrainingText:
    """Sequences from the lines of a corpus; `documents` gives the number of lines of each document."""
    ids, bounds = mark_lines(corpus)
    telling = table.content[corpus.ids]
    running = np.concatenate([[0], np.cumsum(telling)])
    return TrainingText(
        ids=ids,
        bounds=bounds,
        document=np.repeat(np.arange(len(documents)), documents),
        document_bounds=np.concatenate([[0], np.cumsum(documents)]),
        content=corpus.ids[telling],
        content_bounds=running[corpus.bounds],
    )


def topic_sequences(text: TrainingText, topic: TopicSettings) -> np.ndarray:
    """What the topic model predicts: rows of document, first and last index of a few content words."""
    rows = []
    for document in range(len(text.document_bounds) - 1):
        begin, end = text.spans(document)
        starts = np.arange(begin, end, topic.words)
        stops = np.minimum(starts + topic.words, end)
        rows.append(np.stack([np.full(len(starts), document), starts, stops], axis=1))
    return np.concatenate(rows) if rows else np.zeros((0, 3), dtype=np.int64)


def read_embeddings(path: Path, words: list[str], *, size: int) -> np.ndarray:
    """One row per word of the vocabulary; NaN if the file has no vector for it.

    A line is a word and its numbers; a first line of two integers, as word2vec writes it, is skipped.

    Raises BadInput naming a line with the wrong number of values.
    """
    row_of = {word: row for row, word in enumerate(words)}
    vectors = np.full((len(words), size), np.nan, dtype=np.float32)
    for number, line in enumerate(read_lines(path), start=1):
        parts = line.split()
        if number == 1 and len(parts) == HEADER_FIELDS and all(part.isdecimal() for part in parts):
            continue
        if len(parts) != size + 1:
            raise BadInput(
                f"{path}, line {number}: {len(parts) - 1} numbers after the word, not {size}; give the size "
                "of the vectors with --embedding."
            )
        row = row_of.get(parts[0])
        if row is None:
            continue
        try:
            vectors[row] = [float(part) for part in parts[1:]]
        except ValueError as error:
            raise BadInput(f"{path}, line {number}: not a word and {size} numbers.") from error
    if np.isnan(vectors[:, 0]).all():
        raise BadInput(f"{path} has no vector for any word of the corpus; check the casing.")
    return vectors


@dataclass(frozen=True)
class TrainingBatch:
    """One batch: rows of the text's sequences, or of the topic model's."""

    rows: np.ndarray
    is_topic: bool


@dataclass(frozen=True)
class Padded:
    """Rows of ids, zero after their ends."""

    ids: np.ndarray
    lengths: np.ndarray


def plan_epoch(
    lengths: np.ndarray, n_topic: int, *, batch: int, seed: int, epoch: int
) -> list[TrainingBatch]:
    """All batches of an epoch in random order, language and topic batches mixed."""
    rng = np.random.default_rng([seed, epoch])
    steps: list[TrainingBatch] = []
    order = rng.permutation(len(lengths))
    for begin in range(0, len(order), POOL * batch):
        pool = order[begin : begin + POOL * batch]
        pool = pool[np.argsort(lengths[pool], kind="stable")]
        steps += [TrainingBatch(pool[k : k + batch], False) for k in range(0, len(pool), batch)]
    order = rng.permutation(n_topic)
    steps += [TrainingBatch(order[k : k + batch], True) for k in range(0, n_topic, batch)]
    return [steps[place] for place in rng.permutation(len(steps))]


def plan_validation(lengths: np.ndarray, *, batch: int) -> list[np.ndarray]:
    """All sequences once, by length, for validation."""
    order = np.argsort(lengths, kind="stable")
    return [order[begin : begin + batch] for begin in range(0, len(order), batch)]


def pad(rows: list[np.ndarray]) -> Padded:
    """Rows of unequal length as one array, padded with zeros.

    >>> pad([np.array([1, 2]), np.array([3])]).ids.tolist()
    [[1, 2], [3, 0]]
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    ids = np.zeros((len(rows), max(1, int(lengths.max(initial=0)))), dtype=np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    return Padded(ids, lengths)


def pad_sequences(text: TrainingText, rows: np.ndarray) -> Padded:
    """Sequences of a text, with `<s>` and `</s>`."""
    return pad([text.ids[text.bounds[row] : text.bounds[row + 1]] for row in rows])


def pad_rest_of_documents(text: TrainingText, rows: np.ndarray, *, document: int) -> Padded:
    """For each sequence the rest of its document, its first `document` content words."""
    return pad([text.others(int(row))[:document] for row in rows])


def pad_documents(text: TrainingText, documents: np.ndarray, *, document: int) -> Padded:
    """Whole documents, the first `document` content words of each."""
    spans = [text.spans(int(place)) for place in documents]
    return pad([text.content[begin : min(end, begin + document)] for begin, end in spans])


@dataclass(frozen=True)
class Prepared:
    """All that a training reads; `corpus` describes the files, `key` is equal for equal trainings.

    vectors: initial word vectors, NaN for words without one; None if none were given.
    """

    table: WordTable
    text: TrainingText
    valid: TrainingText
    corpus: dict[str, Any]
    key: str
    vectors: np.ndarray | None = None

    @property
    def corpora(self) -> tuple[WordCorpus, WordCorpus]:
        """The sequences to train on and to validate, for another kind of model of the same words."""
        return self._take(self.text), self._take(self.valid)

    def _take(self, text: TrainingText) -> WordCorpus:
        # A text has no special word besides <unk>: the others mark the ends of its sequences.
        ids = text.ids[(text.ids >= len(SPECIAL)) | (text.ids == UNKNOWN_ID)]
        bounds = text.bounds - 2 * np.arange(len(text.bounds))
        return WordCorpus(ids, bounds, self.table.words, np.bincount(ids, minlength=len(self.table)))


def prepare(
    corpus: Path,
    settings: TrainingSettings,
    *,
    valid: Path | None = None,
    embeddings: Path | None = None,
    progress: Progress | None = None,
) -> Prepared:
    """Read a corpus; without a validation file some of its lines, drawn with the seed, are held out.

    Raises BadInput if a file cannot be read or is too small.
    """
    lines = list(read_lines(corpus, progress=progress))
    held = list(read_lines(valid)) if valid else []
    if not valid:
        lines, held = _hold_out(lines, settings, corpus)
    documents, counts = _cut(lines, settings)
    text = read_corpus(
        documents,
        splitting=settings.cut,
        casing=settings.casing,
        min_count=settings.min_count,
        name=str(corpus),
    )
    table = build_table(text.words, text.counts, settings.topic)
    held_documents, held_counts = _cut(held, settings)
    other = encode_corpus(held_documents, text.words, splitting=settings.cut, casing=settings.casing)
    built = build_text(text, counts, table)
    if settings.topic and not len(built.content):
        raise BadInput(
            f"{corpus} has no content words that occur {settings.min_count} times; lower --min-count or give "
            "more text."
        )
    vectors = read_embeddings(embeddings, text.words, size=settings.embedding) if embeddings else None
    digests = [hash_file(path) if path else None for path in (corpus, valid, embeddings)]
    record = {
        "name": corpus.name,
        "sha256": digests[0],
        "lines": len(lines),
        "tokens": len(text.ids),
        "held_lines": len(held),
        "held_tokens": len(other.ids),
    }
    key = fingerprint([settings.key, *digests])
    return Prepared(table, built, build_text(other, held_counts, table), record, key, vectors)


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
    """The sequences of a corpus, and how many each document has."""
    if not settings.topic:
        return lines, np.ones(len(lines), dtype=np.int64)
    documents = list(split_documents(lines))
    counts = np.array([len(sentences) for sentences in documents], dtype=np.int64)
    return [sentence for sentences in documents for sentence in sentences], counts
