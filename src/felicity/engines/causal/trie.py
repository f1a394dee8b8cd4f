"""Sequences as a token trie, and the trie split into spans that are each computed in one or more passes.

A span is a run of nodes in preorder. Its nodes need only the path from the root to its first
node, its trunk: any ancestor outside the span is also an ancestor of the span's first node. Each span
recomputes its trunk, so spans can be computed in any order, or some of them alone, with the same numbers.
Spans are split where the trunk is short.
"""

from dataclasses import dataclass

import numpy as np

from felicity.engines.tokenizing import Encoded

# The share of a row (1 in 8) that may go to recomputing a trunk.
TRUNK_SHARE = 8


@dataclass(frozen=True)
class Trie:
    """A trie of sequences; only the part that the model must compute is kept as nodes.

    The log-probability of a wanted token comes from the node before it. So the nodes are those with a wanted
    token below them, in preorder: `token`, `depth` (its position), `parent` (-1 at a root) and `end`, the
    node after its subtree.

    node_of: for each token of the sequences, its index among all distinct (history, token).
    predicted_at: for each such index, the node before it. ready: for each sequence, the node that
    gives its last wanted token, -1 if none is wanted.
    """

    token: np.ndarray
    depth: np.ndarray
    parent: np.ndarray
    end: np.ndarray
    node_of: np.ndarray
    place_token: np.ndarray
    predicted_at: np.ndarray
    ready: np.ndarray

    def __len__(self) -> int:
        return len(self.token)

    def path(self, node: int) -> np.ndarray:
        """The ancestors of `node`, from its root; empty for a root."""
        steps = np.empty(self.depth[node] if node < len(self) else 0, dtype=np.int64)
        for step in range(len(steps) - 1, -1, -1):
            node = int(self.parent[node])
            steps[step] = node
        return steps


def build_trie(encoded: Encoded) -> Trie:
    """The trie of these sequences."""
    total = len(encoded.ids)
    token, depth = np.empty(total, np.int64), np.empty(total, np.int64)
    parent, end = np.empty(total, np.int64), np.empty(total, np.int64)
    node_of = np.empty(total, np.int64)
    count = before = stop = 0
    for sequence in _sort(encoded):
        begin, finish = int(encoded.bounds[sequence]), int(encoded.bounds[sequence + 1])
        ids = encoded.ids[begin:finish]
        shared = _count_shared(ids, encoded.ids[before:stop])
        fresh = count + len(ids) - shared
        node_of[begin : begin + shared] = node_of[before : before + shared]
        node_of[begin + shared : finish] = np.arange(count, fresh)
        end[node_of[before + shared : stop]] = count
        token[count:fresh] = ids[shared:]
        depth[count:fresh] = np.arange(shared, len(ids))
        parent[count:fresh] = np.arange(count - 1, fresh - 1)
        if fresh > count:
            parent[count] = node_of[begin + shared - 1] if shared else -1
        count, before, stop = fresh, begin, finish
    end[node_of[before:stop]] = count
    return _keep_read(encoded, node_of, token[:count], depth[:count], parent[:count], end[:count])


def _keep_read(
    encoded: Encoded,
    node_of: np.ndarray,
    token: np.ndarray,
    depth: np.ndarray,
    parent: np.ndarray,
    end: np.ndarray,
) -> Trie:
    """Keep as nodes what has a wanted token below it: a last token need not be computed."""
    targets = np.zeros(len(token), dtype=bool)
    targets[node_of[encoded.wanted]] = True
    running = np.concatenate([[0], np.cumsum(targets)])
    read = running[end] > running[1:]
    rank = np.concatenate([[0], np.cumsum(read)])
    parent = np.where(parent >= 0, rank[parent], -1)
    predicted_at = np.where(targets, parent, -1)
    last = np.where(encoded.wanted, predicted_at[node_of], -1)
    return Trie(
        token=token[read],
        depth=depth[read],
        parent=parent[read],
        end=rank[end[read]],
        node_of=node_of,
        place_token=token,
        predicted_at=predicted_at,
        ready=np.maximum.reduceat(last, encoded.bounds[:-1]),
    )


def _sort(encoded: Encoded) -> list[int]:
    """Sequences sorted by their tokens; big-endian bytes compare as the numbers do."""
    flat = encoded.ids.astype(">u4").tobytes()
    keys = [
        flat[4 * begin : 4 * end] for begin, end in zip(encoded.bounds[:-1], encoded.bounds[1:], strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _count_shared(first: np.ndarray, second: np.ndarray) -> int:
    """How many tokens two sequences share from the beginning."""
    size = min(len(first), len(second))
    differ = first[:size] != second[:size]
    return int(differ.argmax()) if differ.any() else size


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How many nodes are computed at once; more is not faster, since attention grows quadratically.

    row: a span of short sequences. window: one pass over a long span. batch: rows side by side in one
    pass. chain: passes after which a long span ends and its trunk is recomputed, so that an
    interruption loses no more than that.
    """

    row: int = 128
    window: int = 512
    batch: int = 2048
    chain: int = 32


@dataclass(frozen=True)
class Span:
    """Nodes `begin` to `end` with their trunk; a span longer than a window takes several passes."""

    trunk: np.ndarray
    begin: int
    end: int
    passes: int

    @property
    def nodes(self) -> np.ndarray:
        """All nodes to compute, trunk first."""
        return np.concatenate([self.trunk, np.arange(self.begin, self.end)])

    def __len__(self) -> int:
        return len(self.trunk) + self.end - self.begin


def plan_units(trie: Trie, shape: Shape) -> list[list[Span]]:
    """What to compute together: spans of one pass side by side, longest first; longer spans alone."""
    spans = split_spans(trie, shape)
    units = [[span] for span in spans if span.passes > 1]
    short = sorted((span for span in spans if span.passes == 1), key=len, reverse=True)
    while short:
        size = max(1, shape.batch // len(short[0]))
        units.append(short[:size])
        short = short[size:]
    return units


def split_spans(trie: Trie, shape: Shape) -> list[Span]:
    """The trie as spans, in preorder."""
    # At a split, the trunk of the next span is as long as its first node is deep; the end needs none.
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
    """Where the span from `begin` ends: at the shallowest split that fills a row, or further on."""
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
