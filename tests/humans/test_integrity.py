"""Stored answers that are not what a rater gave are refused."""

import sqlite3
from pathlib import Path

import pytest

from felicity.core.errors import BadInput
from felicity.humans import Answer, Store, build_rating_tables
from tests.humans.studies import make_study


def finish(store: Store, rater: str) -> None:
    while store.find_position(rater).step is not None:
        place = store.find_position(rater)
        given = Answer(value=3, raw="3", rt_ms=800, flags=("fast",), detail={"words": [1, 2]})
        store.record(rater, place.slot, place.position, f"k{place.position}", given, shown=store.clock() - 1)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    store = Store(make_study(tmp_path / "study", study="back = true\n"))
    rater = store.enter()
    place = store.find_position(rater)
    store.record(rater, place.slot, 0, "a", Answer(value=1.0, raw="1"), shown=store.clock())
    store.record(rater, place.slot, 0, "b", Answer(value=2.0, raw="2"), shown=store.clock())
    finish(store, rater)
    store.close()
    return tmp_path / "study" / "answers.sqlite"


def read(tmp_path: Path) -> list[float]:
    store = Store(make_study(tmp_path / "study", study="back = true\n"))
    try:
        return build_rating_tables(store)["ratings"]["rating"].to_list()
    finally:
        store.close()


def test_answers_and_revised_answers_are_read_back(tmp_path: Path, database: Path) -> None:
    assert read(tmp_path) == [2.0, 3.0, 3.0, 3.0]


@pytest.mark.parametrize("change", ["value = 4", "raw = '4'", "rt_ms = 9", "detail = '{}'", "row = 1 - row"])
def test_a_changed_answer_is_refused(tmp_path: Path, database: Path, change: str) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute(f"UPDATE answers SET {change} WHERE step = 1")
    connection.close()
    with pytest.raises(BadInput, match="The answer to step 1 of slot .* is damaged"):
        read(tmp_path)


def test_answers_of_earlier_versions_have_no_checksum_and_are_read(tmp_path: Path, database: Path) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE answers SET value = 4, checksum = NULL WHERE step = 1")
    connection.close()
    assert read(tmp_path)[1] == 4.0


def test_a_damaged_database_is_one_sentence(tmp_path: Path, database: Path) -> None:
    content = bytearray(database.read_bytes())
    # The second page and all after it: tables whose structure is gone.
    content[4096:] = bytes(len(content) - 4096)
    database.write_bytes(bytes(content))
    with pytest.raises(BadInput, match="damaged|malformed"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE alembic_version SET version_num = '1001'", "of a version that is unknown here"),
        ("UPDATE answers SET detail = '{' WHERE step = 1", "not JSON"),
        ("UPDATE slots SET trials = '['", "not JSON"),
    ],
)
def test_what_cannot_be_read_back_is_one_sentence(
    tmp_path: Path, database: Path, change: str, told: str
) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(BadInput, match=told):
        read(tmp_path)


def test_a_file_that_is_no_database_is_one_sentence(tmp_path: Path, database: Path) -> None:
    database.write_bytes(b"x" * 5000)
    with pytest.raises(BadInput, match=r"answers\.sqlite is damaged \(file is not a database\)"):
        read(tmp_path)
