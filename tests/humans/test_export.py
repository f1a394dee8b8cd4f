from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.humans import (
    Answer,
    Keys,
    PlatformIds,
    Store,
    export_tables,
    forget_platform_ids,
    hash_platform_id,
    load_keys,
    payment_list,
    suggest_fit,
    write_export,
)
from tests.humans.studies import make_study, stimulus_rows


def answer_all(store: Store, rater: str, values: dict[str, float]) -> None:
    while (step := store.place(rater).step) is not None:
        place = store.place(rater)
        value = values[step.stimulus(store.study).item]
        store.record(
            rater,
            place.slot,
            place.position,
            f"{place.position}",
            Answer(value=value, raw=f"{value:g}", rt_ms=1000.0, flags=("fast",)),
            shown=store.clock() - 2,
        )


def test_ratings_carry_the_order_the_design_and_the_columns_of_the_stimuli(tmp_path: Path) -> None:
    rows = [row | {"verb": row["text"].split()[4], "length": row["item"]} for row in stimulus_rows("likert")]
    store = Store(make_study(tmp_path / "study", rows=rows))
    rater = store.enter()
    answer_all(store, rater, {"0": 1.0, "1": 2.0, "2": 3.0, "3": 4.0})
    left = store.enter()
    tables = write_export(store, tmp_path / "out")
    ratings = tables["ratings"]
    assert ratings["trial"].to_list() == [1, 2, 3, 4]
    assert dict(ratings.select("item", "rating").iter_rows()) == {"0": 1.0, "1": 2.0, "2": 3.0, "3": 4.0}
    # A column of numbers is a covariate, a column of words a factor.
    assert ratings["length"].dtype == pl.Float64
    assert ratings["verb"].to_list() == ["sleeps"] * 4
    assert ratings["server_ms"].min() >= 2000  # type: ignore[operator]
    assert set(ratings["flags"]) == {"fast"}
    people = tables["raters"]
    assert dict(people.select("rater", "state").iter_rows()) == {rater: "finished", left: "live"}
    assert tables["design"].height == 8
    for name, frame in tables.items():
        assert pl.read_parquet(tmp_path / "out" / f"{name}.parquet").equals(frame)
        assert pl.read_csv(tmp_path / "out" / f"{name}.csv").height == frame.height
    codebook = (tmp_path / "out" / "codebook.md").read_text()
    for frame in tables.values():
        for column in frame.columns:
            assert f"| {column} |" in codebook


def test_only_finished_raters_are_exported_unless_asked(tmp_path: Path) -> None:
    store = Store(make_study(tmp_path))
    place = store.place(store.enter())
    store.record(place.rater, place.slot, 0, "k", Answer(value=3.0, raw="3"), shown=0)
    assert export_tables(store)["ratings"].is_empty()
    assert export_tables(store, unfinished=True)["ratings"]["state"].to_list() == ["live"]


@pytest.mark.parametrize(
    ("task", "formula"),
    [
        ("likert", "--family cumulative"),
        ("binary", "--family binomial"),
        ("magnitude", "log(rating) ~ condition"),
        ("reading", "log(rt_ms) ~ condition + (1|rater) + (1|item)"),
    ],
)
def test_the_suggested_model_fits_the_task(tmp_path: Path, task: str, formula: str) -> None:
    assert formula in str(suggest_fit(make_study(tmp_path, task)))


def test_a_platform_id_is_the_same_rater_only_under_the_same_key(tmp_path: Path) -> None:
    keys = load_keys(tmp_path)
    assert load_keys(tmp_path) == keys
    assert (tmp_path / "keys.json").stat().st_mode & 0o077 == 0
    assert hash_platform_id(keys, "a") == hash_platform_id(keys, "a")
    assert hash_platform_id(keys, "a") != hash_platform_id(Keys(b"other", keys.signing), "a")
    (tmp_path / "keys.json").write_text("{}")
    with pytest.raises(BadInput, match="damaged"):
        load_keys(tmp_path)


def test_what_payment_needs_is_in_one_file_until_it_is_forgotten(tmp_path: Path) -> None:
    store = Store(make_study(tmp_path, more='[platform]\nname = "prolific"\n'))
    keys, ids = load_keys(tmp_path), PlatformIds(tmp_path)
    names = ("anna", "bob")
    for name in names:
        ids.add(hash_platform_id(keys, name), name)
        ids.add(hash_platform_id(keys, name), name)
    rater = store.enter(key_hash=hash_platform_id(keys, "anna"))
    answer_all(store, rater, dict.fromkeys("0123", 1.0))
    with (tmp_path / "platform-ids.csv").open("a") as handle:
        handle.write("\nhalf a li")
    table = payment_list(store, PlatformIds(tmp_path).read())
    assert table.sort("platform_id")["state"].to_list() == ["finished", "did not consent"]
    assert table.filter(pl.col("platform_id") == "anna")["code"].item() == store.place(rater).code
    assert store.forget() == 1
    assert forget_platform_ids(tmp_path)
    assert not (tmp_path / "platform-ids.csv").exists()
    assert load_keys(tmp_path).identity != keys.identity
    assert load_keys(tmp_path).signing == keys.signing
    assert store.has_room() == "full"
