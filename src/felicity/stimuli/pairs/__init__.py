"""Minimal pairs of equal token length, drawn from a grammar, a lexicon and paradigm files."""

from felicity.stimuli.pairs.drafts import Draft, collect_slots, draw_even
from felicity.stimuli.pairs.drawing import Drawer, DrawnPair, Failure, Frequency
from felicity.stimuli.pairs.generation import METHODS, Made, Matching, PairGenerator
from felicity.stimuli.pairs.language import Language, find_language, list_languages, read_language
from felicity.stimuli.pairs.paradigm import Frame, Paradigm, read_builtin, read_paradigms
from felicity.stimuli.pairs.quality import describe_suites, parse_sentences
from felicity.stimuli.pairs.repair import Repair, Repairer, tabulate_repairs
from felicity.stimuli.pairs.signatures import CountTokens, Signatures

__all__ = [
    "METHODS",
    "CountTokens",
    "Draft",
    "Drawer",
    "DrawnPair",
    "Failure",
    "Frame",
    "Frequency",
    "Language",
    "Made",
    "Matching",
    "PairGenerator",
    "Paradigm",
    "Repair",
    "Repairer",
    "Signatures",
    "collect_slots",
    "describe_suites",
    "draw_even",
    "find_language",
    "list_languages",
    "parse_sentences",
    "read_builtin",
    "read_language",
    "read_paradigms",
    "tabulate_repairs",
]
