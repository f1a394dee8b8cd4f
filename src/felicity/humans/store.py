"""Raters, slots and answers: who may answer what next, and every answer stored exactly once.

One submitted form is one transaction: the answer, the new position and, at the end, the completion code are
on the disk together.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection
from sqlalchemy.exc import IntegrityError

from felicity.core.errors import BadInput
from felicity.core.schemas import SIMULATED_RATER
from felicity.humans.assignment import Assigner, RaterRefused, Refusal, find_rater_id, random_id
from felicity.humans.database import Database
from felicity.humans.lists import Trial, build_lists, check_orders
from felicity.humans.recording import Outcome, Recorder
from felicity.humans.steps import Step, plan_steps
from felicity.humans.study import RatingStudy
from felicity.humans.tables import answers, raters, slots
from felicity.humans.tables import study as study_table
from felicity.humans.tasks import Answer

DATABASE_FILE = "answers.sqlite"
MOST_PLANNED = 5_000
# States of a list that its rater can no longer answer.
LOST = ("released", "lapsed")
# States of a list that was answered to its end.
DONE = ("finished", "set_aside")

# Every answer and every page needs these, so they are built once. A slot's trials are read only where its
# steps are not known yet: they are by far its longest column and never change.
_SLOT = [
    *(column for column in slots.c if column.name != "trials"),
    raters.c.test,
    raters.c.code,
    raters.c.state.label("rater_state"),
]
_OF_RATER = (
    sa.select(*_SLOT)
    .join(raters, raters.c.id == slots.c.rater)
    .where(raters.c.id == sa.bindparam("of_rater"))
    .order_by(slots.c.number)
)
_LOCKED = (
    sa.select(*_SLOT)
    .join(raters, raters.c.id == slots.c.rater)
    .where(slots.c.id == sa.bindparam("of_slot"), raters.c.id == sa.bindparam("of_rater"))
    .with_for_update(of=slots)
)
_TRIALS = sa.select(slots.c.trials, slots.c.first).where(slots.c.id == sa.bindparam("of_slot"))


@dataclass(frozen=True)
class RaterPosition:
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
    """A study's database, with every rule about who may answer what.

    simulated: whoever comes is a simulated rater.
    """

    def __init__(
        self,
        study: RatingStudy,
        url: str | None = None,
        *,
        clock: Callable[[], float] = time.time,
        simulated: bool = False,
    ) -> None:
        self.study = study
        # Marked in every id, so that it stays with every row of every table.
        self.prefix = SIMULATED_RATER if simulated else ""
        self.lists = build_lists(study)
        check_orders(study, self.lists)
        self.clock = clock
        self.assigner = Assigner(study, self.lists, clock)
        self.recorder = Recorder(study, clock)
        self._planned: dict[str, tuple[Step, ...]] = {}
        self.database = Database(url or sqlite_url(study.folder / DATABASE_FILE))
        self.database.migrate()
        self._claim_database()

    def close(self) -> None:
        """Close the database."""
        self.database.close()

    def _claim_database(self) -> None:
        """The database belongs to one study; answers to other stimuli do not go into it."""
        with self.database.set_up() as connection:
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
        with self.database.autocommit() as connection:
            query = sa.select(raters.c.id).where(raters.c.key_hash == key_hash)
            return connection.execute(query).scalar()

    def knows(self, rater: str) -> bool:
        """Whether there is a rater with this id."""
        with self.database.autocommit() as connection:
            query = sa.select(raters.c.id).where(raters.c.id == rater)
            return connection.execute(query).scalar() is not None

    def has_room(self) -> Refusal | None:
        """Why nobody new can come in now, or None."""
        with self.database.read() as connection:
            row = connection.execute(sa.select(study_table.c.paused, study_table.c.closed)).one()
            if row.paused:
                return "paused"
            counts = self.assigner.counts(connection, test=False)
        return "full" if row.closed or min(counts.values()) >= self.study.design.quota else None

    def enter(
        self,
        *,
        key_hash: str | None = None,
        test: bool = False,
        session: str | None = None,
        keep: Callable[[], None] | None = None,
    ) -> str:
        """Let a rater in who has just consented, and give them a list; gives the rater's random id.

        A platform id that came before is the same rater, whose place is kept. So is a session, a random word:
        a consent form that is sent twice lets one person in. keep: writes the platform id down for payment,
        at a moment when the study can be neither closed nor forgotten.

        Raises RaterRefused, StorageFailed.
        """
        rater = self.prefix + (random_id() if session is None else find_rater_id(session))
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
                self.assigner.lock(connection)
                # A hash that is None equals nothing in SQL.
                same = sa.or_(raters.c.id == rater, raters.c.key_hash == sa.bindparam("of_hash"))
                existing = connection.execute(
                    sa.select(raters.c.id).where(same), {"of_hash": key_hash}
                ).scalar()
                if existing is not None:
                    return str(existing)
                self.assigner.refuse_if_closed(connection, test=test)
                connection.execute(sa.insert(raters).values(**row))
                self.assigner.give(connection, rater, (), test=test, first=True)
                if keep is not None:
                    keep()
        except IntegrityError:
            known_rater = self.find_rater(key_hash) if key_hash else None
            if known_rater is None:
                raise
            return known_rater
        return rater

    def next_list(self, rater: str) -> bool:
        """Give a rater who has finished a list another one; gives whether there was one.

        Raises RaterRefused, StorageFailed.
        """
        with self.database.write() as connection:
            self.assigner.lock(connection)
            owned = self._slots(connection, rater)
            active = owned[-1].rater_state == "active" and owned[-1].state in DONE
            if not active or len(owned) >= self.study.design.lists_per_rater:
                return False
            try:
                self.assigner.refuse_if_closed(connection, test=owned[-1].test)
                self.assigner.give(connection, rater, owned, test=owned[-1].test, first=False)
            except RaterRefused:
                return False
            return True

    def can_continue(self, rater: str) -> bool:
        """Whether another list could be given to a rater who has finished one."""
        with self.database.read() as connection:
            owned = self._slots(connection, rater)
            if len(owned) >= self.study.design.lists_per_rater:
                return False
            try:
                self.assigner.refuse_if_closed(connection, test=owned[-1].test)
            except RaterRefused:
                return False
            return bool(self.assigner.usable(connection, owned, test=owned[-1].test))

    def find_position(self, rater: str) -> RaterPosition:
        """Where a rater is now.

        Raises RaterRefused for a rater who is unknown, withdrawn or screened out.
        """
        with self.database.autocommit() as connection:
            owned = self._slots(connection, rater)
            steps = self._steps(connection, owned[-1].id)
        slot = owned[-1]
        return RaterPosition(
            rater=rater,
            test=slot.test,
            rater_state=slot.rater_state,
            code=slot.code,
            slot=slot.id,
            list_name=slot.list,
            state=slot.state,
            position=slot.position,
            steps=steps,
            lease=slot.lease,
            lists_done=sum(one.state in DONE for one in owned),
        )

    def steps(self, slot: str) -> tuple[Step, ...]:
        """The steps of a slot; none if there is no such slot or its rater has withdrawn."""
        # Another thread may forget it at any moment.
        steps = self._planned.get(slot)
        if steps is not None:
            return steps
        with self.database.autocommit() as connection:
            return self._steps(connection, slot)

    def _steps(self, connection: Connection, slot: str) -> tuple[Step, ...]:
        planned = self._planned.get(slot)
        if planned is not None:
            return planned
        row = connection.execute(_TRIALS, {"of_slot": slot}).one_or_none()
        if row is None or not row.trials:
            return ()
        trials = [Trial(index, flipped) for index, flipped in row.trials]
        steps = tuple(plan_steps(self.study, trials, first=row.first))
        if len(self._planned) >= MOST_PLANNED:
            self._planned.clear()
        self._planned[slot] = steps
        return steps

    def _slots(self, connection: Connection, rater: str) -> Sequence[Any]:
        """The slots of a rater who may go on, the latest last.

        Raises RaterRefused.
        """
        owned = connection.execute(_OF_RATER, {"of_rater": rater}).all()
        if not owned:
            raise RaterRefused("unknown")
        _refuse_if_out(owned[-1])
        return owned

    def _lock_slot(self, connection: Connection, rater: str, slot: str) -> Any:
        locked = connection.execute(_LOCKED, {"of_slot": slot, "of_rater": rater}).one_or_none()
        if locked is None:
            raise RaterRefused("unknown")
        _refuse_if_out(locked)
        return locked

    def record(
        self,
        rater: str,
        slot: str,
        step: int,
        key: str,
        answer: Answer,
        *,
        shown: float,
        revise: bool = True,
    ) -> Outcome:
        """Store the answer to a step, exactly once.

        key: the idempotency key of the form; the same key again changes nothing. shown: when the page was
        sent. A step behind the current one is left alone, unless the study allows going back and `revise`
        does, too.

        Raises RaterRefused if the slot is lost, StorageFailed if nothing was stored.
        """
        with self.database.write() as connection:
            locked = self._lock_slot(connection, rater, slot)
            steps = self._steps(connection, slot)
            if locked.state in LOST:
                raise RaterRefused("expired")
            if locked.state != "live" or step < locked.position:
                if not revise:
                    return "repeated"
                return self.recorder.revise(connection, locked, steps, step, key, answer)
            if step > locked.position or step >= len(steps):
                return "ahead"
            lease = self.assigner.renew_lease(connection, locked, worked=_has_worked(locked, steps, step + 1))
            if steps[step].kind == "quiz":
                outcome = self.recorder.try_quiz(connection, locked, step, key, answer, lease=lease)
                if outcome is not None:
                    return outcome
            else:
                self.recorder.insert(connection, locked, step, steps[step], key, answer, shown=shown)
            if self.recorder.fails_screening(connection, locked, steps[step], answer):
                self.recorder.screen_out(connection, locked)
                return "screened"
            return self.recorder.advance(connection, locked, len(steps), lease)

    def complete(self, rater: str) -> None:
        """Give the completion code to a rater who has finished at least one list and wants no more."""
        with self.database.write() as connection:
            owned = self._slots(connection, rater)
            last = self._lock_slot(connection, rater, owned[-1].id)
            if last.state != "live" and any(slot.state in DONE for slot in (*owned[:-1], last)):
                self.recorder.complete(connection, rater)

    def stored(self, slot: str, step: int) -> str | None:
        """The answer a rater gave at a step, as it was sent."""
        query = sa.select(answers.c.raw).where(answers.c.slot == slot, answers.c.step == step)
        with self.database.autocommit() as connection:
            return connection.execute(query).scalar()

    def extend(self, rater: str) -> None:
        """Renew the lease of this rater's open slot, if it has not run out and a trial has been answered.

        A page that is only left open takes no place up again.

        Raises RaterRefused if there is no such rater.
        """
        with self.database.write() as connection:
            locked = self._lock_slot(connection, rater, self._slots(connection, rater)[-1].id)
            worked = _has_worked(locked, self._steps(connection, locked.id), locked.position)
            if locked.state != "live" or locked.lease <= self.clock() or not worked:
                return
            lease = self.assigner.new_lease(locked.started, worked=True)
            connection.execute(sa.update(slots).where(slots.c.id == locked.id).values(lease=lease))

    def check_lease(self, rater: str) -> None:
        """Refuse a rater whose place was given to another while they were away.

        Raises RaterRefused.
        """
        with self.database.read() as connection:
            newest = self._slots(connection, rater)[-1]
            if newest.state in LOST:
                raise RaterRefused("expired")
            if newest.state == "live" and not newest.test and newest.lease <= self.clock():
                self.assigner.refuse_if_taken(connection, newest)

    def settle(self, rater: str) -> bool:
        """Give the completion code to a rater who has lost a further list but finished one before.

        Gives whether there was a finished one; the list that was lost counts as dropped.

        Raises RaterRefused if there is no such rater.
        """
        with self.database.write() as connection:
            owned = self._slots(connection, rater)
            if not any(slot.state in DONE for slot in owned):
                return False
            lost = sa.and_(slots.c.id == owned[-1].id, slots.c.state == "live")
            connection.execute(sa.update(slots).where(lost).values(state="lapsed"))
            self.recorder.complete(connection, rater)
            return True

    def release(self, *, idle: float | None = None, only: Sequence[str] = ()) -> list[str]:
        """Free the places of raters who have not finished, for good; gives the raters who lost one.

        idle: those who have stored no answer for so many minutes. only: those with these ids.
        """
        last = (
            sa.select(answers.c.slot, sa.func.max(answers.c.created).label("at"))
            .group_by(answers.c.slot)
            .subquery()
        )
        active = sa.func.coalesce(last.c.at, slots.c.started)
        query = (
            sa.select(slots.c.id, slots.c.rater)
            .join(raters, raters.c.id == slots.c.rater)
            .outerjoin(last, last.c.slot == slots.c.id)
            .where(slots.c.state == "live", raters.c.test.is_(False))
            .order_by(slots.c.started)
        )
        if idle is not None:
            query = query.where(active <= self.clock() - 60 * idle)
        if only:
            query = query.where(slots.c.rater.in_(only))
        with self.database.write() as connection:
            self.assigner.lock(connection)
            chosen = connection.execute(query).all()
            freed = []
            for row in chosen:
                # Somebody may have finished at this moment.
                still = sa.and_(slots.c.id == row.id, slots.c.state == "live")
                if connection.execute(sa.update(slots).where(still).values(state="released")).rowcount:
                    freed.append(str(row.rater))
        return freed

    def withdraw(self, rater: str) -> None:
        """Delete everything a rater has answered and free the slot; `erase` then removes it from the file.

        Doing it again changes nothing.

        Raises RaterRefused if there is no such rater, StorageFailed if nothing was deleted.
        """
        with self.database.write() as connection:
            # An answer that is being stored at this moment is waited for, so that it is deleted as well.
            locked = sa.select(slots.c.id).where(slots.c.rater == rater).with_for_update()
            owned = connection.execute(locked).scalars().all()
            if not owned:
                raise RaterRefused("unknown")
            here = sa.and_(raters.c.id == rater, raters.c.state != "withdrawn")
            gone = {"state": "withdrawn", "code": None}
            if not connection.execute(sa.update(raters).where(here).values(**gone)).rowcount:
                return
            connection.execute(sa.delete(answers).where(answers.c.slot.in_(owned)))
            connection.execute(
                sa.update(slots)
                .where(slots.c.rater == rater)
                .values(state="withdrawn", trials=[], position=0)
            )
            if self.database.sqlite:
                connection.execute(sa.update(study_table).values(unerased=study_table.c.unerased + 1))
        for slot in owned:
            self._planned.pop(slot, None)

    def unerased(self) -> int:
        """How many withdrawals may still be readable in a file of the database.

        PostgreSQL's own vacuum comes later; to write its tables anew would lock everybody out meanwhile.
        """
        with self.database.autocommit() as connection:
            return int(connection.execute(sa.select(study_table.c.unerased)).scalar_one())

    def erase(self, *, patience: float = 0.0) -> None:
        """Write the database anew, so that what was withdrawn or forgotten is not in its files either.

        patience: for how many seconds another program that is reading the old state is waited for.

        Raises StorageFailed; it may then still be in the file, so try again.
        """
        count = self.unerased()
        self.database.erase_deleted(raters, patience=patience)
        with self.database.write() as connection:
            connection.execute(sa.update(study_table).values(unerased=study_table.c.unerased - count))

    def pause(self, paused: bool) -> None:
        """Let nobody new in, or again; whoever has begun may go on."""
        with self.database.write() as connection:
            connection.execute(sa.update(study_table).values(paused=paused))

    def paused(self) -> bool:
        """Whether nobody new is let in at the moment."""
        with self.database.autocommit() as connection:
            return bool(connection.execute(sa.select(study_table.c.paused)).scalar_one())

    def closed(self) -> bool:
        """Whether the platform ids were forgotten, after which nobody new is let in."""
        with self.database.autocommit() as connection:
            return bool(connection.execute(sa.select(study_table.c.closed)).scalar_one())

    def forget(self) -> int:
        """Drop every hash of a platform id and close the study to new raters; gives how many there were.

        When this returns nobody's id is written any more: `enter` does so only while the study is open. The
        hashes may be readable in the file until `erase`.

        Raises StorageFailed.
        """
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
            self.assigner.lock(connection)
            for rater, keep in kept.items():
                here, there = ("set_aside", "finished") if keep else ("finished", "set_aside")
                where = sa.and_(slots.c.rater == rater, slots.c.state == here)
                changed += connection.execute(sa.update(slots).where(where).values(state=there)).rowcount
        return changed

    def rows(self, table: sa.Table) -> Sequence[Any]:
        """Every row of a table."""
        with self.database.autocommit() as connection:
            return connection.execute(sa.select(table)).all()


def _has_worked(slot: Any, steps: Sequence[Step], reached: int) -> bool:
    """Whether the rater of a slot has answered a trial, once the steps before `reached` are answered."""
    return not slot.first or any(step.trial is not None for step in steps[:reached])


def _refuse_if_out(slot: Any) -> None:
    if slot.rater_state in ("withdrawn", "screened"):
        raise RaterRefused(slot.rater_state)


def sqlite_url(path: Path) -> str:
    """The address of a SQLite file."""
    return str(sa.URL.create("sqlite", database=str(path)))
