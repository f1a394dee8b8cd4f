"""Sequences as one token trie: what they have in common stands there once.

Two sequences share a node as long as they have the same tokens from the very beginning, so a node is a
token with its whole history, and its log-probability is the same for all that pass through it.
Nodes are numbered in preorder: a node's subtree is the range from itself to its `end`.
"""

from dataclasses import dataclass

import numpy as np

from felicity.engines.encoding import Encoded


@dataclass(frozen=True)
class Trie:
    """A trie of sequences, of which only the part that the model must read is kept as nodes.

    A token is asked for where some sequence wants its log-probability, which the model gives at the
    node before it. So what must be read are the nodes with an asked token below them: `token`, `depth`
    (its position), `parent` (-1 at a root) and `end`, in preorder.

    place: for each token of the sequences, its place among all distinct (history, token).
    asked_at: for each such place, the node before it. ready: for each sequence, the node that
    gives its last asked token, -1 where none is asked.
    """

    token: np.ndarray
    depth: np.ndarray
    parent: np.ndarray
    end: np.ndarray
    place: np.ndarray
    place_token: np.ndarray
    asked_at: np.ndarray
    ready: np.ndarray

    def __len__(self) -> int:
        return len(self.token)

    def path(self, node: int) -> np.ndarray:
        """The nodes before `node` on the way from its root; all roots' way is empty."""
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
    place = np.empty(total, np.int64)
    count = before = stop = 0
    for sequence in _sort(encoded):
        begin, finish = int(encoded.bounds[sequence]), int(encoded.bounds[sequence + 1])
        ids = encoded.ids[begin:finish]
        shared = _count_shared(ids, encoded.ids[before:stop])
        fresh = count + len(ids) - shared
        place[begin : begin + shared] = place[before : before + shared]
        place[begin + shared : finish] = np.arange(count, fresh)
        end[place[before + shared : stop]] = count
        token[count:fresh] = ids[shared:]
        depth[count:fresh] = np.arange(shared, len(ids))
        parent[count:fresh] = np.arange(count - 1, fresh - 1)
        if fresh > count:
            parent[count] = place[begin + shared - 1] if shared else -1
        count, before, stop = fresh, begin, finish
    end[place[before:stop]] = count
    return _keep_read(encoded, place, token[:count], depth[:count], parent[:count], end[:count])


def _keep_read(
    encoded: Encoded,
    place: np.ndarray,
    token: np.ndarray,
    depth: np.ndarray,
    parent: np.ndarray,
    end: np.ndarray,
) -> Trie:
    """Keep as nodes what has an asked token below it: a last token need not be read."""
    asked = np.zeros(len(token), dtype=bool)
    asked[place[encoded.wanted]] = True
    running = np.concatenate([[0], np.cumsum(asked)])
    read = running[end] > running[1:]
    rank = np.concatenate([[0], np.cumsum(read)])
    parent = np.where(parent >= 0, rank[parent], -1)
    asked_at = np.where(asked, parent, -1)
    last = np.where(encoded.wanted, asked_at[place], -1)
    return Trie(
        token=token[read],
        depth=depth[read],
        parent=parent[read],
        end=rank[end[read]],
        place=place,
        place_token=token,
        asked_at=asked_at,
        ready=np.maximum.reduceat(last, encoded.bounds[:-1]),
    )


def _sort(encoded: Encoded) -> list[int]:
    """Sequences in the order of their tokens; big-endian bytes compare as the numbers do."""
    flat = encoded.ids.astype(">u4").tobytes()
    keys = [
        flat[4 * begin : 4 * end] for begin, end in zip(encoded.bounds[:-1], encoded.bounds[1:], strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__)


def _count_shared(first: np.ndarray, second: np.ndarray) -> int:
    """How many tokens two sequences have in common from the beginning."""
    size = min(len(first), len(second))
    differ = first[:size] != second[:size]
    return int(differ.argmax()) if differ.any() else size
