"""Unigram counts of a model's tokens: the base rate that NormLP and SLOR control for."""

import gzip
import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from felicity.core.errors import BadInput
from felicity.core.files import read_text, replacing
from felicity.core.ids import fingerprint

# The count of a token that was never seen; the total grows by the same for each of them.
UNSEEN_COUNT = 0.5
# No corpus has as many tokens as a number of more digits.
MOST_DIGITS = 18


@dataclass(frozen=True)
class Unigram:
    """Token counts; a token without one gets `UNSEEN_COUNT` and is reported by `unseen`."""

    counts: dict[str, int]
    total: int

    def logprob(self, tokens: Iterable[str]) -> np.ndarray:
        """log(count / total) of each token, in nats."""
        counts = np.array([self.counts.get(token, 0) or UNSEEN_COUNT for token in tokens], dtype=np.float64)
        return np.asarray(np.log(counts / self.total))

    def unseen(self, tokens: Iterable[str]) -> int:
        """How many of the tokens have no count."""
        return sum(not self.counts.get(token) for token in tokens)

    @property
    def key(self) -> str:
        """A digest of the counts, for manifests."""
        return fingerprint(sorted(self.counts.items()))


def read_unigram(path: Path) -> Unigram:
    """Counts from a `token<TAB>count` file, plain or gzipped.

    Raises BadInput naming a line that is not a token, a tab and a whole number.
    """
    counts: dict[str, int] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.rstrip("\r"):
            continue
        token, tab, count = line.rstrip("\r").rpartition("\t")
        if not tab or not count.isdecimal() or len(count) > MOST_DIGITS:
            raise BadInput(f"{path}, line {number}: not a token, a tab and a count.")
        counts[token] = counts.get(token, 0) + int(count)
    total = sum(counts.values())
    if not total:
        raise BadInput(f"{path} has no counts; build a table with `felicity measures count`.")
    return Unigram(counts, total)


def write_unigram(counts: dict[str, int], path: Path) -> None:
    """Write counts, most frequent first; a path that ends in .gz is compressed."""
    order = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    text = io.StringIO()
    for token, count in order:
        text.write(f"{token}\t{count}\n")
    content = text.getvalue().encode()
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    with replacing(path) as part:
        part.write_bytes(content)
