from collections import defaultdict
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import sem, t

from felicity.core.errors import BadInput
from felicity.stats.intervals import estimate_accuracy, wilson_interval
from felicity.studies.context.curves import draw_curves
from felicity.studies.context.intervals import cluster_half_width, difference_interval
from felicity.studies.context.tables import CURVES
from tests.studies.context.sweeps import judge, sweep, table

MATCHED = "matched_acceptable"


def small() -> pl.DataFrame:
    """Two items of suite a (the first with two draws), one of b that never reaches length 20."""
    return table(
        [
            judge("a/1", 0.0),
            judge("a/2", 1.0),
            judge("b/1", 0.0),
            judge("a/1", 1.0, MATCHED, 10, draw=0, n_tokens=10, ppl_margin=-2.0),
            judge("a/1", 0.0, MATCHED, 10, draw=1, n_tokens=14, ppl_margin=-4.0),
            judge("a/2", 0.5, MATCHED, 10, n_tokens=12, stable=False, ppl_margin=0.0),
            judge("b/1", 1.0, MATCHED, 10, n_tokens=9, ppl_margin=-1.0),
            judge("a/1", 1.0, MATCHED, 20, n_tokens=20),
            judge("a/2", 1.0, MATCHED, 20, n_tokens=22),
        ]
    )


def row(curves: pl.DataFrame, **where: Any) -> dict[str, Any]:
    found = curves.filter(**where)
    assert found.height == 1
    return found.row(0, named=True)


def test_draws_are_averaged_and_each_item_is_compared_with_itself() -> None:
    found = row(draw_curves(small()), level="overall", kind=MATCHED, length=10)
    # a/1: mean of 1 and 0, from 0; a/2: a tie, from 1; b/1: 1, from 0.
    assert found["accuracy"] == pytest.approx((0.5 + 0.5 + 1) / 3)
    assert found["delta"] == pytest.approx((0.5 - 0.5 + 1) / 3)
    # The baseline of these three is 1/3.
    assert found["ratio"] == pytest.approx((2 / 3) / (1 / 3) - 1)
    assert (found["n"], found["suites"], found["ties"], found["unstable"]) == (3, 2, 1, 1)
    assert found["tokens"] == pytest.approx((12 + 12 + 9) / 3)
    assert found["ppl_margin"] == pytest.approx((-3 + 0 - 1) / 3)


def test_items_that_do_not_reach_a_length_count_on_neither_side() -> None:
    found = row(draw_curves(small()), level="overall", kind=MATCHED, length=20)
    assert (found["n"], found["suites"]) == (2, 1)
    # a/1 from 0 to 1, a/2 stays: the baseline of these two is 1/2, not that of all three.
    assert (found["accuracy"], found["delta"], found["ratio"]) == (1.0, 0.5, 1.0)


def test_the_baseline_stands_at_length_nought_with_no_change() -> None:
    found = row(draw_curves(small()), level="suite", name="a", kind="none")
    assert (found["length"], found["accuracy"], found["n"]) == (0, 0.5, 2)
    assert (found["delta"], found["delta_low"], found["delta_high"], found["ratio"]) == (0, 0, 0, 0)


def test_there_is_no_ratio_to_a_baseline_of_nought() -> None:
    assert row(draw_curves(small()), level="suite", name="b", kind=MATCHED)["ratio"] is None


def test_rows_come_by_level_name_kind_and_length_and_fit_the_schema() -> None:
    curves = draw_curves(sweep(suites=2, items=3))
    assert curves.schema == pl.Schema(CURVES)
    assert curves["level"].unique(maintain_order=True).to_list() == ["overall", "phenomenon", "suite"]
    overall = curves.filter(level="overall")
    assert overall["kind"].to_list()[:4] == ["none", *[MATCHED] * 3]
    assert overall["length"].to_list()[:4] == [0, 100, 300, 900]


def test_every_change_equals_one_worked_out_by_hand_in_plain_python() -> None:
    judgements = sweep(suites=4, items=7, tie_every=9)
    rows = judgements.to_dicts()
    bare = {r["item"]: r["passed"] for r in rows if r["kind"] == "none"}
    changes: dict[tuple[str, str, str, int], list[float]] = defaultdict(list)
    for r in rows:
        for level, name in (("overall", "all"), ("phenomenon", r["phenomenon"]), ("suite", r["suite"])):
            changes[level, name, r["kind"], r["length"]].append(r["passed"] - bare[r["item"]])
    curves = draw_curves(judgements)
    assert curves.height == len(changes)
    for r in curves.to_dicts():
        expected = changes[r["level"], r["name"], r["kind"], r["length"]]
        assert r["delta"] == pytest.approx(sum(expected) / len(expected), abs=1e-12)
        assert r["n"] == len(expected)


def test_baseline_accuracies_have_the_intervals_that_any_run_has() -> None:
    judgements = sweep(suites=7, items=9).sample(fraction=1.0, shuffle=True, seed=1)
    bare = judgements.filter(kind="none")
    curves = draw_curves(judgements, seed=3).filter(kind="none")
    for expected in estimate_accuracy(bare, seed=3).filter(pl.col("level") != "macro").to_dicts():
        found = row(curves, level=expected["level"], name=expected["name"])
        for name in ("accuracy", "low", "high", "n", "suites"):
            assert found[name] == pytest.approx(expected[name], abs=1e-12), (name, expected)


def test_the_interval_of_a_change_is_students_t_over_equal_suites() -> None:
    # Suites must differ by more than their items do, or the interval over items is the wider one.
    rows = []
    for s, gain in enumerate((0, 12, 30, 45, 60, 20)):
        for i in range(60):
            rows.append(judge(f"s{s}/{i}", 0.0))
            rows.append(judge(f"s{s}/{i}", float(i < gain), MATCHED, 10))
    found = row(draw_curves(table(rows)), level="overall", kind=MATCHED)
    changes = np.array([0, 12, 30, 45, 60, 20]) / 60
    low, high = t.interval(0.95, 5, loc=changes.mean(), scale=sem(changes))
    assert found["drawn"] == "suites"
    # 5000 draws leave the error uncertain by 1%, .0045 of a half-width of .39.
    assert (found["delta_low"], found["delta_high"]) == pytest.approx((low, high), abs=0.01)


def test_a_suite_with_contexts_of_their_own_has_bonett_and_prices_interval() -> None:
    rows = []
    for i in range(100):
        rows.append(judge(f"s/{i}", float(i < 20)))
        rows.append(judge(f"s/{i}", float(20 <= i < 25), MATCHED, 10))
    found = row(draw_curves(table(rows)), level="suite", kind=MATCHED)
    # 5 items for, 20 against: 6/102 - 21/102 -+ 1.96 sqrt((27/102 - (15/102)^2) / 102).
    assert found["drawn"] == "items"
    assert (found["delta_low"], found["delta_high"]) == pytest.approx((-0.242739, -0.051379), abs=1e-6)
    assert (found["low"], found["high"]) == pytest.approx(wilson_interval(5, 100))


def test_items_that_all_stay_right_still_leave_a_doubt() -> None:
    rows = [judge(f"s{i % 2}/{i}", 1.0, *where) for i in range(8) for where in ((), (MATCHED, 10))]
    found = row(draw_curves(table(rows)), level="overall", kind=MATCHED)
    # Two suites that agree: 1.96 sqrt((2/10) / 10) over all eight items.
    assert (found["delta_low"], found["delta_high"]) == pytest.approx((-0.277181, 0.277181), abs=1e-6)
    assert (found["low"], found["high"]) == pytest.approx(wilson_interval(8, 8))


def test_items_that_share_contexts_count_by_context_in_their_suite() -> None:
    rows = []
    for i in range(40):
        group = i % 4
        rows.append(judge(f"s/{i}", 0.0))
        rows.append(judge(f"s/{i}", float(group < 2), MATCHED, 10, series=f"s/{group}/{MATCHED}/0"))
    found = row(draw_curves(table(rows)), level="suite", kind=MATCHED)
    assert found["drawn"] == "contexts"
    # Four contexts, two that help all and two that help none: Student's t with 3 degrees of freedom.
    low, high = t.interval(0.95, 3, loc=0.5, scale=sem([1, 1, 0, 0]))
    assert high > 1
    assert (found["delta_low"], found["delta_high"]) == pytest.approx((low, 1.0), abs=0.02)


def test_margins_have_students_interval_over_items() -> None:
    values = [-3.0, -1.0, -2.0, -6.0]
    rows = [judge(f"s/{i}", 1.0) for i in range(4)]
    rows += [judge(f"s/{i}", 1.0, MATCHED, 10, ppl_margin=value) for i, value in enumerate(values)]
    found = row(draw_curves(table(rows)), level="suite", kind=MATCHED)
    expected = t.interval(0.95, 3, loc=np.mean(values), scale=sem(values))
    assert (found["ppl_low"], found["ppl_high"]) == pytest.approx(expected)
    assert row(draw_curves(table(rows)), level="suite", kind="none")["ppl_margin"] is None
    assert row(draw_curves(table(rows)), level="suite", kind="none")["ppl_low"] is None


@pytest.mark.parametrize(("suites", "items"), [(3, 15), (12, 50), (48, 15)])
def test_intervals_of_changes_cover_the_truth_about_95_times_in_100(suites: int, items: int) -> None:
    # Items turn right or wrong with rates that differ by suite; 600 samples give +-.018 at .95.
    rng = np.random.default_rng(suites)
    samples = 600
    up, down = rng.beta(2, 8, (samples, suites, 1)), rng.beta(2, 18, (samples, suites, 1))
    drawn = rng.random((samples, suites, items))
    change = (drawn < up).astype(float) - (drawn > 1 - down)
    cell = np.repeat(np.arange(samples), suites)
    half_width = cluster_half_width(
        cell, change.sum(axis=2).ravel(), np.full(len(cell), float(items)), samples, seed=0, draws=400
    )
    floor = difference_interval(
        change.sum(axis=(1, 2)), (change**2).sum(axis=(1, 2)), np.full(samples, suites * items)
    )
    mean, truth = change.mean(axis=(1, 2)), 0.2 - 0.1
    low, high = np.minimum(mean - half_width, floor[0]), np.maximum(mean + half_width, floor[1])
    assert 0.92 <= ((low <= truth) & (truth <= high)).mean() <= 0.985


@pytest.mark.parametrize("n", [10, 60])
def test_the_interval_over_items_covers_the_truth_about_95_times_in_100(n: int) -> None:
    rng = np.random.default_rng(n)
    drawn = rng.random((4000, n))
    change = (drawn < 0.25).astype(float) - (drawn > 0.9)
    low, high = difference_interval(change.sum(axis=1), (change**2).sum(axis=1), np.full(4000, n))
    # With ten items it errs on the careful side.
    assert 0.94 <= ((low <= 0.15) & (high >= 0.15)).mean() <= 0.98


def test_the_same_seed_gives_the_same_curves() -> None:
    judgements = sweep(suites=5, items=4, groups=2)
    assert draw_curves(judgements, seed=4).equals(draw_curves(judgements, seed=4))
    assert not draw_curves(judgements, seed=4).equals(draw_curves(judgements, seed=5))


def test_models_sources_and_perturbations_have_lines_of_their_own() -> None:
    rows = [judge("a/1", 1.0), judge("a/1", 0.0, model="n")]
    rows += [judge("a/1", 0.0, "from_acceptable", 10, source=source) for source in ("b", "c")]
    rows += [judge("a/1", 1.0, MATCHED, 10, model="n", perturbation=name) for name in ("none", "quotation")]
    curves = draw_curves(table(rows)).filter(pl.col("kind") != "none", level="suite")
    assert curves.select("model", "source", "perturbation", "delta").rows() == [
        ("m", "b", "none", -1.0),
        ("m", "c", "none", -1.0),
        ("n", None, "none", 1.0),
        ("n", None, "quotation", 1.0),
    ]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([judge("a/1", 1.0, MATCHED, 10)], "Item 'a/1' is judged with a context but not without"),
        ([judge("a/1", 1.0), judge("a/1", 0.0)], "Item 'a/1' is judged twice without context"),
        ([judge("a/1", 1.0), judge("a/1", 0.0, measure="slor")], "by lp and slor; analyse one measure"),
    ],
)
def test_judgements_that_cannot_be_paired_are_refused(rows: list[dict[str, object]], problem: str) -> None:
    with pytest.raises(BadInput, match=problem):
        draw_curves(table(rows))


def test_a_missing_column_is_named() -> None:
    with pytest.raises(BadInput, match="'judgements in context' has no column 'model'"):
        draw_curves(small().drop("model"))


def test_no_judgements_give_no_curves() -> None:
    assert draw_curves(table([])).is_empty()
