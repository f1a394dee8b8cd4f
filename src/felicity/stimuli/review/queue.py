"""The queue: who is shown what next, and decisions that are made once.

Several people may work at once, in one process or in several. What somebody is looking at is leased to
them for a while, so that two people are not shown the same pair; and whatever they are shown, a
decision is written under the log's lock, where one that has been made already is refused.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from felicity.core.errors import BadInput, NotPossible
from felicity.stimuli.items import clean
from felicity.stimuli.review.log import Log
from felicity.stimuli.review.replay import ACTIONS, EDIT, REJECT, UNDO, Decision, Proposal, State

LEASE_SECONDS = 600.0


class Decided(NotPossible):
    """Somebody else has decided this pair already."""


@dataclass(frozen=True)
class Shown:
    """A pair as it is shown to a reviewer, in the first or the second reading."""

    proposal: Proposal
    round: int


class Queue:
    """A review over a log, for any number of reviewers."""

    def __init__(self, log: Log, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.log = log
        self._state = State()
        self._leases: dict[tuple[str, int], tuple[str, float]] = {}
        self._clock = clock
        self._lock = threading.RLock()

    @property
    def state(self) -> State:
        """The state of the review, whoever wrote to the log."""
        with self._lock:
            return self._state.apply(self.log.read())

    def ask_second(self, share: float) -> None:
        """Have a share of the items read by a second reviewer.

        Raises BadInput for a share outside 0 to 1.
        """
        if not 0.0 <= share <= 1.0:
            raise BadInput(f"A share of {share:g} is not between 0 and 1.")
        with self._lock:
            if self.state.second_share != share:
                self.log.append("second reading", {"share": share})

    def show_next(self, reviewer: str) -> Shown | None:
        """The pair this reviewer decides next: what they were shown last, else the first that is free."""
        _check_name(reviewer)
        with self._lock:
            state, now = self.state, self._clock()
            open_pairs = [Shown(proposal, 1) for proposal in state.waiting]
            open_pairs += [Shown(state.proposals[item], 2) for item in _second_readings(state, reviewer)]
            keys = {(shown.proposal.item, shown.round): shown for shown in open_pairs}
            for key, (holder, _) in self._leases.items():
                if holder == reviewer and key in keys:
                    return self._lease(keys[key], reviewer, now)
            for key, shown in keys.items():
                holder, until = self._leases.get(key, ("", 0.0))
                if not holder or until < now:
                    return self._lease(shown, reviewer, now)
            return None

    def decide(
        self,
        item: str,
        action: str,
        *,
        reviewer: str,
        round: int = 1,
        reason: str = "",
        texts: Sequence[str] | None = None,
    ) -> Decision:
        """Write a decision; `texts` are the two sentences as they were edited.

        Raises Decided if it has been made already, BadInput if it lacks something.
        """
        _check_name(reviewer)
        if action not in ACTIONS:
            raise BadInput(f"'{action}' is not a decision; accept, reject or edit.")
        if action == REJECT and not reason.strip():
            raise BadInput("A rejection needs a reason.")
        edited = [clean(text) for text in texts or ()]
        if action == EDIT and (len(edited) != 2 or not all(" " in text for text in edited)):
            raise BadInput("An edit needs both sentences, of two words or more.")
        with self._lock, self.log.writing() as events:
            state = self._state.apply(events)
            _refuse_decided(state, item, reviewer, round)
            content = {"item": item, "reviewer": reviewer, "round": round}
            content |= {"reason": reason} if action == REJECT else {}
            content |= {"texts": edited} if action == EDIT else {}
            self.log.append(action, content)
            self._state.apply(self.log.read())
            self._leases.pop((item, round), None)
            return self._state.decisions[item, round]

    def undo(self, reviewer: str) -> Decision:
        """Take back the reviewer's last decision, and show them that pair again.

        Raises NotPossible if there is none, or if a second reader has followed.
        """
        _check_name(reviewer)
        with self._lock, self.log.writing() as events:
            state = self._state.apply(events)
            last = state.last_of(reviewer)
            if last is None:
                raise NotPossible(f"{reviewer} has no decision to undo.")
            if last.round == 1 and (last.item, 2) in state.decisions:
                raise NotPossible("A second reader has decided this pair; your first decision stands.")
            content = {"item": last.item, "reviewer": reviewer, "round": last.round, "of": last.n}
            self.log.append(UNDO, content)
            self._state.apply(self.log.read())
            self._leases = {key: lease for key, lease in self._leases.items() if lease[0] != reviewer}
            self._leases[last.item, last.round] = (reviewer, self._clock() + LEASE_SECONDS)
            return last

    def _lease(self, shown: Shown, reviewer: str, now: float) -> Shown:
        self._leases[shown.proposal.item, shown.round] = (reviewer, now + LEASE_SECONDS)
        return shown


def _second_readings(state: State, reviewer: str) -> list[str]:
    """Items of the sample that somebody else has decided and nobody has read again."""
    return [
        item
        for (item, number), decision in state.decisions.items()
        if number == 1
        and decision.reviewer != reviewer
        and state.in_second(item)
        and (item, 2) not in state.decisions
    ]


def _refuse_decided(state: State, item: str, reviewer: str, round: int) -> None:
    if item not in state.proposals:
        raise BadInput(f"There is no pair '{item}' in this queue.")
    done = state.decisions.get((item, round))
    if done:
        raise Decided(f"{done.reviewer} has decided this pair already ({done.action}).")
    if round == 2:
        first = state.decisions.get((item, 1))
        if first is None or first.reviewer == reviewer or not state.in_second(item):
            raise NotPossible(f"The pair '{item}' is not for {reviewer} to read a second time.")


def _check_name(reviewer: str) -> None:
    if not reviewer.strip():
        raise BadInput("A reviewer needs a name; pass --reviewer.")
