"""n-gram models as ARPA files, which SRILM, KenLM and felicity read."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from felicity.core.files import replacing
from felicity.engines.ngram.model import NgramModel

ROWS_AT_ONCE = 100_000
# A comment before the data, which other readers pass over: how texts are to be cut.
COMMENT = "# felicity"


def write_arpa(model: NgramModel, path: Path) -> None:
    """Write the model; a path that ends in .gz is compressed.

    Raises FelicityError where the disk refuses.
    """
    with replacing(path) as part:
        write_part(model, part, packed=path.suffix == ".gz")


def write_part(model: NgramModel, part: Path, *, packed: bool) -> None:
    """Write the model where a file is being made."""
    with part.open("wb") as raw:
        if packed:
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as zipped:
                _write(model, zipped)
        else:
            _write(model, raw)


def _write(model: NgramModel, file: "IO[bytes] | gzip.GzipFile") -> None:
    casing = "lower" if model.lower else "keep"
    file.write(f"{COMMENT} words={model.cut} casing={casing}\n\\data\\\n".encode())
    for n, values in enumerate(model.logprob, start=1):
        file.write(f"ngram {n}={len(values)}\n".encode())
    for n in range(1, model.order + 1):
        file.write(f"\n\\{n}-grams:\n".encode())
        for lines in _lines(model, n):
            file.write(lines.encode())
    file.write(b"\n\\end\\\n")


def _lines(model: NgramModel, n: int) -> Iterator[str]:
    """The lines of one order, some thousands at a time."""
    total = len(model.logprob[n - 1])
    for begin in range(0, total, ROWS_AT_ONCE):
        rows = np.arange(begin, min(begin + ROWS_AT_ONCE, total))
        texts = _spell(model, n, rows)
        logprob = model.logprob[n - 1][rows].tolist()
        if n == model.order:
            pairs = zip(logprob, texts, strict=True)
            yield "".join(f"{value:.7g}\t{text}\n" for value, text in pairs)
        else:
            backoff = model.backoff[n - 1][rows].tolist()
            triples = zip(logprob, texts, backoff, strict=True)
            yield "".join(f"{value:.7g}\t{text}\t{weight:.7g}\n" for value, text, weight in triples)


def _spell(model: NgramModel, n: int, rows: np.ndarray) -> list[str]:
    """The words of n-grams, with spaces between."""
    columns: list[list[str]] = []
    while n > 1:
        keys = model.keys[n - 2][rows]
        columns.append([model.words[i] for i in (keys % len(model.words)).tolist()])
        rows = keys // len(model.words)
        n -= 1
    columns.append([model.words[i] for i in rows.tolist()])
    return [" ".join(parts) for parts in zip(*reversed(columns), strict=True)]
