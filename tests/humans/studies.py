"""Small studies of every task, written to a folder as a user would write them."""

import csv
from pathlib import Path

from felicity.humans import RatingStudy, read_rating_study

HEAD = """\
[study]
title = "Sentence ratings"
language = "{language}"
seed = 7
{study}
[consent]
text = "You may stop at any time."
agree = "I agree to take part."

[stimuli]
file = "stimuli.csv"

"""

TASKS = {
    "likert": 'kind = "likert"\nquestion = "How natural is it?"\npoints = 5\nlabels = ["bad", "good"]\n',
    "binary": 'kind = "binary"\nquestion = "Acceptable?"\noptions = ["yes", "no"]\nflip = true\n',
    "choice": 'kind = "choice"\nquestion = "Which is better?"\n',
    "slider": 'kind = "slider"\nquestion = "How natural?"\nlow = "bad"\nhigh = "good"\n',
    "magnitude": 'kind = "magnitude"\nquestion = "How good?"\nmodulus = 100\nreference = "It rains."\n',
    "cloze": 'kind = "cloze"\nquestion = "Fill the gap."\n',
    "continuation": 'kind = "continuation"\nquestion = "Continue the sentence."\n',
    "reading": 'kind = "reading"\n',
    "maze": 'kind = "maze"\n',
}

# Every page that a study can have, in two languages.
PAGES = """
[information]
text = "{information}"
[instructions]
text = "{instructions}"
[quiz]
[[quiz.questions]]
question = "{quiz}"
choices = ["{right}", "{wrong}"]
correct = "{right}"
[debriefing]
text = "{debriefing}"
[[demographics]]
name = "age"
question = "{age}"
kind = "number"
bins = [18, 30]
"""
ENGLISH_PAGES = PAGES.format(
    information="A study about **sentences**.",
    instructions="Please read every sentence.",
    quiz="What will you do?",
    right="Read",
    wrong="Sing",
    age="How old are you?",
    debriefing="That was it.",
)
GERMAN_PAGES = PAGES.format(
    information="Hallo **du**.",
    instructions="Bitte lesen.",
    quiz="Was tun?",
    right="Lesen",
    wrong="Raten",
    age="Wie alt?",
    debriefing="Das war es.",
)

WORDS = ("cat", "dog", "bird", "horse", "goat", "fish", "duck", "wolf", "hen", "mole", "deer", "seal")


def stimulus_rows(
    task: str, *, items: int = 4, conditions: tuple[str, ...] = ("a", "b")
) -> list[dict[str, str]]:
    """Items in every condition, with what the task needs besides."""
    rows = []
    for item in range(items):
        for condition in conditions:
            text = f"The {WORDS[item % len(WORDS)]} number {item} sleeps in {condition}."
            row = {"item": str(item), "condition": condition, "text": text}
            if task == "choice":
                row["text_b"] = text.replace("sleeps", "sleep")
            if task == "cloze":
                row["text"] = text.replace("sleeps", "___")
            if task == "maze":
                row["foils"] = " ".join(["x-x-x", *("foil" for _ in text.split()[1:])])
            rows.append(row)
    return rows


def write_study(
    folder: Path,
    task: str = "likert",
    *,
    rows: list[dict[str, str]] | None = None,
    more: str = "",
    study: str = "",
    language: str = "en",
    task_more: str = "",
    items: int = 4,
) -> Path:
    """Write study.toml and stimuli.csv; gives the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    text = HEAD.format(language=language, study=study) + f"[task]\n{TASKS[task]}{task_more}\n{more}"
    (folder / "study.toml").write_text(text, encoding="utf-8")
    rows = rows or stimulus_rows(task, items=items)
    names = list(dict.fromkeys(name for row in rows for name in row))
    with (folder / "stimuli.csv").open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return folder


def make_study(folder: Path, task: str = "likert", **options: object) -> RatingStudy:
    """Write a study and read it back."""
    return read_rating_study(write_study(folder, task, **options))  # type: ignore[arg-type]
