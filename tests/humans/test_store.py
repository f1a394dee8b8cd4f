import random
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from felicity.core.errors import BadInput, NotPossible
from felicity.humans import Answer
from felicity.humans.database import MIGRATIONS, StorageFailed
from felicity.humans.store import RaterPosition, RaterRefused, Store
from felicity.humans.tables import answers, metadata, raters, slots
from tests.humans.databases import open_postgresql
from tests.humans.studies import make_study, stimulus_rows, write_study


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Store:
    return Store(make_study(tmp_path, more="[design]\nquota = 2\n"), clock=clock)


def answer(store: Store, place: RaterPosition, value: float = 3.0, *, key: str = "") -> str:
    return store.record(
        place.rater,
        place.slot,
        place.position,
        key or f"{place.slot}-{place.position}",
        Answer(value=value, raw=f"{value:g}"),
        shown=store.clock(),
    )


def finish(store: Store, rater: str) -> None:
    while store.find_position(rater).step is not None:
        answer(store, store.find_position(rater))


def test_an_answer_is_stored_once_however_often_it_is_sent(store: Store) -> None:
    rater = store.enter()
    place = store.find_position(rater)
    assert answer(store, place, 4.0) == "stored"
    assert answer(store, place, 4.0) == "repeated"
    assert answer(store, place, 1.0, key="another form") == "repeated"
    assert [row.value for row in store.rows(answers)] == [4.0]
    assert store.find_position(rater).position == 1


def test_a_step_that_was_not_reached_is_not_stored(store: Store) -> None:
    place = store.find_position(store.enter())
    assert store.record(place.rater, place.slot, 3, "k", Answer(value=1.0), shown=0) == "ahead"
    assert store.rows(answers) == []


def test_the_slot_of_another_rater_cannot_be_answered(store: Store) -> None:
    mine, theirs = store.find_position(store.enter()), store.find_position(store.enter())
    with pytest.raises(RaterRefused, match="unknown"):
        store.record(mine.rater, theirs.slot, 0, "k", Answer(value=1.0), shown=0)
    assert store.rows(answers) == []


def test_the_completion_code_comes_with_the_last_answer(store: Store) -> None:
    rater = store.enter()
    for _ in range(3):
        assert answer(store, store.find_position(rater)) == "stored"
        assert store.find_position(rater).code is None
    assert answer(store, store.find_position(rater)) == "finished"
    place = store.find_position(rater)
    assert place.code
    assert place.step is None
    assert place.rater_state == "finished"


def test_lists_fill_evenly_and_the_study_is_full_at_its_quota(store: Store) -> None:
    assert store.has_room() is None
    for size in range(1, 5):
        store.enter()
        counts = Counter(row.list for row in store.rows(slots))
        assert max(counts.values()) - min(counts["1"], counts["2"]) <= (size % 2)
    assert store.has_room() == "full"
    with pytest.raises(RaterRefused, match="full"):
        store.enter()


def test_a_lease_that_runs_out_frees_the_place(store: Store, clock: Clock) -> None:
    away = store.enter()
    for _ in range(3):
        finish(store, store.enter())
    assert store.has_room() == "full"
    clock.now += 31 * 60
    assert store.has_room() is None
    other = store.enter()
    assert store.find_position(other).list_name == store.find_position(away).list_name
    with pytest.raises(RaterRefused, match="expired"):
        answer(store, store.find_position(away))
    with pytest.raises(RaterRefused, match="expired"):
        store.check_lease(away)


def test_a_rater_who_comes_back_in_time_goes_on_where_they_stopped(store: Store, clock: Clock) -> None:
    rater = store.enter(key_hash="hash")
    answer(store, store.find_position(rater))
    clock.now += 24 * 3600
    assert store.enter(key_hash="hash") == rater
    store.check_lease(rater)
    assert store.find_position(rater).position == 1
    assert answer(store, store.find_position(rater)) == "stored"
    assert len(store.rows(raters)) == 1


def test_a_heartbeat_extends_the_lease_of_who_has_worked_but_not_for_ever(store: Store, clock: Clock) -> None:
    rater = store.enter()
    for _ in range(3):
        finish(store, store.enter())
    answer(store, store.find_position(rater))
    for _ in range(8):
        clock.now += 20 * 60
        store.extend(rater)
        assert store.has_room() == "full"
    # Three hours after the place was given out, whoever wants it may have it.
    clock.now += 20 * 60
    store.extend(rater)
    assert store.has_room() is None
    # Until somebody does, its rater may go on; an open page alone does not take it up again.
    assert answer(store, store.find_position(rater)) == "stored"
    store.enter()
    with pytest.raises(RaterRefused, match="expired"):
        answer(store, store.find_position(rater))


def test_a_place_without_work_is_kept_for_ten_minutes_only(tmp_path: Path, clock: Clock) -> None:
    pages = '[instructions]\ntext = "Read."\n[practice]\ntext = "Let us begin."\n'
    store = Store(make_study(tmp_path, more=pages + "[design]\nquota = 1\n"), clock=clock)
    store.enter()
    rater = store.enter()
    assert store.has_room() == "full"
    for _ in range(2):
        # Reading one page after the other is not work yet, but nine minutes for each are not too long.
        clock.now += 9 * 60
        store.extend(rater)
        store.check_lease(rater)
        answer(store, store.find_position(rater))
    assert store.has_room() is None
    assert store.find_position(rater).lease == clock.now + 10 * 60
    answer(store, store.find_position(rater))
    assert store.find_position(rater).lease == clock.now + 30 * 60


def test_released_places_are_free_and_their_raters_cannot_go_on(store: Store, clock: Clock) -> None:
    idle = [store.enter() for _ in range(3)]
    clock.now += 8 * 60
    working = store.enter()
    answer(store, store.find_position(working))
    assert store.has_room() == "full"
    assert store.release(idle=5) == idle
    assert store.release(idle=5) == []
    assert store.has_room() is None
    for attempt in (store.check_lease, lambda rater: answer(store, store.find_position(rater))):
        with pytest.raises(RaterRefused, match="expired"):
            attempt(idle[0])
    store.extend(idle[0])
    store.complete(idle[0])
    assert not store.settle(idle[0])
    assert not store.next_list(idle[0])
    assert store.find_position(idle[0]).code is None
    assert answer(store, store.find_position(working)) == "stored"
    assert store.release(only=[working]) == [working]


TWO_LISTS = "[design]\nparts = 2\nquota = 1\nlists_per_rater = 2\n"


def two_lists(folder: Path, clock: Clock) -> Store:
    rows = stimulus_rows("likert", items=4, conditions=("",))
    return Store(make_study(folder, rows=rows, more=TWO_LISTS), clock=clock)


def test_a_rater_who_loses_a_further_list_keeps_the_code_of_the_first(tmp_path: Path, clock: Clock) -> None:
    store = two_lists(tmp_path, clock)
    rater = store.enter()
    finish(store, rater)
    assert store.next_list(rater)
    clock.now += 31 * 60
    finish(store, store.enter())
    with pytest.raises(RaterRefused, match="expired"):
        store.check_lease(rater)
    assert store.settle(rater)
    assert store.find_position(rater).rater_state == "finished"
    assert store.find_position(rater).code
    assert store.settle(rater)


def test_a_clock_that_is_set_back_gives_no_code_before_the_second_list_is_done(
    tmp_path: Path, clock: Clock
) -> None:
    store = two_lists(tmp_path, clock)
    rater = store.enter()
    finish(store, rater)
    clock.now -= 3600
    assert store.next_list(rater)
    place = store.find_position(rater)
    assert place.step is not None
    assert place.state == "live"
    store.complete(rater)
    assert store.find_position(rater).code is None
    assert place.lease <= clock.now + 30 * 60


def test_the_order_of_lists_is_kept_when_a_database_of_before_is_opened(tmp_path: Path, clock: Clock) -> None:
    store = two_lists(tmp_path, clock)
    rater = store.enter()
    finish(store, rater)
    clock.now += 5
    assert store.next_list(rater)
    wanted = [(row.list, row.number) for row in store.rows(slots)]
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    with store.database.write() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0002")
    store.close()
    again = Store(store.study, clock=clock)
    assert [(row.list, row.number) for row in again.rows(slots)] == wanted
    assert again.find_position(rater).state == "live"


def test_test_runs_never_count(store: Store) -> None:
    for _ in range(10):
        finish(store, store.enter(test=True))
    assert store.has_room() is None
    for _ in range(4):
        store.enter()
    assert store.has_room() == "full"
    store.enter(test=True)


def test_withdrawing_deletes_the_answers_and_frees_the_slot(store: Store) -> None:
    ids = [store.enter() for _ in range(4)]
    for rater in ids:
        finish(store, rater)
    store.withdraw(ids[0])
    assert store.has_room() is None
    kept = {row.id for row in store.rows(slots) if row.rater != ids[0]}
    assert {row.slot for row in store.rows(answers)} == kept
    with pytest.raises(RaterRefused, match="withdrawn"):
        store.find_position(ids[0])


def test_no_answer_of_a_rater_who_withdraws_stays_in_the_file(tmp_path: Path) -> None:
    rows = stimulus_rows("likert", items=40, conditions=("",))
    store = Store(make_study(tmp_path, rows=rows, more="[design]\nquota = 20\n"))
    rng = random.Random(2)
    ids, given = [], []
    for _ in range(4):
        ids.append(store.enter())
        while store.find_position(ids[-1]).step is not None:
            place = store.find_position(ids[-1])
            given.append(f"{rng.getrandbits(600):0150x}")
            raw = Answer(value=3.0, raw=given[-1])
            store.record(place.rater, place.slot, place.position, given[-1][:16], raw, shown=0)
    for rater in ids:
        store.withdraw(rater)
    assert store.rows(answers) == []
    assert store.unerased() == 4
    store.erase()
    assert store.unerased() == 0
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("answers.sqlite*"))
    assert [text for text in given if text.encode() in stored] == []


# With either seed, SQLite's secure_delete alone leaves two hashes behind, in pages that were split.
@pytest.mark.parametrize("seed", [2, 4])
def test_no_hash_of_a_platform_id_stays_in_the_file(tmp_path: Path, seed: int) -> None:
    store = Store(make_study(tmp_path))
    rng = random.Random(seed)
    hashes = [f"{rng.getrandbits(256):064x}" for _ in range(1000)]
    row = {"test": False, "state": "finished", "created": 1.0, "consent_hash": ""}
    with store.database.write() as connection:
        for number, key_hash in enumerate(hashes):
            connection.execute(sa.insert(raters).values(id=f"{number:016d}", key_hash=key_hash, **row))
    assert store.forget() == 1000
    store.erase()
    # Before the database is closed as well.
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("answers.sqlite*"))
    assert [name for name in hashes if name.encode() in stored] == []


def test_erasing_while_somebody_reads_the_old_state_says_so_and_can_be_repeated(tmp_path: Path) -> None:
    store = Store(make_study(tmp_path))
    store.enter(key_hash="f" * 64)
    with store.database.read() as connection:
        connection.execute(sa.select(raters)).all()
        store.forget()
        with pytest.raises(StorageFailed, match="try again"):
            store.erase(patience=0.2)
    store.erase()
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("answers.sqlite*"))
    assert b"f" * 64 not in stored


def test_a_paused_study_lets_nobody_in_but_lets_raters_go_on(store: Store) -> None:
    rater = store.enter()
    store.pause(True)
    assert store.has_room() == "paused"
    with pytest.raises(RaterRefused, match="paused"):
        store.enter()
    assert answer(store, store.find_position(rater)) == "stored"
    store.pause(False)
    store.enter()


def test_sides_come_out_even_among_the_raters_of_a_list(tmp_path: Path, clock: Clock) -> None:
    store = Store(make_study(tmp_path, "choice", more="[design]\nquota = 6\n"), clock=clock)
    for turn in range(18):
        rater = store.enter()
        if turn % 3:
            finish(store, rater)
        else:
            clock.now += 3600
    finished = [row for row in store.rows(slots) if row.state == "finished"]
    sides = Counter((row.list, row.turn) for row in finished)
    assert sorted(sides.values()) == [3, 3, 3, 3]


QUIZ = '[quiz]\ntries = 2\n[[quiz.questions]]\nquestion = "?"\nchoices = ["a", "b"]\ncorrect = "b"\n'


def test_the_quiz_may_be_tried_twice_and_then_screens_out(tmp_path: Path) -> None:
    store = Store(make_study(tmp_path, more=QUIZ + "[design]\nquota = 1\n"))
    rater, other = store.enter(), store.enter()
    assert store.has_room() == "full"
    place = store.find_position(rater)
    wrong, right = Answer(correct=False), Answer(correct=True)
    assert store.record(rater, place.slot, 0, "k1", wrong, shown=0) == "try_again"
    assert store.record(rater, place.slot, 0, "k1", wrong, shown=0) == "try_again"
    assert store.record(rater, place.slot, 0, "k2", wrong, shown=0) == "screened"
    assert store.has_room() is None
    with pytest.raises(RaterRefused, match="screened"):
        store.find_position(rater)
    place = store.find_position(other)
    assert store.record(other, place.slot, 0, "k1", wrong, shown=0) == "try_again"
    assert store.record(other, place.slot, 0, "k2", right, shown=0) == "stored"
    assert store.find_position(other).position == 1


def test_failed_attention_checks_screen_out_when_the_study_says_so(tmp_path: Path) -> None:
    check = {"item": "c", "text": "Please choose 1.", "role": "check", "answer": "1"}
    rows = [*stimulus_rows("likert"), check, {**check, "item": "c2"}]
    store = Store(make_study(tmp_path, rows=rows, more="[screening]\nmost_failed_checks = 1\n"))
    rater = store.enter()
    outcomes = []
    while not outcomes or outcomes[-1] == "stored":
        place = store.find_position(rater)
        correct = False if place.step.stimulus(store.study).role == "check" else None
        outcomes.append(
            store.record(
                rater,
                place.slot,
                place.position,
                str(len(outcomes)),
                Answer(value=5, correct=correct),
                shown=0,
            )
        )
    assert outcomes[-1] == "screened"


def test_going_back_replaces_an_answer_only_where_the_study_allows_it(tmp_path: Path) -> None:
    store = Store(make_study(tmp_path, study="back = true\n"))
    place = store.find_position(store.enter())
    answer(store, place, 2.0)
    assert answer(store, place, 5.0) == "repeated"
    assert answer(store, place, 5.0, key="second form") == "revised"
    assert [(row.value, row.revised) for row in store.rows(answers)] == [(5.0, 1)]
    assert store.find_position(place.rater).position == 1


def test_a_rater_may_do_several_lists_without_meeting_an_item_twice(tmp_path: Path) -> None:
    rows = stimulus_rows("likert", items=8, conditions=("",))
    more = "[design]\nparts = 4\nquota = 1\nlists_per_rater = 3\n"
    store = Store(make_study(tmp_path, rows=rows, more=more))
    rater = store.enter()
    assert not store.next_list(rater)
    finish(store, rater)
    assert store.find_position(rater).code is None
    assert store.next_list(rater)
    finish(store, rater)
    assert store.next_list(rater)
    finish(store, rater)
    assert not store.next_list(rater)
    store.complete(rater)
    assert store.find_position(rater).code
    items = [store.study.stimuli[row.row].item for row in store.rows(answers)]
    assert len(items) == len(set(items)) == 6


def test_a_latin_square_gives_no_second_list_because_items_would_repeat(tmp_path: Path) -> None:
    store = Store(make_study(tmp_path, more="[design]\nlists_per_rater = 2\n"))
    rater = store.enter()
    finish(store, rater)
    assert not store.next_list(rater)


def test_raters_who_come_at_the_same_moment_get_even_lists(tmp_path: Path) -> None:
    study = make_study(
        tmp_path, rows=stimulus_rows("likert", items=40, conditions=("",)), more="[design]\nparts = 10\n"
    )
    store = Store(study)
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda _: store.enter(), range(30)))
    counts = Counter(row.list for row in store.rows(slots))
    assert set(counts.values()) == {3}
    with ThreadPoolExecutor(8) as pool:
        same = set(pool.map(lambda _: _enter_or_none(store), range(8)))
    assert same == {None}


def _enter_or_none(store: Store) -> str | None:
    try:
        return store.enter(key_hash="one person")
    except RaterRefused:
        return None


@pytest.mark.slow
def test_postgresql_keeps_the_same_rules(tmp_path: Path) -> None:
    rows = stimulus_rows("likert", items=8, conditions=("",))
    study = make_study(tmp_path / "study", rows=rows, more="[design]\nparts = 4\nquota = 3\n")
    with open_postgresql(tmp_path) as database:
        store = Store(study, database)
        with ThreadPoolExecutor(8) as pool:
            same = set(pool.map(lambda _: store.enter(key_hash="one person"), range(8)))
            assert len(same) == 1
            ids = list(pool.map(lambda _: store.enter(), range(11)))
        assert set(Counter(row.list for row in store.rows(slots)).values()) == {3}
        assert store.has_room() == "full"
        place = store.find_position(ids[0])
        with ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(lambda n: answer(store, place, float(n), key=str(n)), range(1, 9)))
        assert sorted(outcomes) == ["repeated"] * 7 + ["stored"]
        finish(store, ids[0])
        store.withdraw(ids[1])
        assert store.has_room() is None
        assert store.forget() == 1
        assert store.has_room() == "full"
        with store.database.engine.connect() as connection:
            assert compare_metadata(MigrationContext.configure(connection), metadata) == []
        store.close()
        Store(study, database).close()


@pytest.mark.slow
def test_postgresql_deletes_an_answer_that_is_stored_while_its_rater_withdraws(tmp_path: Path) -> None:
    with open_postgresql(tmp_path) as database:
        store = Store(make_study(tmp_path / "study"), database)
        place = store.find_position(store.enter())
        with ThreadPoolExecutor(1) as pool:
            with store.database.write() as connection:
                own = store._lock_slot(connection, place.rater, place.slot)
                store.recorder.insert(connection, own, 0, place.steps[0], "k", Answer(value=1.0), shown=0)
                withdrawing = pool.submit(store.withdraw, place.rater)
                time.sleep(0.5)
                assert not withdrawing.done()
            withdrawing.result(60)
        assert store.rows(answers) == []
        store.close()


@pytest.mark.slow
def test_a_postgresql_that_was_restarted_is_connected_to_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("felicity.humans.database.IDLE_SECONDS", 0.0)
    with open_postgresql(tmp_path) as database:
        store = Store(make_study(tmp_path / "study"), database)
        rater = store.enter()
        other = sa.create_engine(database)
        with other.connect() as connection:
            end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            assert connection.exec_driver_sql(end).all()
        other.dispose()
        assert answer(store, store.find_position(rater)) == "stored"
        store.close()


def test_double_clicks_at_the_same_moment_store_one_answer(store: Store) -> None:
    place = store.find_position(store.enter())
    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(lambda n: answer(store, place, float(n), key=str(n)), range(1, 9)))
    assert sorted(outcomes) == ["repeated"] * 7 + ["stored"]
    assert len(store.rows(answers)) == 1


def test_a_full_disk_is_an_error_and_nothing_is_acknowledged(store: Store) -> None:
    rater = store.enter()
    place = store.find_position(rater)
    with store.database.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
    # Every connection of the pool is told that the disk ends here.
    listener = lambda raw, *_: raw.execute(f"PRAGMA max_page_count={pages}")  # noqa: E731
    sa.event.listen(store.database.engine, "checkout", listener)
    big = Answer(raw="x" * 100_000)
    with pytest.raises(StorageFailed, match="full"):
        store.record(rater, place.slot, 0, "k", big, shown=0)
    assert store.find_position(rater).position == 0
    sa.event.remove(store.database.engine, "checkout", listener)
    sa.event.listen(
        store.database.engine, "checkout", lambda raw, *_: raw.execute("PRAGMA max_page_count=1000000")
    )
    assert store.record(rater, place.slot, 0, "k", big, shown=0) == "stored"


def test_no_message_has_what_a_rater_wrote(store: Store) -> None:
    place = store.find_position(store.enter())
    answer(store, place)
    with pytest.raises(sa.exc.IntegrityError) as caught, store.database.write() as connection:
        own = store._lock_slot(connection, place.rater, place.slot)
        secret = Answer(raw="my very secret words")
        store.recorder.insert(connection, own, 0, place.steps[0], "k", secret, shown=0)
    assert "my very secret words" not in str(caught.value)


@pytest.mark.slow
def test_commands_that_open_a_new_postgresql_database_at_once_do_not_race(tmp_path: Path) -> None:
    write_study(tmp_path / "study")
    with open_postgresql(tmp_path) as database:
        command = [sys.executable, "-m", "felicity", "rate", "status", str(tmp_path / "study")]
        running = [
            subprocess.Popen([*command, "--database", database], stdout=-1, stderr=-1, text=True)
            for _ in range(4)
        ]
        said = [process.communicate(timeout=120) for process in running]
        assert [process.returncode for process in running] == [0] * 4, said
        assert all("0 of 6 lists finished" in out for out, _ in said)


def test_sqlite_waits_for_the_disk_at_every_commit(store: Store) -> None:
    with store.database.engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_migrations_make_the_tables_that_the_code_reads(store: Store) -> None:
    with store.database.engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_other_stimuli_are_refused_once_raters_have_begun(tmp_path: Path) -> None:
    Store(make_study(tmp_path, items=4)).close()
    store = Store(make_study(tmp_path, items=5))
    store.enter()
    store.close()
    with pytest.raises(BadInput, match="have changed since 1 raters began"):
        Store(make_study(tmp_path, items=6))


def test_unusable_databases_are_refused_in_a_sentence(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    with pytest.raises(BadInput, match="mysql"):
        Store(study, "mysql://localhost/x")
    with pytest.raises(NotPossible, match="Cannot open the database postgresql"):
        Store(study, "postgresql+psycopg://nobody:secret@127.0.0.1:1/none")
