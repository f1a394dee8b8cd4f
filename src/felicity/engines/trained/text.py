"""A corpus ready for training: sequences of word ids, and for TDLM the documents they stand in.

For an LSTM every line is a sequence. For TDLM every line is a document and its sentences are sequences:
parted by tabs where the line has any, else at sentence ends.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from felicity.engines.sentences import split_sentences
from felicity.engines.trained.settings import TopicSettings
from felicity.engines.trained.vocabulary import WordTable
from felicity.engines.words.corpus import WordCorpus, mark_lines


@dataclass(frozen=True)
class TrainingText:
    """Sequence i is `ids[bounds[i]:bounds[i+1]]` with `<s>` and `</s>`; it stands in document `document[i]`.

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
        """Predicted words of each sequence: its own and its end."""
        return np.diff(self.bounds) - 1

    @property
    def predicted(self) -> int:
        """Predicted words of all sequences."""
        return int(self.lengths.sum())

    def spans(self, document: int) -> tuple[int, int]:
        """Where the content words of a document stand."""
        first, last = self.document_bounds[document : document + 2]
        return int(self.content_bounds[first]), int(self.content_bounds[last])

    def others(self, sequence: int) -> np.ndarray:
        """The content words of the document that a sequence stands in, without its own."""
        begin, end = self.spans(int(self.document[sequence]))
        own, behind = self.content_bounds[sequence], self.content_bounds[sequence + 1]
        return np.concatenate([self.content[begin:own], self.content[behind:end]])


def split_documents(lines: Iterable[str]) -> Iterator[list[str]]:
    """The sentences of every document."""
    for line in lines:
        parts = line.split("\t") if "\t" in line else split_sentences(line)
        yield [part for part in parts if part.strip()]


def build_text(corpus: WordCorpus, documents: np.ndarray, table: WordTable) -> TrainingText:
    """Sequences from the lines of a corpus; `documents` tells how many lines each document has."""
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
    """What the topic model predicts: rows of document, first and last place of a few content words."""
    rows = []
    for document in range(len(text.document_bounds) - 1):
        begin, end = text.spans(document)
        starts = np.arange(begin, end, topic.words)
        stops = np.minimum(starts + topic.words, end)
        rows.append(np.stack([np.full(len(starts), document), starts, stops], axis=1))
    return np.concatenate(rows) if rows else np.zeros((0, 3), dtype=np.int64)
