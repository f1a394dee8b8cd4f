"""A grammar of flat feature structures: notation, unification, phrase rules, and realization as English."""

from felicity.stimuli.grammar.features import Atoms, Bindings, Features, Other, Term, Var
from felicity.stimuli.grammar.notation import (
    Node,
    SourceLine,
    Vocabulary,
    read_features,
    read_structure,
    with_words,
)
from felicity.stimuli.grammar.realization import join_words, realize
from felicity.stimuli.grammar.rules import Grammar, Leaf, Rule, find_line, read_grammar

__all__ = [
    "Atoms",
    "Bindings",
    "Features",
    "Grammar",
    "Leaf",
    "Node",
    "Other",
    "Rule",
    "SourceLine",
    "Term",
    "Var",
    "Vocabulary",
    "find_line",
    "join_words",
    "read_features",
    "read_grammar",
    "read_structure",
    "realize",
    "with_words",
]
