"""Flat feature structures and their unification.

A value is a set of atoms, read as "one of these": `sem=person|animal`. Two values unify to their
intersection and fail when it is empty. A variable (`?n`) stands for one value wherever it occurs, so that
agreement (`num=?n` on a subject and its verb) and selection (`sem=?s` on a noun, `subj=?s` on the verb)
are the same operation. `!?n` is any value but that of `?n`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

Atoms = frozenset[str]


@dataclass(frozen=True)
class Var:
    """A variable: the same value wherever it occurs in a pair; `among` limits what it can be."""

    name: str
    among: Atoms | None = None


@dataclass(frozen=True)
class Other:
    """Any value but that of the variable; known only once the variable is."""

    name: str


Term = Atoms | Var | Other
Features = Mapping[str, Term]


class Bindings:
    """The values that the variables of one pair can still have; these only ever narrow."""

    def __init__(self) -> None:
        self._values: dict[str, Atoms] = {}
        self._links: dict[str, str] = {}

    def copy(self) -> "Bindings":
        """An independent copy, to try something and go back."""
        other = Bindings()
        other._values = dict(self._values)
        other._links = dict(self._links)
        return other

    def resolve(self, term: Term, domain: Atoms) -> Atoms:
        """The values still possible for a term.

        >>> bindings = Bindings()
        >>> number = frozenset({"sg", "pl"})
        >>> bindings.unify(Var("n"), frozenset({"sg"}), number)
        True
        >>> bindings.resolve(Other("n"), number)
        frozenset({'pl'})
        """
        if isinstance(term, Var):
            found = self._values.get(self._root(term.name), domain)
            return found if term.among is None else found & term.among
        if isinstance(term, Other):
            return domain - self._values.get(self._root(term.name), frozenset())
        return term

    def unify(self, left: Term, right: Term, domain: Atoms) -> bool:
        """Make two terms one; False when they share no value (the bindings are then no longer usable)."""
        if isinstance(right, Var) and not isinstance(left, Var):
            left, right = right, left
        if isinstance(left, Var) and isinstance(right, Var):
            return self._link(left, right, domain)
        common = self.resolve(left, domain) & self.resolve(right, domain)
        if isinstance(left, Var):
            self._values[self._root(left.name)] = common
        return bool(common)

    def _link(self, left: Var, right: Var, domain: Atoms) -> bool:
        first, second = self._root(left.name), self._root(right.name)
        common = self.resolve(left, domain) & self.resolve(right, domain)
        if first != second:
            self._links[second] = first
        self._values[first] = common
        return bool(common)

    def _root(self, name: str) -> str:
        while name in self._links:
            name = self._links[name]
        return name


def compatible(node: Features, head: Features, bindings: Bindings, domains: Mapping[str, Atoms]) -> bool:
    """Whether a rule's head could unify with a node, without doing it; the head's variables are open."""
    return all(
        bindings.resolve(node[name], domains[name]) & _open(term, domains[name])
        for name, term in head.items()
        if name in node
    )


def _open(term: Term, domain: Atoms) -> Atoms:
    if isinstance(term, Var):
        return domain if term.among is None else term.among
    return domain if isinstance(term, Other) else term
