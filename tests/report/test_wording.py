"""Words of the report."""

import polars as pl

from felicity.report.wording import INTERVALS, interval_name
from felicity.stats import estimate_accuracy


def test_every_interval_that_is_estimated_has_a_name() -> None:
    judged = {"measure": "lp", "rule": "pair", "phenomenon": "p", "margin": 1.0, "stable": True}
    rows = [{"item": f"{n}", "suite": f"s{n % 3}", "passed": n % 2.0, **judged} for n in range(12)]
    made = set(estimate_accuracy(pl.DataFrame(rows), seed=0)["interval"])
    assert made == set(INTERVALS)
    assert interval_name("Wilson") == "Wilson interval"
