"""The notation of structures: `subj:NP[num=?n, sem=animate] verb:V[form=pres, num=?n] .`

A capitalized name is a category, expanded by the grammar or filled from the lexicon. Anything else is a
word or a mark of punctuation as it stands. A label before a colon names a part; `@label` repeats a part
that was named before, and `@label[num=!?n]` repeats it with other features. `?n` is a variable, `?g:m|f`
one that is limited to these values, `!?n` any value but that of `?n`, and `!person` any but this.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from felicity.core.errors import BadInput, UnknownName
from felicity.stimuli.grammar.features import Atoms, Features, Other, Term, Var
from felicity.stimuli.grammar.realization import MARKS, Realization

TOKEN = re.compile(r"[^\s\[\]]+(?:\[[^\[\]]*\])?")
PART = re.compile(r"(?:(?P<label>[a-z][a-z0-9_]*):)?(?P<name>@?[^\s\[\]:]+)(?:\[(?P<features>[^\]]*)\])?")
CATEGORY = re.compile(r"[A-Z][A-Za-z]*$")


@dataclass(frozen=True)
class SourceLine:
    """Where something is written, for messages."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}"


@dataclass(frozen=True)
class Node:
    """One part of a structure: a category, a word, or a repeated part."""

    name: str
    label: str | None = None
    features: Features = field(default_factory=dict)
    repeats: bool = False

    @property
    def is_category(self) -> bool:
        """Whether the part is to be expanded or filled, rather than a word as it stands."""
        return not self.repeats and CATEGORY.match(self.name) is not None


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """How the words of a language are drawn.

    open: categories whose words occur once in a sentence, and are matched in frequency. order: what is drawn
    before what, since a verb chooses its nouns and a noun its determiner; categories in one list are equal.
    changed: categories that come before all others where their form distinguishes the sentences. even:
    features whose values are drawn before any word, so that each is equally frequent.
    """

    open: frozenset[str] = frozenset()
    order: tuple[frozenset[str], ...] = ()
    changed: frozenset[str] = frozenset()
    even: tuple[str, ...] = ()

    def rank(self, category: str) -> int:
        """The place of a category in the order; those that are not in it come last."""
        return next((place for place, one in enumerate(self.order) if category in one), len(self.order))


@dataclass(frozen=True, kw_only=True)
class Notation:
    """What structures are written with: categories and their features, values, groups of values, words."""

    categories: Mapping[str, frozenset[str]]
    domains: Mapping[str, Atoms]
    groups: Mapping[str, Atoms]
    words: frozenset[str] = frozenset()
    realization: Realization = field(default_factory=Realization)
    drawing: Drawing = field(default_factory=Drawing)


def with_words(vocabulary: Notation, words: Iterable[str]) -> Notation:
    """The vocabulary with more words that may stand as they are."""
    return replace(vocabulary, words=vocabulary.words | frozenset(words))


def read_structure(text: str, vocabulary: Notation, place: SourceLine) -> tuple[Node, ...]:
    """The parts of a structure.

    Raises BadInput or UnknownName with the file and line for anything that cannot be read or is not known.
    """
    left = TOKEN.sub("", text).strip()
    if left:
        raise BadInput(f"{place}: cannot read '{left[:20]}'; check that every bracket is closed.")
    return tuple(_read_node(token, vocabulary, place) for token in TOKEN.findall(text))


def _read_node(token: str, vocabulary: Notation, place: SourceLine) -> Node:
    match = PART.fullmatch(token)
    if match is None:
        raise BadInput(f"{place}: cannot read '{token}'; write label:Category[feature=value] or a word.")
    name, written = match["name"], match["features"]
    if name.startswith("@"):
        if match["label"]:
            raise BadInput(f"{place}: '{token}' names a part that is repeated; write {name} alone.")
        return Node(name[1:], features=read_features(written or "", vocabulary, place), repeats=True)
    if CATEGORY.match(name):
        if name not in vocabulary.categories:
            raise UnknownName("category", name, vocabulary.categories, where=str(place))
        features = read_features(written or "", vocabulary, place)
        for feature in features:
            if feature not in vocabulary.categories[name]:
                known = vocabulary.categories[name]
                raise UnknownName(f"feature of {name}", feature, known, where=str(place))
        return Node(name, match["label"], features)
    if written is not None:
        raise BadInput(f"{place}: the word '{name}' takes no features; a category starts with a capital.")
    if name not in vocabulary.words and name not in MARKS and name not in vocabulary.realization.clitics:
        hint = "add it to a line words = [...] at the top of the file"
        raise UnknownName("word", name, vocabulary.words, hint=hint, where=str(place))
    return Node(name, match["label"])


def read_features(text: str, vocabulary: Notation, place: SourceLine) -> Features:
    """`num=?n, sem=person|animal` as a feature structure.

    Raises BadInput or UnknownName with the file and line.
    """
    features: dict[str, Term] = {}
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise BadInput(f"{place}: cannot read the feature '{part}'; write feature=value.")
        if name not in vocabulary.domains:
            raise UnknownName("feature", name, vocabulary.domains, where=str(place))
        if name in features:
            raise BadInput(f"{place}: the feature '{name}' is given twice in '[{text}]'; keep one.")
        features[name] = _read_value(name, value, vocabulary, place)
    return features


def _read_value(feature: str, value: str, vocabulary: Notation, place: SourceLine) -> Term:
    if value.startswith("!?"):
        return Other(value[2:])
    if value.startswith("?"):
        name, colon, among = value[1:].partition(":")
        return Var(name, _read_atoms(feature, among, vocabulary, place) if colon else None)
    return _read_atoms(feature, value, vocabulary, place)


def _read_atoms(feature: str, value: str, vocabulary: Notation, place: SourceLine) -> Atoms:
    domain = vocabulary.domains[feature]
    negated = value.startswith("!")
    atoms: set[str] = set()
    for atom in value.removeprefix("!").split("|"):
        if atom in vocabulary.groups and atom not in domain:
            atoms |= vocabulary.groups[atom] & domain
        elif atom in domain:
            atoms.add(atom)
        else:
            known = domain | {name for name, group in vocabulary.groups.items() if group & domain}
            raise UnknownName(f"value of {feature}", atom, known, where=str(place))
    found = domain - atoms if negated else frozenset(atoms)
    if not found:
        raise BadInput(f"{place}: '{feature}={value}' leaves no value; write one that it can have.")
    return found
