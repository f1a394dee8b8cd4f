"""Word times of timed studies: outliers, curves, differences, errors and timing certificates."""

import json
import math
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from felicity.api.ratings import analyse_timed, write_ratings_report
from felicity.api.ratings.timed import compare_conditions, count_errors, draw_curves
from felicity.humans import Answer, RatingStudy, Store, build_rating_tables, read_answer
from felicity.humans.timing import mark_outliers
from tests.humans.studies import make_study, stimulus_rows

SCREEN = {"frames": 99, "hz": 60.0, "dropped": 1, "longest_ms": 33.3, "clock_ms": 0.1}


def answer_all(store: Store, study: RatingStudy, *, slow: float, screen: dict[str, Any] | None) -> None:
    """One rater reads every sentence; `slow` is added in condition b from the third word on."""
    rater = store.enter(test=False)
    while (place := store.find_position(rater)).step is not None:
        number = place.position
        trial = place.steps[number]
        stimulus = trial.stimulus(study)
        extra = slow if stimulus.condition == "b" else 0.0
        words = len(stimulus.text.split())
        rows = [{"ms": 300.0 + (extra if n > 1 else 0.0), "correct": True} for n in range(words)]
        form = {"script": "1", "times": json.dumps(rows), "frames": json.dumps(screen) if screen else ""}
        given = read_answer(study.task, stimulus, form, flipped=False)
        store.record(rater, place.slot, number, f"{rater} {number}", given, shown=0.0)


@pytest.fixture
def study(tmp_path: Path) -> RatingStudy:
    rows = [
        row | {"text": row["text"].replace(" number", " | number").replace(" sleeps", " | sleeps")}
        for row in stimulus_rows("reading")
    ]
    return make_study(tmp_path / "study", "reading", rows=rows)


def test_bars_divide_a_timed_text_into_regions_and_are_not_shown(study: RatingStudy) -> None:
    assert study.stimuli[0].text == "The cat number 0 sleeps in a."
    assert study.stimuli[0].regions == (1, 1, 2, 2, 3, 3, 3)


def test_outliers_are_marked_and_kept() -> None:
    usual = [300.0, 320.0, 340.0, 360.0] * 10
    words = pl.DataFrame({"rater": ["r"] * 44, "rt_ms": [*usual, 0.0, 99.0, 3001.0, 2900.0]})
    marked = mark_outliers(words)
    assert marked["outlier"].to_list()[-4:] == ["fast", "fast", "slow", "deviant"]
    assert set(marked["outlier"][:40]) == {""}
    assert marked.height == 44


def test_curves_and_differences_are_those_of_raters_means(study: RatingStudy) -> None:
    store = Store(study)
    for slow in (20.0, 40.0, 60.0):
        answer_all(store, study, slow=slow, screen=SCREEN)
    tables = build_rating_tables(store)
    assert tables["words"].filter(item="0", condition="a")["region"].to_list()[:7] == list("1122333")
    found = analyse_timed(tables)
    curve = found["curves"].row(
        by_predicate=(pl.col("region") == "3") & (pl.col("condition") == "b"), named=True
    )
    # t(2) = 4.3027; the raters' means are 320, 340 and 360, with a standard error of 20 / sqrt(3).
    assert (curve["raters"], curve["mean"]) == (3, pytest.approx(340))
    assert curve["high"] - curve["mean"] == pytest.approx(4.302653 * 20 / math.sqrt(3), rel=1e-5)
    gaps = found["differences"].filter(region="3").row(0, named=True)
    assert (gaps["condition"], gaps["baseline"], gaps["raters"]) == ("b", "a", 3)
    assert gaps["difference"] == pytest.approx(40)
    assert gaps["low"] == pytest.approx(40 - 4.302653 * 20 / math.sqrt(3), rel=1e-5)
    # t = 40 / (20 / sqrt 3) = 3.4641 with 2 degrees of freedom; R: 2 * pt(-3.4641, 2)
    assert gaps["p"] == pytest.approx(0.0741799, rel=1e-4)
    # The first region does not differ at all, so that it has no p and the other two are adjusted.
    assert found["differences"]["p"].null_count() == 1
    assert gaps["p_holm"] == pytest.approx(2 * gaps["p"])


def test_a_rater_is_certified_by_a_steady_screen_and_a_fine_clock(study: RatingStudy) -> None:
    store = Store(study)
    screens = [SCREEN, SCREEN | {"dropped": 4}, SCREEN | {"clock_ms": 16.7}, None]
    for screen in screens:
        answer_all(store, study, slow=0.0, screen=screen)
    timing = build_rating_tables(store)["timing"]
    assert timing["certified"].sum() == 1
    steady = timing.filter(pl.col("certified")).row(0, named=True)
    assert (steady["trials"], steady["measured"], steady["refresh_hz"]) == (4, 4, 60.0)
    assert (steady["frames"], steady["dropped"], steady["dropped_share"]) == (396, 4, 0.01)
    assert timing.filter(pl.col("measured") == 0)["refresh_hz"].to_list() == [None]


def test_errors_of_a_maze_are_counted_by_position_and_left_out_of_times() -> None:
    words = pl.DataFrame(
        {
            "rater": ["r", "r", "s", "s"],
            "list": ["1"] * 4,
            "trial": [1] * 4,
            "condition": ["a"] * 4,
            "position": [1, 2, 1, 2],
            "region": ["1", "2", "1", "2"],
            "correct": [True, False, True, True],
            "outlier": [""] * 4,
            "rt_ms": [400.0, 900.0, 500.0, 600.0],
        }
    )
    errors = count_errors(words)
    assert errors["errors"].to_list() == [0, 1]
    # R: binom.test(1, 2)$conf.int
    assert errors.row(1)[-2:] == pytest.approx((0.01257912, 0.98742088))
    second = draw_curves(words).row(1, named=True)
    assert (second["mean"], second["words"], second["left_out"]) == (600.0, 2, 1)
    assert compare_conditions(words, ["a"]).is_empty()


@pytest.mark.parametrize("task", ["reading", "maze", "likert", "cloze"])
def test_a_page_without_a_rater_says_so(tmp_path: Path, task: str) -> None:
    study = make_study(tmp_path / "study", task)
    tables = build_rating_tables(Store(study))
    page = write_ratings_report(study, tables | analyse_timed(tables), tmp_path / "out")
    assert "Nobody has finished yet" in page.read_text(encoding="utf-8")


def test_the_page_says_where_readers_slow_down(tmp_path: Path, study: RatingStudy) -> None:
    store = Store(study)
    for slow in (50.0, 51.0, 52.0, 53.0):
        answer_all(store, study, slow=slow, screen=SCREEN)
    tables = build_rating_tables(store)
    page = write_ratings_report(study, tables | analyse_timed(tables), tmp_path / "out")
    text = page.read_text(encoding="utf-8")
    assert "In region 3, b is read 52 ms per word slower than a" in text
    assert "The browsers of 4 of 4 raters kept time" in text
    for title in ("Time per word by region", "Outliers", "Timing certificates"):
        assert title in text


def test_a_difference_without_spread_is_no_missing_difference(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study")
    store = Store(study)
    for _ in range(2):
        rater = store.enter(test=False)
        while (place := store.find_position(rater)).step is not None:
            stimulus = place.steps[place.position].stimulus(study)
            given = Answer(value=5.0 if stimulus.condition == "a" else 2.0)
            store.record(rater, place.slot, place.position, f"{rater} {place.position}", given, shown=0.0)
    page = write_ratings_report(study, build_rating_tables(store), tmp_path / "out")
    assert "Ratings of b are 3.00 lower than of a, without exception." in page.read_text(encoding="utf-8")
