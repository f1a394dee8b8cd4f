"""What a log amounts to: proposals, refusals and standing decisions, as a pure function of its lines."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from felicity.core.errors import BadInput
from felicity.stimuli.items import Pair, split_target
from felicity.stimuli.review.log import Event

ACCEPT, REJECT, EDIT, UNDO = "accept", "reject", "edit", "undo"
ACTIONS = (ACCEPT, REJECT, EDIT)
ACCEPTED, WAITING = "accepted", "waiting for a decision"
# A row of the paper's tables is several rules; what no row names goes to the last one.
PAPER_ROWS: dict[str, dict[str, tuple[str, ...]]] = {
    "negation": {
        "duplicates": ("duplicate",),
        "empty lines": ("empty",),
        "only negated sentences": ("unpaired",),
        "others": (),
    },
    "role": {
        "duplicates": ("duplicate",),
        "no pair, or simple sentences": ("unpaired", "another form"),
        "empty lines": ("empty",),
        "repeated instructions or partial sentences": ("echo", "half sentence"),
        "semantically wrong, or a wrong reversal": (),
    },
}


@dataclass(frozen=True)
class Proposal:
    """A pair that waits for people; `flags` are rules with their reasons."""

    item: str
    texts: tuple[str, str]
    flags: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Decision:
    """What a reviewer decided, in the first or the second reading; `n` is the line of the log."""

    n: int
    item: str
    reviewer: str
    action: str
    round: int
    reason: str = ""
    texts: tuple[str, str] | None = None


@dataclass
class State:
    """The state of a review. `second_share` of the items are read by a second reviewer."""

    proposals: dict[str, Proposal] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    refusals: list[Event] = field(default_factory=list)
    decisions: dict[tuple[str, int], Decision] = field(default_factory=dict)
    second_share: float = 0.0
    applied: int = 0

    def apply(self, events: Sequence[Event]) -> "State":
        """Apply the events that are new; gives itself.

        Raises BadInput if one lacks what it should say.
        """
        for event in events[self.applied :]:
            try:
                self._take(event)
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                raise BadInput(
                    f"Line {self.applied + 1} of the log is not one that felicity wrote; restore the file "
                    "from a copy."
                ) from error
            self.applied += 1
        return self

    def _take(self, event: Event) -> None:
        kind = event["event"]
        if kind == "propose":
            flags = tuple((str(rule), str(reason)) for rule, reason in event["flags"])
            self.proposals[event["item"]] = Proposal(event["item"], _two(event["texts"]), flags)
        elif kind == "refuse":
            self.refused[event["rule"]] += len(event["texts"])
            self.refusals.append(event)
        elif kind in ACTIONS:
            texts = _two(event["texts"]) if event.get("texts") else None
            decision = Decision(
                event["n"],
                event["item"],
                event["reviewer"],
                kind,
                event["round"],
                event.get("reason", ""),
                texts,
            )
            self.decisions[decision.item, decision.round] = decision
        elif kind == UNDO:
            self.decisions.pop((event["item"], event["round"]), None)
        elif kind == "second reading":
            self.second_share = float(event["share"])

    def in_second(self, item: str) -> bool:
        """Whether an item belongs to the sample for a second reader; always the same one."""
        digest = hashlib.sha256(f"second/{item}".encode()).digest()
        return int.from_bytes(digest[:8], "big") < self.second_share * 2**64

    def last_of(self, reviewer: str) -> Decision | None:
        """The reviewer's latest decision that stands."""
        own = [decision for decision in self.decisions.values() if decision.reviewer == reviewer]
        return max(own, key=lambda decision: decision.n, default=None)

    @property
    def accepted(self) -> list[Pair]:
        """The dataset: pairs accepted in the first reading, as they were edited, in the order proposed."""
        found = []
        for item, proposal in self.proposals.items():
            decision = self.decisions.get((item, 1))
            if decision and decision.action != REJECT:
                found.append(Pair(item, *(decision.texts or proposal.texts)))
        return found

    @property
    def waiting(self) -> list[Proposal]:
        """Proposals without a decision."""
        return [proposal for item, proposal in self.proposals.items() if (item, 1) not in self.decisions]


def replay_log(events: Sequence[Event]) -> State:
    """The state that a log leads to."""
    return State().apply(events)


def count_outcomes(state: State) -> dict[str, int]:
    """How many sentences had which outcome: each rule, each reason of people, accepted, waiting."""
    outcomes: Counter[str] = Counter(state.refused)
    for item in state.proposals:
        decision = state.decisions.get((item, 1))
        outcome = WAITING if decision is None else decision.reason if decision.action == REJECT else ACCEPTED
        outcomes[outcome] += 2
    return dict(outcomes)


def tabulate_rejections(state: State, rows: Mapping[str, Iterable[str]] | None = None) -> pl.DataFrame:
    """Sentences rejected by category: columns category, sentences, percent (of all that were generated).

    `rows` gathers rules under the names of a published table (`PAPER_ROWS`); without it each rule and
    each reason of people is a row. The sum of all rejections and what was accepted come last.
    """
    outcomes = count_outcomes(state)
    kept = {name: outcomes.pop(name) for name in (ACCEPTED, WAITING) if name in outcomes}
    if rows is None:
        counts = dict(sorted(outcomes.items(), key=lambda entry: -entry[1]))
    else:
        home = {rule: name for name, rules in rows.items() for rule in rules}
        counts = dict.fromkeys(rows, 0)
        for rule, number in outcomes.items():
            counts[home.get(rule, next(reversed(counts)))] += number
    total = sum(counts.values()) + sum(kept.values())
    counts |= {"rejected": sum(counts.values()), **kept, "generated": total}
    return pl.DataFrame(
        [(name, number, 100.0 * number / total if total else 0.0) for name, number in counts.items()],
        schema={"category": pl.String(), "sentences": pl.Int64(), "percent": pl.Float64()},
        orient="row",
    )


def balance_targets(state: State) -> pl.DataFrame:
    """How often each word is the target among accepted pairs: columns target, first, second, both."""
    counts: dict[str, list[int]] = {}
    for pair in state.accepted:
        for place, sentence in enumerate(pair.sentences):
            counts.setdefault(split_target(sentence)[1].lower(), [0, 0])[place] += 1
    rows = [(word, one, two, one + two) for word, (one, two) in counts.items()]
    schema = {"target": pl.String(), "first": pl.Int64(), "second": pl.Int64(), "both": pl.Int64()}
    return pl.DataFrame(rows, schema=schema, orient="row").sort("both", "target", descending=[True, False])


def list_second_readings(state: State) -> pl.DataFrame:
    """Items that two reviewers decided: columns item, first, second, each `accept` or `reject`."""
    rows = []
    for item in state.proposals:
        one, two = state.decisions.get((item, 1)), state.decisions.get((item, 2))
        if one and two:
            both = [REJECT if decision.action == REJECT else ACCEPT for decision in (one, two)]
            rows.append((item, *both))
    schema = {"item": pl.String(), "first": pl.String(), "second": pl.String()}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _two(texts: Sequence[str]) -> tuple[str, str]:
    if len(texts) != 2:
        raise BadInput(f"A pair has two sentences, not {len(texts)}.")
    return str(texts[0]), str(texts[1])
