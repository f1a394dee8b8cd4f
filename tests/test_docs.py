"""The docs say what is so: every command line is valid and runs, every function of the walks is there.

A command line is a line of a code block that begins with `felicity`. It is run as it stands, in a folder that
has the files it names, but for what TINY changes so that it takes seconds. One that serves until it is
stopped, or that needs a server or a cluster, has its options checked only. A comment before a block can say
otherwise: `<!-- test: parse, WHY -->` has the options checked only, `<!-- test: skip, WHY -->` leaves it out.
"""

import importlib
import re
import shlex
import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import pytest

from felicity.cli.app import whole_program
from felicity.core.errors import UnknownName
from felicity.data import load_entries
from tests.conftest import DATA, ROOT, Answer, make_tiny_model
from tests.engines.corpora import agreeing_lines, topical_documents, write_documents
from tests.engines.shapes import make_masked

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
# Written from the commands' own help.
REFERENCE = DOCS / "reference" / "cli.md"
MARK = re.compile(r"^\s*<!-- test: (run|parse|skip)\b.*-->\s*$")
FENCE = re.compile(r"^\s*```")
COMMAND = re.compile(r"^\s+(?:\$ )?felicity |^(?:\$ )?felicity ")
# Small samples, short contexts and a random model for what would take minutes: added, or put in place of
# what stands there.
TINY: dict[str, dict[str, str | None]] = {
    "run": {"--sample": "2"},
    "bias": {"--sample": "2", "-m": "wide"},
    "context": {"--sample": "2", "-m": "wide", "--lengths": "0,20", "--contexts-per-suite": "1"},
    "acceptability": {"--sample": "2", "-m": "wide"},
    "causality": {"--sample": "1", "-m": "wide"},
    "cloze": {"-m": "wide"},
    "methods": {"--sample": "1", "-m": "wide"},
    "benchmark": {"--sample": "2", "-m": "wide"},
    "stimuli pairs": {"-n": "2", "--tokenizer": None},
    "stimuli design": {"-n": "4"},
    "stimuli extend": {"-m": "wide", "-n": "1", "--most-requests": "2", "--tokens": "10"},
    "train lstm": {"--epochs": "1", "--hidden": "8", "--embedding": "8", "--min-count": "1"},
    "train tdlm": {"--epochs": "1", "--hidden": "8", "--embedding": "8", "--min-count": "1"},
}
# One phenomenon instead of all: where contexts grow, and for SyntaxGym's long lists of conditions.
NARROW = {"blimp": ("--phenomenon", "anaphor_agreement"), "syntaxgym": ("--phenomenon", "agreement")}
# A run that the commands of a page begin with.
FIRST = {
    "README.md": "run blimp -m my-model --sample 2 --no-report -o runs/blimp-smollm2",
    "explore.md": "run starter -m my-model --sample 2 -o runs/starter-smollm2",
}


class Line(NamedTuple):
    """A command line of a page: where it stands, how it is to be tested, its words after `felicity`."""

    number: int
    test: str
    words: list[str]


def read_commands(page: Path) -> Iterator[Line]:
    """Every command line of a page, continued lines joined."""
    fenced, blank, test = False, True, "run"
    lines = page.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        if marked := MARK.match(line):
            test = marked[1]
        elif FENCE.match(line):
            fenced = not fenced
            test = test if fenced else "run"
        elif COMMAND.match(line) and (fenced or line.startswith("    ")):
            text = line
            for further in lines[number:]:
                if not text.endswith("\\"):
                    break
                text = text[:-1] + further
            words = shlex.split(text.strip().removeprefix("$ "), comments=True)
            yield Line(number, test, words[1:])
        elif not fenced and blank and line.strip() and not line.startswith("    "):
            test = "run"
        blank = not line.strip()


ALL = {page: list(read_commands(page)) for page in PAGES}
PROGRAM = whole_program()


def label(page: Path) -> str:
    return str(page.relative_to(ROOT))


def parse(words: list[str]) -> None:
    """Check the options of a command line without running it.

    Raises the parser's own error.
    """
    command: Any = PROGRAM
    name, rest = "felicity", list(words)
    while hasattr(command, "commands") and (rest or not command.invoke_without_command):
        name, rest = rest[0], rest[1:]
        if name not in command.commands:
            raise UnknownName("command", name, command.commands)
        command = command.commands[name]
    command.make_context(name, rest)


@pytest.mark.parametrize(
    "words",
    [["run", "starter", "--nope"], ["nope"], ["data", "nope"], ["run", "starter", "--sample", "many"]],
)
def test_a_wrong_command_line_would_be_found(words: list[str]) -> None:
    with pytest.raises(Exception, match=r"(?i)no such option|no command|valid integer"):
        parse(words)


@pytest.mark.parametrize("page", [page for page in PAGES if ALL[page]], ids=label)
def test_every_command_line_has_options_that_exist(page: Path) -> None:
    for line in ALL[page]:
        if line.test == "skip" or "--help" in line.words or "--version" in line.words:
            continue
        try:
            parse(line.words)
        except Exception as error:
            raise AssertionError(f"{label(page)}, line {line.number}: {error}") from error


def waits(words: list[str]) -> bool:
    """Whether a command serves until it is stopped, or needs a server or a cluster."""
    if any(word.startswith("openai:") for word in words) or "--workers" in words:
        return True
    if words[:2] == ["stimuli", "review"]:
        return "--summary" not in words
    return words[:2] in (["rate", "serve"], ["rate", "preview"]) or (
        words[0] == "explore" and "--static" not in words
    )


def shrink(words: list[str]) -> list[str]:
    """The command with what TINY says in place of what stands there."""
    name = next((name for name in TINY if words[: len(name.split())] == name.split()), None)
    if name is None:
        return words
    kept = list(words)
    for option, value in TINY[name].items():
        while option in kept:
            place = kept.index(option)
            del kept[place : place + 2]
        if value is not None and ("--sentences" not in kept or option != "--lengths"):
            kept += [option, value]
    if name == "context" or kept[1] == "syntaxgym":
        kept += NARROW.get(kept[1], ())
    return kept


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random models under the names that the docs use."""
    folder = tmp_path_factory.mktemp("models")
    for seed, name in enumerate(("gpt2", "my-model", "wide")):
        make_tiny_model(folder / name, seed=seed, window=1024)
    for name in ("bert-base-uncased", "bert-base-cased"):
        make_masked("bert", folder / name)
    return folder


@pytest.fixture
def desk(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with every file that a command names."""
    monkeypatch.chdir(tmp_path)
    for model in models.iterdir():
        (tmp_path / model.name).symlink_to(model)
    pairs = [("a", "The cats annoy Tim.", "The cats annoys Tim."), ("b", "He left.", "Him left.")]
    write = {
        "my_pairs.csv": ("good,bad,right,wrong,paradigm", "{1},{2},{1},{2},{0}"),
        "multiblimp_eng.tsv": ("sen\twrong_sen", "{1}\t{2}"),
        "zho_blimp.jsonl": ("", '{{"UID": "{0}", "sentence_good": "{1}", "sentence_bad": "{2}"}}'),
    }
    for name, (head, row) in write.items():
        rows = [row.format(*pair) for pair in pairs]
        (tmp_path / name).write_text("\n".join([head, *rows] if head else rows) + "\n")
    garden = (DOCS / "how-to" / "garden.csv").read_text(encoding="utf-8")
    (tmp_path / "garden.csv").write_text(garden)
    (tmp_path / "sentences.csv").write_text(garden.replace(" |", ""))
    for name in ("sentences.txt", "originals.txt"):
        (tmp_path / name).write_text("The cats annoy Tim.\nThe old man bought a red car in the town.\n")
    (tmp_path / "my_categories.csv").write_text('bird,"robin, crow"\ntool,"hammer, saw"\ntree,"oak, pine"\n')
    paradigm = re.search(
        r"```toml\n(phenomenon.*?)```", (DOCS / "studies" / "pairs.md").read_text(), re.DOTALL
    )
    assert paradigm is not None
    (tmp_path / "my_paradigm.toml").write_text(paradigm[1])
    design = re.search(
        r"```toml\n(phenomenon.*?)```", (DOCS / "how-to" / "designs.md").read_text(), re.DOTALL
    )
    assert design is not None
    (tmp_path / "my_design.toml").write_text(design[1])
    (tmp_path / "corpus.txt").write_text("\n".join(agreeing_lines(1, 60)) + "\n")
    write_documents(tmp_path / "documents.txt", topical_documents(1, 30))
    return tmp_path


# Pages whose commands wait for people, or take minutes: tests of those rooms run them, here they are parsed.
PARSED = {
    REFERENCE,
    DOCS / "how-to" / "rating.md",
    DOCS / "how-to" / "rating-server.md",
}
RUNS = {
    page: [line for line in ALL[page] if line.test == "run" and not waits(line.words)]
    for page in PAGES
    if page not in PARSED
}


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", [page for page, lines in RUNS.items() if lines], ids=label)
def test_every_command_line_runs(
    page: Path, desk: Path, cli: Callable[..., Answer], published: Callable[[str], Path]
) -> None:
    entries = load_entries()
    for word in (word for line in RUNS[page] for word in line.words):
        if word in entries and entries[word].folder:
            published(entries[word].folder)
        if "$FELICITY_DATA/" in word:
            published(word.partition("$FELICITY_DATA/")[2])
    if page.name in FIRST:
        assert cli(*FIRST[page.name].split()).code == 0
    for line in RUNS[page]:
        words = [word.replace("$FELICITY_DATA", str(DATA)) for word in shrink(line.words)]
        answer = cli(*words)
        where = f"{label(page)}, line {line.number}: felicity {shlex.join(words)}"
        assert answer.code == 0, f"{where}\n{answer.err}"


STEP = r"^\| `([\w.]+)` \|"
STEPS = re.findall(STEP, (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("step", STEPS)
def test_every_function_of_the_walks_exists(step: str) -> None:
    names = step.split(".")
    for last in range(len(names) - 1, 0, -1):
        try:
            thing: object = importlib.import_module(".".join(["felicity", *names[:last]]))
        except ModuleNotFoundError:
            continue
        for name in names[last:]:
            thing = getattr(thing, name)
        assert callable(thing)
        return
    pytest.fail(f"there is no felicity.{step}")


PAIRS = "suite,good,bad\n" + "".join(
    f"{suite},The {noun}s {verb} it.,The {noun}s {verb}s it.\n"
    for suite in ("one", "two")
    for noun in ("cat", "dog", "bird")
    for verb in ("see", "want")
)
# A run in float32 does not take these steps.
ONLY_IN_HALF_PRECISION = {"run.steps.rescore_close_calls"}


def record_calls(names: Collection[str], call: Callable[[], Answer]) -> tuple[Answer, list[str]]:
    """The calls of these functions of felicity, in order, while `call` runs."""
    met: list[str] = []

    def note(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        name = f"{module.removeprefix('felicity.')}.{frame.f_code.co_qualname}"
        if event == "call" and name in names:
            met.append(name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        return call(), met
    finally:
        sys.setprofile(before)


@pytest.mark.parametrize(
    ("heading", "command"),
    [
        ("## The walk of `felicity run`", ("run",)),
        ("## The walk of a study", ("bias",)),
        ("## The walk of a study", ("context", "--lengths", "0,30")),
        ("### The steps of the context study", ("context", "--lengths", "0,30")),
    ],
)
def test_the_walks_are_what_the_commands_do(
    heading: str, command: tuple[str, ...], models: Path, tmp_path: Path, cli: Callable[..., Answer]
) -> None:
    page = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    walk = re.split(r"\n##+ ", page.split(f"{heading}\n")[1])[0]
    steps = [step for step in re.findall(STEP, walk, re.MULTILINE) if step not in ONLY_IN_HALF_PRECISION]
    assert 15 < len(steps) < 40, "a walk fits a screen"
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(PAIRS)
    asked = (
        command[0],
        pairs,
        "-m",
        models / "wide",
        "-o",
        tmp_path / "out",
        "-q",
        "--no-cache",
        *command[1:],
    )
    answer, met = record_calls(steps, partial(cli, *asked))
    assert answer.code == 0, answer.err
    rest = iter(met)
    for step in steps:
        assert step in rest, f"{step} is not called where the walk says so"


def test_the_package_that_is_shown_is_the_one_that_is_tested() -> None:
    page = (DOCS / "how-to" / "add-your-own.md").read_text(encoding="utf-8")
    files = [path for path in (ROOT / "tests" / "plugin").rglob("*") if path.suffix in (".py", ".toml")]
    shown = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.DOTALL)
    sources = [path.read_text(encoding="utf-8") for path in files]
    assert len(shown) == 10
    assert not [block for block in shown if not any(block.strip() in source for source in sources)]
