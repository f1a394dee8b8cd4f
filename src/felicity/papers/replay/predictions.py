"""Published cloze predictions: one file per model, one list of words per line.

The files of Shivagunde et al. (2023) are read in two ways. As published: with the authors' own indices
into the list, which for GPT-2 and RoBERTa starts with an empty string (their 20 most probable tokens were
decoded together), so that "top 5" takes six entries and "top 10" ten, the empty one included. Corrected:
empty strings dropped, the first k taken. A third reading takes the first k entries unchanged; some
published cells come from it. A sentence of ROLE-1500 ends in a space before its comma: to the authors'
program its target is the empty string.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.data import Dataset, find_entry, load_entries, read_dataset, read_pair_lines, read_plain
from felicity.judge import MAIN, TOP, Windows, judge_cloze
from felicity.papers.replay.replayed import Replayed
from felicity.run import Verdicts

READINGS = ("published", "corrected")
FIRST_PLACES = "first places"
SHIFTED: Windows = {"top1": (1, 2), "top5": (0, 6), "top10": (0, 10), "top20": (0, 21)}
BEGINS_EMPTY = re.compile(r"roberta|gpt2")
ENDINGS = (".txt", ".txt.gz")
TOP1_ONLY = "_top1_prediction"
TOP5_ONLY = "_top5_prediction"


@dataclass(frozen=True)
class Predictions:
    """The words of one model, frame by frame; `firsts` if the most probable word has its own file."""

    model: str
    words: list[list[str]]
    firsts: list[str] | None = None


def is_predictions(path: Path) -> bool:
    """Whether a path is a file of predictions or a folder of them."""
    return path.name.endswith(ENDINGS) or (path.is_dir() and any(_files(path)))


def replay_predictions(path: Path, *, dataset: str | None = None) -> Replayed:
    """Predictions of one model or of a folder of models, as published and corrected.

    The sentences and their roles come from the authors' own file if it is beside the predictions, else from
    the dataset's catalogue entry.

    Raises BadInput if a line is not a list of words, or the dataset is not known.
    """
    name = dataset or _dataset_name(path)
    beside = _beside(name, path)
    data = None if beside else _read_cloze(name)
    frames = read_frames(name, path) if data is None else _role_frames(data)
    targets, change = _roles(name) if data is None else (list(data.targets), list(data.change))
    judged, notes, measures = [], [], []
    for model in read_models(path):
        fitted = fit_lines(model, frames, data)
        if fitted is None:
            note = f"predictions of {model.model}, which do not match the {len(frames)} sentences"
            notes.append((note, len(model.words), len(frames)))
            continue
        for reading in READINGS:
            measure = f"{model.model} {reading}"
            measures.append(measure)
            single = judge_model(frames, fitted, reading, targets=targets, change=change)
            judged.append(single.with_columns(pl.lit(measure).alias("measure")))
    if not judged:
        raise BadInput(
            f"No file of {path} has a prediction for each of the {len(frames)} sentences of '{name}'."
        )
    whole = pl.concat(judged)
    return Replayed(
        form="predictions",
        dataset=name,
        items=frames.rename({"target": "text"}).drop("written", strict=False),
        verdicts=Verdicts(judgements=whole.filter(pl.col("rule") == MAIN), predictions=whole),
        measures=tuple(measures),
        notes=tuple(notes),
    )


def _read_cloze(name: str) -> Dataset:
    """The dataset, read for its cloze rule.

    Raises BadInput if it has none.
    """
    if "cloze" not in find_entry(name).methods:
        raise BadInput(f"'{name}' is not judged by cloze predictions; name another dataset with --dataset.")
    return read_dataset(name, rule="cloze")


def _role_frames(data: Dataset) -> pl.DataFrame:
    """The stimuli whose predictions the rule reads: those with a target, and those compared with them."""
    roles = {*data.targets, *data.change}
    items = data.items.filter(pl.col("condition").is_in(roles))
    return items.select("item", "suite", "phenomenon", "condition", pl.col("text").alias("target"))


def fit_lines(model: Predictions, frames: pl.DataFrame, data: Dataset | None) -> Predictions | None:
    """The predictions of the frames, in their order; None if the lines cannot be matched to them.

    A file has one line per frame, or one per stimulus of the dataset, or the frames of each item several
    times over, as the authors of NEG-136-SIMP have. Which of the last two applies, the file itself shows:
    lines for the same context must be the same.
    """
    if len(model.words) == len(frames):
        return model
    if data is None or len(model.words) % len(frames):
        return None
    copies = len(model.words) // len(frames)
    repeated, begin = [], 0
    for size in frames.group_by("item", maintain_order=True).len()["len"]:
        last = begin + copies * size
        repeated += [list(range(begin + place, last, size)) for place in range(size)]
        begin = last
    options = [repeated]
    if len(model.words) == len(data.items):
        numbered = data.items.with_row_index("place")
        lines = pl.col("place").over("item", "context_text", mapping_strategy="join")
        roles = numbered.with_columns(lines).filter(pl.col("condition").is_in(frames["condition"].unique()))
        options.append(roles["place"].to_list())
    for option in options:
        if all(len({tuple(model.words[line]) for line in same}) == 1 for same in option):
            return _take(model, [same[0] for same in option])
    return None


def _take(model: Predictions, lines: list[int]) -> Predictions:
    firsts = None if model.firsts is None else [model.firsts[line] for line in lines]
    return Predictions(model.model, [model.words[line] for line in lines], firsts)


def judge_model(
    frames: pl.DataFrame, model: Predictions, reading: str, *, targets: list[str], change: list[str]
) -> pl.DataFrame:
    """Top-k and sensitivity of one model under one reading."""
    words, windows, first = model.words, TOP, 0
    if reading == "corrected":
        words = [[word for word in line if word] for line in words]
    elif "written" in frames.columns:
        frames = frames.with_columns(pl.col("written").alias("target"))
    if reading == "published" and BEGINS_EMPTY.search(model.model):
        windows, first = SHIFTED, 1
    filled = frames.with_columns(pl.Series("predictions", words, dtype=pl.List(pl.String)))
    if model.firsts is None:
        return judge_cloze(filled, targets=targets, change=change, windows=windows, first=first)
    likeliest = frames.with_columns(
        pl.Series("predictions", [[word] for word in model.firsts], dtype=pl.List(pl.String))
    )
    ones = judge_cloze(likeliest, targets=targets, change=change, windows={"top1": TOP["top1"]})
    return pl.concat([judge_cloze(filled, targets=targets, windows={MAIN: TOP[MAIN]}), ones])


def read_models(path: Path) -> Iterator[Predictions]:
    """Every model of a folder, or the one of a file; files of the first and first five words are paired."""
    files = _files(path) if path.is_dir() else [path]
    for file in files:
        stem = file.name.removesuffix(".gz").removesuffix(".txt")
        if TOP1_ONLY in stem:
            continue
        if TOP5_ONLY not in stem:
            yield Predictions(stem, read_words(file))
            continue
        partner = file.with_name(file.name.replace(TOP5_ONLY, TOP1_ONLY))
        model = stem.replace(TOP5_ONLY, "")
        firsts = [line.strip() for line in read_plain(partner).split("\n")]
        words = read_words(file)
        yield Predictions(model, words, firsts[: len(words)])


def read_words(path: Path) -> list[list[str]]:
    """One list of words per line, in Python's notation.

    Raises BadInput naming a line that is not one.
    """
    found: list[list[str]] = []
    for number, line in enumerate(read_plain(path).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            words = ast.literal_eval(line.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError) as error:
            raise BadInput(f"{path}, line {number}: not a list of words.") from error
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise BadInput(f"{path}, line {number}: not a list of words.")
        found.append(words)
    return found


def read_frames(name: str, path: Path) -> pl.DataFrame:
    """Item, suite, phenomenon, condition and target of every sentence of the authors' own file.

    The file is beside the published predictions; `written` is the target as the authors' program read it.

    Raises BadInput if the file is missing.
    """
    sentences = _beside(name, path)
    if sentences is None:
        raise BadInput(f"The sentences of '{name}' are not beside {path}; name the folder as published.")
    table = read_pair_lines(sentences, find_entry("role_1500"))
    conditions = ("a", "b") if name.startswith("role") else ("affirmative", "negative")
    return pl.DataFrame(
        {
            "item": [f"{name}/{row['pair']}" for row in table.rows],
            "suite": name,
            "phenomenon": name,
            "condition": [conditions[int(str(row["member"]))] for row in table.rows],
            "target": [str(row["sentence"]).split()[-1] for row in table.rows],
            "written": [line.replace(",", "").split(" ")[-1] for line in _lines(sentences)],
        }
    )


def _lines(path: Path) -> list[str]:
    return [line for line in read_plain(path).splitlines() if line.strip()]


def _roles(name: str) -> tuple[list[str], list[str]]:
    if name.startswith("role"):
        return ["a", "b"], ["a", "b"]
    return ["affirmative"], ["affirmative", "negative"]


def _beside(name: str, path: Path) -> Path | None:
    folder = path if path.is_dir() else path.parent
    root = folder.parent.parent / "data"
    for place in (root, root / "original_datasets"):
        for file in place.glob("*.txt") if place.is_dir() else ():
            if _plain(file.stem) == name:
                return file
    return None


def _dataset_name(path: Path) -> str:
    name = _plain((path if path.is_dir() else path.parent).name)
    if name not in load_entries():
        raise UnknownName("dataset", name, load_entries(), hint="name what was predicted with --dataset")
    return name


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name.endswith(ENDINGS))
