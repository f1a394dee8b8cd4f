"""A tokenizer's vocabulary: which tokens start words, and how often each token occurs in a corpus."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from felicity.core.errors import BadInput, NotPossible
from felicity.core.files import open_bytes
from felicity.core.progress import Progress

# How byte-level tokenizers write space, newline, tab and return, and how SentencePiece writes a space.
MARKS = ("Ġ", "Ċ", "ĉ", "č", "▁", "<0x20>", "<0x0A>", "<0x09>", "<0x0D>")
LINES_AT_ONCE = 1000


def begins_word(piece: str) -> bool:
    """Whether a token starts with white space, and so ends the word before it.

    >>> begins_word("Ġcat"), begins_word("cat")
    (True, False)
    """
    return piece.startswith(MARKS) or piece[:1].isspace()


def marks_words(tokenizer: Any) -> bool:
    """Whether tokens show where words begin, so that the end of a word has a probability."""
    special = set(tokenizer.all_special_ids)
    vocabulary = tokenizer.get_vocab()
    return any(begins_word(piece) for piece, number in vocabulary.items() if number not in special)


def find_word_begins(tokenizer: Any, *, name: str) -> np.ndarray:
    """Ids of the tokens that end the word before them: those that start with a space, and the end token.

    Raises NotPossible if no token starts with a space, as in tokenizers that mark the ends of words.
    """
    special = set(tokenizer.all_special_ids)
    vocabulary = tokenizer.get_vocab()
    begins = [number for piece, number in vocabulary.items() if number not in special and begins_word(piece)]
    if not begins:
        raise NotPossible(
            f"The tokenizer of '{name}' does not mark the beginnings of words; use boundary='plain'."
        )
    ends = [number for number in (tokenizer.eos_token_id,) if number is not None]
    return np.array(sorted({*begins, *ends}), dtype=np.int64)


def read_lines(path: Path, *, progress: Progress | None = None) -> Iterator[str]:
    """The lines of a corpus that contain text, one at a time; `progress` receives bytes read and in total.

    Raises BadInput if the file is missing, a folder, empty, or not UTF-8 (naming the line).
    """
    held = False
    with open_bytes(path) as (raw, content):
        size = path.stat().st_size
        for number, line in enumerate(content, start=1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
            except UnicodeDecodeError as error:
                raise BadInput(
                    f"{path}, line {number}: not UTF-8; save the file as UTF-8 and try again."
                ) from error
            if progress and number % LINES_AT_ONCE == 0:
                progress(path.name, raw.tell(), size)
            if text:
                held = True
                yield text
    if progress:
        progress(path.name, size, size)
    if not held:
        raise BadInput(f"{path} is empty; give a corpus with one sentence or paragraph per line.")


def count_pieces(tokenizer: Any, lines: Iterator[str]) -> dict[str, int]:
    """Counts of the tokenizer's pieces, each line tokenized alone without special tokens."""
    counts: Counter[int] = Counter()
    batch: list[str] = []

    def count() -> None:
        for ids in tokenizer(batch, add_special_tokens=False, return_attention_mask=False)["input_ids"]:
            counts.update(ids)
        batch.clear()

    for line in lines:
        batch.append(line)
        if len(batch) == LINES_AT_ONCE:
            count()
    if batch:
        count()
    pieces = tokenizer.convert_ids_to_tokens(list(counts))
    return dict(zip(pieces, counts.values(), strict=True))
