import numpy as np
import polars as pl
import pytest

from felicity.stats.inference import compare_shares
from felicity.studies.context.curves import pick_extremes, rank_gains
from felicity.studies.context.tables import GAINS
from tests.studies.context.sweeps import judge, sweep, table

MATCHED = "matched_acceptable"
WORSE = "matched_unacceptable"


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
    gains = rank_gains(changing())
    assert gains.schema == pl.Schema(GAINS)
    assert gains["suite"].to_list() == ["up", "some", "flat"]
    first = gains.row(0, named=True)
    # Changes 1/4, 1/2, 1: mean 7/12, population variance (16 + 1 + 25) / (3 * 144).
    assert (first["mean"], first["sd"]) == pytest.approx((7 / 12, (42 / 432) ** 0.5))
    assert (first["n"], first["lengths"]) == (4, 3)
    assert gains.row(1, named=True)["sd"] == 0.0


def test_the_interval_is_over_items_each_with_its_mean_change() -> None:
    first = rank_gains(changing()).row(0, named=True)
    # Items change by 1, 2/3, 1/3 and 1/3 on average: four answers that gain 7/12 of an answer.
    expected = compare_shares(np.array([7 / 12]), np.array([0.0]), np.array([4.0]))
    assert (first["low"], first["high"]) == pytest.approx((expected.low[0], expected.high[0]))
    assert first["low"] < first["mean"] < first["high"]


def test_lengths_count_alike_when_items_do_not_reach_them_all() -> None:
    rows = [judge("a/1", 0.0), judge("a/2", 0.0)]
    rows += [judge("a/1", 1.0, MATCHED, 10), judge("a/2", 0.0, MATCHED, 10), judge("a/1", 1.0, MATCHED, 20)]
    only = rank_gains(table(rows)).row(0, named=True)
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
    widths = [(gains["high"] - gains["low"])[0] for gains in (rank_gains(shared), rank_gains(apart))]
    assert widths[0] > 2 * widths[1]


def test_the_largest_gains_and_losses_are_picked_for_each_kind() -> None:
    rows = []
    for suite, change in (("a", 3), ("b", 1), ("c", 0), ("d", -1), ("e", -2)):
        for i in range(4):
            rows.append(judge(f"{suite}/{i}", float(i < 2 - min(change, 0) - max(change - 2, 0))))
            hits = 2 - min(change, 0) - max(change - 2, 0) + change
            rows += [judge(f"{suite}/{i}", float(i < hits), kind, 10) for kind in (MATCHED, WORSE)]
    picked = pick_extremes(rank_gains(table(rows)), 1)
    assert picked.select("kind", "side", "suite", "mean").rows() == [
        (kind, side, suite, mean) for kind in (MATCHED, WORSE) for side, suite, mean in
        (("gain", "a", 0.75), ("loss", "e", -0.5))
    ]  # fmt: skip
    wide = pick_extremes(rank_gains(table(rows)), 9).filter(kind=MATCHED)
    assert wide["suite"].to_list() == ["a", "b", "e", "d"]


def test_no_contexts_give_no_gains() -> None:
    assert rank_gains(table([judge("a/1", 1.0)])).is_empty()
    assert rank_gains(sweep(suites=1, items=2), perturbation="quotation").is_empty()
