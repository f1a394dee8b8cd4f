"""Stimuli from a grammar: minimal pairs of equal token length, made or repaired, and factorial designs."""

from felicity.api.pairs.designs import check_designs_path, list_designs, make_designs, write_designs
from felicity.api.pairs.making import (
    ALL,
    MATCHES,
    PairSet,
    PairsPlan,
    check_pairs_file,
    describe_pairs,
    list_paradigms,
    make_pairs,
    open_counters,
    pairs,
    write_pairs,
)
from felicity.api.pairs.repairing import RepairedSet, accept_repairs, repair_pairs

__all__ = [
    "ALL",
    "MATCHES",
    "PairSet",
    "PairsPlan",
    "RepairedSet",
    "accept_repairs",
    "check_designs_path",
    "check_pairs_file",
    "describe_pairs",
    "list_designs",
    "list_paradigms",
    "make_designs",
    "make_pairs",
    "open_counters",
    "pairs",
    "repair_pairs",
    "write_designs",
    "write_pairs",
]
