"""A rating study: its pages, task, stimuli, lists and order, as everything else in this room knows them."""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from felicity.core.ids import fingerprint
from felicity.humans.stimuli import Stimulus
from felicity.humans.tasks import Task

PREFER_NOT = "prefer_not_to_say"


@dataclass(frozen=True)
class TextPage:
    """A page of text, in a small subset of Markdown; an empty title means the interface's own."""

    title: str
    text: str


@dataclass(frozen=True)
class Platform:
    """Where raters come from: the URL parameter that identifies them, and where they go at the end."""

    parameter: str = ""
    required: bool = False
    completion_code: str = ""
    completion_url: str = ""
    # The file of the ids that are let in; whether a link needs a signature (`felicity rate links`).
    ids: Path | None = None
    signed: bool = False


@dataclass(frozen=True)
class Question:
    """A multiple-choice question about the instructions."""

    question: str
    choices: tuple[str, ...]
    correct: str


@dataclass(frozen=True)
class Quiz:
    """Questions about the instructions; a rater who still fails after `tries` attempts is screened out."""

    title: str
    tries: int
    questions: tuple[Question, ...]


@dataclass(frozen=True)
class Demographic:
    """A question about the rater, which may always be declined; numbers are binned before storage."""

    name: str
    question: str
    kind: Literal["choice", "number", "text"]
    choices: tuple[str, ...] = ()
    bins: tuple[int, ...] = ()
    minimum: int = 0
    maximum: int = 120


@dataclass(frozen=True)
class Design:
    """How stimuli become lists."""

    lists: Literal["latin", "all", "column"] = "latin"
    between: tuple[str, ...] = ()
    parts: int = 1
    quota: int = 3
    lists_per_rater: int = 1


@dataclass(frozen=True)
class Order:
    """What the order of a list's trials has to respect; None means no constraint."""

    shuffle: bool = True
    blocks: Literal["fixed", "random"] = "fixed"
    fillers_first: int = 0
    most_same_condition: int | None = None
    most_same_type: int | None = None
    least_distance: int | None = None


@dataclass(frozen=True)
class RatingStudy:
    """A study that has been checked: everything the site and the export need to know."""

    folder: Path
    title: str
    language: str
    direction: Literal["ltr", "rtl"]
    consent: TextPage
    agree: str
    task: Task
    stimuli: tuple[Stimulus, ...]
    interface: dict[str, str] = field(repr=False)
    contact: str = ""
    seed: int = 0
    back: bool = False
    lease_minutes: float = 30.0
    # Until the first trial is answered, and altogether; places that one address may have within half an hour.
    start_minutes: float = 10.0
    longest_minutes: float = 180.0
    places_per_address: int = 40
    platform: Platform = Platform()
    information: TextPage | None = None
    instructions: TextPage | None = None
    quiz: Quiz | None = None
    demographics: tuple[Demographic, ...] = ()
    practice: TextPage | None = None
    design: Design = Design()
    order: Order = Order()
    most_failed_checks: int | None = None
    debriefing: TextPage | None = None

    @property
    def consent_hash(self) -> str:
        """sha256 of what a rater agrees to: information, consent text and the wording of the box."""
        parts = [self.information.text if self.information else "", self.consent.text, self.agree]
        return hashlib.sha256("\n\n".join(parts).encode()).hexdigest()

    @property
    def digest(self) -> str:
        """Fingerprint of what stored answers depend on: stimuli, task, design and the course of pages."""
        shape = [
            self.seed,
            repr(self.task.shape),
            [repr(stimulus) for stimulus in self.stimuli],
            repr(self.design.lists) + repr(self.design.between) + repr(self.design.parts),
            [question.name for question in self.demographics],
            bool(self.instructions),
            bool(self.practice),
            len(self.quiz.questions) if self.quiz else 0,
        ]
        return fingerprint(shape)

    @property
    def timed(self) -> bool:
        """Whether the task times words and so needs a keyboard and a script."""
        return self.task.kind in ("reading", "maze")
