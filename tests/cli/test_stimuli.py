"""felicity stimuli and felicity cloze from the command line."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import Answer, make_tiny_model

CLI = Callable[..., Answer]
PAIRS = "A robin is a bird,\nA robin is not a tree,\nAn oak is a tree,\nAn oak is not a bird,\n"


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    """A file of two pairs."""
    path = tmp_path / "seeds.txt"
    path.write_text(PAIRS)
    return path


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model with room for a prompt."""
    return make_tiny_model(tmp_path_factory.mktemp("writer") / "writer", seed=2, window=512)


@pytest.fixture
def extended(cli: CLI, seeds: Path, writer: Path, tmp_path: Path) -> Path:
    """A folder of an extension by a random model, with one pair put into its queue by hand."""
    from felicity.stimuli.extension import Extension

    folder = tmp_path / "extended"
    options = ("--examples", 1, "--tokens", 10, "--most-requests", 2, "-q")
    told = cli("stimuli", "extend", seeds, "-m", writer, "-o", folder, *options)
    assert told.code == 0, told.err
    for number in range(2):
        texts = [f"A thing{number} is a tool", f"A thing{number} is not a bird"]
        Extension(folder).log.append(
            "propose", {"request": 9, "item": f"9.1.{number}", "texts": texts, "flags": []}
        )
    return folder


def test_a_template_is_written_and_read_back_by_check(cli: CLI, tmp_path: Path) -> None:
    table = tmp_path / "categories.csv"
    table.write_text('Category,Members\nBird,"robin,eagle"\nTree,"oak,"\n')
    out = tmp_path / "neg.csv"
    told = cli("stimuli", "template", "neg", "--categories", table, "-o", out)
    assert told.code == 0
    assert "An eagle is a bird" in told.out
    assert "an empty member of 'tree'" in told.err
    assert pl.read_csv(out).height == 6
    assert cli("stimuli", "check", out, "--json").code == 0


def test_an_unknown_template_is_one_sentence(cli: CLI) -> None:
    told = cli("stimuli", "template", "negg")
    assert told.code == 2
    assert "did you mean 'neg'?" in told.err


def test_a_dry_run_shows_the_prompt_and_sends_nothing(
    cli: CLI, seeds: Path, tiny_model: Path, tmp_path: Path
) -> None:
    told = cli(
        "stimuli", "extend", seeds, "-m", tiny_model, "-o", tmp_path / "x", "--examples", 1, "--dry-run"
    )
    assert told.code == 0
    assert "Generate more sentence pairs like these:" in told.out
    assert "more requests" in told.err
    assert not (tmp_path / "x").exists()


def test_an_extension_keeps_raw_answers_and_goes_on(
    cli: CLI, extended: Path, seeds: Path, writer: Path
) -> None:
    assert len((extended / "answers.jsonl").read_text().splitlines()) == 2
    options = ("--examples", 1, "--tokens", 10, "--most-requests", 3)
    again = cli("stimuli", "extend", seeds, "-m", writer, "-o", extended, *options, "--json")
    assert again.code == 0, again.err
    assert json.loads(again.out)["asked"] == 1
    other = cli("stimuli", "extend", seeds, "-m", writer, "-o", extended, "--examples", 2)
    assert other.code == 2
    assert "begun with another k" in other.err


def test_the_terminal_queue_accepts_rejects_undoes_and_edits(
    cli: CLI, extended: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = iter(["a", "u", "r semantic", "b", "e", "A wug is a tool", "", "q"])
    monkeypatch.setattr("builtins.input", lambda _: next(keys))
    told = cli("stimuli", "review", extended, "--terminal", "--reviewer", "ada")
    assert told.code == 0, told.err
    items = pl.read_parquet(extended / "dataset.parquet")
    assert items["sentence"].to_list() == ["A wug is a tool", "A thing1 is not a bird"]
    log = [json.loads(line)["event"] for line in (extended / "log.jsonl").read_text().splitlines()]
    assert log[-4:] == ["accept", "undo", "reject", "edit"]


def test_verify_finds_a_changed_line_and_ends_with_1(cli: CLI, extended: Path) -> None:
    whole = cli("stimuli", "check", extended)
    assert whole.code == 0
    assert "unbroken" in whole.out
    path = extended / "log.jsonl"
    path.write_text(path.read_text().replace("thing0 is a tool", "thing0 is a bird"))
    told = cli("stimuli", "check", extended)
    assert told.code == 1
    assert "changed: its hash is not that of its content" in told.out


def test_check_lists_what_a_rule_finds(cli: CLI, tmp_path: Path) -> None:
    path = tmp_path / "pairs.txt"
    path.write_text("A orange is a fruit,\nA orange is not a tool,\n")
    told = cli("stimuli", "check", path, "--rule", "wrong article")
    assert "'A orange'" in told.out
    assert cli("stimuli", "check", path, "--rule", "wrong artcle").code == 2


def test_cloze_writes_its_tables_and_report(cli: CLI, tiny_model: Path, tmp_path: Path) -> None:
    from felicity.stimuli.items import write_items
    from felicity.stimuli.templates import Member, build_from_template, read_template

    members = [Member("cat", "animal"), Member("oak", "tree"), Member("saw", "tool")]
    write_items(build_from_template(read_template("neg"), members=members).items, tmp_path / "own.csv")
    out = tmp_path / "study"
    told = cli("cloze", tmp_path / "own.csv", "-m", tiny_model, "-o", out, "-q")
    assert told.code == 0, told.err
    assert "sensitivity" in told.out
    assert (out / "report.html").exists()
    # The targets of both conditions, and pairs of frames.
    assert pl.read_csv(out / "accuracy.csv")["n"].to_list() == [6] * 4 + [3]
    # Other stimuli are refused, with a way out that this command has.
    write_items(build_from_template(read_template("neg"), members=members[:2]).items, tmp_path / "own.csv")
    told = cli("cloze", tmp_path / "own.csv", "-m", tiny_model, "-o", out, "-q")
    assert told.code == 2
    assert "choose another folder with -o, or remove it." in told.err


def test_a_review_whose_input_ends_is_kept_as_it_is(
    cli: CLI, extended: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a\nr\n"))
    told = cli("stimuli", "review", extended, "--terminal", "--reviewer", "ada")
    assert told.code == 0, told.err
    assert pl.read_parquet(extended / "dataset.parquet").height == 2


@pytest.mark.parametrize(
    "line",
    [
        ("stimuli", "pairs", "--paradigm", "causative", "-n", "1000000", "-o", "x.xyz"),
        ("stimuli", "repair", "blimp", "-o", "x.xyz"),
        ("stimuli", "template", "no-such-template", "-o", "x.xyz"),
    ],
)
def test_an_unknown_ending_is_refused_before_anything_is_made(cli: CLI, line: tuple[str, ...]) -> None:
    told = cli(*line)
    assert told.code == 2
    assert "x.xyz" in told.err
    assert ".parquet" in told.err
