"""Constrained random orders: no long runs of one condition, related items far enough apart.

A randomised depth-first search over classes of interchangeable trials. It looks ahead by counting, so that
most dead ends are seen before they are entered; if it runs through every order without success, the
constraints are proven infeasible, and nothing is ever relaxed.
"""

import random
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

NODES = 20_000
RESTARTS = 12


@dataclass(frozen=True)
class Labels:
    """What the constraints read of a trial; an empty group is related to nothing."""

    condition: str
    type: str
    group: str = ""


@dataclass(frozen=True)
class Constraints:
    """At most so many of a kind in a row; related trials at least so many positions apart."""

    most_same_condition: int | None = None
    most_same_type: int | None = None
    least_distance: int | None = None


class Infeasible(Exception):
    """No order meets the constraints; `proven` when every order was ruled out."""

    def __init__(self, proven: bool) -> None:
        super().__init__("proven" if proven else "not found")
        self.proven = proven


def find_order(
    trials: Sequence[Labels],
    constraints: Constraints,
    rng: random.Random,
    *,
    before: Sequence[Labels] = (),
) -> list[int]:
    """A random order of the trials, as positions in the given sequence, after those that came `before`.

    Raises Infeasible.
    """
    pools: dict[Labels, list[int]] = {}
    for place, labels in enumerate(trials):
        pools.setdefault(labels, []).append(place)
    for pool in pools.values():
        rng.shuffle(pool)
    counts = {labels: len(pool) for labels, pool in pools.items()}
    for restart in range(RESTARTS):
        search = _Search(counts, constraints, rng, before, limit=NODES << min(restart, 3))
        order = search.run()
        if order is not None:
            return [pools[labels].pop() for labels in order]
        if search.nodes < search.limit:
            raise Infeasible(proven=True)
    raise Infeasible(proven=False)


def breaks(order: Sequence[Labels], constraints: Constraints) -> list[str]:
    """The names of the constraints that an order does not meet."""
    broken = []
    for name, limit in (
        ("most_same_condition", constraints.most_same_condition),
        ("most_same_type", constraints.most_same_type),
    ):
        labels = [_run_label(one, name) for one in order]
        if limit is not None and _longest_run(labels) > limit:
            broken.append(name)
    if constraints.least_distance is not None:
        last: dict[str, int] = {}
        for place, one in enumerate(order):
            if one.group and place - last.get(one.group, -(10**9)) < constraints.least_distance:
                broken.append("least_distance")
                break
            last[one.group] = place
    return broken


def _run_label(labels: Labels, name: str) -> Hashable:
    # The condition of a filler says nothing about that of a target, so both are read together.
    return (labels.type, labels.condition) if name == "most_same_condition" else labels.type


def _longest_run(labels: Sequence[Hashable]) -> int:
    longest = run = 0
    for place, label in enumerate(labels):
        run = run + 1 if place and label == labels[place - 1] else 1
        longest = max(longest, run)
    return longest


class _Search:
    """One depth-first search with a limit on the nodes visited."""

    def __init__(
        self,
        counts: dict[Labels, int],
        constraints: Constraints,
        rng: random.Random,
        before: Sequence[Labels],
        *,
        limit: int,
    ) -> None:
        self.left = dict(counts)
        self.rng = rng
        self.limit = limit
        self.nodes = 0
        self.order: list[Labels] = list(before)
        self.start = len(before)
        self.end = len(before) + sum(counts.values())
        self.runs = [
            (name, most)
            for name, most in (
                ("most_same_condition", constraints.most_same_condition),
                ("most_same_type", constraints.most_same_type),
            )
            if most is not None
        ]
        self.distance = constraints.least_distance or 0
        self.last = {one.group: index for index, one in enumerate(before) if one.group}

    def run(self) -> list[Labels] | None:
        # Iterative, because a list may be longer than Python's stack is deep.
        stack = [self._candidates()]
        previous: list[int | None] = []
        while stack:
            if len(self.order) == self.end:
                return self.order[self.start :]
            if not stack[-1] or self.nodes >= self.limit:
                if self.nodes >= self.limit:
                    return None
                stack.pop()
                if previous:
                    self._undo(previous.pop())
                continue
            self.nodes += 1
            chosen = stack[-1].pop()
            previous.append(self._place(chosen))
            stack.append(self._candidates() if self._possible() else [])
        return None

    def _candidates(self) -> list[Labels]:
        """The classes that may come next, the best last; likelier if more of them are left."""
        here = len(self.order)
        usable = [
            labels
            for labels, count in self.left.items()
            if count
            and not (labels.group and here - self.last.get(labels.group, -(10**9)) < self.distance)
            and all(self._tail(name, _run_label(labels, name)) < most for name, most in self.runs)
        ]
        keys = {labels: self.rng.random() ** (1 / self.left[labels]) for labels in usable}
        return sorted(usable, key=keys.__getitem__)

    def _tail(self, name: str, label: Hashable) -> int:
        run = 0
        for one in reversed(self.order):
            if _run_label(one, name) != label:
                break
            run += 1
        return run

    def _place(self, labels: Labels) -> int | None:
        earlier = self.last.get(labels.group)
        if labels.group:
            self.last[labels.group] = len(self.order)
        self.left[labels] -= 1
        self.order.append(labels)
        return earlier

    def _undo(self, earlier: int | None) -> None:
        labels = self.order.pop()
        self.left[labels] += 1
        if labels.group:
            if earlier is None:
                self.last.pop(labels.group, None)
            else:
                self.last[labels.group] = earlier

    def _possible(self) -> bool:
        """Whether counting alone leaves a way to place what is left."""
        here = len(self.order)
        room = self.end - here
        for name, most in self.runs:
            counts: Counter[Hashable] = Counter()
            for labels, count in self.left.items():
                counts[_run_label(labels, name)] += count
            for label, count in counts.items():
                others = room - count
                tail = self._tail(name, label)
                if count > (most - tail) + most * others:
                    return False
        if self.distance:
            groups: Counter[str] = Counter()
            for labels, count in self.left.items():
                if labels.group:
                    groups[labels.group] += count
            for group, count in groups.items():
                first = max(here, self.last.get(group, -(10**9)) + self.distance)
                if count and first + (count - 1) * self.distance >= self.end:
                    return False
        return True
