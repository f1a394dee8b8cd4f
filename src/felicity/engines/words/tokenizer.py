"""A tokenizer of words that answers as those of transformers do, so that the same encoder uses it."""

from collections.abc import Container, Iterable, Sequence
from typing import Any, Protocol

from felicity.core.ids import fingerprint
from felicity.engines.words.cutting import BEGIN, END, UNKNOWN, Cut, find_words


class Vocabulary(Protocol):
    """The words a model knows."""

    def find(self, word: str) -> int | None:
        """The id of a word; None where the model does not know it."""
        ...

    def word(self, place: int) -> str:
        """The word of an id."""
        ...

    def __len__(self) -> int: ...


class WordList:
    """A vocabulary held in memory; ids are places in the list."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self._ids = {word: place for place, word in enumerate(words)}

    def find(self, word: str) -> int | None:
        """The id of a word; None where the model does not know it."""
        return self._ids.get(word)

    def word(self, place: int) -> str:
        """The word of an id."""
        return self.words[place]

    def __len__(self) -> int:
        return len(self.words)


class WordTokenizer:
    """Texts into ids of words, with character offsets; a word it does not know is `<unk>`.

    With `lower` words are looked up in lower case, as they were in training.
    """

    is_fast = True

    def __init__(self, vocabulary: Vocabulary, *, cut: Cut, lower: bool = False) -> None:
        self.vocabulary = vocabulary
        self.cut = cut
        self.lower = lower
        unknown = vocabulary.find(UNKNOWN)
        # A closed vocabulary has no id for what it does not know.
        self.unk_token_id = -1 if unknown is None else unknown
        self.bos_token = None if vocabulary.find(BEGIN) is None else BEGIN
        self.eos_token = None if vocabulary.find(END) is None else END

    @property
    def all_special_ids(self) -> list[int]:
        """Ids of what stands before and behind a text."""
        found = (self.vocabulary.find(word) for word in (BEGIN, END))
        return [place for place in found if place is not None]

    def __call__(self, texts: Iterable[str], **_: Any) -> dict[str, list[Any]]:
        """Ids and offsets of each text; no begin or end token is ever added here."""
        found = [self._encode(text) for text in texts]
        return {
            "input_ids": [ids for ids, _ in found],
            "offset_mapping": [spans for _, spans in found],
            "special_tokens_mask": [[0] * len(ids) for ids, _ in found],
        }

    def get_vocab(self) -> Container[str]:
        """Whatever can tell if a token is in the vocabulary."""
        return _Known(self.vocabulary)

    def convert_tokens_to_ids(self, token: str) -> int:
        """The id of a word, else that of the unknown one."""
        found = self.vocabulary.find(token)
        return self.unk_token_id if found is None else found

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """The words of ids."""
        return [UNKNOWN if place < 0 else self.vocabulary.word(place) for place in ids]

    def __len__(self) -> int:
        return len(self.vocabulary)

    def _encode(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        spans = list(find_words(text, self.cut, self._knows))
        return [self._id(self._cased(text[start:end])) for start, end in spans], spans

    def _id(self, word: str) -> int:
        # A text cannot write the marks that begin and end it.
        return self.unk_token_id if word in (BEGIN, END) else self.convert_tokens_to_ids(word)

    def _cased(self, word: str) -> str:
        return word.lower() if self.lower else word

    def _knows(self, word: str) -> bool:
        return self.vocabulary.find(self._cased(word)) is not None


def fingerprint_words(tokenizer: WordTokenizer, vocabulary: str) -> str:
    """Digest of all that decides how a text is cut; `vocabulary` is a digest of the words."""
    return fingerprint(["words", tokenizer.cut, tokenizer.lower, vocabulary])


class _Known:
    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self._vocabulary.find(word) is not None
