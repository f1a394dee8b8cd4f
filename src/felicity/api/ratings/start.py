"""A new study: stimuli from a dataset, a run folder or a table, and a commented study file around them."""

import csv
import json
import random
from importlib.resources import files
from pathlib import Path
from string import Template

import polars as pl

from felicity.core.errors import BadInput, FelicityError, UnknownName
from felicity.core.files import data_folder, disk_errors, find_ending, replacing
from felicity.core.regions import BAR, split_bars
from felicity.data import is_table, read_dataset, read_table, sample_items
from felicity.humans import STUDY_FILE, Origin, RatingStudy, read_rating_study
from felicity.run import is_study, read_record, read_run

LAU_TOPICS = "lau2020/sentences/context-{}-sentences.csv"
OWN_COLUMNS = ("item", "text")
TITLE = "A study of sentences"
# The key under which a row keeps its line in the user's table; it is never written.
LINE = "\0line"

TASKS = {
    "likert": 'kind = "likert"\nquestion = "How natural does this sound?"\npoints = {points}\n'
    'labels = ["very unnatural", "very natural"]  # the two ends, or one label per point',
    "binary": 'kind = "binary"\nquestion = "Is this an acceptable sentence?"\noptions = ["yes", "no"]\n'
    "flip = true              # exchange the two sides for every second rater",
    "choice": 'kind = "choice"\nquestion = "Which sentence sounds more natural?"\n'
    "flip = true              # sides are counterbalanced and recorded",
    "slider": 'kind = "slider"\nquestion = "How natural does this sound?"\n'
    'low = "very unnatural"\nhigh = "very natural"',
    "magnitude": 'kind = "magnitude"\nquestion = "How natural is it, compared with the reference?"\n'
    'modulus = 100\nreference = "The dog the boy chased barked."',
    "cloze": 'kind = "cloze"\nquestion = "Write the word that fits best."\nlongest = 60',
    "continuation": 'kind = "continuation"\nquestion = "How does the text go on?"\nlongest = 500',
    "reading": 'kind = "reading"\ndisplay = "window"       # or centred',
    "maze": 'kind = "maze"\non_error = "stop"        # or repeat',
}
INSTRUCTIONS = {
    "cloze": "You will read sentences with a gap. Please write the first word that comes to mind.",
    "continuation": "You will read the beginning of a text. Please write how it might go on.",
    "reading": "You will read sentences word by word. Press the space bar for the next word.",
    "maze": "At every step you see two words. Choose the one that continues the sentence.",
}
# What timed tasks store besides answers.
SCREEN = (
    "\n- While you read, your browser measures how often the screen is redrawn and how fine its clock is."
)
JUDGE = "Please say how natural each text sounds to you. There are no right or wrong answers."


def has_continuations(source: str) -> bool:
    """Whether a source is the folder of a causality study, whose continuations can be rated."""
    path = Path(source)
    return is_study(path) and read_record(path).get("study") == "causality"


def start_study(
    folder: Path,
    source: str,
    *,
    task: str = "likert",
    points: int | None = None,
    sample: int | None = None,
    parts: int | None = None,
    title: str | None = None,
    minutes: int | None = None,
    raters: int | None = None,
    seed: int = 0,
) -> RatingStudy:
    """Write study.toml and stimuli.csv into a new folder; gives the study, read back and checked.

    source: a dataset's name, a run folder, or a table with the columns item and text. sample: at most so many
    items of each suite. parts: lists to deal the items out to. raters: of each list. title, minutes: what
    raters read about the study and how long it takes; a file's name is never shown to them, nor a guess at
    the time.

    Raises BadInput, UnknownName; FelicityError if the folder already has a study.
    """
    if task not in TASKS:
        raise BadInput(f"There is no task '{task}'; known: {', '.join(TASKS)}.")
    if (folder / STUDY_FILE).exists():
        raise FelicityError(f"{folder / STUDY_FILE} exists already; choose another folder.")
    rows = _read_source(source, sample, seed)
    if task == "choice":
        rows = _pair_up(rows, source)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    _write_stimuli(folder / "stimuli.csv", rows)
    lau = Path(source).name == "lau2020"
    design = [
        f"quota = {raters or (20 if lau else 3)}                # raters per list",
        f"parts = {parts or (5 if lau else 1)}",
    ]
    design[1] += "                # lists that the items are dealt out to, times the conditions"
    between = lau or not _is_square(rows)
    design.append(
        'lists = "latin"          # latin, all (everybody sees everything), column (named in `list`)'
    )
    design.append('between = ["condition"]  # conditions between raters' if between else "# between = []")
    design.append("# lists_per_rater = 2    # how many lists one rater may do, if they share no item")
    text = Template(files("felicity.humans").joinpath("templates/study.toml").read_text("utf-8")).substitute(
        title=json.dumps(title or TITLE, ensure_ascii=False),
        duration=f" It takes\nabout {minutes} minutes." if minutes else "",
        screen=SCREEN if task in ("reading", "maze") else "",
        seed=seed,
        instructions=INSTRUCTIONS.get(task, JUDGE),
        task=TASKS[task].format(points=(4 if lau else 7) if points is None else points),
        design="\n".join(design),
    )
    with replacing(folder / STUDY_FILE) as part:
        part.write_text(text, encoding="utf-8")
    try:
        return read_rating_study(folder, origin=Origin(source, [_name_row(row) for row in rows]))
    except FelicityError:
        # The next attempt would find a study here.
        for name in (STUDY_FILE, "stimuli.csv"):
            (folder / name).unlink()
        raise


def _name_row(row: dict[str, str]) -> str:
    """What messages call a row: its line in the user's table, or its item in a dataset or run."""
    return f"line {row[LINE]}" if LINE in row else f"item '{row['item']}'"


def _read_source(source: str, sample: int | None, seed: int) -> list[dict[str, str]]:
    path = Path(source)
    if path.is_dir():
        return _from_run(path, sample, seed)
    if is_table(source) and path.exists():
        own = _own_table(path)
        if own is not None and sample is not None:
            raise BadInput(f"{source} is shown as it is; leave out --sample, or shorten the table.")
        if own is not None:
            return own
    items = sample_items(_read_items(source), sample, seed=seed)
    if "line" in items.columns and is_table(source):
        items = items.with_columns(pl.col("line").cast(pl.String).alias(LINE))
    return _from_items(items, topics=_topics() if source == "lau2020" else {})


def _read_items(source: str) -> pl.DataFrame:
    try:
        return read_dataset(source).items
    except UnknownName as error:
        if not is_table(source):
            raise
        raise BadInput(
            f"{source} is no table of stimuli: it needs the columns item and text, or good and bad."
        ) from error


def _own_table(path: Path) -> list[dict[str, str]] | None:
    """The rows of a table that already has the columns of the stimuli."""
    if find_ending(path) not in (".csv", ".tsv", ".xlsx"):
        return None
    table = read_table(path)
    if not set(OWN_COLUMNS) <= set(table.columns):
        return None
    numbered = zip(table.rows, table.lines, strict=True)
    rows = [
        {name: "" if cell is None else str(cell) for name, cell in row.items()} | {LINE: str(line)}
        for row, line in numbered
    ]
    for row in rows:
        row["text"] = split_bars(row["text"])[0] if BAR in row["text"] else row["text"]
    # The reader of stimuli passes over empty rows.
    return [row for row in rows if any(cell.strip() for name, cell in row.items() if name != LINE)]


def _from_run(path: Path, sample: int | None, seed: int) -> list[dict[str, str]]:
    """What a run scored: its requests, with contexts and design factors."""
    run = read_run(path)
    items, requests, contexts = run["items"], run["requests"], run["contexts"]
    kept = sample_items(items, sample, seed=seed)["item"].unique()
    frame = requests.filter(pl.col("item").is_in(kept.implode())).join(contexts, on="context", how="left")
    known = items.select("item", "suite", "phenomenon").unique(subset="item", maintain_order=True)
    return _from_items(frame.join(known, on="item", how="left"), topics={})


def _from_items(items: pl.DataFrame, *, topics: dict[tuple[str, str], list[str]]) -> list[dict[str, str]]:
    rows = []
    for row in items.iter_rows(named=True):
        made = {"item": row["item"], "condition": row["condition"], "text": row["text"]}
        made["context"] = row.get("context_text") or ""
        made["suite"] = row.get("suite") or ""
        made["phenomenon"] = row.get("phenomenon") or ""
        if row.get(LINE):
            made[LINE] = row[LINE]
        choices = topics.get((row["condition"], row["item"].rpartition("/")[2]))
        if choices:
            made |= {"question": "Which words fit the topic of the text best?", "correct": choices[0]}
            shuffled = list(choices)
            random.Random(row["item"]).shuffle(shuffled)
            made["choices"] = " | ".join(shuffled)
        rows.append(made)
    return rows


def _topics() -> dict[tuple[str, str], list[str]]:
    """The words of Lau et al.'s topic check by setting and sentence, where their files are at hand."""
    folder = data_folder()
    found: dict[tuple[str, str], list[str]] = {}
    for setting in ("none", "real", "random"):
        path = folder / LAU_TOPICS.format(setting) if folder else None
        if path is None or not path.exists():
            continue
        with path.open(encoding="utf-8", newline="") as handle:
            for row in csv.DictReader(handle):
                words = [row["REAL_TOPIC"], *(row[f"FALSE_TOPIC{n}"] for n in (1, 2, 3))]
                shown = [", ".join(part for part in text.split(",") if part) for text in words]
                if len(set(shown)) == len(shown):
                    found[setting, row["ID"]] = shown
    return found


def _pair_up(rows: list[dict[str, str]], source: str) -> list[dict[str, str]]:
    """One row per item with both of its sentences, the first condition as `text`."""
    if all(row.get("text_b") for row in rows):
        return rows
    pairs: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        pairs.setdefault((row["item"], row.get("context", "")), []).append(row)
    wrong = [key for key, own in pairs.items() if len(own) != 2]
    if wrong:
        raise BadInput(
            f"Item '{wrong[0][0]}' of {source} has {len(pairs[wrong[0]])} sentences; a choice needs two."
        )
    return [first | {"condition": "", "text_b": second["text"]} for first, second in pairs.values()]


def _is_square(rows: list[dict[str, str]]) -> bool:
    """Whether every target item has the same conditions, or one only."""
    cells: dict[str, set[str]] = {}
    for row in rows:
        # Fillers and practice items are shown to everybody.
        if (row.get("role") or "target") == "target":
            cells.setdefault(row["item"], set()).add(row.get("condition", ""))
    return len({frozenset(own) for own in cells.values()}) == 1 or all(
        len(own) == 1 for own in cells.values()
    )


def _write_stimuli(path: Path, rows: list[dict[str, str]]) -> None:
    names = list(dict.fromkeys(name for row in rows for name in row if name != LINE))
    empty = {name for name in names if name not in OWN_COLUMNS and not any(row.get(name) for row in rows)}
    with replacing(path) as part, part.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(
            handle, [name for name in names if name not in empty], restval="", extrasaction="ignore"
        )
        writer.writeheader()
        writer.writerows(rows)
