"""Token ids and offsets of texts; a context shared by many texts is tokenized once.

A sweep puts the same long contexts before thousands of texts. If a tokenizer splits text into words before it
forms tokens, the tokens before a space in the context do not depend on what follows the context, so the text
after that space can be tokenized alone. Every context is checked on its first text; if the two parts do not
make up the whole, nothing is spliced.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

# Terminal punctuation with any closing quotes or brackets, then white space.
BOUNDARY = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]]*\s+")
# Tokenizer models that form tokens within words only, given a pre-tokenizer.
WITHIN_WORDS = ("BPE", "WordPiece", "WordLevel")
# Characters below which a context is not worth splicing.
LONG = 200
# Words of the context that are tokenized again with each text, so that the split is clear of the boundary.
OVERLAP = 3


def split_at_sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space after it; joined they are the text.

    >>> split_at_sentences("It rained. “Did it?” Yes.")
    ['It rained. ', '“Did it?” ', 'Yes.']
    """
    pieces = []
    begin = 0
    for match in BOUNDARY.finditer(text):
        pieces.append(text[begin : match.end()])
        begin = match.end()
    if begin < len(text):
        pieces.append(text[begin:])
    return pieces


@dataclass(frozen=True)
class TokenizedTexts:
    """Tokens of several texts, flat. Spans are characters; `word` numbers a text's words, if requested.

    of_text: which tokens are the text's and not its context's, if this is known from the start.
    """

    ids: np.ndarray
    span: np.ndarray
    special: np.ndarray
    counts: np.ndarray
    word: np.ndarray | None = None
    of_text: np.ndarray | None = None

    @property
    def row(self) -> np.ndarray:
        """The text of each token."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


def tokenize_after(
    tokenizer: Any, contexts: Sequence[str], join: str, texts: Sequence[str], *, words: bool, itself: bool
) -> TokenizedTexts:
    """Each context, joined to its text. `itself`: the tokenizer adds its own special tokens."""
    wholes = [c + join + t if c else t for c, t in zip(contexts, texts, strict=True)]
    cuts = {} if words or itself or not works_within_words(tokenizer) else _find_cuts(contexts)
    if not cuts:
        return tokenize_texts(tokenizer, wholes, words=words, itself=itself)
    first = {context: place for place, context in reversed(list(enumerate(contexts))) if context in cuts}
    later = [place for place, context in enumerate(contexts) if context in cuts]
    alone = [place for place, context in enumerate(contexts) if context not in cuts]
    trial = tokenize_texts(tokenizer, [wholes[place] for place in first.values()])
    tails = tokenize_texts(tokenizer, [wholes[place][cuts[contexts[place]] :] for place in later])
    tail_of = dict(zip(later, _parts(tails), strict=True))
    head_of: dict[str, tuple[np.ndarray, np.ndarray]] = {}
    for (context, place), whole in zip(first.items(), _parts(trial), strict=True):
        head = _cut_head(whole, tail_of[place], cuts[context])
        if head is None:
            alone += [other for other in later if contexts[other] == context]
        else:
            head_of[context] = head
    parts_alone = dict(
        zip(alone, _parts(tokenize_texts(tokenizer, [wholes[place] for place in alone])), strict=True)
    )
    parts = [
        parts_alone[place] if place in parts_alone else _join(head_of[context], tail_of[place], cuts[context])
        for place, context in enumerate(contexts)
    ]
    ids = np.concatenate([ids for ids, _ in parts])
    counts = np.array([len(ids) for ids, _ in parts], dtype=np.int64)
    return TokenizedTexts(
        ids, np.concatenate([span for _, span in parts]), np.zeros(len(ids), dtype=bool), counts
    )


def tokenize_separately(
    tokenizer: Any, contexts: Sequence[str], texts: Sequence[str], *, words: bool, itself: bool
) -> TokenizedTexts:
    """Each context and its text tokenized separately, the tokens of one after those of the other.

    Spans are those of the two texts put together without a separator. With `itself` the special tokens that
    the tokenizer adds to a text are put around both.
    """
    before = tokenize_texts(tokenizer, [context for context in contexts if context], words=words)
    after = tokenize_texts(tokenizer, texts, words=words, itself=itself)
    heads = iter(np.split(np.arange(len(before.ids)), np.cumsum(before.counts)[:-1]))
    tails = np.split(np.arange(len(after.ids)), np.cumsum(after.counts)[:-1])
    ids, spans, special, of_text, numbers, counts = [], [], [], [], [], []
    for context, tail in zip(contexts, tails, strict=True):
        head = next(heads) if context else np.empty(0, dtype=np.int64)
        # Special tokens in front of the text stay in front of everything.
        front = int(np.argmin(after.special[tail])) if len(tail) else 0
        parts = (tail[:front], tail[front:])
        shift = len(context)
        ids += [after.ids[parts[0]], before.ids[head], after.ids[parts[1]]]
        spans += [after.span[parts[0]], before.span[head], after.span[parts[1]] + shift]
        special += [after.special[parts[0]], np.zeros(len(head), dtype=bool), after.special[parts[1]]]
        of_text += [np.zeros(front + len(head), dtype=bool), ~after.special[parts[1]]]
        if before.word is not None and after.word is not None:
            first = int(before.word[head].max(initial=-1)) + 1
            later = after.word[parts[1]]
            numbers += [after.word[parts[0]], before.word[head], np.where(later < 0, -1, later + first)]
        counts.append(len(head) + len(tail))
    return TokenizedTexts(
        ids=np.concatenate(ids),
        span=np.concatenate(spans),
        special=np.concatenate(special),
        counts=np.array(counts, dtype=np.int64),
        word=np.concatenate(numbers) if words else None,
        of_text=np.concatenate(of_text),
    )


def works_within_words(tokenizer: Any) -> bool:
    """Whether every token lies within one pre-tokenized word."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    return (
        backend is not None
        and backend.pre_tokenizer is not None
        and type(backend.model).__name__ in WITHIN_WORDS
    )


def tokenize_texts(
    tokenizer: Any, texts: Sequence[str], *, words: bool = False, itself: bool = False
) -> TokenizedTexts:
    """Every text, tokenized as a whole."""
    if not texts:
        nothing = np.empty(0, dtype=np.int64)
        numbers = nothing if words else None
        return TokenizedTexts(nothing, nothing.reshape(0, 2), nothing.astype(bool), nothing, numbers)
    output = tokenizer(
        list(texts),
        add_special_tokens=itself,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        return_attention_mask=False,
        return_token_type_ids=False,
        verbose=False,
    )
    counts = np.fromiter(map(len, output["input_ids"]), dtype=np.int64, count=len(texts))
    total = int(counts.sum())
    special = (bool(bit) for row in output["special_tokens_mask"] for bit in row)
    return TokenizedTexts(
        ids=np.fromiter((i for row in output["input_ids"] for i in row), dtype=np.int64, count=total),
        span=np.array([s for row in output["offset_mapping"] for s in row], dtype=np.int64).reshape(-1, 2),
        special=np.fromiter(special, dtype=bool, count=total) & itself,
        counts=counts,
        word=_find_words(output, len(texts)) if words else None,
    )


def _find_cuts(contexts: Sequence[str]) -> dict[str, int]:
    """For long contexts that precede several texts: the space before their last few words."""
    seen: set[str] = set()
    again: dict[str, int] = {}
    for context in contexts:
        if len(context) >= LONG and context in seen and context not in again:
            cut = len(context)
            for _ in range(OVERLAP):
                cut = context.rfind(" ", 0, cut)
            if cut > 0:
                again[context] = cut
        seen.add(context)
    return again


def _cut_head(
    whole: tuple[np.ndarray, np.ndarray], tail: tuple[np.ndarray, np.ndarray], cut: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """The tokens before the split, if they and the tail make up the whole."""
    ids, span = whole
    size = len(ids) - len(tail[0])
    if size < 1 or span[:size, 1].max() > cut or (span[size:, 0] < cut).any():
        return None
    if not np.array_equal(ids[size:], tail[0]) or not np.array_equal(span[size:], tail[1] + cut):
        return None
    return ids[:size], span[:size]


def _join(
    head: tuple[np.ndarray, np.ndarray], tail: tuple[np.ndarray, np.ndarray], cut: int
) -> tuple[np.ndarray, np.ndarray]:
    return np.concatenate([head[0], tail[0]]), np.concatenate([head[1], tail[1] + cut])


def _parts(rows: TokenizedTexts) -> list[tuple[np.ndarray, np.ndarray]]:
    """Ids and spans, text by text."""
    if not len(rows.counts):
        return []
    ends = np.cumsum(rows.counts)[:-1]
    return list(zip(np.split(rows.ids, ends), np.split(rows.span, ends), strict=True))


def _find_words(output: Any, size: int) -> np.ndarray:
    """The word of each token in its row, by the tokenizer's own splitting; -1 for none."""
    rows = (output.word_ids(row) for row in range(size))
    return np.array([-1 if word is None else word for row in rows for word in row], dtype=np.int64)
