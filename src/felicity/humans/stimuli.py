"""The table of stimuli: one row per item and condition, with fillers, practice items and checks."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from felicity.core.errors import BadInput
from felicity.core.files import read_text
from felicity.core.regions import BAR
from felicity.humans.tasks import BLANK, NO_FOIL, READERS, Task, Unanswered

Role = Literal["target", "filler", "practice", "check"]
ROLES: tuple[Role, ...] = ("target", "filler", "practice", "check")
COLUMNS = (
    "item",
    "condition",
    "text",
    "text_b",
    "context",
    "role",
    "type",
    "group",
    "block",
    "list",
    "question",
    "choices",
    "correct",
    "answer",
    "foils",
)
SEPARATOR = "|"


@dataclass(frozen=True)
class Stimulus:
    """One row: what is shown, what it is, and every further column as a factor."""

    row: int
    item: str
    text: str
    condition: str = ""
    text_b: str = ""
    context: str = ""
    role: Role = "target"
    type: str = ""
    group: str = ""
    block: str = ""
    list_name: str = ""
    question: str = ""
    choices: tuple[str, ...] = ()
    correct: str = ""
    answer: str = ""
    foils: tuple[str, ...] = ()
    # Of a timed text that was written with bars between regions: the region of every word, from 1.
    regions: tuple[int, ...] = field(default=(), repr=False)
    line: int = field(default=0, compare=False, repr=False)
    factors: dict[str, str] = field(default_factory=dict)

    def level(self, factor: str) -> str:
        """The value of a design factor: the condition or a further column."""
        return self.condition if factor == "condition" else self.factors.get(factor, "")


@dataclass(frozen=True)
class Origin:
    """What a table of stimuli was written from, and what messages call each of its rows there: `line 3`."""

    name: str
    rows: Sequence[str]


def read_stimuli(path: Path, task: Task, origin: Origin | None = None) -> tuple[Stimulus, ...]:
    """Every stimulus of a .csv or .tsv table, checked against the task.

    Raises BadInput naming the line.
    """
    delimiter = "\t" if path.suffix == ".tsv" else ","
    reader = csv.reader(io.StringIO(read_text(path)), delimiter=delimiter, strict=True)
    rows: list[tuple[int, list[str]]] = []
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num}: not a table ({error}).") from error
    if len(rows) < 2:
        raise BadInput(f"{path} contains no stimuli; it should have a header and one row per stimulus.")
    header = [name.strip() for name in rows[0][1]]
    source = origin.name if origin else str(path)
    for name in ("item", "text"):
        if name not in header:
            raise BadInput(f"{source}, line 1: there is no column '{name}' (columns: {', '.join(header)}).")
    if len(set(header)) != len(header) or not all(header):
        raise BadInput(f"{source}, line 1: a column is unnamed or named twice.")
    stimuli = []
    seen: dict[tuple[str, ...], str] = {}
    for index, (line, cells) in enumerate(rows[1:]):
        if len(cells) != len(header):
            raise BadInput(f"{path}, line {line}: {len(cells)} cells under {len(header)} columns.")
        spot = origin.rows[index] if origin else f"line {line}"
        where = f"{source}, {spot}"
        row = dict(zip(header, (cell.strip() for cell in cells), strict=True))
        stimulus = _build(index, line, row, where, timed=task.kind in ("reading", "maze"))
        _check(stimulus, task, where)
        key = (
            stimulus.role,
            stimulus.item,
            stimulus.condition,
            *stimulus.factors.values(),
            stimulus.list_name,
        )
        if key in seen:
            raise BadInput(
                f"{where}: item '{stimulus.item}' in condition '{stimulus.condition}' is already on "
                f"{seen[key]}; each combination may occur once."
            )
        seen[key] = spot
        stimuli.append(stimulus)
    if not any(stimulus.role == "target" for stimulus in stimuli):
        raise BadInput(f"{source} has no row whose role is 'target', so there is nothing to rate.")
    return tuple(stimuli)


def _build(place: int, line: int, row: dict[str, str], where: str, *, timed: bool) -> Stimulus:
    role = row.get("role", "") or "target"
    if role not in ROLES:
        raise BadInput(f"{where}: role is '{role}'; it should be one of {', '.join(ROLES)}.")
    choices = tuple(part.strip() for part in row.get("choices", "").split(SEPARATOR) if part.strip())
    text, regions = _divide(row["text"]) if timed else (row["text"], ())
    return Stimulus(
        row=place,
        item=row["item"],
        text=text,
        regions=regions,
        condition=row.get("condition", ""),
        text_b=row.get("text_b", ""),
        context=row.get("context", ""),
        role=role,
        type=row.get("type", "") or role,
        group=row.get("group", ""),
        block=row.get("block", ""),
        list_name=row.get("list", ""),
        question=row.get("question", ""),
        choices=choices,
        correct=row.get("correct", ""),
        answer=row.get("answer", ""),
        foils=tuple(row.get("foils", "").split()),
        line=line,
        factors={name: value for name, value in row.items() if name not in COLUMNS},
    )


def _divide(text: str) -> tuple[str, tuple[int, ...]]:
    """A text without the bars between its regions, and the region of every word; none without bars.

    >>> _divide("The horse | raced past | the barn")
    ('The horse raced past the barn', (1, 1, 2, 2, 3, 3))
    """
    pieces = [piece.split() for piece in text.split(BAR)]
    if len(pieces) == 1:
        return text, ()
    words = [(word, number) for number, piece in enumerate(pieces, start=1) for word in piece]
    return " ".join(word for word, _ in words), tuple(number for _, number in words)


def _check(stimulus: Stimulus, task: Task, where: str) -> None:
    if not stimulus.item or not stimulus.text:
        raise BadInput(f"{where}: item and text must not be empty.")
    if task.kind == "choice" and not stimulus.text_b:
        raise BadInput(f"{where}: a forced choice needs the other sentence in the column text_b.")
    if task.kind == "cloze" and stimulus.text.count(BLANK) != 1:
        raise BadInput(f"{where}: a cloze text needs exactly one blank, written {BLANK}.")
    if task.kind == "maze":
        words = stimulus.text.split()
        if len(stimulus.foils) != len(words) or len(words) < 2:
            raise BadInput(
                f"{where}: {len(words)} words but {len(stimulus.foils)} foils; write one foil per word, "
                f"and {NO_FOIL} for the first."
            )
    if stimulus.question and (len(stimulus.choices) < 2 or stimulus.correct not in stimulus.choices):
        raise BadInput(
            f"{where}: a question needs choices separated by {SEPARATOR} and one of them as correct."
        )
    if stimulus.role == "check" and not (stimulus.answer or stimulus.question):
        raise BadInput(f"{where}: a check needs the expected answer in the column answer, or a question.")
    if stimulus.answer and task.kind in READERS:
        try:
            READERS[task.kind](task, stimulus.answer)
        except Unanswered as error:
            raise BadInput(f"{where}: the expected answer '{stimulus.answer}' cannot be given.") from error
