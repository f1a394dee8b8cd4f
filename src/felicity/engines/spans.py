"""A trie cut into pieces that a model reads in one go, each whole by itself.

A piece is a run of nodes in preorder. All that its nodes need from outside is the way from the root to
its first node, its trunk: an ancestor that comes before the piece has the piece's beginning in its
subtree. A piece reads its trunk anew, so pieces can be read in any order, one without the other, with
the same numbers. Cuts are made where the trunk is short.
"""

from dataclasses import dataclass

import numpy as np

from felicity.engines.trie import Trie

# Part of a row that may go to reading a trunk again.
TRUNK_SHARE = 8


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How much is read at once, in nodes; larger is not faster, for attention looks at all pairs.

    row: a piece of short sequences. window: what one pass takes of a long piece. batch: rows side by
    side in one pass. chain: passes after which a long piece ends and its trunk is read anew, so that
    work broken off loses no more than that.
    """

    row: int = 128
    window: int = 512
    batch: int = 2048
    chain: int = 32


@dataclass(frozen=True)
class Span:
    """Nodes `begin` to `end` with their trunk; longer than a window, they are read in several passes."""

    trunk: np.ndarray
    begin: int
    end: int
    passes: int

    @property
    def nodes(self) -> np.ndarray:
        """All nodes to read, trunk first."""
        return np.concatenate([self.trunk, np.arange(self.begin, self.end)])

    def __len__(self) -> int:
        return len(self.trunk) + self.end - self.begin


def plan_units(trie: Trie, shape: Shape) -> list[list[Span]]:
    """What to read together: spans of one pass side by side, longest first; a longer one by itself."""
    spans = cut_spans(trie, shape)
    units = [[span] for span in spans if span.passes > 1]
    short = sorted((span for span in spans if span.passes == 1), key=len, reverse=True)
    while short:
        size = max(1, shape.batch // len(short[0]))
        units.append(short[:size])
        short = short[size:]
    return units


def cut_spans(trie: Trie, shape: Shape) -> list[Span]:
    """The trie as spans, in preorder."""
    # At a cut, the next span's trunk is as long as its first node is deep; the end needs none.
    depth = np.append(trie.depth, 0)
    spans: list[Span] = []
    begin = 0
    while begin < len(trie):
        trunk = trie.path(begin)
        end = _find_end(depth, begin, len(trunk), shape)
        passes = max(1, round((len(trunk) + end - begin) / shape.window))
        spans.append(Span(trunk, begin, end, passes))
        begin = end
    return spans


def _find_end(depth: np.ndarray, begin: int, trunk: int, shape: Shape) -> int:
    """Where the span from `begin` ends: at the shallowest cut that fills a row, or further out."""
    size = len(depth) - 1
    limit = shape.row // TRUNK_SHARE
    full = begin + max(1, shape.row - trunk)
    if trunk <= limit:
        if size <= full:
            return size
        nearest = begin + max(1, 3 * shape.row // 4 - trunk)
        cut = full - int(np.argmin(depth[nearest : full + 1][::-1]))
        if depth[cut] <= limit:
            return cut
    farthest = min(size, begin + shape.chain * shape.window)
    shallow = np.flatnonzero(depth[full : farthest + 1] <= limit)
    return full + int(shallow[0]) if len(shallow) else farthest
