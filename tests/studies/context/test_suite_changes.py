import numpy as np
import polars as pl
import pytest

from felicity.stats.inference import compare_shares
from felicity.studies.context.context_curves import rank_suite_changes
from felicity.studies.context.sweep_tables import SUITE_CHANGES
from tests.studies.context.sweeps import judge, sweep, table

MATCHED = "matched_acceptable"


def changing() -> pl.DataFrame:
    """Four items a suite, none right without context; how many are right at lengths 10, 20 and 30."""
    right = {"up": (1, 2, 4), "flat": (0, 0, 0), "some": (1, 1, 1)}
    rows = []
    for suite, counts in right.items():
        for i in range(4):
            rows.append(judge(f"{suite}/{i}", 0.0))
            for length, count in zip((10, 20, 30), counts, strict=True):
                rows.append(judge(f"{suite}/{i}", float(i < count), MATCHED, length))
    return table(rows)


def test_suites_are_ranked_by_their_mean_change_over_lengths() -> None:
    changes = rank_suite_changes(changing())
    assert changes.schema == pl.Schema(SUITE_CHANGES)
    assert changes["suite"].to_list() == ["up", "some", "flat"]
    first = changes.row(0, named=True)
    # Changes 1/4, 1/2, 1: mean 7/12, population variance (16 + 1 + 25) / (3 * 144).
    assert (first["mean"], first["sd"]) == pytest.approx((7 / 12, (42 / 432) ** 0.5))
    assert (first["n"], first["lengths"]) == (4, 3)
    assert changes.row(1, named=True)["sd"] == 0.0


def test_the_interval_is_over_items_each_with_its_mean_change() -> None:
    first = rank_suite_changes(changing()).row(0, named=True)
    # Items change by 1, 2/3, 1/3 and 1/3 on average: four answers that gain 7/12 of an answer.
    expected = compare_shares(np.array([7 / 12]), np.array([0.0]), np.array([4.0]))
    assert (first["low"], first["high"]) == pytest.approx((expected.low[0], expected.high[0]))
    assert first["low"] < first["mean"] < first["high"]


def test_lengths_count_alike_when_items_do_not_reach_them_all() -> None:
    rows = [judge("a/1", 0.0), judge("a/2", 0.0)]
    rows += [judge("a/1", 1.0, MATCHED, 10), judge("a/2", 0.0, MATCHED, 10), judge("a/1", 1.0, MATCHED, 20)]
    only = rank_suite_changes(table(rows)).row(0, named=True)
    assert (only["mean"], only["sd"]) == pytest.approx((0.75, 0.25))
    # Items change by 1 and 0: two answers, one gained, moved by 3/4 - 1/2.
    expected = compare_shares(np.array([0.5]), np.array([0.0]), np.array([2.0]))
    assert (only["low"], only["high"]) == pytest.approx((expected.low[0] + 0.25, 1.0))


def test_shared_contexts_widen_the_interval() -> None:
    rows = []
    for i in range(40):
        rows.append(judge(f"s/{i}", 0.0))
        rows.append(judge(f"s/{i}", float(i % 4 < 2), MATCHED, 10, series=f"s/{i % 4}"))
    shared = table(rows)
    apart = shared.with_columns(pl.format("{}/{}", "item", "series").alias("series"))
    widths = [
        (changes["high"] - changes["low"])[0]
        for changes in (rank_suite_changes(shared), rank_suite_changes(apart))
    ]
    assert widths[0] > 2 * widths[1]


def test_no_contexts_give_no_changes() -> None:
    assert rank_suite_changes(table([judge("a/1", 1.0)])).is_empty()
    assert rank_suite_changes(sweep(suites=1, items=2), perturbation="quotation").is_empty()
