"""Corpora of words for training, and how a file or folder is recognized as a word-level model."""

import gzip
from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from felicity.core.casing import apply_casing
from felicity.core.errors import BadInput, UnknownName
from felicity.core.policy import Casing
from felicity.engines.words.tokenizer import BEGIN, END, UNKNOWN, WordSplitting, split_words

TRAINING_SPLITTINGS = ("punctuation", "space")
TRAINED, VOCABULARY, WEIGHTS = "trained.json", "vocabulary.tsv", "model.safetensors"
ENDINGS = (".arpa", ".arpa.gz", ".klm", ".binlm", ".binary", ".bin")
HEAD_LINES = 20
KENLM_MAGIC = b"mmap lm http://kheafield.com/code format version"
SPECIAL = (UNKNOWN, BEGIN, END)
UNKNOWN_ID, BEGIN_ID, END_ID = range(3)


TRAINING_CASINGS = ("keep", "lower")


def check_splitting(name: str) -> WordSplitting:
    """A rule for splitting a corpus into words.

    Raises UnknownName.
    """
    if name not in TRAINING_SPLITTINGS:
        raise UnknownName("word splitting", name, TRAINING_SPLITTINGS)
    return cast(WordSplitting, name)


def check_casing(name: str) -> Casing:
    """`keep` or `lower`.

    Raises UnknownName.
    """
    if name not in TRAINING_CASINGS:
        raise UnknownName("casing", name, TRAINING_CASINGS)
    return cast(Casing, name)


def names_ngram(name: str) -> bool:
    """Whether a file of this name would be an n-gram model, if it existed."""
    return name.lower().endswith(ENDINGS)


def word_model_name(path: Path) -> str:
    """The name of the file or folder, without its ending.

    >>> word_model_name(Path("models/news.arpa.gz"))
    'news'
    """
    name = path.resolve().name
    return next((name[: -len(end)] for end in sorted(ENDINGS, key=len)[::-1] if name.endswith(end)), name)


def is_word_model(path: Path) -> bool:
    """Whether a file or folder is a word-level model; its content decides, not its name.

    Raises OSError if it cannot be read.
    """
    if path.is_dir():
        return (path / TRAINED).is_file()
    return names_arpa(path.name) or is_kenlm(path) or _begins_as_arpa(path)


def word_model_files(path: Path) -> list[Path]:
    """The files that decide the numbers of a word-level model."""
    if not path.is_dir():
        return [path]
    return [file for name in (TRAINED, VOCABULARY, WEIGHTS) if (file := path / name).is_file()]


def is_kenlm(path: Path) -> bool:
    """Whether a file starts as KenLM's binaries do."""
    with path.open("rb") as handle:
        return handle.read(len(KENLM_MAGIC)) == KENLM_MAGIC


def names_arpa(name: str) -> bool:
    """Whether a file's name is that of an ARPA file."""
    return name.lower().endswith((".arpa", ".arpa.gz"))


def _begins_as_arpa(path: Path) -> bool:
    try:
        with path.open("rb") as raw, gzip.open(raw) if path.suffix == ".gz" else raw as handle:
            return any(handle.readline(200).strip() == b"\\data\\" for _ in range(HEAD_LINES))
    except (gzip.BadGzipFile, EOFError):
        return False


@dataclass(frozen=True)
class WordCorpus:
    """Ids of words, flat; line i is `bounds[i]:bounds[i+1]`, without begin and end tokens.

    words: the vocabulary: `<unk>`, `<s>` and `</s>`, then the words by frequency.
    counts: how often each occurs; `<unk>` counts the words left out.
    """

    ids: np.ndarray
    bounds: np.ndarray
    words: list[str]
    counts: np.ndarray

    def __len__(self) -> int:
        return len(self.bounds) - 1


def read_corpus(
    lines: Iterable[str],
    *,
    splitting: WordSplitting,
    casing: Casing,
    min_count: int = 1,
    name: str = "The corpus",
) -> WordCorpus:
    """The corpus, with a vocabulary of the words that occur at least `min_count` times.

    Raises BadInput if no word is left.
    """
    ids, bounds, words = _intern(lines, splitting, casing)
    counts = np.bincount(ids, minlength=len(words))
    counts[: len(SPECIAL)] = 0
    kept = np.flatnonzero(counts >= max(1, min_count))
    if not len(kept):
        raise BadInput(
            f"{name} has no word that occurs {min_count} times or more; lower --min-count or give more text."
        )
    kept = kept[np.argsort(-counts[kept], kind="stable")]
    new = np.zeros(len(words), dtype=np.int32)
    new[kept] = np.arange(len(SPECIAL), len(SPECIAL) + len(kept))
    ids = new[ids]
    vocabulary = [*SPECIAL, *(words[place] for place in kept)]
    return WordCorpus(ids, bounds, vocabulary, np.bincount(ids, minlength=len(vocabulary)))


def encode_corpus(
    lines: Iterable[str], words: list[str], *, splitting: WordSplitting, casing: Casing
) -> WordCorpus:
    """Another corpus under a given vocabulary."""
    ids, bounds, seen = _intern(lines, splitting, casing)
    id_of = {word: i for i, word in enumerate(words)}
    new = np.array([id_of.get(word, UNKNOWN_ID) for word in seen], dtype=np.int32)
    new[: len(SPECIAL)] = UNKNOWN_ID
    return WordCorpus(new[ids], bounds, words, np.bincount(new[ids], minlength=len(words)))


def mark_lines(corpus: WordCorpus) -> tuple[np.ndarray, np.ndarray]:
    """Every line with `<s>` before and `</s>` after it, flat, and the bounds of each line."""
    lengths = np.diff(corpus.bounds)
    bounds = corpus.bounds + 2 * np.arange(len(corpus.bounds))
    stream = np.empty(len(corpus.ids) + 2 * len(corpus), dtype=np.int32)
    stream[bounds[:-1]] = BEGIN_ID
    stream[bounds[1:] - 1] = END_ID
    stream[np.arange(len(corpus.ids)) + np.repeat(2 * np.arange(len(corpus)) + 1, lengths)] = corpus.ids
    return stream, bounds


def _intern(
    lines: Iterable[str], splitting: WordSplitting, casing: Casing
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Ids in the order of first occurrence, ends of lines, and the words."""
    id_of = {word: i for i, word in enumerate(SPECIAL)}
    ids = array("i")
    bounds = array("q", [0])
    for line in lines:
        text = apply_casing(line, casing)
        ids.extend([id_of.setdefault(word, len(id_of)) for word in split_words(text, splitting)])
        bounds.append(len(ids))
    flat = np.frombuffer(ids, dtype=np.int32) if ids else np.zeros(0, dtype=np.int32)
    # A text cannot contain the begin and end tokens.
    flat = np.where(flat < len(SPECIAL), UNKNOWN_ID, flat)
    return flat, np.frombuffer(bounds, dtype=np.int64), list(id_of)
