"""What a rater is asked to do with a stimulus, and how an answer is read.

Every task takes the fields of one submitted form and gives one `Answer`; what is missing or impossible
is refused with the name of an interface string, so that the message is in the study's language.
"""

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from felicity.humans.stimuli import Stimulus
    from felicity.humans.study_file import Reader

Kind = Literal[
    "likert", "binary", "choice", "slider", "magnitude", "cloze", "continuation", "reading", "maze"
]
KINDS: tuple[Kind, ...] = (
    "likert",
    "binary",
    "choice",
    "slider",
    "magnitude",
    "cloze",
    "continuation",
    "reading",
    "maze",
)
BLANK = "___"
NO_FOIL = "x-x-x"
LONGEST_WORD_MS = 600_000
# What a browser measures of its screen and clock while words are read.
FRAME_FIELDS = ("frames", "hz", "dropped", "longest_ms", "clock_ms")
# Fewer keys than this share of the answer's characters: it was not typed where it was sent.
LEAST_TYPED = 0.5

FIELDS: dict[str, tuple[str, ...]] = {
    "likert": ("points", "labels", "numbers"),
    "binary": ("options", "flip"),
    "choice": ("flip",),
    "slider": ("low", "high", "minimum", "maximum"),
    "magnitude": ("modulus", "reference"),
    "cloze": ("longest",),
    "continuation": ("longest",),
    "reading": ("display",),
    "maze": ("on_error",),
}


@dataclass(frozen=True)
class Task:
    """The question under every stimulus; only the fields of its own kind matter."""

    kind: Kind
    question: str
    labels: tuple[str, ...] = ()
    points: int = 0
    numbers: bool = True
    options: tuple[str, ...] = ()
    flip: bool = True
    low: str = ""
    high: str = ""
    minimum: int = 0
    maximum: int = 100
    modulus: float = 0.0
    reference: str = ""
    longest: int = 0
    display: str = "window"
    on_error: str = "stop"
    highlight: bool = False
    fast_ms: int = 300

    @property
    def shape(self) -> tuple[object, ...]:
        """What stored answers depend on, wording left out."""
        return (self.kind, self.points, len(self.options), self.minimum, self.maximum, self.modulus)

    @property
    def scale(self) -> tuple[float, float] | None:
        """The lowest and the highest answer on a rating scale; None if answers are something else."""
        ends = {"likert": (1.0, float(self.points)), "slider": (float(self.minimum), float(self.maximum))}
        return ends.get(self.kind)

    @property
    def numeric(self) -> bool:
        """Whether an answer is a number that can be averaged."""
        return self.kind in ("likert", "binary", "choice", "slider", "magnitude")


@dataclass(frozen=True)
class Answer:
    """One answer as it is stored."""

    value: float | None = None
    raw: str = ""
    normalised: str | None = None
    correct: bool | None = None
    rt_ms: float | None = None
    flags: tuple[str, ...] = ()
    detail: dict[str, Any] = field(default_factory=dict)


class Unanswered(Exception):
    """A form without a usable answer; `message` names the interface string that says what is missing."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def read_task(reader: "Reader") -> Task:
    """The section [task] of a study file.

    Raises BadInput naming line and field.
    """
    document = reader.document
    kind: Kind = reader.choice(("task", "kind"), KINDS, "")  # type: ignore[assignment]
    document.only(("task",), ("kind", "question", "highlight", "fast_ms", *FIELDS[kind]))
    question = "" if kind in ("reading", "maze") else document.text(("task", "question"))
    points, labels = _scale(reader) if kind == "likert" else (0, ())
    options = reader.texts(("task", "options"))
    if kind == "binary" and len(options) != 2:
        document.fail(("task", "options"), 'should be two texts, such as ["yes", "no"]')
    minimum = reader.whole(("task", "minimum"), 0, least=-1_000_000)
    maximum = reader.whole(("task", "maximum"), 100)
    if maximum <= minimum:
        document.fail(("task", "maximum"), f"is {maximum}, not above the minimum {minimum}")
    if kind == "slider" and not (reader.has("task", "low") and reader.has("task", "high")):
        document.fail(("task", "low"), "and 'high' should name the two ends of the slider")
    modulus = reader.whole(("task", "modulus"), 100, least=1)
    return Task(
        kind=kind,
        question=reader.text(("task", "question"), question),
        labels=labels,
        points=points,
        numbers=reader.flag(("task", "numbers"), True),
        options=options,
        flip=reader.flag(("task", "flip"), kind == "choice"),
        low=reader.text(("task", "low")),
        high=reader.text(("task", "high")),
        minimum=minimum,
        maximum=maximum,
        modulus=float(modulus),
        reference=document.text(("task", "reference")) if kind == "magnitude" else "",
        longest=reader.whole(("task", "longest"), 60 if kind == "cloze" else 500, least=1, most=5_000),
        display=reader.choice(("task", "display"), ("window", "centred"), "window"),
        on_error=reader.choice(("task", "on_error"), ("stop", "repeat"), "stop"),
        highlight=reader.flag(("task", "highlight"), False),
        fast_ms=reader.whole(("task", "fast_ms"), 300),
    )


def _scale(reader: "Reader") -> tuple[int, tuple[str, ...]]:
    """Points and a label for each: all labels given, or the two ends and a number of points."""
    labels = reader.texts(("task", "labels"))
    points = reader.whole(("task", "points"), len(labels), least=2, most=11)
    if len(labels) == points >= 2:
        return points, labels
    if len(labels) != 2:
        reader.document.fail(
            ("task", "labels"),
            f"has {len(labels)} texts for {points} points; give one for each point, or only the two ends",
        )
    return points, (labels[0], *[""] * (points - 2), labels[1])


def read_answer(task: Task, stimulus: "Stimulus", form: Mapping[str, str], *, flipped: bool) -> Answer:
    """The answer in a submitted form.

    flipped: whether the two sides of this trial were exchanged. Raises Unanswered.
    """
    flags = [] if form.get("script") else ["no_script"]
    rt = _milliseconds(form.get("rt", ""))
    if rt is not None and rt < task.fast_ms:
        flags.append("fast")
    if form.get("away"):
        flags.append("left_page")
    given = form.get("answer", "").replace("\x00", "")
    if task.kind in ("reading", "maze"):
        return _read_times(task, stimulus, form, flipped=flipped, flags=flags)
    if task.kind in ("cloze", "continuation"):
        return _read_text(task, given, form, rt, flags)
    value = READERS[task.kind](task, given)
    correct = None
    if stimulus.answer:
        correct = value == READERS[task.kind](task, stimulus.answer)
    return Answer(value=value, raw=given[:100], correct=correct, rt_ms=rt, flags=tuple(flags))


def _read_point(task: Task, given: str) -> float:
    if not re.fullmatch(r"[0-9]{1,2}", given) or not 1 <= int(given) <= task.points:
        raise Unanswered("please_answer")
    return float(given)


def _read_option(task: Task, given: str) -> float:
    """The first option is 1, the second 0, wherever it stood on the page."""
    names = ("a", "b") if task.kind == "choice" else ("1", "0")
    if given in task.options:
        given = names[task.options.index(given)]
    if given not in names:
        raise Unanswered("please_answer")
    return 1.0 if given == names[0] else 0.0


def _read_slider(task: Task, given: str) -> float:
    value = _number(given)
    if value is None or not task.minimum <= value <= task.maximum:
        raise Unanswered("please_number")
    return value


def _read_magnitude(_task: Task, given: str) -> float:
    value = _number(given)
    if value is None or value <= 0 or value > 1e12:
        raise Unanswered("please_positive")
    return value


READERS = {
    "likert": _read_point,
    "binary": _read_option,
    "choice": _read_option,
    "slider": _read_slider,
    "magnitude": _read_magnitude,
}


def _number(given: str) -> float | None:
    """A number as people write it: a decimal comma is a decimal point."""
    text = unicodedata.normalize("NFKC", given).strip().replace(",", ".")
    if not re.fullmatch(r"[+-]?([0-9]{1,15}(\.[0-9]{0,15})?|\.[0-9]{1,15})", text):
        return None
    return float(text)


def _read_text(task: Task, given: str, form: Mapping[str, str], rt: float | None, flags: list[str]) -> Answer:
    text = given.strip()
    if not text or len(text) > task.longest or not any(letter.isalnum() for letter in text):
        raise Unanswered("please_write" if len(text) <= task.longest else "too_long")
    typed = _milliseconds(form.get("typed", ""))
    if form.get("pasted"):
        flags.append("pasted")
    elif form.get("script") and typed is not None and typed < LEAST_TYPED * len(text):
        flags.append("not_typed")
    detail = {"typed": int(typed)} if typed is not None else {}
    return Answer(raw=given, normalised=normalise_text(given), rt_ms=rt, flags=tuple(flags), detail=detail)


def normalise_text(text: str) -> str:
    """An answer as it is compared: compatible characters, lower case, single spaces, no outer punctuation.

    >>> normalise_text('  The  DOG. ')
    'the dog'
    """
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    inside = [place for place, letter in enumerate(plain) if unicodedata.category(letter)[0] not in "PZS"]
    return plain[inside[0] : inside[-1] + 1] if inside else plain


def _read_times(
    task: Task, stimulus: "Stimulus", form: Mapping[str, str], *, flipped: bool, flags: list[str]
) -> Answer:
    """Reading times word by word, as the script measured them between event time stamps."""
    try:
        rows = json.loads(form.get("times", ""))
    except (ValueError, RecursionError) as error:
        raise Unanswered("needs_script") from error
    words = stimulus.text.split()
    complete = isinstance(rows, list) and 0 < len(rows) <= len(words)
    if not complete or not all(_usable(row) for row in rows):
        raise Unanswered("needs_script")
    right = [bool(row["correct"]) for row in rows]
    stopped = task.kind == "maze" and task.on_error == "stop" and not right[-1]
    if len(rows) < len(words) and not stopped:
        raise Unanswered("needs_script")
    times = [round(float(row["ms"]), 2) for row in rows]
    detail: dict[str, Any] = {"ms": times}
    frames = read_frames(form.get("frames", ""))
    if frames is not None:
        detail["frames"] = frames
    if task.kind == "maze":
        detail |= {"correct": right, "left": maze_sides(stimulus, flipped=flipped)[: len(rows)]}
    return Answer(
        value=None,
        raw="",
        correct=all(right) if task.kind == "maze" else None,
        rt_ms=round(sum(times), 2),
        flags=tuple(flags),
        detail=detail,
    )


def maze_sides(stimulus: "Stimulus", *, flipped: bool) -> list[bool]:
    """For each word of a Maze sentence, whether it stands on the left."""
    order = []
    for place in range(len(stimulus.text.split())):
        bit = (stimulus.row * 2_654_435_761 + place * 40_503) >> 7 & 1
        order.append(bool(bit) != flipped)
    return order


def _usable(row: object) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("correct"), bool):
        return False
    return _is_measured(row.get("ms"))


def read_frames(given: str) -> dict[str, float | None] | None:
    """What the browser says about its screen and clock during a trial; None if it says nothing usable.

    >>> read_frames('{"frames": 90, "hz": 60.0, "dropped": 1, "longest_ms": 33.4, "clock_ms": 0.1, "x": 2}')
    {'frames': 90.0, 'hz': 60.0, 'dropped': 1.0, 'longest_ms': 33.4, 'clock_ms': 0.1}
    """
    try:
        found = json.loads(given)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not _is_measured(found.get("frames")):
        return None
    return {name: float(found[name]) if _is_measured(found.get(name)) else None for name in FRAME_FIELDS}


def _is_measured(value: object) -> bool:
    # A comparison, since a whole number of hundreds of digits has no other test that it passes.
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_WORD_MS


def _milliseconds(text: str) -> float | None:
    value = _number(text)
    return value if value is not None and 0 <= value <= 1e9 else None
