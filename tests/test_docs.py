"""The docs say what is so: every command line is valid and runs, every function of the walks is there.

A command line is a line of a code block that begins with `felicity`. It is run as it stands, in a folder that
has the files it names, but for what TINY changes so that it takes seconds. A comment before a block can say
otherwise: `<!-- test: parse, WHY -->` has its options checked only, `<!-- test: skip, WHY -->` is left out.
"""

import importlib
import re
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.main import get_command

from felicity.cli.app import app
from felicity.core.errors import UnknownName
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
TINY = {
    "run": {"--sample": "2"},
    "bias": {"--sample": "2", "-m": "wide"},
    "context": {"--sample": "2", "-m": "wide", "--lengths": "0,20", "--contexts-per-suite": "1"},
    "train lstm": {"--epochs": "1", "--hidden": "8", "--embedding": "8", "--min-count": "1"},
    "train tdlm": {"--epochs": "1", "--hidden": "8", "--embedding": "8", "--min-count": "1"},
}
# One phenomenon instead of all: where contexts grow, and for SyntaxGym's long lists of conditions.
NARROW = {"blimp": ("--phenomenon", "anaphor_agreement"), "syntaxgym": ("--phenomenon", "agreement")}
PUBLISHED = ("blimp", "syntaxgym", "crows_pairs", "shivagunde2023")


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


def label(page: Path) -> str:
    return str(page.relative_to(ROOT))


def parse(words: list[str]) -> None:
    """Check the options of a command line without running it.

    Raises the parser's own error.
    """
    command: Any = get_command(app)
    name, rest = "felicity", list(words)
    while hasattr(command, "commands"):
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
        if "--sentences" not in kept or option != "--lengths":
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
    make_masked("bert", folder / "bert-base-uncased")
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
    (tmp_path / "corpus.txt").write_text("\n".join(agreeing_lines(1, 60)) + "\n")
    write_documents(tmp_path / "documents.txt", topical_documents(1, 30))
    return tmp_path


# Pages whose commands wait for people, or take minutes: tests of those rooms run them, here they are parsed.
PARSED = {
    REFERENCE,
    DOCS / "how-to" / "rating.md",
    DOCS / "how-to" / "rating-server.md",
    DOCS / "studies" / "pairs.md",
}
RUN = [page for page in PAGES if page not in PARSED and any(line.test == "run" for line in ALL[page])]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", RUN, ids=label)
def test_every_command_line_runs(
    page: Path, desk: Path, cli: Callable[..., Answer], published: Callable[[str], Path]
) -> None:
    lines = [line for line in ALL[page] if line.test == "run"]
    for line in lines:
        for name in PUBLISHED:
            if any(name == word or f"/{name}/" in word for word in line.words):
                published(name)
    if page.name == "README.md":  # the other run that is compared
        cli("run", "blimp", "-m", "my-model", "--sample", "2", "--no-report", "-o", "runs/blimp-smollm2")
    for line in lines:
        words = [word.replace("$FELICITY_DATA", str(DATA)) for word in shrink(line.words)]
        answer = cli(*words)
        where = f"{label(page)}, line {line.number}: felicity {shlex.join(words)}"
        assert answer.code == 0, f"{where}\n{answer.err}"


STEPS = re.findall(
    r"^\| `([\w.]+)` \|", (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8"), re.MULTILINE
)


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


def test_the_package_that_is_shown_is_the_one_that_is_tested() -> None:
    page = (DOCS / "how-to" / "add-your-own.md").read_text(encoding="utf-8")
    files = [path for path in (ROOT / "tests" / "plugin").rglob("*") if path.suffix in (".py", ".toml")]
    shown = re.findall(r"```(?:python|toml)\n(.*?)```", page, re.DOTALL)
    sources = [path.read_text(encoding="utf-8") for path in files]
    assert len(shown) == 8
    assert not [block for block in shown if not any(block.strip() in source for source in sources)]
