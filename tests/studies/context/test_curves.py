from collections import defaultdict
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.stats import sem, t

from felicity.core.errors import BadInput
from felicity.stats.compare import compare_pairs
from felicity.stats.inference import compare_shares
from felicity.stats.intervals import estimate_accuracy, wilson_interval
from felicity.stats.paired_tests import Pairs
from felicity.studies.context.context_curves import draw_curves
from felicity.studies.context.sweep_tables import ESTIMATES
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
    assert curves.schema == pl.Schema(ESTIMATES)
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
    curves = draw_curves(judgements).filter(kind="none")
    for expected in estimate_accuracy(bare).filter(pl.col("level") != "macro").to_dicts():
        found = row(curves, level=expected["level"], name=expected["name"])
        for name in ("accuracy", "low", "high", "n", "suites"):
            assert found[name] == pytest.approx(expected[name], abs=1e-12), (name, expected)


def test_a_change_has_the_interval_of_a_comparison_over_suites() -> None:
    rows = []
    gains = (0, 12, 30, 45, 60, 20)
    for s, gain in enumerate(gains):
        for i in range(60):
            rows.append(judge(f"s{s}/{i}", 0.0))
            rows.append(judge(f"s{s}/{i}", float(i < gain), MATCHED, 10))
    found = row(draw_curves(table(rows)), level="overall", kind=MATCHED)
    with_context = np.concatenate([np.arange(60) < gain for gain in gains]).astype(float)
    pairs = Pairs(with_context, np.zeros(360), np.repeat(np.arange(6), 60), 0)
    expected = compare_pairs(pairs)
    assert found["drawn"] == "suites"
    assert (found["delta_low"], found["delta_high"]) == pytest.approx((expected.low[0], expected.high[0]))


def test_a_suite_with_contexts_of_their_own_has_tangos_interval() -> None:
    rows = []
    for i in range(100):
        rows.append(judge(f"s/{i}", float(i < 20)))
        rows.append(judge(f"s/{i}", float(20 <= i < 25), MATCHED, 10))
    found = row(draw_curves(table(rows)), level="suite", kind=MATCHED)
    expected = compare_shares(np.array([0.05]), np.array([0.2]), np.array([100.0]))
    assert found["drawn"] == "items"
    assert (found["delta_low"], found["delta_high"]) == pytest.approx((expected.low[0], expected.high[0]))
    assert (found["low"], found["high"]) == pytest.approx(wilson_interval(5, 100))


def test_items_that_all_stay_right_still_leave_a_doubt() -> None:
    rows = [judge(f"s{i % 2}/{i}", 1.0, *where) for i in range(8) for where in ((), (MATCHED, 10))]
    found = row(draw_curves(table(rows)), level="overall", kind=MATCHED)
    # Two suites that agree: Tango's interval of eight items, z^2 / (8 + z^2).
    assert (found["delta_low"], found["delta_high"]) == pytest.approx((-0.324408, 0.324408), abs=1e-6)
    assert (found["low"], found["high"]) == pytest.approx(wilson_interval(8, 8))


def test_items_that_share_contexts_count_by_context_in_their_suite() -> None:
    rows = []
    for i in range(40):
        group = i % 4
        rows.append(judge(f"s/{i}", 0.0))
        rows.append(judge(f"s/{i}", float(group < 2), MATCHED, 10, series=f"s/{group}/{MATCHED}/0"))
    found = row(draw_curves(table(rows)), level="suite", kind=MATCHED)
    assert found["drawn"] == "contexts"
    # Four contexts, two that help all and two that help none, are four answers.
    expected = compare_shares(np.array([0.5]), np.array([0.0]), np.array([4.0]))
    assert (found["delta_low"], found["delta_high"]) == pytest.approx((expected.low[0], expected.high[0]))
    assert (found["low"], found["high"]) == pytest.approx(wilson_interval(2, 4))


def test_the_draws_of_an_item_are_answers_of_one_item() -> None:
    rows = [judge(f"s/{i}", 0.0) for i in range(20)]
    for i in range(20):
        # Half the items turn right in every draw: as sure as 20 answers, not as 60.
        rows += [judge(f"s/{i}", float(i < 10), MATCHED, 10, draw=draw) for draw in range(3)]
    found = row(draw_curves(table(rows)), level="suite", kind=MATCHED)
    assert (found["low"], found["high"]) == pytest.approx(wilson_interval(10, 20))
    # Every item right in one draw of three: a third of an answer each, whichever draw comes first.
    rows += [
        judge(f"s/{i}", float(draw == 2), MATCHED, 20, draw=draw) for i in range(20) for draw in range(3)
    ]
    assert row(draw_curves(table(rows)), level="suite", kind=MATCHED, length=20)["accuracy"] == pytest.approx(
        1 / 3
    )


def test_margins_have_students_interval_over_items() -> None:
    values = [-3.0, -1.0, -2.0, -6.0]
    rows = [judge(f"s/{i}", 1.0) for i in range(4)]
    for i, value in enumerate(values):
        # Two draws around the item's value: the interval is that of four items, not of eight answers.
        for draw, shift in enumerate((-0.5, 0.5)):
            rows.append(judge(f"s/{i}", 1.0, MATCHED, 10, draw=draw, ppl_margin=value + shift))
    found = row(draw_curves(table(rows)), level="suite", kind=MATCHED)
    assert found["ppl_margin"] == pytest.approx(np.mean(values))
    expected = t.interval(0.95, 3, loc=np.mean(values), scale=sem(values))
    assert (found["ppl_low"], found["ppl_high"]) == pytest.approx(expected)
    assert row(draw_curves(table(rows)), level="suite", kind="none")["ppl_margin"] is None
    assert row(draw_curves(table(rows)), level="suite", kind="none")["ppl_low"] is None


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
