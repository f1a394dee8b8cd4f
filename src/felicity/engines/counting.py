"""How often each token occurs in a corpus, under a model's own tokenizer."""

import gzip
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput

LINES_AT_ONCE = 1000


def read_lines(path: Path, *, progress: Callable[[int, int], None] | None = None) -> Iterator[str]:
    """The lines of a corpus that hold text, one at a time; `progress` is told bytes read of bytes.

    Raises BadInput where the file is missing, a folder, empty, or not UTF-8 (naming the line).
    """
    try:
        size = path.stat().st_size
        held = False
        with path.open("rb") as raw, gzip.open(raw) if path.suffix == ".gz" else raw as handle:
            for number, line in enumerate(handle, start=1):
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                except UnicodeDecodeError as error:
                    raise BadInput(
                        f"{path}, line {number}: not UTF-8; save the file as UTF-8 and try again."
                    ) from error
                if progress and number % LINES_AT_ONCE == 0:
                    progress(raw.tell(), size)
                if text:
                    held = True
                    yield text
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{path} is not a whole gzip file; fetch or write it again.") from error
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
    if progress:
        progress(size, size)
    if not held:
        raise BadInput(f"{path} is empty; give a corpus with one sentence or paragraph a line.")


def count_tokens(tokenizer: Any, lines: Iterator[str]) -> dict[str, int]:
    """Counts of the tokenizer's pieces over lines, each line tokenized by itself, no special tokens."""
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
