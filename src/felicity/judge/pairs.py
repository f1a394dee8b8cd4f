"""Pair preference: which of the two the model finds better, by how much, and whether that is sure."""

import polars as pl

from felicity.core.contrasts import PAIR
from felicity.judge.contrasts import judge_contrasts


def judge_pairs(items: pl.DataFrame, requests: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """One judgement per item and measure: good over bad."""
    return judge_contrasts(items, requests, scores, (PAIR,))
