"""A hundred servers killed while fifty raters answer: nothing acknowledged is lost, nothing is doubled."""

import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from felicity.humans import Population, RatingStudy, Store, hash_platform_id, load_keys, send_raters
from felicity.humans.tables import answers, raters, slots
from felicity.web import find_port
from tests.humans.databases import open_postgresql
from tests.humans.studies import make_study, stimulus_rows

KILLS = 100
RATERS = 50
# More than anybody can answer before the last kill, however fast the machine is; the rest goes quickly.
TRIALS = 200
MORE = f'[platform]\nname = "prolific"\n[design]\nlists = "all"\nquota = {RATERS}\n'


@pytest.fixture
def study(tmp_path: Path) -> RatingStudy:
    return make_study(
        tmp_path / "study", rows=stimulus_rows("likert", items=TRIALS, conditions=("",)), more=MORE
    )


class Killer:
    """Kills servers in a process of its own, and tells when the last one is left alone."""

    def __init__(self, study: RatingStudy, port: int, database: str | None) -> None:
        script = Path(__file__).with_name("kill_server.py")
        command = [sys.executable, str(script), str(study.folder), str(port), str(KILLS), "5"]
        self.process = subprocess.Popen(
            [*command, *([database] if database else [])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.moments: list[float] = []
        self.over = threading.Event()
        self.reader = threading.Thread(target=self.read, args=(self.process.stdout,))
        self.reader.start()

    def read(self, lines: Iterable[str]) -> None:
        for line in lines:
            if line.startswith("killed"):
                self.moments.append(float(line.split()[1]))
            else:
                self.over.set()

    def think(self, rng: random.Random) -> float:
        return 0.0 if self.over.is_set() else rng.uniform(0.2, 1.2)

    def stop(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(300)
        self.reader.join(60)
        self.process.stdout.close()


def check_killed(study: RatingStudy, database: str | None) -> None:
    port = find_port()
    killer = Killer(study, port, database)
    try:
        visits = send_raters(
            f"http://127.0.0.1:{port}",
            study,
            Population(raters=RATERS, double_clicks=0.1),
            at_once=RATERS,
            patience=900,
            think=killer.think,
        )
        ended = time.time()
    finally:
        killer.stop()
    assert len(killer.moments) == KILLS
    # The kills fell while raters were answering.
    assert max(killer.moments) < ended
    store = Store(study, database)
    keys = load_keys(study.folder)
    assert all(visit.code for visit in visits)
    ids = {row.key_hash: row.id for row in store.rows(raters)}
    of_slot = {row.id: row.rater for row in store.rows(slots)}
    assert len(ids) == len(of_slot) == RATERS
    stored: Counter[tuple[str, int, str]] = Counter(
        (of_slot[row.slot], row.row, row.raw) for row in store.rows(answers)
    )
    acknowledged = {
        (ids[hash_platform_id(keys, visit.platform_id)], row, given)
        for visit in visits
        for row, _, given in visit.acknowledged
    }
    assert acknowledged <= set(stored)
    assert set(stored.values()) == {1}
    assert len(stored) == RATERS * TRIALS
    store.close()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_sqlite_loses_nothing_when_the_server_is_killed(study: RatingStudy) -> None:
    check_killed(study, None)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_postgresql_loses_nothing_when_the_server_is_killed(study: RatingStudy, tmp_path: Path) -> None:
    with open_postgresql(tmp_path) as database:
        check_killed(study, database)
