"""Which tokens of a vocabulary begin a word, whatever the tokenizer's way of writing a space."""

from typing import Any

import numpy as np

from felicity.core.errors import NotPossible

# How byte-level tokenizers write space, newline, tab and return; how SentencePiece writes a space.
MARKS = ("Ġ", "Ċ", "ĉ", "č", "▁", "<0x20>", "<0x0A>", "<0x09>", "<0x0D>")


def begins_word(piece: str) -> bool:
    """Whether a token starts with white space, and so ends the word before it.

    >>> begins_word("Ġcat"), begins_word("cat")
    (True, False)
    """
    return piece.startswith(MARKS) or piece[:1].isspace()


def find_word_begins(tokenizer: Any, *, name: str) -> np.ndarray:
    """Ids of the tokens after which the word before them is over: those with a space, and the end token.

    Raises NotPossible where no token starts with a space, as in tokenizers that mark the ends of words.
    """
    special = set(tokenizer.all_special_ids)
    vocabulary = tokenizer.get_vocab()
    found = [number for piece, number in vocabulary.items() if number not in special and begins_word(piece)]
    if not found:
        raise NotPossible(
            f"The tokenizer of '{name}' marks no beginnings of words; take them with boundary='plain'."
        )
    ends = [number for number in (tokenizer.eos_token_id,) if number is not None]
    return np.array(sorted({*found, *ends}), dtype=np.int64)
