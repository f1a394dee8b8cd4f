"""Minimal pairs of equal token length: make a set, or repair your own."""

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
    "check_pairs_file",
    "describe_pairs",
    "list_paradigms",
    "make_pairs",
    "open_counters",
    "pairs",
    "repair_pairs",
    "write_pairs",
]
