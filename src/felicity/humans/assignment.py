"""Which list a rater gets, and how long the place is kept for them.

A list is given out as a slot with a lease. The next rater gets the list with the fewest finished and live
slots; a lease that runs out frees its place without anything having to be deleted. Until the first trial is
answered the lease is short; an open page prolongs it only afterwards, and not for ever. Every method runs
inside a transaction of the store.
"""

import hashlib
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from felicity.humans.lists import StimulusList, Trial, draw_order
from felicity.humans.ordering import Infeasible
from felicity.humans.study import RatingStudy
from felicity.humans.tables import raters, slots
from felicity.humans.tables import study as study_table

Refusal = Literal["full", "paused", "expired", "withdrawn", "screened", "unknown"]


class RaterRefused(Exception):
    """A rater who cannot go on, with the reason that the site will show."""

    def __init__(self, reason: Refusal) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Assigner:
    """Gives out the lists of one study."""

    study: RatingStudy
    lists: Sequence[StimulusList]
    clock: Callable[[], float]

    def lock(self, connection: Connection) -> None:
        """Lists are given out one at a time; SQLite's write transactions are serial anyway."""
        connection.execute(sa.select(study_table.c.id).with_for_update())

    def refuse_if_closed(self, connection: Connection, *, test: bool) -> None:
        """Raises RaterRefused if nobody new is let in; test runs always are."""
        row = connection.execute(sa.select(study_table.c.paused, study_table.c.closed)).one()
        if not test and row.paused:
            raise RaterRefused("paused")
        if not test and row.closed:
            raise RaterRefused("full")

    def counts(self, connection: Connection, *, test: bool) -> dict[str, int]:
        """Finished and live slots of every list."""
        query = (
            sa.select(slots.c.list, sa.func.count())
            .join(raters, raters.c.id == slots.c.rater)
            .where(raters.c.test == test, self._taken())
            .group_by(slots.c.list)
        )
        counted: dict[str, int] = {row[0]: row[1] for row in connection.execute(query)}
        return {one.name: counted.get(one.name, 0) for one in self.lists}

    def usable(self, connection: Connection, slots_of_rater: Sequence[Any], *, test: bool) -> dict[str, int]:
        """The lists that a rater with these slots may get, with their counts."""
        seen = [self._named(row.list) for row in slots_of_rater]
        return {
            name: count
            for name, count in self.counts(connection, test=test).items()
            if (test or count < self.study.design.quota) and not self._overlaps(name, seen)
        }

    def give(
        self, connection: Connection, rater: str, slots_of_rater: Sequence[Any], *, test: bool, first: bool
    ) -> None:
        """Insert a slot of the list with the fewest finished and live slots, at random among equals.

        slots_of_rater: those the rater has already. Raises RaterRefused if no list is left for this rater.
        """
        usable = self.usable(connection, slots_of_rater, test=test)
        if not usable:
            raise RaterRefused("full")
        fewest = min(usable.values())
        name = secrets.choice([name for name, count in usable.items() if count == fewest])
        turn = self._choose_turn(connection, name)
        trials = self._draw(self._named(name), turn)
        connection.execute(
            sa.insert(slots).values(
                id=random_id(),
                rater=rater,
                list=name,
                number=len(slots_of_rater) + 1,
                turn=turn,
                first=first,
                state="live",
                position=0,
                trials=[[trial.row, trial.flipped] for trial in trials],
                lease=self.new_lease(self.clock(), worked=not first),
                started=self.clock(),
            )
        )

    def new_lease(self, started: float, *, worked: bool) -> float:
        """When a lease ends that begins now, of a slot that was given out at a time.

        worked: whether the rater has answered a trial. Without, the place is kept for less, so that somebody
        who takes many places must work for each of them; none is kept for ever.
        """
        now = self.clock()
        minutes = self.study.lease_minutes if worked else self.study.start_minutes
        # A clock that was set back must not make a lease of any length.
        return min(now + 60 * minutes, min(started, now) + 60 * self.study.longest_minutes)

    def renew_lease(self, connection: Connection, slot: Any, *, worked: bool) -> float:
        """A new lease for a slot; refused if the old one ran out and somebody else has the place."""
        if slot.lease <= self.clock() and not slot.test:
            self.lock(connection)
            self.refuse_if_taken(connection, slot)
        return self.new_lease(slot.started, worked=worked)

    def refuse_if_taken(self, connection: Connection, slot: Any) -> None:
        """Raises RaterRefused if the list of a slot whose lease ran out is complete without it."""
        if self.counts(connection, test=False)[slot.list] >= self.study.design.quota:
            raise RaterRefused("expired")

    def _named(self, name: str) -> StimulusList:
        return next(one for one in self.lists if one.name == name)

    def _overlaps(self, name: str, seen: Sequence[StimulusList]) -> bool:
        """Whether a rater has had this list or one of its target items."""
        if any(one.name == name for one in seen):
            return True
        had = {item for one in seen for item in self._items(one)}
        return bool(had) and bool(self._items(self._named(name)) & had)

    def _items(self, one: StimulusList) -> set[str]:
        chosen = (self.study.stimuli[row] for row in one.rows)
        return {stimulus.item for stimulus in chosen if stimulus.role == "target"}

    def _taken(self) -> Any:
        """Slots that count against the quota: finished ones, and live ones whose lease runs."""
        live = sa.and_(slots.c.state == "live", slots.c.lease > self.clock())
        return sa.or_(slots.c.state == "finished", live)

    def _choose_turn(self, connection: Connection, name: str) -> int:
        """0 or 1, whichever fewer raters of this list have, so that sides come out even despite drop-outs."""
        query = (
            sa.select(slots.c.turn, sa.func.count())
            .where(slots.c.list == name, self._taken())
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


def find_rater_id(session: str) -> str:
    """The id of the rater of a session, always the same and as random as the session is."""
    return hashlib.sha256(session.encode()).hexdigest()[:12]


def random_id() -> str:
    """An id that says nothing about the rater or slot it stands for."""
    return secrets.token_hex(6)
