import csv
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput
from felicity.core.files import escape_formulas
from felicity.humans import (
    Answer,
    Keys,
    PlatformIds,
    Store,
    build_rating_tables,
    forget_platform_ids,
    hash_platform_id,
    load_keys,
    payment_list,
    read_rating_study,
    suggest_fit,
    write_export,
)
from tests import conftest
from tests.humans.studies import make_study, stimulus_rows

Cli = Callable[..., conftest.Answer]


def answer_all(store: Store, rater: str, values: dict[str, float]) -> None:
    while (step := store.find_position(rater).step) is not None:
        place = store.find_position(rater)
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
    place = store.find_position(store.enter())
    store.record(place.rater, place.slot, 0, "k", Answer(value=3.0, raw="3"), shown=0)
    assert build_rating_tables(store)["ratings"].is_empty()
    assert build_rating_tables(store, unfinished=True)["ratings"]["state"].to_list() == ["live"]


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
    keys = load_keys(tmp_path)
    ids = PlatformIds(tmp_path, keys)
    names = ("anna", "bob")
    for name in names:
        ids.add(name)
        ids.add(name)
    rater = store.enter(key_hash=hash_platform_id(keys, "anna"))
    answer_all(store, rater, dict.fromkeys("0123", 1.0))
    with (tmp_path / "platform-ids.csv").open("a") as handle:
        handle.write("\nhalf a li")
    table = payment_list(store, PlatformIds(tmp_path, keys).read())
    assert table.sort("platform_id")["state"].to_list() == ["finished", "did not consent"]
    assert table.filter(pl.col("platform_id") == "anna")["code"].item() == store.find_position(rater).code
    assert store.forget() == 1
    assert forget_platform_ids(tmp_path)
    assert not (tmp_path / "platform-ids.csv").exists()
    assert load_keys(tmp_path).identity != keys.identity
    assert load_keys(tmp_path).signing == keys.signing
    assert store.has_room() == "full"


FORMULAS = ['=HYPERLINK("http://example.org")', "+1+2", "-1+2", "@SUM(A1)", "\tx", "＝1+1"]


@pytest.mark.parametrize("raw", [False, True])
def test_what_raters_write_is_no_formula_in_any_csv_file(cli: Cli, tmp_path: Path, raw: bool) -> None:
    more = '[platform]\nname = "prolific"\n[[demographics]]\nname = "town"\nquestion = "?"\nkind = "text"\n'
    rows = stimulus_rows("continuation", items=len(FORMULAS), conditions=("",))
    store = Store(make_study(tmp_path / "study", "continuation", rows=rows, more=more))
    ids = PlatformIds(tmp_path / "study", load_keys(tmp_path / "study"))
    rater = store.enter(
        key_hash=hash_platform_id(ids.keys, "-1-2"), session="s", keep=lambda: ids.add("-1-2")
    )
    place = store.find_position(rater)
    store.record(rater, place.slot, 0, "k", Answer(detail={"town": FORMULAS[0]}), shown=0)
    for number, text in enumerate(FORMULAS):
        place = store.find_position(rater)
        store.record(rater, place.slot, place.position, f"{number}", Answer(raw=text), shown=0)
    store.close()
    out, paid = tmp_path / "out", tmp_path / "to-pay.csv"
    options = ["--raw"] if raw else []
    said = cli("rate", "export", tmp_path / "study", "-o", out, "--payment", paid, *options)
    assert said.code == 0, said.err
    cells = {}
    for path in (out / "ratings.csv", out / "raters.csv", out / "design.csv", paid):
        with path.open(newline="", encoding="utf-8") as handle:
            cells[path.name] = [cell for row in csv.reader(handle) for cell in row]
    mark = "" if raw else "'"
    assert {f"{mark}{text}" for text in FORMULAS} <= set(cells["ratings.csv"])
    assert f"{mark}{FORMULAS[0]}" in cells["raters.csv"]
    assert f"{mark}-1-2" in cells["to-pay.csv"]
    begin = [cell for name in cells for cell in cells[name] if cell[:1] in tuple("=+-@\t＝")]
    assert bool(begin) == raw
    # Programs read the other file, which has every text as it is.
    assert set(pl.read_parquet(out / "ratings.parquet")["answer"]) == set(FORMULAS)


def test_a_negative_number_is_no_formula() -> None:
    frame = pl.DataFrame({"answer": ["-3", "+2.5", "-x"], "rating": [-3.0, 2.5, None]})
    assert escape_formulas(frame)["answer"].to_list() == ["-3", "+2.5", "'-x"]


def test_a_line_of_ids_that_was_cut_is_not_paid(cli: Cli, tmp_path: Path) -> None:
    Store(make_study(tmp_path / "study", more='[platform]\nname = "prolific"\n')).close()
    ids = PlatformIds(tmp_path / "study", load_keys(tmp_path / "study"))
    ids.add("5f8d0a1b2c3d4e5f6a7b8c9d")
    ids.add("5f8d0a1b2c3d4e5f6a7b8c9e")
    whole = ids.path.read_bytes()
    ids.path.write_bytes(whole[:-10])
    said = cli(
        "rate", "export", tmp_path / "study", "-o", tmp_path / "o", "--payment", tmp_path / "to-pay.csv"
    )
    assert "1 lines are damaged" in said.err
    assert pl.read_csv(tmp_path / "to-pay.csv")["platform_id"].to_list() == ["5f8d0a1b2c3d4e5f6a7b8c9d"]


def test_files_with_secrets_or_ids_are_their_owners_alone(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = tmp_path / "study"
    make_study(study, more='[platform]\nname = "prolific"\n')
    changed: list[str] = []
    monkeypatch.setattr(Path, "chmod", lambda path, _mode: changed.append(path.name))
    old = os.umask(0)
    try:
        ids = PlatformIds(study, load_keys(study))
        store = Store(read_rating_study(study))
        store.enter(key_hash=hash_platform_id(ids.keys, "anna"), keep=lambda: ids.add("anna"))
        log = store.database.engine.url.database + "-wal"
        cli("rate", "export", study, "-o", tmp_path / "out", "--payment", tmp_path / "to-pay.csv")
        private = [
            study / "keys.json",
            study / "answers.sqlite",
            Path(log),
            ids.path,
            tmp_path / "to-pay.csv",
        ]
        modes = {path.name: path.stat().st_mode & 0o777 for path in private}
        forget_platform_ids(study)
        modes["new keys"] = (study / "keys.json").stat().st_mode & 0o777
    finally:
        os.umask(old)
    assert set(modes.values()) == {0o600}, modes
    # And no file was one's neighbour's to read first.
    assert not [name for name in changed if "keys" in name or "to-pay" in name or "sqlite" in name]


def test_servers_that_start_at_once_agree_on_one_key(tmp_path: Path) -> None:
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        start = threading.Barrier(8)

        def load(_worker: int, folder: Path = folder, start: threading.Barrier = start) -> Keys:
            start.wait()
            return load_keys(folder)

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(load, range(8)))) == 1
        assert [path.name for path in folder.iterdir()] == ["keys.json"]
