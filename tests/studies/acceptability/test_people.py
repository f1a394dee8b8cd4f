"""The human side: every figure of Lau et al. (2020) that follows from the released ratings."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.studies.acceptability import RatedSentences, people, read_ratings
from tests.studies.acceptability.test_ratings import write_means, write_raw


@pytest.fixture(scope="module")
def lau(published: Callable[[str], Path]) -> RatedSentences:
    published("lau2020")
    return read_ratings("lau2020")


def one(table: pl.DataFrame, column: str, **wanted: str) -> float:
    value: float = table.filter(**wanted)[column].item()  # type: ignore[arg-type]
    return value


@pytest.mark.data
def test_correlations_between_settings(lau: RatedSentences) -> None:
    table = people.correlate_settings(lau)
    assert one(table, "r", first="none", second="real") == pytest.approx(0.9401, abs=5e-5)
    assert one(table, "r", first="none", second="random") == pytest.approx(0.9109, abs=5e-5)
    assert one(table, "r", first="real", second="random") == pytest.approx(0.8907, abs=5e-5)


@pytest.mark.data
def test_real_contexts_are_rated_above_random_ones(lau: RatedSentences) -> None:
    table = people.correlate_settings(lau)
    assert one(table, "p_greater", first="real", second="random") == pytest.approx(1.916e-8, rel=5e-4)


@pytest.mark.data
def test_the_lines_differ_in_offset_and_not_in_slope(lau: RatedSentences) -> None:
    table = people.compare_contexts(lau)
    assert one(table, "p", term="ctx") == pytest.approx(0.01702, abs=5e-6)
    assert one(table, "p", term="x:ctx") == pytest.approx(0.3626, abs=5e-5)


@pytest.mark.data
def test_ratings_are_compressed_at_both_ends(lau: RatedSentences) -> None:
    table = people.measure_shifts(lau).filter(setting="real")
    assert table.select("sentences", "bound", "n").rows() == [("good", 3.5, 77), ("bad", 1.5, 24)]
    assert one(table, "shift", sentences="good") == pytest.approx(-0.077, abs=5e-4)
    assert one(table, "shift", sentences="bad") == pytest.approx(0.452, abs=5e-4)
    assert (people.fit_lines(lau)["slope_high"] < 1).all()


@pytest.mark.data
def test_upper_bounds_are_those_of_the_paper(lau: RatedSentences) -> None:
    table, notes = people.bound_correlations(lau)
    assert not notes
    printed = {"UB1": (0.751, 0.726, 0.747), "UB2": (0.921, 0.917, 0.916)}
    # Means of 1000 random trials: their standard error is under 0.001, and so is that of the printed ones.
    for bound, values in printed.items():
        assert table.filter(bound=bound)["r"].to_list() == pytest.approx(values, abs=3e-3)
    assert (table["low"] < table["r"]).all()
    assert (table["high"] > table["r"]).all()


@pytest.mark.data
def test_the_distribution_counts_every_sentence(lau: RatedSentences) -> None:
    table = people.count_ratings(lau)
    assert table.group_by("setting").agg(pl.col("n").sum())["n"].to_list() == [250, 250, 250]


def test_means_alone_have_no_upper_bounds(tmp_path: Path) -> None:
    table, notes = people.bound_correlations(read_ratings(str(write_means(tmp_path))))
    assert table.is_empty()
    assert notes == ["Only mean ratings are known, so there are no upper bounds UB1 and UB2."]


def test_ordinal_models_need_raters(tmp_path: Path) -> None:
    table, notes = people.fit_ordinal(read_ratings(str(write_means(tmp_path))))
    assert table.is_empty()
    assert "Raters are not known" in notes[0]


def test_an_ordinal_model_of_a_score_rises_with_it(tmp_path: Path) -> None:
    ratings = read_ratings(str(write_raw(tmp_path)))
    scores = pl.DataFrame(
        {
            "item": [f"s{k}" for k in range(5)],
            "setting": ["none"] * 5,
            "value": [-1.0, -5.0, -1.2, -4.0, -1.1],
        }
    )
    table, _ = people.fit_ordinal(ratings, {"a model": scores})
    assert table["formula"].to_list() == ["rating ~ score of a model + (1 | rater) + (1 | item)"]
    assert table["estimate"].item() > 0
