"""What an answer changes in the database: the answer itself, the position, screening, the completion code.

Every function runs inside a transaction of the store, which has locked the slot.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from felicity.humans.steps import Step
from felicity.humans.study import RatingStudy
from felicity.humans.tables import answers, raters, slots
from felicity.humans.tasks import Answer

CODE_ALPHABET = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
# Every answer needs these two, so they are built once.
_INSERT = sa.insert(answers)
_ADVANCE = (
    sa.update(slots)
    .where(slots.c.id == sa.bindparam("of_slot"))
    .values(position=sa.bindparam("to_position"), lease=sa.bindparam("to_lease"))
)
Outcome = Literal["stored", "repeated", "revised", "ahead", "try_again", "screened", "finished"]


@dataclass(frozen=True)
class Recorder:
    """Writes the answers of one study."""

    study: RatingStudy
    clock: Callable[[], float]

    def _values(self, step: Step, answer: Answer, key: str, server_ms: float) -> dict[str, Any]:
        role = step.stimulus(self.study).role if step.trial else ""
        return {
            "kind": step.kind,
            "row": step.trial.row if step.trial else None,
            "trial": step.number,
            "role": role,
            "key": key,
            "value": answer.value,
            "raw": answer.raw,
            "normalised": answer.normalised,
            "correct": answer.correct,
            "rt_ms": answer.rt_ms,
            "server_ms": round(server_ms, 1),
            "flags": list(answer.flags),
            "detail": answer.detail,
            "created": self.clock(),
            "revised": 0,
        }

    def insert(
        self,
        connection: Connection,
        slot: Any,
        step: int,
        planned: Step,
        key: str,
        answer: Answer,
        *,
        shown: float,
    ) -> None:
        """Store the answer to the step that is due."""
        values = self._values(planned, answer, key, 1000 * (self.clock() - shown))
        connection.execute(_INSERT, {"slot": slot.id, "step": step, **values})

    def revise(
        self, connection: Connection, slot: Any, steps: Sequence[Step], step: int, key: str, answer: Answer
    ) -> Outcome:
        """Replace an earlier answer if the study allows it; a form sent before changes nothing."""
        where = sa.and_(answers.c.slot == slot.id, answers.c.step == step)
        stored = connection.execute(sa.select(answers.c.key, answers.c.revised).where(where)).one_or_none()
        back = self.study.back and slot.state == "live" and step < len(steps) and steps[step].kind == "trial"
        if stored is None or stored.key == key or not back:
            return "repeated"
        values = self._values(steps[step], answer, key, 0.0)
        values |= {"revised": stored.revised + 1}
        del values["server_ms"], values["created"]
        connection.execute(sa.update(answers).where(where).values(**values))
        return "revised"

    def try_quiz(
        self, connection: Connection, slot: Any, step: int, key: str, answer: Answer, *, lease: float
    ) -> Outcome | None:
        """Count a try; None if the rater may go on."""
        where = sa.and_(answers.c.slot == slot.id, answers.c.step == step)
        stored = connection.execute(sa.select(answers).where(where)).one_or_none()
        if stored is not None and stored.key == key:
            # The page's script sends a form again to show what the server says to it.
            return "repeated" if stored.correct else "try_again"
        tries = (stored.detail["tries"] if stored else 0) + 1
        values = self._values(Step("quiz"), answer, key, 0.0)
        values["detail"] = {**answer.detail, "tries": tries}
        if stored is None:
            connection.execute(sa.insert(answers).values(slot=slot.id, step=step, **values))
        else:
            connection.execute(sa.update(answers).where(where).values(**values))
        if answer.correct:
            return None
        if self.study.quiz and tries < self.study.quiz.tries:
            connection.execute(sa.update(slots).where(slots.c.id == slot.id).values(lease=lease))
            return "try_again"
        self.screen_out(connection, slot)
        return "screened"

    def fails_screening(self, connection: Connection, slot: Any, step: Step, answer: Answer) -> bool:
        """Whether this answer is one failed attention check too many."""
        most = self.study.most_failed_checks
        if most is None or answer.correct is not False or step.trial is None:
            return False
        if step.stimulus(self.study).role != "check":
            return False
        query = sa.select(sa.func.count()).where(
            answers.c.slot == slot.id, answers.c.role == "check", answers.c.correct.is_(False)
        )
        return int(connection.execute(query).scalar_one()) > most

    def screen_out(self, connection: Connection, slot: Any) -> None:
        """End the study for a rater and free the place."""
        connection.execute(sa.update(slots).where(slots.c.id == slot.id).values(state="screened"))
        connection.execute(sa.update(raters).where(raters.c.id == slot.rater).values(state="screened"))

    def advance(self, connection: Connection, slot: Any, total: int, lease: float) -> Outcome:
        """Go on to the next step; after the last one the list is finished, with the completion code."""
        position = slot.position + 1
        connection.execute(_ADVANCE, {"of_slot": slot.id, "to_position": position, "to_lease": lease})
        if position < total:
            return "stored"
        ended = {"state": "finished", "finished": self.clock()}
        connection.execute(sa.update(slots).where(slots.c.id == slot.id).values(**ended))
        if self.study.design.lists_per_rater == 1:
            self.complete(connection, slot.rater)
        return "finished"

    def complete(self, connection: Connection, rater: str) -> None:
        """Give a rater the completion code."""
        code = self.study.platform.completion_code or _random_code()
        where = sa.and_(raters.c.id == rater, raters.c.state == "active")
        connection.execute(sa.update(raters).where(where).values(state="finished", code=code))


def _random_code() -> str:
    return "".join(secrets.choice(CODE_ALPHABET) for _ in range(10))
