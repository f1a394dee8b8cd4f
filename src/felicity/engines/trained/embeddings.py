"""Word vectors that another program learned, to begin a training with (word2vec's text format)."""

from pathlib import Path

import numpy as np

from felicity.core.errors import BadInput
from felicity.engines.counting import read_lines

HEADER_FIELDS = 2


def read_embeddings(path: Path, words: list[str], *, size: int) -> np.ndarray:
    """One row a word of the vocabulary; NaN where the file has no vector for it.

    A line is a word and its numbers; a first line of two whole numbers, as word2vec writes, is passed over.

    Raises BadInput naming the line that has another number of numbers, or none.
    """
    place = {word: row for row, word in enumerate(words)}
    vectors = np.full((len(words), size), np.nan, dtype=np.float32)
    for number, line in enumerate(read_lines(path), start=1):
        parts = line.split()
        if number == 1 and len(parts) == HEADER_FIELDS and all(part.isdecimal() for part in parts):
            continue
        if len(parts) != size + 1:
            raise BadInput(
                f"{path}, line {number}: {len(parts) - 1} numbers behind the word, not {size}; give the size "
                "of the vectors with --embedding."
            )
        row = place.get(parts[0])
        if row is None:
            continue
        try:
            vectors[row] = [float(part) for part in parts[1:]]
        except ValueError as error:
            raise BadInput(f"{path}, line {number}: not a word and {size} numbers.") from error
    if np.isnan(vectors[:, 0]).all():
        raise BadInput(f"{path} has no vector for any word of the corpus; is its casing another?")
    return vectors
