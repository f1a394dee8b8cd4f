import numpy as np
import polars as pl
import pytest
from scipy.stats import sem, t

from felicity.core.errors import BadInput
from felicity.studies.context.sweep_analysis import draw_region_curves, list_critical
from felicity.studies.context.sweep_tables import REGION_CURVES, STUDY_REGIONS

MATCHED = "matched_acceptable"
ITEMS = pl.DataFrame(
    {
        "suite": ["s", "s", "w"],
        "predictions": [["(2;%good%) < (verb;%bad%)"], ["(2;%good%) < (verb;%bad%)"], ["(*;%a%) < (*;%b%)"]],
    }
)


def region(
    item: int, place: int, bits: float, *, kind: str = "none", length: int = 0, **other: object
) -> dict[str, object]:
    return {
        "item": f"s/{item}",
        "suite": "s",
        "condition": "good",
        "region": str(place),
        "name": ("subject", "verb")[place - 1],
        "surprisal_bits": bits,
        "n_tokens": 1,
        "kind": kind,
        "source": None,
        "perturbation": "none",
        "draw": 0,
        "series": None if kind == "none" else f"s/{item}/{kind}/{other.get('draw', 0)}",
        "length": length,
        "model": "m",
    } | other


def table(rows: list[dict[str, object]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=STUDY_REGIONS)


def test_critical_regions_are_those_that_predictions_name() -> None:
    assert list_critical(ITEMS).rows() == [
        ("s", "good", "2"),
        ("s", "bad", "verb"),
        ("w", "a", "*"),
        ("w", "b", "*"),
    ]


def test_items_without_predictions_are_refused() -> None:
    with pytest.raises(BadInput, match="no predictions"):
        list_critical(ITEMS.drop("predictions"))


def test_surprisal_is_averaged_over_draws_then_items() -> None:
    rows = [region(i, place, bits) for i, bits in enumerate((4.0, 6.0)) for place in (1, 2)]
    rows += [region(0, 2, bits, kind=MATCHED, length=10, draw=draw) for draw, bits in enumerate((1.0, 2.0))]
    rows += [region(1, 2, 4.5, kind=MATCHED, length=10)]
    curves = draw_region_curves(table(rows), list_critical(ITEMS))
    assert curves.schema == pl.Schema(REGION_CURVES)
    assert curves.select("region", "name", "kind", "length", "n", "surprisal_bits").rows() == [
        ("2", "verb", "none", 0, 2, 5.0),
        ("2", "verb", MATCHED, 10, 2, 3.0),
    ]


def test_the_interval_is_students_over_items_and_never_below_nought() -> None:
    values = [3.0, 5.0, 4.5, 7.0]
    one = draw_region_curves(table([region(i, 2, v) for i, v in enumerate(values)]), list_critical(ITEMS))
    expected = t.interval(0.95, 3, loc=np.mean(values), scale=sem(values))
    assert (one["low"][0], one["high"][0]) == pytest.approx(expected)
    two = draw_region_curves(table([region(0, 2, 0.5), region(1, 2, 4.0)]), list_critical(ITEMS))
    assert two["low"][0] == 0.0
    alone = draw_region_curves(table([region(0, 2, 0.5)]), list_critical(ITEMS))
    assert alone.select("low", "high").row(0) == (None, None)


def test_shared_contexts_are_what_the_interval_is_over() -> None:
    rows = [
        region(i, 2, 3.0 + 2.0 * (i % 4), kind=MATCHED, length=10, series=f"s/{i % 4}") for i in range(40)
    ]
    found = draw_region_curves(table(rows), list_critical(ITEMS)).row(0, named=True)
    low, high = t.interval(0.95, 3, loc=6.0, scale=sem([3.0, 5.0, 7.0, 9.0]))
    # 5000 draws leave 1% of a half-width of 4.1 open.
    assert (found["low"], found["high"]) == pytest.approx((low, high), abs=0.12)


def test_a_region_named_by_its_name_is_found_in_its_condition_only() -> None:
    rows = [region(0, place, float(place), condition="bad") for place in (1, 2)]
    curves = draw_region_curves(table(rows), list_critical(ITEMS))
    assert curves.select("condition", "region", "surprisal_bits").rows() == [("bad", "2", 2.0)]


def test_a_prediction_over_all_regions_gives_the_whole_sentence() -> None:
    rows = [region(0, place, float(place), suite="w", condition="a") for place in (1, 2)]
    rows += [
        region(
            0, place, float(place) * (draw + 1), suite="w", condition="a", kind=MATCHED, length=10, draw=draw
        )
        for place in (1, 2)
        for draw in (0, 1)
    ]
    curves = draw_region_curves(table(rows), list_critical(ITEMS))
    assert curves.select("region", "name", "kind", "surprisal_bits").rows() == [
        ("*", "whole sentence", "none", 3.0),
        ("*", "whole sentence", MATCHED, 4.5),
    ]


def test_other_perturbations_are_left_out_and_the_baseline_kept() -> None:
    rows = [region(0, 2, 1.0), region(0, 2, 2.0, kind=MATCHED, length=10, perturbation="quotation")]
    plain = draw_region_curves(table(rows), list_critical(ITEMS))
    assert plain["kind"].to_list() == ["none"]
    asked = draw_region_curves(table(rows), list_critical(ITEMS), perturbation="quotation")
    assert asked["kind"].to_list() == ["none", MATCHED]
