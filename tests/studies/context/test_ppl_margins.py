"""Margins of perplexities where sentences are impossible."""

import math

import polars as pl

from felicity.core.contrasts import PAIR
from felicity.explore.layout import run_margin
from felicity.studies.context.sweep_scoring import find_ppl_margins


def test_two_infinite_perplexities_are_level() -> None:
    requests = pl.DataFrame(
        {
            "request": ["a", "b", "c", "d"],
            "item": ["1", "1", "2", "2"],
            "condition": ["good", "bad", "good", "bad"],
        }
    )
    values = [-math.inf, -math.inf, -1.0, -math.inf]
    scores = requests.select("request", measure=pl.lit("mean_lp"), value=pl.Series(values))
    found = find_ppl_margins(scores, requests, (PAIR,)).sort("item")["ppl_margin"].to_list()
    assert found == [0.0, -math.inf]


def test_two_impossible_tokens_leave_the_running_margin_as_it_is() -> None:
    found = run_margin([-1.0, -math.inf, -1.0], [-2.0, -math.inf, -3.0])
    assert found.margins == (1.0, 1.0, 3.0)
