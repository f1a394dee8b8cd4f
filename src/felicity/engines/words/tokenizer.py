"""A tokenizer of whole words with character offsets, and what is done with unknown words."""

import re
import sys
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal, Protocol

import numpy as np
import polars as pl

from felicity.core.casing import apply_casing
from felicity.core.engine import EngineInfo, TokenExtras
from felicity.core.errors import NotPossible
from felicity.core.ids import fingerprint
from felicity.core.policy import Policy
from felicity.engines.tokenizing import Encoded, Encoder

WordSplitting = Literal["punctuation", "space", "vocabulary"]

UNKNOWN, BEGIN, END = "<unk>", "<s>", "</s>"
PLACES = re.compile(r"\S+")
# Above U+FFFF only one block of symbols matters: pictographs.
FIRST_CHARACTERS = 0x10000
OPENING, CLOSING = tuple("([{“‘"), tuple(".,;:!?)]}”’%")
PICTURES = "\U0001f000-\U0001faff"


def split_words(text: str, splitting: WordSplitting) -> list[str]:
    """The words of a text, for training.

    >>> split_words("Don't (ever) pay $1,000.", "punctuation")
    ["Don't", '(', 'ever', ')', 'pay', '$', '1,000', '.']
    """
    return text.split() if splitting == "space" else word_pattern().findall(text)


def find_word_spans(
    text: str, splitting: WordSplitting, knows: Callable[[str], bool]
) -> Iterator[tuple[int, int]]:
    """The spans of the words of a text, in characters.

    >>> list(find_word_spans("Tim.", "vocabulary", {"Tim", "."}.__contains__))
    [(0, 3), (3, 4)]
    """
    pattern = PLACES if splitting != "punctuation" else word_pattern()
    for match in pattern.finditer(text):
        if splitting != "vocabulary" or knows(match.group()):
            yield match.span()
        else:
            yield from (inner.span() for inner in word_pattern().finditer(text, *match.span()))


@cache
def word_pattern() -> re.Pattern[str]:
    """A word or a single punctuation mark; the unknown word's symbol stays whole."""
    codes = range(FIRST_CHARACTERS)
    marks = "".join(re.escape(chr(code)) for code in codes if unicodedata.category(chr(code))[0] in "PS")
    marks += PICTURES
    word = rf"[^\s{marks}]+"
    inside = r"['’.\-]|(?<=\d)[,:](?=\d)"
    return re.compile(rf"{UNKNOWN}|{word}(?:(?:{inside}){word})*|[{marks}]")


def join_words(words: Sequence[str], *, after: str = "") -> str:
    """Words as running text that follows another: no space before a closing mark or after an opening one.

    >>> join_words(["sat", "(", "down", ")", "."], after="The cat")
    ' sat (down).'
    """
    text = after
    for word in words:
        tight = not text or text[-1].isspace() or text[-1] in OPENING or word in CLOSING
        text += word if tight else f" {word}"
    return text[len(after) :]


class Vocabulary(Protocol):
    """The words that a model knows."""

    def find(self, word: str) -> int | None:
        """The id of a word; None if the model does not know it."""
        ...

    def word(self, token: int) -> str:
        """The word with an id."""
        ...

    def __len__(self) -> int: ...


class ListedVocabulary:
    """A vocabulary in memory; ids are indices into the list."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self._ids = {word: index for index, word in enumerate(words)}

    def find(self, word: str) -> int | None:
        """The id of a word; None if the model does not know it."""
        return self._ids.get(word)

    def word(self, token: int) -> str:
        """The word with an id."""
        return self.words[token]

    def __len__(self) -> int:
        return len(self.words)


class WordTokenizer:
    """Texts as ids of words, with character offsets; an unknown word is `<unk>`.

    With `lower`, words are looked up in lower case, as in training.
    """

    is_fast = True

    def __init__(self, vocabulary: Vocabulary, *, splitting: WordSplitting, lower: bool = False) -> None:
        self.vocabulary = vocabulary
        self.splitting = splitting
        self.lower = lower
        unknown = vocabulary.find(UNKNOWN)
        # A closed vocabulary has no id for unknown words.
        self.unk_token_id = -1 if unknown is None else unknown
        self.bos_token = None if vocabulary.find(BEGIN) is None else BEGIN
        self.eos_token = None if vocabulary.find(END) is None else END

    @property
    def all_special_ids(self) -> list[int]:
        """Ids of the begin and end tokens."""
        ids = (self.vocabulary.find(word) for word in (BEGIN, END))
        return [token for token in ids if token is not None]

    def __call__(self, texts: Iterable[str], **_: Any) -> dict[str, list[Any]]:
        """Ids and offsets of each text; no begin or end token is ever added here."""
        encoded = [self._encode(text) for text in texts]
        return {
            "input_ids": [ids for ids, _ in encoded],
            "offset_mapping": [spans for _, spans in encoded],
            "special_tokens_mask": [[0] * len(ids) for ids, _ in encoded],
        }

    def get_vocab(self) -> Container[str]:
        """A container of all tokens in the vocabulary."""
        return _Known(self.vocabulary)

    def convert_tokens_to_ids(self, token: str) -> int:
        """The id of a word, or that of the unknown word."""
        token_id = self.vocabulary.find(token)
        return self.unk_token_id if token_id is None else token_id

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """The words with these ids."""
        return [UNKNOWN if token < 0 else self.vocabulary.word(token) for token in ids]

    def __len__(self) -> int:
        return len(self.vocabulary)

    def _encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        spans = list(find_word_spans(text, self.splitting, self._knows))
        return [self._id(self._cased(text[start:end])) for start, end in spans], spans

    def _id(self, word: str) -> int:
        # A text cannot contain the begin and end tokens.
        return self.unk_token_id if word in (BEGIN, END) else self.convert_tokens_to_ids(word)

    def _cased(self, word: str) -> str:
        return apply_casing(word, "lower" if self.lower else "keep")

    def _knows(self, word: str) -> bool:
        return self.vocabulary.find(self._cased(word)) is not None


class _Known:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._vocabulary.find(word) is not None


def build_word_encoder(tokenizer: WordTokenizer, policy: Policy, *, name: str) -> Encoder:
    """The words of a model under the policy, with `unknown` resolved; the window is unlimited."""
    resolved = policy.replace(unknown="score") if policy.unknown == "auto" else policy
    return Encoder.build(tokenizer, resolved, window=sys.maxsize, name=name)


def describe_word_model(
    encoder: Encoder, *, vocabulary: str, notes: dict[str, Any], **known: Any
) -> EngineInfo:
    """What a word model is and its settings; `vocabulary` is a digest of its words."""
    tokenizer = encoder.tokenizer
    # A model trained on lower-cased text lower-cases everything.
    policy = encoder.policy.replace(casing="lower") if tokenizer.lower else encoder.policy
    return EngineInfo(
        kind="left-to-right",
        tokenizer=fingerprint(["words", tokenizer.splitting, tokenizer.lower, vocabulary]),
        policy=policy.as_dict(),
        dtype="float32",
        vocabulary=len(tokenizer),
        window=None,
        notes=notes,
        **known,
    )


def encode_words(encoder: Encoder, prompts: pl.DataFrame, *, name: str) -> Encoded:
    """Ids and offsets of every prompt; the policy decides what happens to unknown words.

    Raises NotPossible if there is one and the policy, or a closed vocabulary, forbids it.
    """
    encoded = encoder.encode(prompts)
    unknown = encoded.of_text & (encoded.ids == encoder.tokenizer.unk_token_id)
    if encoder.policy.unknown == "skip":
        return replace(encoded, wanted=encoded.wanted & ~unknown)
    closed = encoder.tokenizer.unk_token_id < 0
    if unknown.any() and (closed or encoder.policy.unknown == "refuse"):
        position = int(unknown.argmax())
        request = encoded.request[int(np.searchsorted(encoded.bounds, position, side="right")) - 1]
        start, end = encoded.start[position], encoded.end[position]
        raise NotPossible(
            f"'{name}' does not know the word at characters {start} to {end} "
            f"of the text of '{request}'; change it, or skip such words with --policy unknown=skip."
        )
    return encoded


def refuse_extras(extras: TokenExtras, *, name: str) -> None:
    """Refuse extras other than word boundaries, which are certain between words.

    Raises NotPossible.
    """
    if extras.rank or extras.entropy or extras.top:
        raise NotPossible(
            f"'{name}' gives log-probabilities only, no ranks, entropies or most probable words."
        )


def mark_boundaries(tokens: pl.DataFrame, extras: TokenExtras) -> pl.DataFrame:
    """Add word boundaries if requested: for these models every word ends with certainty."""
    if not extras.boundary:
        return tokens
    return tokens.with_columns(pl.col("logprob").list.eval(pl.element() * 0.0).alias("boundary"))
