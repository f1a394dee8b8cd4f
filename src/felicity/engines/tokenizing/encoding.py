"""Texts as token ids under a scoring policy, with character offsets.

Context and text are tokenized together, so that the tokens at their boundary are those of running text; the
text's own tokens are then found by their characters.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from felicity.core.casing import apply_casing
from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import ALONE, ORDINARY, Policy
from felicity.engines.tokenizing.begin_token import find_declared
from felicity.engines.tokenizing.splicing import (
    TokenizedTexts,
    split_at_sentences,
    tokenize_after,
    tokenize_separately,
)


@dataclass(frozen=True)
class Encoded:
    """Sequences ready to be scored; all token arrays are flat, sequence i is `bounds[i]:bounds[i+1]`.

    `wanted` marks the tokens to score: those of the text that have something before them. `of_text` marks all
    tokens of the text. Offsets are characters of the text. `word` numbers the tokenizer's words if the
    encoder was built with `words` (-1: a token outside words).
    """

    request: list[str]
    ids: np.ndarray
    bounds: np.ndarray
    of_text: np.ndarray
    wanted: np.ndarray
    start: np.ndarray
    end: np.ndarray
    n_across: np.ndarray
    n_dropped: np.ndarray
    word: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.request)

    @property
    def lengths(self) -> np.ndarray:
        """Tokens per sequence, context and begin token included."""
        return np.diff(self.bounds)

    @classmethod
    def from_ids(cls, sequences: list[list[int]]) -> "Encoded":
        """Bare token ids, of which all but the first are wanted."""
        bounds = np.concatenate([[0], np.cumsum([len(ids) for ids in sequences])]).astype(np.int64)
        ids = np.array([token for ids in sequences for token in ids], dtype=np.int64)
        wanted = np.ones(len(ids), dtype=bool)
        wanted[bounds[:-1]] = False
        nothing, none = np.zeros(len(ids), np.uint32), np.zeros(len(sequences), np.uint32)
        names = [str(index) for index in range(len(sequences))]
        return cls(names, ids, bounds, np.ones_like(wanted), wanted, nothing, nothing, none, none)

    def places(self, sequences: np.ndarray, marked: np.ndarray) -> np.ndarray:
        """The indices of the marked tokens of these sequences among all tokens, sequence by sequence."""
        sizes = self.lengths[sequences]
        shift = np.concatenate([[0], np.cumsum(sizes)[:-1]]) if len(sizes) else sizes
        flat = np.arange(sizes.sum()) + np.repeat(self.bounds[sequences] - shift, sizes)
        return np.asarray(flat[marked[flat]])

    def count(self, marked: np.ndarray) -> np.ndarray:
        """How many marked tokens each sequence has."""
        running = np.concatenate([[0], np.cumsum(marked)])
        return np.asarray(running[self.bounds[1:]] - running[self.bounds[:-1]])


@dataclass(frozen=True)
class Encoder:
    """A tokenizer under a policy."""

    tokenizer: Any
    policy: Policy
    window: int
    words: bool = False
    vocabulary: int | None = None

    @classmethod
    def build(
        cls,
        tokenizer: Any,
        policy: Policy,
        *,
        window: int,
        name: str,
        words: bool = False,
        vocabulary: int | None = None,
    ) -> "Encoder":
        """Resolve the policy's `auto` fields for this tokenizer, without measuring anything.

        vocabulary: how many embeddings the model has; a text with another token is refused.

        Raises NotPossible if the tokenizer gives no character offsets or lacks a named token.
        """
        if not tokenizer.is_fast:
            raise NotPossible(
                f"The tokenizer of '{name}' gives no character offsets; save it as a fast tokenizer "
                "(a tokenizer.json beside the weights) and try again."
            )
        begin = _resolve(policy.bos, tokenizer, find_declared(tokenizer), name)
        end = _resolve(policy.eos, tokenizer, str(tokenizer.eos_token or "none"), name)
        if policy.eos == "tokenizer":
            raise NotPossible("The policy's eos is 'auto', 'none' or a token; 'tokenizer' is for bos only.")
        return cls(tokenizer, policy.replace(bos=begin, eos=end), window, words, vocabulary)

    def encode(self, prompts: pl.DataFrame) -> Encoded:
        """Token ids and offsets for every prompt; long contexts are shortened if the policy allows."""
        contexts = [self.cased(text) for text in prompts["context_text"].fill_null("").to_list()]
        texts = [self.cased(text) for text in prompts["text"].to_list()]
        requests = prompts["request"].to_list()
        dropped = np.zeros(len(texts), dtype=np.uint32)
        encoded = self._encode(requests, contexts, texts, dropped)
        if self.policy.overflow != "drop":
            return encoded
        over = np.flatnonzero(
            (encoded.lengths > self.window) & np.array([bool(c) for c in contexts], dtype=bool)
        )
        if not len(over):
            return encoded
        for i in over:
            contexts[i], dropped[i] = self._shorten(contexts[i], texts[i])
        return self._encode(requests, contexts, texts, dropped)

    def cased(self, text: str) -> str:
        """The text in the policy's casing."""
        return apply_casing(text, self.policy.casing)

    def _shorten(self, context: str, text: str) -> tuple[str, int]:
        """The context without its oldest sentences, dropping as few as needed to fit."""
        sentences = split_at_sentences(context)
        low, high = 1, len(sentences)
        while low < high:
            middle = (low + high) // 2
            trial = self._encode([""], ["".join(sentences[middle:])], [text], np.zeros(1, dtype=np.uint32))
            low, high = (low, middle) if trial.lengths[0] <= self.window else (middle + 1, high)
        return "".join(sentences[low:]), low

    def _encode(
        self, requests: list[str], contexts: list[str], texts: list[str], dropped: np.ndarray
    ) -> Encoded:
        apart, itself = self.policy.seam == "apart", self.policy.bos == "tokenizer"
        join = "" if apart else self.policy.join
        if apart:
            flat = tokenize_separately(self.tokenizer, contexts, texts, words=self.words, itself=itself)
        else:
            flat = tokenize_after(self.tokenizer, contexts, join, texts, words=self.words, itself=itself)
        row = flat.row
        context_ends = np.array([len(c) for c in contexts], dtype=np.int64)
        text_starts = np.array([len(c + join) if c else 0 for c in contexts], dtype=np.int64)
        text_ends = text_starts + np.array([len(t) for t in texts], dtype=np.int64)
        of_text = self._find_text(flat, contexts, text_starts)
        across = of_text & (flat.span[:, 0] < context_ends[row])
        start = np.clip(flat.span[:, 0] - text_starts[row], 0, None)
        end = np.clip(flat.span[:, 1] - text_starts[row], 0, (text_ends - text_starts)[row])
        bare = np.array([not context for context in contexts], dtype=bool)
        return self._assemble(requests, flat, of_text, across, start, end, dropped, bare)

    def _find_text(self, flat: TokenizedTexts, contexts: list[str], text_starts: np.ndarray) -> np.ndarray:
        """Which tokens belong to the text: those with a character of it."""
        row = flat.row
        if flat.of_text is not None:
            return flat.of_text
        if self.policy.seam == "offsets":
            return np.asarray((flat.span[:, 1] > text_starts[row]) & ~flat.special)
        # minicons counts the context's tokens, tokenized alone, and takes all later ones. What a masked
        # model's tokenizer adds after the context alone does not follow it here.
        itself = self.policy.bos == "tokenizer"
        alone = self.tokenizer(contexts, add_special_tokens=itself, return_special_tokens_mask=True)
        counted = [
            len("".join("01"[bool(bit)] for bit in bits).rstrip("1")) if itself else len(bits)
            for bits in alone["special_tokens_mask"]
        ]
        skip = np.array([n if c else 0 for n, c in zip(counted, contexts, strict=True)], dtype=np.int64)
        position = np.arange(len(row)) - np.concatenate([[0], np.cumsum(flat.counts)[:-1]])[row]
        return np.asarray((position >= skip[row]) & ~flat.special)

    def _assemble(
        self,
        requests: list[str],
        flat: TokenizedTexts,
        of_text: np.ndarray,
        across: np.ndarray,
        start: np.ndarray,
        end: np.ndarray,
        dropped: np.ndarray,
        bare: np.ndarray,
    ) -> Encoded:
        """Add begin and end tokens, and mark what is scored: all of the text except a first token alone.

        bare: which texts have no context.
        """
        counts = flat.counts
        begin = self.begin
        finish = self._token(self.policy.eos)
        begun = bare if self.policy.bos.startswith(ALONE) else np.ones_like(bare)
        before, after = begun.astype(np.int64) * (begin is not None), int(finish is not None)
        sizes = counts + before + after
        bounds = np.concatenate([[0], np.cumsum(sizes)])
        position = np.arange(counts.sum()) + np.repeat(
            np.cumsum(before) + np.arange(len(counts)) * after, counts
        )
        total = int(bounds[-1])
        ids = np.zeros(total, dtype=np.int64)
        marked, starts, ends = np.zeros(total, bool), np.zeros(total, np.uint32), np.zeros(total, np.uint32)
        ids[position], marked[position], starts[position], ends[position] = flat.ids, of_text, start, end
        if begin is not None:
            ids[bounds[:-1][begun]] = begin
        if finish is not None:
            last = bounds[1:] - 1
            ids[last], marked[last] = finish, True
            final = np.where(counts > 0, ends[np.maximum(last - 1, 0)], 0)
            starts[last] = ends[last] = final
        wanted = marked.copy()
        wanted[bounds[:-1][sizes > 0]] = False
        n_across = np.bincount(flat.row[across], minlength=len(requests)).astype(np.uint32)
        word = None
        if flat.word is not None:
            word = np.full(total, -1, dtype=np.int64)
            word[position] = flat.word
        encoded = Encoded(requests, ids, bounds, marked, wanted, starts, ends, n_across, dropped, word)
        self._check(encoded)
        return encoded

    @property
    def begin(self) -> int | None:
        """The begin token that is added here, if any."""
        return self._token(self.policy.bos.removeprefix(ALONE))

    def count_begins(self, encoded: Encoded) -> np.ndarray:
        """1 for each sequence that starts with the begin token added here, else 0."""
        if self.begin is None or not len(encoded.ids):
            return np.zeros(len(encoded), dtype=np.int64)
        first = np.minimum(encoded.bounds[:-1], len(encoded.ids) - 1)
        return np.asarray((encoded.ids[first] == self.begin) & ~encoded.of_text[first]).astype(np.int64)

    def _token(self, name: str) -> int | None:
        if name in ("none", "tokenizer"):
            return None
        return int(self.tokenizer.convert_tokens_to_ids(name))

    def _check(self, encoded: Encoded) -> None:
        highest = int(encoded.ids.max(initial=0))
        if self.vocabulary is not None and highest >= self.vocabulary:
            raise BadInput(describe_unknown_id(highest, self.vocabulary))
        empty = np.flatnonzero(encoded.count(encoded.of_text) == 0)
        if len(empty):
            raise BadInput(
                f"The text of '{encoded.request[empty[0]]}' has no token to score; remove it or add a text."
            )
        if self.policy.first == "refuse":
            bare = np.flatnonzero(encoded.count(encoded.of_text) > encoded.count(encoded.wanted))
            if len(bare):
                raise NotPossible(
                    f"The first token of '{encoded.request[bare[0]]}' cannot be scored without a begin "
                    "token; give one with --bos, or allow it with the policy first='skip'."
                )


def describe_unknown_id(token: int, vocabulary: int) -> str:
    """Why a text cannot be read whose token has no embedding."""
    return (
        f"A text has the token id {token}, but the model has {vocabulary} embeddings; give the model its own "
        "tokenizer and special tokens, or save or download it again."
    )


def _resolve(choice: str, tokenizer: Any, declared: str, name: str) -> str:
    if choice in ("auto", "declared", "alone"):
        return f"{ALONE}{declared}" if choice == "alone" and declared != "none" else declared
    if choice in ("none", "tokenizer"):
        return choice
    token = choice.removeprefix(ORDINARY)
    if token not in tokenizer.get_vocab():
        raise NotPossible(
            f"'{token}' is not a token of '{name}'; use 'auto', 'none', or a token of its vocabulary."
        )
    # A tokenizer behind a server does not say which of its tokens are special.
    special = getattr(tokenizer, "all_special_tokens", None)
    if token == choice and special is not None and token not in {*special, *tokenizer.get_added_vocab()}:
        raise NotPossible(
            f"'{choice}' is an ordinary token of '{name}', not a special one; write '{ORDINARY}{choice}' if "
            "you mean it, else 'auto' or 'none'."
        )
    return token
