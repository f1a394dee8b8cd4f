"""Phrase rules, what to avoid, and the expansion of a structure into leaves: words, and places for words.

A rule is written `[num=?n, sem=?s] -> Det[num=?n] N[num=?n, sem=?s]` under its category. Its variables
are its own, and a number before it is its weight. Expanding a node unifies the node's features with those
of the rule's head.

`[[avoid]]` tables name patterns of whole sentences that are grammatical but odd, whatever words make them:
a universal subject under n't, some under a negation. A good sentence that matches one is drawn again.
"""

import random
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from felicity.core.documents import read_document
from felicity.core.errors import BadInput
from felicity.core.files import read_text
from felicity.stimuli.grammar.features import Bindings, Features, Other, Term, Var, compatible
from felicity.stimuli.grammar.notation import Node, Notation, SourceLine, read_features, read_structure

FILE = "grammar.toml"
AVOID = "avoid"
ARROW = "->"
WEIGHT = re.compile(r"\s*(\d+)?(.*)", re.DOTALL)
DEPTH = 8


@dataclass(frozen=True)
class PhraseRule:
    """One way to expand a category."""

    head: Features
    body: tuple[Node, ...]
    weight: int = 1


@dataclass(frozen=True)
class Leaf:
    """A place for one word: `slot` identifies the place, `word` is set if the word is given."""

    slot: str
    category: str | None
    features: Features
    word: str | None = None

    @property
    def label(self) -> str:
        """The label of the part that the leaf belongs to."""
        return self.slot.split("/")[0]


@dataclass(frozen=True)
class Avoided:
    """A pattern that no good sentence should have; a paradigm that needs it allows it by its name."""

    name: str
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class Grammar:
    """The phrase rules by category, the vocabulary that structures may be written with, what to avoid."""

    rules: Mapping[str, tuple[PhraseRule, ...]]
    vocabulary: Notation
    avoid: tuple[Avoided, ...] = ()

    def find_avoided(self, sentence: str, allowed: Collection[str] = ()) -> str | None:
        """The name of the first pattern that a sentence should not have but has; None for a good one."""
        return next(
            (one.name for one in self.avoid if one.name not in allowed and one.pattern.search(sentence)), None
        )

    def expand(self, node: Node, slot: str, bindings: Bindings, rng: random.Random) -> list[Leaf] | None:
        """The leaves of a node, by rules drawn at random; None when no rule unifies."""
        if not node.is_category:
            return [Leaf(slot, None, {}, node.name)]
        if node.name not in self.rules:
            return [Leaf(slot, node.name, node.features)]
        if slot.count("/") > DEPTH:
            return None
        domains = self.vocabulary.domains
        rules = [
            rule for rule in self.rules[node.name] if compatible(node.features, rule.head, bindings, domains)
        ]
        if not rules:
            return None
        rule = rng.choices(rules, [one.weight for one in rules])[0]
        for name, term in rule.head.items():
            if name in node.features and not bindings.unify(
                node.features[name], _own(term, slot), domains[name]
            ):
                return None
        leaves: list[Leaf] = []
        for place, part in enumerate(rule.body):
            features = {name: _own(term, slot) for name, term in part.features.items()}
            below = self.expand(
                Node(part.name, None, features), f"{slot}/{part.label or place}", bindings, rng
            )
            if below is None:
                return None
            leaves += below
        return leaves


def _own(term: Term, slot: str) -> Term:
    """The term with a rule's variable renamed, so that two uses of the rule do not share it."""
    if isinstance(term, Var):
        return Var(f"{slot}>{term.name}", term.among)
    if isinstance(term, Other):
        return Other(f"{slot}>{term.name}")
    return term


def read_grammar(lexical: Notation, folder: Path) -> Grammar:
    """The phrase rules of a language's folder: a list of rules under each category, and what to avoid.

    Raises BadInput or UnknownName with the file and line.
    """
    path = folder / FILE
    text = read_text(path)
    tables = dict(read_document(path).content)
    avoid = tuple(_read_avoided(table, path) for table in tables.pop(AVOID, []))
    heads = {category: _head_features(rules) for category, rules in tables.items()}
    vocabulary = replace(
        lexical,
        categories={**lexical.categories, **heads},
        domains=_with_rule_features(lexical, tables, heads),
    )
    rules = {
        category: tuple(
            _read_rule(rule, vocabulary, SourceLine(path.name, find_line(text, rule))) for rule in written
        )
        for category, written in tables.items()
    }
    return Grammar(rules, vocabulary, avoid)


def _read_avoided(table: Mapping[str, str], path: Path) -> Avoided:
    try:
        return Avoided(table["name"], re.compile(table["pattern"], re.IGNORECASE))
    except KeyError as error:
        raise BadInput(
            f"{path}: an [[avoid]] table needs a name and a pattern; {error} is missing."
        ) from error
    except re.error as error:
        raise BadInput(f"{path}: the pattern '{table['pattern']}' cannot be read: {error}.") from error


def find_line(text: str, piece: str) -> int:
    """The line on which a piece of a file first stands; 1 when it was written another way."""
    found = text.find(piece.split("\n")[0])
    return text.count("\n", 0, found) + 1 if found >= 0 else 1


def _head_features(rules: Sequence[str]) -> frozenset[str]:
    names = (
        part.split("=")[0].strip(" []0123456789")
        for rule in rules
        for part in rule.split(ARROW)[0].split(",")
    )
    return frozenset(filter(None, names))


def _with_rule_features(
    lexical: Notation, tables: Mapping[str, Sequence[str]], heads: Mapping[str, frozenset[str]]
) -> dict[str, frozenset[str]]:
    """The lexicon's domains, and those of features that only phrases have, from the rules."""
    domains = dict(lexical.domains)
    for category, rules in tables.items():
        for name in heads[category] - set(lexical.domains):
            values: set[str] = set(domains.get(name, ()))
            for rule in rules:
                for part in rule.split(ARROW)[0].strip(" []0123456789").split(","):
                    feature, _, value = part.partition("=")
                    if feature.strip() == name and not value.strip().startswith("?"):
                        values |= set(value.strip().split("|"))
            domains[name] = frozenset(values)
    return domains


def _read_rule(written: str, vocabulary: Notation, place: SourceLine) -> PhraseRule:
    head, arrow, body = written.partition(ARROW)
    if not arrow:
        raise BadInput(f"{place}: the rule '{written}' has no '{ARROW}'; write [features] -> parts.")
    weight, head = WEIGHT.match(head).groups()  # type: ignore[union-attr]
    return PhraseRule(
        read_features(head.strip().strip("[]"), vocabulary, place),
        read_structure(body, vocabulary, place),
        int(weight or 1),
    )
