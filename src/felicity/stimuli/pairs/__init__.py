"""Minimal pairs of equal token length, drawn from a grammar, a lexicon and paradigm files."""

from felicity.stimuli.pairs.drawing import Frequency
from felicity.stimuli.pairs.generation import METHODS, Generator, Made, Matching
from felicity.stimuli.pairs.paradigm import BUILT_IN, Frame, Paradigm, read_builtin, read_paradigms
from felicity.stimuli.pairs.quality import describe_suites, parse_sentences
from felicity.stimuli.pairs.repair import Repair, Repairer, tabulate_repairs
from felicity.stimuli.pairs.signatures import CountTokens, Signatures

__all__ = [
    "BUILT_IN",
    "METHODS",
    "CountTokens",
    "Frame",
    "Frequency",
    "Generator",
    "Made",
    "Matching",
    "Paradigm",
    "Repair",
    "Repairer",
    "Signatures",
    "describe_suites",
    "parse_sentences",
    "read_builtin",
    "read_paradigms",
    "tabulate_repairs",
]
