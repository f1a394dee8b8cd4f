"""The words of a trained model, how often each occurred, and which of them tell of a topic."""

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from felicity.core.errors import BadInput
from felicity.core.files import read_text, replacing
from felicity.engines.trained.settings import TopicSettings
from felicity.engines.words.corpus import SPECIAL

STOPWORDS = "stopwords.txt"


@dataclass(frozen=True)
class WordTable:
    """One entry a word; content: whether the word may stand in a document of the topic model."""

    words: list[str]
    counts: np.ndarray
    content: np.ndarray

    def __len__(self) -> int:
        return len(self.words)


def build_table(words: list[str], counts: np.ndarray, topic: TopicSettings | None) -> WordTable:
    """The vocabulary of a corpus, most frequent words first behind the special ones.

    Content words have a letter, do not begin with an apostrophe, are no stop words, and are not among the
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
    """English function words, which tell of no topic."""
    text = files("felicity.engines.trained").joinpath(STOPWORDS).read_text(encoding="utf-8")
    return frozenset(text.split())


def write_table(table: WordTable, path: Path) -> None:
    """A line `word<TAB>count<TAB>content` for every word."""
    rows = zip(table.words, table.counts.tolist(), table.content.tolist(), strict=True)
    with replacing(path) as part:
        part.write_text(
            "".join(f"{word}\t{count}\t{int(content)}\n" for word, count, content in rows), encoding="utf-8"
        )


def read_table(path: Path) -> WordTable:
    """The words that `write_table` wrote.

    Raises BadInput naming the line that is not a word, a count and 0 or 1.
    """
    rows = []
    for number, line in enumerate(read_text(path).split("\n")[:-1], start=1):
        parts = line.split("\t")
        if len(parts) != 3 or not parts[1].isdecimal() or parts[2] not in ("0", "1"):
            raise BadInput(f"{path}, line {number}: not a word, a count and 0 or 1; train the model again.")
        rows.append(parts)
    if [row[0] for row in rows[: len(SPECIAL)]] != list(SPECIAL):
        raise BadInput(f"{path} does not begin with {', '.join(SPECIAL)}; train the model again.")
    counts = np.array([int(row[1]) for row in rows])
    return WordTable([row[0] for row in rows], counts, np.array([row[2] == "1" for row in rows]))
