import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from felicity.cli.app import RENAMED, whole_program
from felicity.core.units import to_bits
from tests.conftest import Answer

Cli = Callable[..., Answer]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text("good,bad\nThe cats annoy Tim.,The cats annoys Tim.\nHe left.,Him left.\n")
    return path


def test_judge_prints_tokens_verdict_and_margin(cli: Cli, tiny_model: Path) -> None:
    answer = cli("judge", "The cats annoy Tim.", "The cats annoys Tim.", "-m", tiny_model)
    assert answer.code == 0
    assert "is more acceptable to tiny-gpt2" in answer.out
    assert "nats" in answer.out
    assert "█" in answer.out


def test_judge_gives_a_program_the_same_numbers(cli: Cli, tiny_model: Path) -> None:
    told = json.loads(cli("judge", "He left.", "Him left.", "-m", tiny_model, "--json").out)
    good, bad = told["sentences"]
    assert told["margin_nats"] == pytest.approx(good["lp"] - bad["lp"])
    assert told["margin_bits"] == pytest.approx(to_bits(told["margin_nats"]))
    assert good["lp"] == pytest.approx(sum(good["logprob"]))
    assert told["verdict"] == ("A" if told["margin_nats"] > 0 else "B")


def test_judging_a_sentence_against_itself_is_a_tie(cli: Cli, tiny_model: Path) -> None:
    answer = cli("judge", "He left.", "He left.", "-m", tiny_model)
    assert "equally acceptable" in answer.out
    assert "the same tokens" in answer.out


def test_judge_shows_text_not_markup(cli: Cli, tiny_model: Path) -> None:
    assert "[" in cli("judge", "He [bold]left.", "Him left.", "-m", tiny_model).out


def test_without_begin_token_judge_says_what_it_left_out(cli: Cli, tiny_model: Path) -> None:
    answer = cli("judge", "He left.", "Him left.", "-m", tiny_model, "--bos", "none")
    assert "unscored" in answer.out


def test_run_prints_accuracy_and_leaves_a_report(
    cli: Cli, pairs: Path, tiny_model: Path, tmp_path: Path
) -> None:
    answer = cli("run", pairs, "-m", tiny_model, "-o", tmp_path / "run")
    assert answer.code == 0, answer.err
    assert "Accuracy over items" in answer.out
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
    assert list((tmp_path / "run" / "figures").glob("*.svg"))
    assert list((tmp_path / "run" / "figures").glob("*.png"))


def test_run_for_a_program_prints_only_json(cli: Cli, pairs: Path, tiny_model: Path, tmp_path: Path) -> None:
    answer = cli("run", pairs, "-m", tiny_model, "-o", tmp_path / "run", "--no-report", "--json")
    told = json.loads(answer.out)
    assert answer.err == ""
    assert told["estimates"][0]["level"] == "overall"
    assert told["report"] is None


def test_run_says_what_the_audit_found_before_scoring(
    cli: Cli, pairs: Path, tiny_model: Path, tmp_path: Path
) -> None:
    answer = cli("run", pairs, "-m", tiny_model, "-o", tmp_path / "run", "--no-report", "--bos", "none")
    assert "Audit: tokens unscored: 4 of" in answer.err
    quiet = cli(
        "run", pairs, "-m", tiny_model, "-o", tmp_path / "run2", "--no-report", "--quiet", "--bos", "none"
    )
    assert quiet.err == ""


def test_report_can_be_written_again_from_the_tables(
    cli: Cli, pairs: Path, tiny_model: Path, tmp_path: Path
) -> None:
    cli("run", pairs, "-m", tiny_model, "-o", tmp_path / "run")
    page = tmp_path / "run" / "report.html"
    first = page.read_bytes()
    page.unlink()
    assert cli("report", tmp_path / "run").code == 0
    assert page.read_bytes() == first


@pytest.mark.parametrize("to", ["csv", "jsonl"])
def test_export_writes_every_table_with_one_row_a_token(
    cli: Cli, pairs: Path, tiny_model: Path, tmp_path: Path, to: str
) -> None:
    cli("run", pairs, "-m", tiny_model, "-o", tmp_path / "run", "--no-report")
    assert cli("export", tmp_path / "run", "--to", to).code == 0
    path = tmp_path / "run" / "export" / f"tokens.{to}"
    flat = pl.read_csv(path) if to == "csv" else pl.read_ndjson(path)
    stored = pl.read_parquet(tmp_path / "run" / "tokens.parquet")
    assert flat.height == stored["tokens"].list.len().sum()
    sums = flat.group_by("request", maintain_order=True).agg(pl.col("logprob").sum())
    expected = stored["logprob"].list.sum().to_list()
    assert sums["logprob"].to_list() == pytest.approx(expected, abs=1e-4)


def test_counts_feed_slor(cli: Cli, pairs: Path, tiny_model: Path, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("The cats annoy Tim.\n\nHe left. The cat left.\n")
    counts = tmp_path / "counts.tsv"
    told = json.loads(cli("measures", "count", corpus, "-m", tiny_model, "-o", counts, "--json").out)
    table = dict(line.rsplit("\t", 1) for line in counts.read_text().splitlines())
    assert sum(map(int, table.values())) == told["tokens"]
    assert table["."] == "3"
    options = ("--measure", "slor", "--unigram", counts, "-o", tmp_path / "run", "--no-report", "--json")
    # So small a corpus lacks many tokens.
    done = json.loads(cli("run", pairs, "-m", tiny_model, *options, "--unseen", "1").out)
    assert done["manifest"]["options"]["unigram"] == str(counts)
    assert {row["measure"] for row in done["estimates"]} == {"slor"}


def test_data_ls_show_and_check(cli: Cli, pairs: Path) -> None:
    assert {row["name"] for row in json.loads(cli("data", "ls", "--json").out)} >= {"starter", "blimp"}
    told = json.loads(cli("data", "show", "starter", "--json").out)
    assert told["items"] == 720
    assert len(told["phenomena"]) == 12
    assert cli("stimuli", "check", pairs).code == 0
    pairs.write_text("good,bad\nHe left.,He left.\n")
    answer = cli("stimuli", "check", pairs)
    assert answer.code == 1
    assert "identical texts" in answer.out


def test_models_and_measures_are_listed_and_described(cli: Cli, tiny_model: Path) -> None:
    assert json.loads(cli("models", "ls", "--json").out)[0]["name"] == "smollm2"
    told = json.loads(cli("models", "info", tiny_model, "--json").out)
    assert (told["family"], told["window"], told["policy"]["bos"]) == ("causal", 64, "<|endoftext|>")
    assert told["parameters"] > 0
    names = [row["name"] for row in json.loads(cli("measures", "--json").out)]
    assert names[:6] == ["lp", "mean_lp", "pen_lp", "slln_lp", "norm_lp", "slor"]
    assert names[6:] == ["char_lp", "byte_lp", "morcela", "word_pmi"]


def test_the_version_is_the_packages(cli: Cli) -> None:
    from importlib.metadata import version

    assert cli("--version").out == f"felicity {version('felicity')}\n"


def test_help_loads_nothing_heavy() -> None:
    code = "import sys; sys.argv = ['felicity', '--help']\nfrom felicity.cli.app import main\n"
    code += "try: main()\nexcept SystemExit: pass\n"
    code += (
        "print(sorted({'torch', 'transformers', 'polars', 'numpy', 'altair', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def list_commands(command: Any, *path: str) -> Iterator[tuple[str, Any]]:
    """Every command that does something, by its whole name."""
    if hasattr(command, "commands"):
        for name, part in command.commands.items():
            yield from list_commands(part, *path, name)
    else:
        yield " ".join(path), command


COMMANDS = dict(list_commands(whole_program()))
MOST_OPTIONS = 20


@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_shows_more_than_twenty_options_at_first_sight(cli: Cli, name: str) -> None:
    shown = cli(*name.split(), "--help").out
    first = shown.partition("\nOptions:\n")[2].partition("\n\n")[0]
    assert 1 <= sum(line.startswith("  -") for line in first.splitlines()) <= MOST_OPTIONS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples_of_its_own(cli: Cli, name: str) -> None:
    shown = cli(*name.split(), "--help").out
    assert f"felicity {name}" in shown.partition("Examples:")[2]


@pytest.mark.parametrize("old", [old for old in RENAMED if not old.startswith("-")])
def test_a_command_that_moved_answers_with_its_new_name(cli: Cli, old: str) -> None:
    answer = cli(*old.split(), "whatever")
    assert answer.code == 2
    assert answer.err.strip() == f"`felicity {old}` is now `felicity {RENAMED[old]}`."
    command: Any = whole_program()
    for word in RENAMED[old].split():
        if not word.startswith("-"):
            command = command.commands[word]
