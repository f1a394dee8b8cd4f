"""Sentences for contexts: from running text, and from items, pooled by suite and acceptability."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import polars as pl

from felicity.core.documents import read_packaged_toml
from felicity.core.errors import BadInput
from felicity.core.files import read_text
from felicity.core.schemas import TEXT, Schema, conform

# Latin, Chinese and Japanese, Arabic and Urdu, Devanagari.
TERMINAL = ".!?…。！？؟۔।"
CLOSERS = "\"'”’»)]}」』"
ENDED = re.compile(rf"[{re.escape(TERMINAL)}][\s{re.escape(CLOSERS)}]*$")
AT_THE_END = TERMINAL + CLOSERS + " "
HEADING = re.compile(r"^\s*=.*=\s*$")
LETTER = re.compile(r"[^\W\d_]")
# A mark that may end a sentence, the quotes and brackets that close after it, space, and what comes next.
END = re.compile(r"(?P<mark>[.!?…]+)(?P<close>[\"']*(?:\s*[”’»)\]])*)\s+(?=(?P<next>\S+))")
DETACHED_QUOTE = re.compile(r"\"(?=\s|$)\s*")
OPENERS = "\"'“‘«(["
INITIALS = re.compile(r"^(?:[^\W\d_]\.)*[^\W\d_]$")
# If more than this share of lines start in lower case, the lines are wrapped at the page's width.
WRAPPED = 0.1
# If more than this share of sentences end in a mark, the others are not sentences.
ENDS = 0.5

# Plain prose of this project, about everyday things.
BUILT_IN_TEXT = Path(__file__).with_name("prose.txt")

POOL: Schema = {"sentence": TEXT, "suite": TEXT, "origin": TEXT, "acceptable": pl.Boolean()}
NOWHERE = range(0)


def close_sentence(sentence: str) -> str:
    """A sentence without surrounding space, and with a full stop if no other mark ends it.

    >>> close_sentence("The author laughs "), close_sentence('He asked "Why?"')
    ('The author laughs.', 'He asked "Why?"')
    """
    bare = sentence.strip()
    return bare if ENDED.search(bare) else f"{bare}."


def join_sentences(sentences: Sequence[str]) -> str:
    """Sentences as running text.

    >>> join_sentences(["Who left?", "The author laughs"])
    'Who left? The author laughs.'
    """
    return " ".join(map(close_sentence, sentences))


def sentence_identity(sentence: str) -> str:
    """The identity of a sentence: its words, whatever the space and marks at its end.

    >>> sentence_identity("The  author laughs") == sentence_identity("The author laughs .")
    True
    """
    return " ".join(sentence.split()).rstrip(AT_THE_END)


@dataclass(frozen=True)
class Words:
    """Words that a full stop may follow without ending a sentence, and words that start one nevertheless."""

    abbreviations: frozenset[str]
    before_numbers: frozenset[str]
    starters: frozenset[str]


def read_text_file(path: Path) -> list[str]:
    """The sentences of a text file, gzipped or not.

    Raises BadInput if the file is missing, a folder, not UTF-8, a broken gzip file, or has no sentence.
    """
    sentences = split_sentences(read_text(path))
    if not sentences:
        raise BadInput(f"{path} has no sentence; give a file of running text.")
    return sentences


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, in order; headings and lines without a letter are dropped.

    So are list entries, captions and the like, which have no final mark, unless most of the text is like
    that.

    >>> split_sentences(" = Life = \\n\\n Mr. Boulter acts . He sings , too . ")
    ['Mr. Boulter acts .', 'He sings , too .']
    """
    paragraphs = [paragraph for paragraph in _paragraphs(text) if LETTER.search(paragraph)]
    sentences = [sentence for paragraph in paragraphs for sentence in _split(paragraph)]
    sentences = [sentence for sentence in sentences if LETTER.search(sentence)]
    ended = [sentence for sentence in sentences if ENDED.search(sentence)]
    return ended if len(ended) > ENDS * len(sentences) else sentences


def _paragraphs(text: str) -> list[str]:
    """Lines; or the lines between blank lines joined, if the file is wrapped at a width."""
    lines = [line.strip() for line in text.splitlines()]
    lines = ["" if HEADING.match(line) else line for line in lines]
    held = [line for line in lines if line]
    if sum(line[0].islower() for line in held) <= WRAPPED * len(held):
        return held
    return [" ".join(block.split("\n")) for block in re.split(r"\n{2,}", "\n".join(lines).strip())]


def _split(paragraph: str) -> list[str]:
    sentences = []
    start = place = 0
    while match := END.search(paragraph, place):
        place = match.end()
        if not _is_end(paragraph[start : match.start()], match):
            continue
        stop = match.end("close")
        # ` . " ` closes if a quotation is open in this paragraph, and opens the next one otherwise.
        quote = DETACHED_QUOTE.match(paragraph, match.end())
        if quote and paragraph.count('"', 0, stop) % 2:
            stop = match.end() + 1
            place = quote.end()
            if _goes_on(paragraph[place:]):
                continue
        sentences.append(paragraph[start:stop].strip())
        start = place
    sentences.append(paragraph[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _is_end(before: str, match: re.Match[str]) -> bool:
    """Whether a mark ends the sentence before it."""
    after = match["next"]
    if _goes_on(after):
        return False
    if match["mark"] != "." or not before or before[-1].isspace():
        return True
    words = _words()
    word = before.split()[-1].lstrip(OPENERS)
    bare = word.lower().replace(".", "")
    if bare in words.before_numbers and after[0].isdigit():
        return False
    if (INITIALS.match(word) and word != "I") or bare in words.abbreviations:
        # `J. The` is hardly ever an end; `the U.S. The` and `Sons Inc. The` are.
        return len(word) > 1 and after in words.starters
    return True


@cache
def _words() -> Words:
    lists = read_packaged_toml("felicity.design.contexts", "sentence_words.toml")
    return Words(**{name: frozenset(listed.split()) for name, listed in lists.items()})


def _goes_on(after: str) -> bool:
    """Whether the text after a mark continues the sentence: in lower case, or with a mark."""
    bare = after.lstrip(OPENERS + " ")
    return bool(bare) and (bare[0].islower() or bare[0] in ",;:-–—.!?…")


def build_pool(items: pl.DataFrame, sides: pl.DataFrame) -> pl.DataFrame:
    """A row of POOL for each sentence of `items` that `sides` (columns of SIDES) puts on a side.

    A sentence shared by several items of a suite is kept once. One on both sides of its suite (BLiMP has
    pairs of two identical sentences) is left out. The order is by suite, side and item, whatever the order of
    `items`.
    """
    joined = items.join(sides, on=["suite", "condition"], how="inner")
    keyed = joined.with_columns(
        pl.Series("key", [sentence_identity(text) for text in joined["text"]], dtype=pl.String),
        pl.col("text").alias("sentence"),
        pl.col("item").alias("origin"),
    )
    sided = keyed.filter(pl.col("acceptable").n_unique().over("suite", "key") == 1)
    ordered = sided.sort("suite", "acceptable", "origin", "sentence")
    return conform(ordered.unique(["suite", "acceptable", "key"], keep="first", maintain_order=True), POOL)


class PooledSentence(NamedTuple):
    """A sentence, its item (or its number in the text), and its identity."""

    sentence: str
    origin: str
    key: str


@dataclass(frozen=True)
class SentenceView:
    """Some sentences of a list: those in `shown`, or all but those in `hidden`, without copying."""

    row: Sequence[PooledSentence]
    shown: range
    hidden: range = NOWHERE

    def __len__(self) -> int:
        return len(self.shown) - len(self.hidden)

    def __getitem__(self, place: int) -> PooledSentence:
        at = self.shown[place]
        return self.row[at if not self.hidden or at < self.hidden.start else at + len(self.hidden)]


@dataclass(frozen=True)
class SentencePools:
    """All sentences: a list for each side, suite by suite, and running text."""

    rows: dict[bool, list[PooledSentence]]
    places: dict[tuple[bool, str], range]
    unrelated: SentenceView

    @property
    def suites(self) -> list[str]:
        """The suites that have sentences."""
        return sorted({suite for _, suite in self.places})

    def within(self, suite: str, *, acceptable: bool) -> SentenceView:
        """The sentences of one suite."""
        return SentenceView(self.rows[acceptable], self.places.get((acceptable, suite), NOWHERE))

    def outside(self, suite: str, *, acceptable: bool) -> SentenceView:
        """The sentences of all other suites."""
        row = self.rows[acceptable]
        return SentenceView(row, range(len(row)), self.places.get((acceptable, suite), NOWHERE))


def index_pool(pool: pl.DataFrame, unrelated: Sequence[str]) -> SentencePools:
    """The sentences of a pool, whatever their order, and of running text."""
    rows: dict[bool, list[PooledSentence]] = {True: [], False: []}
    places: dict[tuple[bool, str], range] = {}
    ordered = pool.select(list(POOL)).sort("suite", "acceptable", "origin", "sentence")
    for sentence, suite, origin, acceptable in ordered.iter_rows():
        row = rows[acceptable]
        row.append(PooledSentence(sentence, origin, sentence_identity(sentence)))
        begun = places.get((acceptable, suite), range(len(row) - 1, len(row)))
        places[acceptable, suite] = range(begun.start, len(row))
    lines = [
        PooledSentence(sentence, f"sentence {number}", sentence_identity(sentence))
        for number, sentence in enumerate(unrelated, start=1)
    ]
    return SentencePools(rows, places, SentenceView(lines, range(len(lines))))
