"""Kappas, Krippendorff's alpha, rater reliability and rating cleaning."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha
from felicity.stats.raters import (
    clean_ratings,
    find_ceilings,
    half_against_half,
    leave_one_out_reliability,
    one_against_rest,
    ratings_by_item,
    standardize_raters,
)

Find = Callable[[str], Path]

FIRST = [1, 2, 3, 4, 3, 2, 1, 3, 4, 2, 2, 3, 1, 1, 4, 3, 2, 2, 4, 4]
SECOND = [1, 2, 3, 3, 3, 2, 2, 3, 4, 2, 1, 3, 1, 2, 4, 4, 2, 3, 4, 4]


def test_cohens_kappa() -> None:
    # R: psych::cohen.kappa(cbind(r1, r2))   kappa 0.595959596, sqrt(var.kappa) 0.1370776372
    row = cohen_kappa(FIRST, SECOND).row(0, named=True)
    expected = [0.595959596, 0.1370776372, 0.327292364, 0.8646268279]
    assert [row["kappa"], row["se"], row["low"], row["high"]] == pytest.approx(expected, abs=1e-7)


def test_weighted_kappa() -> None:
    # R: psych::cohen.kappa(cbind(r1, r2))$weighted.kappa (quadratic weights)
    assert cohen_kappa(FIRST, SECOND, weights="quadratic")["kappa"][0] == pytest.approx(0.8627002288)
    # By hand: 20 pairs, 6 of them one apart: 1 - (6/20) / mean |i - j| of the margins.
    margins = np.abs(np.subtract.outer(FIRST, SECOND)).mean()
    linear = cohen_kappa(FIRST, SECOND, weights="linear")["kappa"][0]
    assert linear == pytest.approx(1 - np.abs(np.subtract(FIRST, SECOND)).mean() / margins)


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        ([1, 2], [1], "pair them first"),
        ([], [], "no answers"),
        ([1, 1], [1, 1], "one category only"),
        ([1, None], [1, 2], "missing"),
    ],
)
def test_answers_without_agreement_are_refused(first: list[int], second: list[int], complaint: str) -> None:
    with pytest.raises(BadInput, match=complaint):
        cohen_kappa(first, second)


def test_fleiss_kappa_of_the_textbook_table() -> None:
    # The worked example in wide use (10 items, 14 raters, 5 categories): kappa 0.210.
    table = [
        [0, 0, 0, 0, 14],
        [0, 2, 6, 4, 2],
        [0, 0, 3, 5, 6],
        [0, 3, 9, 2, 0],
        [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0],
        [3, 2, 6, 3, 0],
        [2, 5, 3, 2, 2],
        [6, 5, 2, 1, 0],
        [0, 2, 2, 3, 7],
    ]
    rows = [(i, c) for i, row in enumerate(table) for c, count in enumerate(row) for _ in range(count)]
    frame = pl.DataFrame(rows, schema=["item", "rating"], orient="row")
    row = fleiss_kappa(frame).row(0, named=True)
    assert row["kappa"] == pytest.approx(0.210, abs=5e-4)
    assert (row["items"], row["raters"]) == (10, 14)
    assert row["low"] < row["kappa"] < row["high"]
    with pytest.raises(BadInput, match="same number of raters"):
        fleiss_kappa(frame.head(-1))


# Krippendorff (2011): four observers, twelve units, gaps.
OBSERVERS = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def observer_frame() -> pl.DataFrame:
    rows = [(u, v) for row in OBSERVERS for u, v in enumerate(row) if v is not None]
    return pl.DataFrame(rows, schema=["item", "rating"], orient="row")


@pytest.mark.parametrize(
    ("scale", "alpha"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_krippendorffs_own_example(scale: str, alpha: float) -> None:
    row = krippendorff_alpha(observer_frame(), scale=scale, draws=200).row(0, named=True)  # type: ignore[arg-type]
    assert row["alpha"] == pytest.approx(alpha, abs=5.1e-4)
    assert (row["items"], row["answers"]) == (11, 40)
    assert row["low"] < row["alpha"] <= row["high"]


def test_alpha_needs_answers_to_compare() -> None:
    with pytest.raises(BadInput, match="two answers"):
        krippendorff_alpha(pl.DataFrame({"item": [1, 2], "rating": [1, 2]}))
    with pytest.raises(BadInput, match="the same"):
        krippendorff_alpha(pl.DataFrame({"item": [1, 1], "rating": [2, 2]}))
    with pytest.raises(BadInput, match="only the nominal scale"):
        krippendorff_alpha(pl.DataFrame({"item": [1, 1], "rating": ["a", "b"]}))
    with pytest.raises(UnknownName, match="no scale"):
        krippendorff_alpha(observer_frame(), scale="cardinal")  # type: ignore[arg-type]
    nominal = krippendorff_alpha(
        pl.DataFrame({"item": [1, 1, 2, 2], "rating": list("aabb")}), scale="nominal"
    )
    assert nominal["alpha"][0] == 1.0


@pytest.mark.data
def test_huynh_raters_and_their_answers(published: Find) -> None:
    # Protocol 5: 75 raters kept, mean reliability .638, SD .105; counts of answers 1 to 5.
    frame = pl.read_csv(published("huynh2022/ratings_long_anonymous.csv")).filter(pl.col("selected") == 1)
    table = leave_one_out_reliability(frame, rater="participant", item="idx")
    assert table.height == 75
    assert table["reliability"].mean() == pytest.approx(0.638, abs=5e-4)
    assert table["reliability"].std(ddof=0) == pytest.approx(0.105, abs=5e-4)
    counts = frame["rating"].value_counts().sort("rating")["count"].to_list()
    assert counts == [689, 571, 333, 782, 625]


def test_an_odd_rater_falls_below_the_cutoff() -> None:
    items = list(range(8))
    rows = [(r, i, i % 5 + (r == "b") * (i % 2)) for r in ("a", "b") for i in items]
    rows += [("odd", i, -(i % 5)) for i in items] + [("flat", i, 3) for i in items]
    frame = pl.DataFrame(rows, schema=["rater", "item", "rating"], orient="row")
    kept = dict(leave_one_out_reliability(frame, cutoff=0.4).select("rater", "kept").iter_rows())
    assert not kept["odd"]
    assert not kept["flat"]
    with pytest.raises(BadInput, match="twice"):
        leave_one_out_reliability(pl.concat([frame, frame]))
    with pytest.raises(BadInput, match="No two raters"):
        leave_one_out_reliability(frame.filter(pl.col("rater") == "a"))


def test_ceilings_of_perfect_raters_are_one() -> None:
    ratings = [[1.0] * 4, [2.0] * 5, [4.0] * 3]
    assert one_against_rest(ratings, trials=10)["r"][0] == pytest.approx(1.0)
    assert half_against_half(ratings, trials=10, method="spearman")["r"][0] == pytest.approx(1.0)


def test_ceilings_of_noise_are_those_of_theory() -> None:
    # Reliability 1/2 per rating: UB1 with 9 others is 1 / sqrt((1 + 1)(1 + 1/9)), UB2 of 5 and 5 is 5/6.
    rng = np.random.default_rng(8)
    ratings = (rng.normal(size=(4000, 1)) + rng.normal(size=(4000, 10))).tolist()
    assert one_against_rest(ratings, trials=20)["r"][0] == pytest.approx(1 / np.sqrt(2 * 10 / 9), abs=0.01)
    assert half_against_half(ratings, trials=20)["r"][0] == pytest.approx(5 / 6, abs=0.01)


def test_ceilings_need_ratings_to_set_against_each_other() -> None:
    with pytest.raises(BadInput, match="Item 1 has 1 ratings"):
        one_against_rest([[1, 2], [1], [2, 3]])
    with pytest.raises(BadInput, match="too few"):
        half_against_half([[1, 2], [1, 3]])
    with pytest.raises(BadInput, match="NaN"):
        one_against_rest([[1, 2], [1, float("nan")], [2, 3]])
    with pytest.raises(UnknownName):
        one_against_rest([[1, 2], [1, 3], [2, 3]], method="kendall")  # type: ignore[arg-type]


def test_ratings_are_gathered_by_item() -> None:
    frame = pl.DataFrame({"item": ["b", "a", "b"], "rating": [1, 2, 3]})
    assert ratings_by_item(frame) == [[2.0], [1.0, 3.0]]


def raw_ratings() -> pl.DataFrame:
    rows = []
    for rater in range(12):
        for item in range(6):
            rating = 3.5 if item < 2 else 2.0
            rating -= 2.5 * (rater == 0 and item < 2)  # rates originals 1.0
            rating += 1.6 * (rater == 1)  # rates everything higher
            rating += 2.0 * (rater == 2 and item == 5)  # one outlier
            rows.append((f"r{rater}", f"i{item}", rating, item < 2, rater != 3))
    return pl.DataFrame(rows, schema=["rater", "item", "rating", "original", "topic"], orient="row")


SCALE = (1.0, 5.5)
# The published bounds, 3.0 on controls and a shift of 1.0, as shares of that scale.
AS_PUBLISHED: dict[str, Any] = {"scale": SCALE, "least_control": 2 / 4.5, "calibrate": 1 / 4.5}


def test_cleaning_counts_every_step() -> None:
    cleaned = clean_ratings(raw_ratings(), **AS_PUBLISHED, control="original", check="topic")
    steps = cleaned.steps.to_dicts()
    assert [step["raters_dropped"] for step in steps] == [1, 1, 0, 0]
    assert [step["ratings_dropped"] for step in steps[:3]] == [6, 6, 0]
    # Rater means: 4.1, 2.83 and eight times 2.5; their mean is 2.69, so only rater 1 is shifted, by 1.
    assert steps[2]["ratings_changed"] == 6
    # Rater 1 is then .6 above nine equal ratings of items 0 to 4: .54 from the mean, SD .18. On item 5
    # rater 2 is 1.74 from the mean and rater 1 only .34, SD .61.
    gone = set(raw_ratings().select("rater", "item").rows()) - set(
        cleaned.ratings.select("rater", "item").rows()
    )
    outliers = {(rater, item) for rater, item in gone if rater not in ("r0", "r3")}
    assert outliers == {("r1", f"i{i}") for i in range(5)} | {("r2", "i5")}
    assert cleaned.ratings.filter(rater="r1")["rating"].to_list() == pytest.approx([2.6])
    assert (steps[3]["ratings"], steps[3]["ratings_dropped"]) == (60, 6)


def test_outliers_by_hand() -> None:
    # Nine times 2 and once 4: mean 2.2, SD .6; 4 is 3 SD away, 2 only a third.
    frame = pl.DataFrame(
        {"rater": [f"r{i}" for i in range(10)], "item": ["a"] * 10, "rating": [2.0] * 9 + [4.0]}
    )
    cleaned = clean_ratings(frame, scale=(1, 4), calibrate=None)
    assert cleaned.ratings["rating"].to_list() == [2.0] * 9
    assert cleaned.steps["ratings_dropped"].to_list() == [1]


@pytest.mark.parametrize(("high", "shift"), [(4, 1), (5, 1), (7, 2), (100, 33)])
def test_a_shift_is_the_published_share_of_the_scale_and_stays_on_it(high: int, shift: int) -> None:
    # Eight raters give 2 and the highest but one; one uses the lower end only, one the upper end only.
    given = {f"r{k}": (2, high - 1) for k in range(8)} | {"low": (1, 2), "high": (high - 1, high)}
    rows = [(rater, item, rating) for rater, pair in given.items() for item, rating in enumerate(pair)]
    frame = pl.DataFrame(rows, schema=["rater", "item", "rating"], orient="row")
    cleaned = clean_ratings(frame, scale=(1, high), outliers=None)
    middle = (high + 1) / 2
    moved = shift < middle - 1.5
    assert cleaned.steps["step"].to_list() == [f"raters shifted by {shift}"]
    lifted, lowered = (cleaned.ratings.filter(rater=who)["rating"].to_list() for who in ("low", "high"))
    assert lifted == ([1 + shift, 2 + shift] if moved else [1, 2])
    assert lowered == ([high - 1 - shift, high - shift] if moved else [high - 1, high])
    assert cleaned.ratings["rating"].is_between(1, high).all()


def test_a_shifted_rating_does_not_leave_the_scale() -> None:
    # Means: 2 for four raters, 4 for one who gives 1 once; the mean of means is 2.4, so that one is shifted.
    rows = [(f"r{k}", item, 2) for k in range(4) for item in range(6)]
    rows += [("x", item, 4) for item in range(5)] + [("x", 5, 1)]
    frame = pl.DataFrame(rows, schema=["rater", "item", "rating"], orient="row")
    cleaned = clean_ratings(frame, scale=(1, 4), outliers=None)
    assert cleaned.ratings.filter(rater="x")["rating"].to_list() == [3.0] * 5 + [1.0]
    assert cleaned.steps["ratings_changed"].to_list() == [5]


def test_ceilings_do_not_depend_on_the_order_of_items_and_answers() -> None:
    rng = np.random.default_rng(1)
    ratings = [list(rng.normal(item, 1, 6)) for item in range(8)]
    shuffled = [list(reversed(own)) for own in reversed(ratings)]
    found, missing = find_ceilings(ratings, trials=50)
    assert not missing
    assert found.equals(find_ceilings(shuffled, trials=50)[0])
    assert found["bound"].to_list() == ["UB1", "UB2"]
    assert found["r"][1] == pytest.approx(half_against_half(ratings, trials=200)["r"][0], abs=0.02)


def test_cleaning_twice_is_refused() -> None:
    once = clean_ratings(raw_ratings(), scale=SCALE).ratings
    with pytest.raises(BadInput, match="already cleaned"):
        clean_ratings(once, scale=SCALE)


def test_raw_ratings_with_faults_are_refused() -> None:
    with pytest.raises(BadInput, match="twice"):
        clean_ratings(pl.concat([raw_ratings(), raw_ratings()]), scale=SCALE)
    with pytest.raises(UnknownName, match="no column 'rater'"):
        clean_ratings(pl.DataFrame({"item": [1], "rating": [2]}), scale=SCALE)
    with pytest.raises(BadInput, match="No ratings are left"):
        clean_ratings(raw_ratings(), scale=SCALE, control="original", least_control=1.0)
    with pytest.raises(BadInput, match="beyond the scale of 1 to 4"):
        clean_ratings(raw_ratings(), scale=(1, 4))


def test_z_scores_per_rater() -> None:
    frame = pl.DataFrame({"rater": ["a"] * 3 + ["b"] * 3, "rating": [1, 2, 3, 10, 20, 30]})
    assert standardize_raters(frame)["z"].to_list() == pytest.approx([-1, 0, 1, -1, 0, 1])
    with pytest.raises(BadInput, match="'a' gives one rating throughout"):
        standardize_raters(pl.DataFrame({"rater": ["a", "a"], "rating": [2, 2]}))


def test_trials_in_which_all_items_are_rated_alike_have_no_correlation() -> None:
    """Only one rating differs: where it is drawn, or lands in a half, the other side is constant or not."""
    ratings = [[1, 1, 1, 2], [1, 1, 1, 1], [1, 1, 2, 2]]
    found = one_against_rest(ratings, trials=200, seed=1).row(0, named=True)
    assert np.isfinite(found["r"])
    assert 0 < found["trials"] < 200
    with pytest.raises(BadInput, match="rated alike in every trial"):
        half_against_half([[1, 1], [1, 1], [1, 1]], trials=10)


def test_a_rater_of_one_category_agrees_no_more_than_chance() -> None:
    row = cohen_kappa([1, 1, 1, 1], [1, 0, 1, 1]).row(0, named=True)
    assert (row["kappa"], row["p"]) == (0.0, 1.0)
