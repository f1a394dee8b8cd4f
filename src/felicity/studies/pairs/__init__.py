"""Minimal pairs of equal token length: make a set, compare it with a biased one, repair your own."""

from felicity.studies.pairs.debias import (
    DEBIAS_MEASURES,
    DebiasStudy,
    compare_sets,
    study_debias,
    write_debias,
)
from felicity.studies.pairs.making import (
    ALL,
    MATCHES,
    PairSet,
    PairsPlan,
    check_pairs_file,
    describe_pairs,
    list_paradigms,
    make_pairs,
    open_counters,
    open_frequency,
    write_pairs,
)
from felicity.studies.pairs.repairing import RepairedSet, accept_repairs, repair_pairs

__all__ = [
    "ALL",
    "DEBIAS_MEASURES",
    "MATCHES",
    "DebiasStudy",
    "PairSet",
    "PairsPlan",
    "RepairedSet",
    "accept_repairs",
    "check_pairs_file",
    "compare_sets",
    "describe_pairs",
    "list_paradigms",
    "make_pairs",
    "open_counters",
    "open_frequency",
    "repair_pairs",
    "study_debias",
    "write_debias",
    "write_pairs",
]
