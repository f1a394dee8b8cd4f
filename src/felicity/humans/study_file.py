"""The study file: one TOML file that holds everything a rater will read and everything the design needs.

It is read once, before launch; whatever is wrong with it is refused with file, line and field.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Formatter
from typing import Any
from urllib.parse import urlsplit

from felicity.core.documents import Document, Where, parse_document
from felicity.core.errors import BadInput
from felicity.core.files import read_text
from felicity.humans.interface import INTERFACES, read_interface
from felicity.humans.stimuli import Origin, Stimulus, read_stimuli
from felicity.humans.study import Demographic, Design, Order, Platform, Question, Quiz, RatingStudy, TextPage
from felicity.humans.tasks import read_task

STUDY_FILE = "study.toml"
RIGHT_TO_LEFT = frozenset(("ar", "arc", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"))
PLATFORMS = {"prolific": "PROLIFIC_PID", "sona": "survey_code", "mturk": "workerId"}

SECTIONS = {
    "study": (
        *("title", "language", "interface", "direction", "contact", "seed", "back"),
        *("lease_minutes", "start_minutes", "longest_minutes", "places_per_address"),
    ),
    "platform": ("name", "parameter", "required", "completion_code", "completion_url", "ids", "signed"),
    "information": ("title", "text"),
    "consent": ("title", "text", "agree"),
    "instructions": ("title", "text"),
    "quiz": ("title", "tries", "questions"),
    "demographics": ("name", "question", "kind", "choices", "bins", "minimum", "maximum"),
    "practice": ("title", "text"),
    "stimuli": ("file",),
    "design": ("lists", "between", "parts", "quota", "lists_per_rater"),
    "order": (
        "shuffle",
        "blocks",
        "fillers_first",
        "most_same_condition",
        "most_same_type",
        "least_distance",
    ),
    "screening": ("most_failed_checks",),
    "debriefing": ("title", "text"),
}
# Where a study says nothing else: minutes from page to page until the first trial is answered, and how
# many leases somebody may keep a place for altogether.
START_MINUTES = 10
LONGEST_LEASES = 6
LONGEST_LEASE = 7 * 24 * 60
# A class of 30 behind one address, some of whom begin again in another browser.
PLACES_PER_ADDRESS = 40
# As wide as the columns of the database.
LONGEST_CODE = 64
REQUIRED = ("study", "consent", "task", "stimuli")


def read_rating_study(folder: Path, *, origin: Origin | None = None) -> RatingStudy:
    """Read and check the study in a folder (or the study file itself).

    origin: what the stimuli were written from; messages then name its rows instead.

    Raises BadInput naming file, line and reason.
    """
    path = folder / STUDY_FILE if folder.is_dir() or folder.suffix != ".toml" else folder
    if not path.exists():
        raise BadInput(f"There is no {path}; write one with `felicity rate new {folder} --from TABLE`.")
    document = parse_document(path, read_text(path).replace("\r\n", "\n"))
    document.only((), (*SECTIONS, "task", "interface"))
    for name in REQUIRED:
        if name not in document.content:
            document.fail((name,), f"is missing; a study needs a section [{name}]")
    for name, fields in SECTIONS.items():
        _check_fields(document, name, fields)
    return _build(Reader(document), origin)


def _check_fields(document: Document, name: str, fields: Sequence[str]) -> None:
    if name not in document.content:
        return
    if name != "demographics":
        document.only((name,), fields)
        return
    for place in range(len(document.get((name,), list, "a list of tables [[demographics]]"))):
        document.only((name, place), fields)


@dataclass(frozen=True)
class Reader:
    """Fields of a document that may be absent, each checked for its kind and range."""

    document: Document

    def has(self, *where: str | int) -> bool:
        """Whether the field is in the file."""
        value: Any = self.document.content
        for part in where:
            if isinstance(part, int):
                if not isinstance(value, list) or part >= len(value):
                    return False
            elif not isinstance(value, dict) or part not in value:
                return False
            value = value[part]
        return True

    def text(self, where: Where, default: str = "") -> str:
        """A text, which must not be empty if the field is there."""
        return self.document.text(where) if self.has(*where) else default

    def texts(self, where: Where) -> tuple[str, ...]:
        """A list of different texts, none of them empty."""
        if not self.has(*where):
            return ()
        values = tuple(value.strip() for value in self.document.texts(where))
        if not all(values):
            self.document.fail(where, "has an empty text in it")
        if len(set(values)) != len(values):
            self.document.fail(where, "has the same text twice")
        return values

    def whole(self, where: Where, default: int, *, least: int = 0, most: int = 1_000_000) -> int:
        """A whole number in a range."""
        if not self.has(*where):
            return default
        value = int(self.document.get(where, int, "a whole number"))
        if not least <= value <= most:
            self.document.fail(where, f"is {value}; it should be from {least} to {most}")
        return value

    def optional(self, where: Where, *, least: int = 1) -> int | None:
        """A whole number, or None if the field is absent."""
        return self.whole(where, 0, least=least) if self.has(*where) else None

    def flag(self, where: Where, default: bool) -> bool:
        """true or false."""
        return bool(self.document.get(where, bool, "true or false")) if self.has(*where) else default

    def choice(self, where: Where, choices: Sequence[str], default: str) -> str:
        """One of some words."""
        value = self.text(where, default)
        if value not in choices:
            self.document.fail(where, f"is '{value}'; it should be one of {', '.join(choices)}")
        return value

    def page(self, name: str) -> TextPage | None:
        """A section with a title of its own or the interface's, and a text."""
        if not self.has(name):
            return None
        return TextPage(self.text((name, "title")), self.document.text((name, "text")))


def _build(reader: Reader, origin: Origin | None) -> RatingStudy:
    document = reader.document
    language = reader.text(("study", "language"), "en")
    base = language.split("-")[0].lower()
    task = read_task(reader)
    stimuli = read_stimuli(_stimuli_path(reader), task, origin)
    consent = reader.page("consent")
    if consent is None:
        document.fail(("consent",), "is missing")
    lease = reader.whole(("study", "lease_minutes"), 30, least=1, most=LONGEST_LEASE)
    default_direction = "rtl" if base in RIGHT_TO_LEFT else "ltr"
    study = RatingStudy(
        folder=document.path.parent,
        title=document.text(("study", "title")),
        language=language,
        direction=reader.choice(("study", "direction"), ("ltr", "rtl"), default_direction),  # type: ignore[arg-type]
        interface=_interface(reader, base),
        contact=reader.text(("study", "contact")),
        seed=reader.whole(("study", "seed"), 0),
        back=reader.flag(("study", "back"), False),
        lease_minutes=lease,
        start_minutes=reader.whole(
            ("study", "start_minutes"), min(START_MINUTES, lease), least=1, most=lease
        ),
        longest_minutes=reader.whole(
            ("study", "longest_minutes"),
            LONGEST_LEASES * lease,
            least=lease,
            most=LONGEST_LEASES * LONGEST_LEASE,
        ),
        places_per_address=reader.whole(("study", "places_per_address"), PLACES_PER_ADDRESS),
        platform=_platform(reader),
        information=reader.page("information"),
        consent=consent,
        agree=document.text(("consent", "agree"), "the wording of the box to tick"),
        instructions=reader.page("instructions"),
        quiz=_quiz(reader),
        demographics=_demographics(reader),
        practice=reader.page("practice"),
        task=task,
        stimuli=stimuli,
        design=_design(reader, stimuli),
        order=_order(reader),
        most_failed_checks=reader.optional(("screening", "most_failed_checks"), least=0),
        debriefing=reader.page("debriefing"),
    )
    if study.timed and study.back:
        document.fail(("study", "back"), f"cannot be true: a timed task ({task.kind}) is answered once")
    return study


def _stimuli_path(reader: Reader) -> Path:
    name = reader.text(("stimuli", "file"), "stimuli.csv")
    path = reader.document.path.parent / name
    if not path.is_file():
        reader.document.fail(("stimuli", "file"), f"names {path}, which does not exist")
    return path


def _interface(reader: Reader, base: str) -> dict[str, str]:
    """The words of buttons and messages: a built-in language, with the study's own on top."""
    document = reader.document
    name = reader.text(("study", "interface"), base)
    texts = {}
    if reader.has("interface"):
        english = read_interface("en")
        document.only(("interface",), tuple(english))
        texts = {key: document.text(("interface", key)) for key in document.content["interface"]}
        for key, text in texts.items():
            _check_placeholders(document, key, text, english[key])
    if name in INTERFACES:
        return read_interface(name) | texts
    missing = [key for key in read_interface("en") if key not in texts]
    if missing:
        where = ("study", "interface" if reader.has("study", "interface") else "language")
        document.fail(
            where,
            f"is '{name}', for which felicity has no interface ({', '.join(INTERFACES)}); set "
            f"study.interface to one of them, or give every string in [interface] (missing: {missing[0]})",
        )
    return texts


def _check_placeholders(document: Document, key: str, text: str, english: str) -> None:
    """Refuse what could not be filled in when a rater opens the page."""
    names = {name for _, name, _, _ in Formatter().parse(english) if name is not None}
    if not names:
        # Shown as it is written.
        return
    allowed = " and ".join(f"{{{name}}}" for name in sorted(names))
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        document.fail(("interface", key), f"has a single brace; write {allowed}, and {{{{ for a brace")
    for _, name, form, conversion in parts:
        if name is not None and (name not in names or form or conversion):
            document.fail(("interface", key), f"has the placeholder '{{{name}}}'; it may have {allowed}")


def _platform(reader: Reader) -> Platform:
    name = reader.choice(("platform", "name"), (*PLATFORMS, "other", "none"), "none")
    parameter = reader.text(("platform", "parameter"), PLATFORMS.get(name, ""))
    if name == "other" and not parameter:
        reader.document.fail(("platform", "name"), "is 'other'; name its URL parameter in platform.parameter")
    if parameter and not parameter.replace("_", "").replace("-", "").isalnum():
        reader.document.fail(("platform", "parameter"), "should be letters, digits, - and _ only")
    url = reader.text(("platform", "completion_url"))
    if url and (urlsplit(url).scheme not in ("https", "http") or not urlsplit(url).netloc):
        reader.document.fail(("platform", "completion_url"), f"is '{url}', not an https:// address")
    code = reader.text(("platform", "completion_code"))
    if len(code) > LONGEST_CODE or not code.isprintable():
        reader.document.fail(
            ("platform", "completion_code"),
            f"should be at most {LONGEST_CODE} printable characters; it has {len(code)}",
        )
    ids = reader.text(("platform", "ids"))
    signed = reader.flag(("platform", "signed"), False)
    required = reader.flag(("platform", "required"), bool(parameter))
    for name, chosen in (("ids", ids), ("signed", signed)):
        if chosen and not (parameter and required):
            reader.document.fail(
                ("platform", name), "needs a platform whose id is required; set platform.name"
            )
    return Platform(
        parameter=parameter,
        required=required,
        completion_code=code,
        completion_url=url,
        ids=reader.document.path.parent / ids if ids else None,
        signed=signed,
    )


def _quiz(reader: Reader) -> Quiz | None:
    if not reader.has("quiz"):
        return None
    document = reader.document
    questions = []
    for place in range(len(document.get(("quiz", "questions"), list, "a list [[quiz.questions]]"))):
        where = ("quiz", "questions", place)
        document.only(where, ("question", "choices", "correct"))
        choices = reader.texts((*where, "choices"))
        correct = document.text((*where, "correct"))
        if len(choices) < 2:
            document.fail((*where, "choices"), "needs at least two choices")
        if correct not in choices:
            document.fail((*where, "correct"), f"is '{correct}', which is not one of the choices")
        questions.append(Question(document.text((*where, "question")), choices, correct))
    tries = reader.whole(("quiz", "tries"), 2, least=1, most=10)
    return Quiz(reader.text(("quiz", "title")), tries, tuple(questions))


def _demographics(reader: Reader) -> tuple[Demographic, ...]:
    document = reader.document
    questions: list[Demographic] = []
    for place in range(len(document.content.get("demographics", []))):
        where = ("demographics", place)
        name = document.text((*where, "name"))
        if not name.isidentifier() or name in {other.name for other in questions}:
            document.fail(
                (*where, "name"), f"is '{name}'; it should be one word, different for each question"
            )
        kind = reader.choice((*where, "kind"), ("choice", "number", "text"), "choice")
        choices = reader.texts((*where, "choices"))
        if kind == "choice" and len(choices) < 2:
            document.fail((*where, "choices"), "needs at least two choices")
        bins = _bins(reader, (*where, "bins"))
        if bins and kind != "number":
            document.fail((*where, "bins"), "is only for questions of kind 'number'")
        questions.append(
            Demographic(
                name=name,
                question=document.text((*where, "question")),
                kind=kind,  # type: ignore[arg-type]
                choices=choices,
                bins=bins,
                minimum=reader.whole((*where, "minimum"), 0),
                maximum=reader.whole((*where, "maximum"), 120),
            )
        )
    return tuple(questions)


def _bins(reader: Reader, where: Where) -> tuple[int, ...]:
    if not reader.has(*where):
        return ()
    values = reader.document.get(where, list, "a list of whole numbers")
    whole = all(isinstance(value, int) and not isinstance(value, bool) for value in values)
    if not whole or not values or values != sorted(set(values)):
        reader.document.fail(where, "should be whole numbers in ascending order, such as [18, 25, 35, 50]")
    return tuple(values)


def _design(reader: Reader, stimuli: tuple[Stimulus, ...]) -> Design:
    between = reader.texts(("design", "between"))
    factors = {"condition"} | {name for stimulus in stimuli for name in stimulus.factors}
    for name in between:
        if name not in factors:
            columns = ", ".join(sorted(factors))
            reader.document.fail(
                ("design", "between"),
                f"names '{name}', which is not a column of the stimuli (columns: {columns})",
            )
    lists = reader.choice(("design", "lists"), ("latin", "all", "column"), "latin")
    if lists == "column" and not any(stimulus.list_name for stimulus in stimuli):
        reader.document.fail(("design", "lists"), "is 'column', but the stimuli have no column 'list'")
    for stimulus in stimuli if lists == "column" else ():
        if len(stimulus.list_name) > LONGEST_CODE or not stimulus.list_name.isprintable():
            reader.document.fail(
                ("design", "lists"),
                f"is 'column', but the list on line {stimulus.line} of the stimuli has a name of "
                f"{len(stimulus.list_name)} characters; use at most {LONGEST_CODE} printable ones",
            )
    return Design(
        lists=lists,  # type: ignore[arg-type]
        between=between,
        parts=reader.whole(("design", "parts"), 1, least=1),
        quota=reader.whole(("design", "quota"), 3, least=1),
        lists_per_rater=reader.whole(("design", "lists_per_rater"), 1, least=1),
    )


def _order(reader: Reader) -> Order:
    return Order(
        shuffle=reader.flag(("order", "shuffle"), True),
        blocks=reader.choice(("order", "blocks"), ("fixed", "random"), "fixed"),  # type: ignore[arg-type]
        fillers_first=reader.whole(("order", "fillers_first"), 0),
        most_same_condition=reader.optional(("order", "most_same_condition")),
        most_same_type=reader.optional(("order", "most_same_type")),
        least_distance=reader.optional(("order", "least_distance")),
    )
