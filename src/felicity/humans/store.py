"""Raters, slots and answers: who may answer what next, and every answer stored exactly once.

A list is given out as a slot with a lease. The next rater gets the list with the fewest finished and live
slots; a lease that runs out frees its place without anything having to be deleted. One submitted form is
one transaction: the answer, the new position and, at the end, the completion code are on the disk together.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from felicity.core.errors import BadInput
from felicity.humans.database import Database
from felicity.humans.lists import StimulusList, Trial, build_lists, check_orders, draw_order
from felicity.humans.ordering import Infeasible
from felicity.humans.recording import Outcome, Recorder
from felicity.humans.steps import Step, plan_steps
from felicity.humans.study import Study
from felicity.humans.tables import answers, raters, slots
from felicity.humans.tables import study as study_table
from felicity.humans.tasks import Answer

DATABASE_FILE = "answers.sqlite"
MOST_PLANNED = 5_000
Refusal = Literal["full", "paused", "expired", "withdrawn", "screened", "unknown"]


class Refused(Exception):
    """A rater who cannot go on, with the reason as the site will say it."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Place:
    """Where a rater is: their list, its steps, and the one that waits for an answer."""

    rater: str
    test: bool
    rater_state: str
    code: str | None
    slot: str
    list_name: str
    state: str
    position: int
    steps: tuple[Step, ...]
    lists_done: int
    lease: float

    @property
    def step(self) -> Step | None:
        """The step that waits for an answer, if the list is not finished."""
        return self.steps[self.position] if self.position < len(self.steps) else None


class Store:
    """A study's database, with every rule about slots."""

    def __init__(
        self, study: Study, url: str | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.study = study
        self.lists = build_lists(study)
        self.by_name = {one.name: one for one in self.lists}
        check_orders(study, self.lists)
        self.clock = clock
        self.recorder = Recorder(study, clock)
        # The steps of a slot never change while it has trials, and every request needs them.
        self._planned: dict[tuple[str, int], tuple[Step, ...]] = {}
        self.database = Database(url or sqlite_url(study.folder / DATABASE_FILE))
        self.database.migrate()
        self._claim_database()

    def close(self) -> None:
        """Give up the database."""
        self.database.close()

    def _claim_database(self) -> None:
        """The database belongs to one study; answers to other stimuli do not go into it."""
        with self.database.write() as connection:
            stored = connection.execute(sa.select(study_table.c.digest)).scalar()
            counted = connection.execute(sa.select(sa.func.count()).select_from(raters)).scalar()
            if stored == self.study.digest:
                return
            if stored is None:
                row = {"id": 1, "digest": self.study.digest, "paused": False, "closed": False}
                connection.execute(sa.insert(study_table).values(**row, created=self.clock()))
            elif not counted:
                connection.execute(sa.update(study_table).values(digest=self.study.digest))
            else:
                raise BadInput(
                    f"{self.study.folder / 'study.toml'}: stimuli, task, design or pages have changed since "
                    f"{counted} raters began; undo that, or collect into another database with --database."
                )

    def find_rater(self, key_hash: str) -> str | None:
        """The rater that came with this platform id before."""
        with self.database.read() as connection:
            query = sa.select(raters.c.id).where(raters.c.key_hash == key_hash)
            return connection.execute(query).scalar()

    def knows(self, rater: str) -> bool:
        """Whether there is a rater with this id."""
        with self.database.read() as connection:
            query = sa.select(raters.c.id).where(raters.c.id == rater)
            return connection.execute(query).scalar() is not None

    def has_room(self) -> Refusal | None:
        """Why nobody new can come in now, or None."""
        with self.database.read() as connection:
            row = connection.execute(sa.select(study_table.c.paused, study_table.c.closed)).one()
            if row.paused:
                return "paused"
            counts = self._counts(connection, test=False)
        return "full" if row.closed or min(counts.values()) >= self.study.design.quota else None

    def enter(self, *, key_hash: str | None = None, test: bool = False) -> str:
        """Let a rater in who has just consented, and give them a list; gives the rater's random id.

        A platform id that came before is the same rater, whose place is kept.

        Raises Refused, StorageFailed.
        """
        rater = _random_id()
        row: dict[str, Any] = {
            "id": rater,
            "key_hash": key_hash,
            "test": test,
            "state": "active",
            "created": self.clock(),
            "consent_hash": self.study.consent_hash,
        }
        try:
            with self.database.write() as connection:
                self._lock_study(connection)
                if key_hash is not None:
                    known = sa.select(raters.c.id).where(raters.c.key_hash == key_hash)
                    found = connection.execute(known).scalar()
                    if found is not None:
                        return str(found)
                self._refuse_if_shut(connection, test=test)
                connection.execute(sa.insert(raters).values(**row))
                self._give_list(connection, rater, test=test, first=True)
        except IntegrityError:
            known_rater = self.find_rater(key_hash) if key_hash else None
            if known_rater is None:
                raise
            return known_rater
        return rater

    def next_list(self, rater: str) -> bool:
        """Give a rater who has finished a list another one; gives whether there was one.

        Raises Refused, StorageFailed.
        """
        with self.database.write() as connection:
            self._lock_study(connection)
            row = self._rater(connection, rater)
            if row.state != "active" or self._open_slot(connection, rater) is not None:
                return False
            done = self._slots(connection, rater)
            if len(done) >= self.study.design.lists_per_rater:
                return False
            try:
                self._refuse_if_shut(connection, test=row.test)
                self._give_list(connection, rater, test=row.test, first=False)
            except Refused:
                return False
            return True

    def can_continue(self, rater: str) -> bool:
        """Whether another list could be given to a rater who has finished one."""
        with self.database.read() as connection:
            row = self._rater(connection, rater)
            own = self._slots(connection, rater)
            if len(own) >= self.study.design.lists_per_rater:
                return False
            try:
                self._refuse_if_shut(connection, test=row.test)
            except Refused:
                return False
            return bool(self._usable(connection, own, test=row.test))

    def _refuse_if_shut(self, connection: Connection, *, test: bool) -> None:
        row = connection.execute(sa.select(study_table.c.paused, study_table.c.closed)).one()
        if not test and row.paused:
            raise Refused("paused")
        if not test and row.closed:
            raise Refused("full")

    def _lock_study(self, connection: Connection) -> None:
        """Lists are given out one at a time; SQLite's write transactions are so anyway."""
        connection.execute(sa.select(study_table.c.id).with_for_update())

    def _counts(self, connection: Connection, *, test: bool) -> dict[str, int]:
        """Finished and live slots of every list."""
        live = sa.and_(slots.c.state == "live", slots.c.lease > self.clock())
        query = (
            sa.select(slots.c.list, sa.func.count())
            .join(raters, raters.c.id == slots.c.rater)
            .where(raters.c.test == test, sa.or_(slots.c.state == "finished", live))
            .group_by(slots.c.list)
        )
        counted: dict[str, int] = {row[0]: row[1] for row in connection.execute(query)}
        return {one.name: counted.get(one.name, 0) for one in self.lists}

    def _give_list(self, connection: Connection, rater: str, *, test: bool, first: bool) -> None:
        """Insert a slot of the list with the fewest finished and live slots, at random among equals."""
        usable = self._usable(connection, self._slots(connection, rater), test=test)
        if not usable:
            raise Refused("full")
        fewest = min(usable.values())
        name = secrets.choice([name for name, count in usable.items() if count == fewest])
        turn = self._choose_turn(connection, name)
        trials = self._draw(self.by_name[name], turn)
        now = self.clock()
        connection.execute(
            sa.insert(slots).values(
                id=_random_id(),
                rater=rater,
                list=name,
                turn=turn,
                first=first,
                state="live",
                position=0,
                trials=[[trial.row, trial.flipped] for trial in trials],
                lease=now + 60 * self.study.lease_minutes,
                started=now,
            )
        )

    def _usable(self, connection: Connection, own: Sequence[Any], *, test: bool) -> dict[str, int]:
        """The lists that a rater with these slots may get, with their counts."""
        seen = [self.by_name[row.list] for row in own]
        return {
            name: count
            for name, count in self._counts(connection, test=test).items()
            if (test or count < self.study.design.quota) and not self._overlaps(name, seen)
        }

    def _overlaps(self, name: str, seen: Sequence[StimulusList]) -> bool:
        """Whether a rater has had this list or one of its target items."""
        if any(one.name == name for one in seen):
            return True
        return bool(self._items(self.by_name[name]) & {item for one in seen for item in self._items(one)})

    def _items(self, one: StimulusList) -> set[str]:
        chosen = (self.study.stimuli[row] for row in one.rows)
        return {stimulus.item for stimulus in chosen if stimulus.role == "target"}

    def _choose_turn(self, connection: Connection, name: str) -> int:
        """0 or 1, whichever fewer raters of this list have, so that sides come out even despite drop-outs."""
        live = sa.and_(slots.c.state == "live", slots.c.lease > self.clock())
        query = (
            sa.select(slots.c.turn, sa.func.count())
            .where(slots.c.list == name, sa.or_(slots.c.state == "finished", live))
            .group_by(slots.c.turn)
        )
        counted: dict[int, int] = {row[0]: row[1] for row in connection.execute(query)}
        return int(counted.get(0, 0) > counted.get(1, 0))

    def _draw(self, drawn: StimulusList, turn: int) -> list[Trial]:
        for _ in range(20):
            try:
                return draw_order(self.study, drawn, seed=secrets.randbits(48), turn=turn)
            except Infeasible:
                continue
        # These seeds were found to work before launch.
        return draw_order(self.study, drawn, seed=0, turn=turn)

    def place(self, rater: str) -> Place:
        """Where a rater is now.

        Raises Refused for a rater who is unknown, withdrawn or screened out.
        """
        with self.database.read() as connection:
            return self._place(connection, rater)

    def _place(self, connection: Connection, rater: str) -> Place:
        row = self._rater(connection, rater)
        own = self._slots(connection, rater)
        slot = own[-1]
        return Place(
            rater=rater,
            test=row.test,
            rater_state=row.state,
            code=row.code,
            slot=slot.id,
            list_name=slot.list,
            state=slot.state,
            position=slot.position,
            steps=self._steps(slot),
            lease=slot.lease,
            lists_done=sum(one.state in ("finished", "set_aside") for one in own),
        )

    def _steps(self, slot: Any) -> tuple[Step, ...]:
        key = (slot.id, len(slot.trials))
        if key not in self._planned:
            if len(self._planned) >= MOST_PLANNED:
                self._planned.clear()
            trials = [Trial(row, flipped) for row, flipped in slot.trials]
            self._planned[key] = tuple(plan_steps(self.study, trials, first=slot.first))
        return self._planned[key]

    def _rater(self, connection: Connection, rater: str) -> Any:
        row = connection.execute(sa.select(raters).where(raters.c.id == rater)).one_or_none()
        if row is None:
            raise Refused("unknown")
        if row.state in ("withdrawn", "screened"):
            raise Refused(row.state)
        return row

    def _slots(self, connection: Connection, rater: str) -> Sequence[Any]:
        query = sa.select(slots).where(slots.c.rater == rater).order_by(slots.c.started)
        return connection.execute(query).all()

    def _open_slot(self, connection: Connection, rater: str) -> Any:
        query = sa.select(slots).where(slots.c.rater == rater, slots.c.state == "live")
        return connection.execute(query.with_for_update()).one_or_none()

    def record(self, rater: str, slot: str, step: int, key: str, answer: Answer, *, shown: float) -> Outcome:
        """Store the answer to a step, exactly once.

        key: the idempotency key of the form; the same key again changes nothing. shown: when the page was
        sent. A step behind the current one is left alone, unless the study allows going back.

        Raises Refused where the slot is lost, StorageFailed where nothing was stored.
        """
        with self.database.write() as connection:
            row = self._rater(connection, rater)
            query = sa.select(slots).where(slots.c.id == slot, slots.c.rater == rater).with_for_update()
            own = connection.execute(query).one_or_none()
            if own is None:
                raise Refused("unknown")
            steps = self._steps(own)
            if own.state != "live" or step < own.position:
                return self.recorder.revise(connection, own, steps, step, key, answer)
            if step > own.position or step >= len(steps):
                return "ahead"
            lease = self._renew_lease(connection, own, test=row.test)
            if steps[step].kind == "quiz":
                outcome = self.recorder.try_quiz(connection, own, step, key, answer)
                if outcome is not None:
                    return outcome
            else:
                self.recorder.insert(connection, own, step, steps[step], key, answer, shown=shown)
            if self.recorder.fails_screening(connection, own, steps[step], answer):
                self.recorder.screen_out(connection, own)
                return "screened"
            return self.recorder.advance(connection, own, len(steps), lease)

    def complete(self, rater: str) -> None:
        """Give the completion code to a rater who has finished at least one list and wants no more."""
        with self.database.write() as connection:
            self._rater(connection, rater)
            if self._open_slot(connection, rater) is None:
                self.recorder.complete(connection, rater)

    def stored(self, slot: str, step: int) -> str | None:
        """The answer a rater gave at a step, as it was sent."""
        query = sa.select(answers.c.raw).where(answers.c.slot == slot, answers.c.step == step)
        with self.database.read() as connection:
            return connection.execute(query).scalar()

    def _renew_lease(self, connection: Connection, own: Any, *, test: bool) -> float:
        """When a lease ends that begins now; refused if the old one ran out and another has the place."""
        now = self.clock()
        if own.lease <= now and not test:
            self._lock_study(connection)
            if self._counts(connection, test=False)[own.list] >= self.study.design.quota:
                raise Refused("expired")
        return now + 60 * self.study.lease_minutes

    def extend(self, rater: str) -> None:
        """A sign of life: the lease of this rater's open slot runs anew.

        Raises Refused where the place was given to another.
        """
        with self.database.write() as connection:
            row = self._rater(connection, rater)
            own = self._open_slot(connection, rater)
            if own is None:
                return
            lease = self._renew_lease(connection, own, test=row.test)
            connection.execute(sa.update(slots).where(slots.c.id == own.id).values(lease=lease))

    def check_lease(self, rater: str) -> None:
        """Refuse a rater whose place was given to another while they were away.

        Raises Refused.
        """
        with self.database.read() as connection:
            row = self._rater(connection, rater)
            query = sa.select(slots).where(slots.c.rater == rater, slots.c.state == "live")
            own = connection.execute(query).one_or_none()
            if own is None or row.test or own.lease > self.clock():
                return
            if self._counts(connection, test=False)[own.list] >= self.study.design.quota:
                raise Refused("expired")

    def withdraw(self, rater: str) -> None:
        """Delete everything a rater has answered and free the slot."""
        with self.database.write() as connection:
            row = connection.execute(sa.select(raters.c.id).where(raters.c.id == rater)).one_or_none()
            if row is None:
                raise Refused("unknown")
            own = sa.select(slots.c.id).where(slots.c.rater == rater)
            connection.execute(sa.delete(answers).where(answers.c.slot.in_(own)))
            connection.execute(
                sa.update(slots)
                .where(slots.c.rater == rater)
                .values(state="withdrawn", trials=[], position=0)
            )
            connection.execute(
                sa.update(raters).where(raters.c.id == rater).values(state="withdrawn", code=None)
            )

    def pause(self, paused: bool) -> None:
        """Let nobody new in, or again; who has begun may go on."""
        with self.database.write() as connection:
            connection.execute(sa.update(study_table).values(paused=paused))

    def paused(self) -> bool:
        """Whether nobody new is let in at the moment."""
        with self.database.read() as connection:
            return bool(connection.execute(sa.select(study_table.c.paused)).scalar_one())

    def closed(self) -> bool:
        """Whether the platform ids were forgotten, after which nobody new is let in."""
        with self.database.read() as connection:
            return bool(connection.execute(sa.select(study_table.c.closed)).scalar_one())

    def forget(self) -> int:
        """Drop every hash of a platform id and close the study to new raters; gives how many there were."""
        with self.database.write() as connection:
            connection.execute(sa.update(study_table).values(closed=True))
            changed = sa.update(raters).where(raters.c.key_hash.is_not(None)).values(key_hash=None)
            return int(connection.execute(changed).rowcount)

    def set_aside(self, kept: dict[str, bool]) -> int:
        """Count or set aside the finished slots of raters; gives how many changed.

        The place of a slot that is set aside is open again.
        """
        changed = 0
        with self.database.write() as connection:
            self._lock_study(connection)
            for rater, keep in kept.items():
                here, there = ("set_aside", "finished") if keep else ("finished", "set_aside")
                where = sa.and_(slots.c.rater == rater, slots.c.state == here)
                changed += connection.execute(sa.update(slots).where(where).values(state=there)).rowcount
        return changed

    def rows(self, table: sa.Table) -> Sequence[Any]:
        """Every row of a table."""
        with self.database.read() as connection:
            return connection.execute(sa.select(table)).all()


def sqlite_url(path: Path) -> str:
    """The address of a SQLite file."""
    return str(sa.URL.create("sqlite", database=str(path)))


def _random_id() -> str:
    return secrets.token_hex(6)
