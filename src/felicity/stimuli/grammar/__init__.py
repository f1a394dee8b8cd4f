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
from felicity.stimuli.grammar.rules import Avoided, Grammar, Leaf, PhraseRule, read_grammar
from felicity.stimuli.grammar.structure_files import (
    StructureFile,
    as_list,
    list_structure_files,
    read_structure_file,
)

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
    "StructureFile",
    "Term",
    "Var",
    "as_list",
    "list_structure_files",
    "read_features",
    "read_grammar",
    "read_structure",
    "read_structure_file",
    "with_words",
]
