from pathlib import Path

import polars as pl
import pytest

from felicity.api.ratings import (
    choose_raters,
    describe_rating_power,
    simulate_power_of_study,
    write_ratings_report,
)
from felicity.core.errors import BadInput, NotPossible
from felicity.humans import Population
from tests.humans.studies import make_study


def rating_table(columns: dict[str, list[int]], *, name: str = "1") -> pl.DataFrame:
    rows = [
        {
            "rater": rater,
            "list": name,
            "item": str(item),
            "condition": "",
            "role": "target",
            "rating": float(value),
        }
        for rater, values in columns.items()
        for item, value in enumerate(values)
    ]
    return pl.DataFrame(rows)


def test_the_best_raters_of_a_list_are_kept_if_they_are_good_enough() -> None:
    table = rating_table(
        {"a": [1, 2, 3, 4, 5, 5], "b": [1, 2, 3, 4, 5, 4], "c": [2, 1, 3, 5, 4, 5], "odd": [5, 4, 3, 2, 1, 1]}
    )
    kept = dict(choose_raters(table, quota=3, below=0.4).select("rater", "kept").iter_rows())
    assert kept == {"a": True, "b": True, "c": True, "odd": False}
    assert choose_raters(table, quota=2, below=0.4)["kept"].sum() == 2


def test_raters_who_never_vary_are_set_aside_and_an_unfinished_list_is_not_judged() -> None:
    table = rating_table({"a": [1, 2, 3, 4], "b": [1, 2, 3, 5], "flat": [3, 3, 3, 3]})
    alone = rating_table({"alone": [1, 2, 3, 4]}, name="2")
    kept = dict(
        choose_raters(pl.concat([table, alone]), quota=3, below=0.4).select("rater", "kept").iter_rows()
    )
    assert kept == {"a": True, "b": True, "flat": False}
    assert choose_raters(alone, quota=3, below=0.4).is_empty()
    with pytest.raises(BadInput, match="nobody can be compared"):
        choose_raters(table.clear(), quota=3, below=0.4)


@pytest.mark.data
def test_the_rule_reopens_and_keeps_the_raters_that_huynh_et_al_did(published) -> None:
    raw = pl.read_csv(published("huynh2022/ratings_long_anonymous.csv"))
    table = raw.select(
        pl.col("participant").alias("rater"),
        pl.col("block").cast(pl.String).alias("list"),
        pl.col("idx").cast(pl.String).alias("item"),
        pl.lit("").alias("condition"),
        pl.lit("target").alias("role"),
        pl.col("rating").cast(pl.Float64),
        "round",
    )
    first = choose_raters(table.filter(pl.col("round") == 1), quota=3, below=0.4)
    again = raw.filter(pl.col("round") == 2).unique("participant")["block"].cast(pl.String)
    assert sorted(first.filter(~pl.col("kept"))["list"]) == sorted(again)
    final = choose_raters(table, quota=3, below=0.4)
    selected = set(raw.filter(pl.col("selected") == 1)["participant"])
    assert set(final.filter("kept")["rater"]) == selected


def test_a_strong_effect_is_found_and_none_is_mostly_not(tmp_path: Path) -> None:
    study = make_study(tmp_path, items=8)
    strong = simulate_power_of_study(study, Population(raters=8, effect=3.0), repeats=5)
    assert strong["significant"].all()
    assert (strong["estimate"] > 0).all()
    none = simulate_power_of_study(study, Population(raters=8, effect=0.0), repeats=20)
    assert none["significant"].sum() <= 4
    assert "in 5 simulated studies" in describe_rating_power(strong)
    with pytest.raises(NotPossible, match="no ratings"):
        simulate_power_of_study(make_study(tmp_path, "cloze"), Population(), repeats=1)


def test_the_report_names_what_it_could_not_compute(tmp_path: Path) -> None:
    from felicity.humans import Store, build_rating_tables

    study = make_study(tmp_path / "study")
    store = Store(study)
    store.enter()
    page = write_ratings_report(study, build_rating_tables(store), tmp_path / "out")
    text = page.read_text()
    assert "Who finished" in text
    assert "Agreement" not in text
