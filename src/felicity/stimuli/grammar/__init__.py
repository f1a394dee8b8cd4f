"""A grammar of flat feature structures: notation, unification, phrase rules, realization."""

from felicity.stimuli.grammar.features import Atoms, Bindings, Features, Other, Term, Var
from felicity.stimuli.grammar.notation import (
    Drawing,
    Node,
    Notation,
    SourceLine,
    read_features,
    read_structure,
    with_words,
)
from felicity.stimuli.grammar.realization import MARKS, Alternation, Realization
from felicity.stimuli.grammar.rules import Avoided, Grammar, Leaf, PhraseRule, find_line, read_grammar

__all__ = [
    "MARKS",
    "Alternation",
    "Atoms",
    "Avoided",
    "Bindings",
    "Drawing",
    "Features",
    "Grammar",
    "Leaf",
    "Node",
    "Notation",
    "Other",
    "PhraseRule",
    "Realization",
    "SourceLine",
    "Term",
    "Var",
    "find_line",
    "read_features",
    "read_grammar",
    "read_structure",
    "with_words",
]
