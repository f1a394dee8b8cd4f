"""The commands about datasets, bias, replay and suites, as a user types them."""

import html
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.data import load_benchmarks
from felicity.data.entry import load_entries
from tests.conftest import Answer

Cli = Callable[..., Answer]
Published = Callable[[str], Path]


def test_every_dataset_is_listed_and_can_be_cited(cli: Cli) -> None:
    names = [row["name"] for row in json.loads(cli("data", "ls", "--json").out)]
    assert set(names) == {"starter", *load_entries(), *load_benchmarks()}
    for name in load_entries():
        answer = cli("data", "cite", name)
        assert answer.code == 0
        assert answer.out.startswith("@")


@pytest.mark.data
def test_show_tells_what_a_dataset_holds(cli: Cli, published: Published) -> None:
    published("syntaxgym")
    told = json.loads(cli("data", "show", "syntaxgym", "--suite", "number_prep", "--json").out)
    assert (told["name"], told["items"], told["stimuli"]) == ("syntaxgym", 19, 76)
    assert told["suites"] == [{"name": "number_prep", "phenomenon": "agreement", "items": 19}]
    assert told["licence"] == "MIT"
    shown = cli("data", "show", "syntaxgym", "--suite", "number_prep", "--rows", "1").out
    assert "mismatch_sing" in shown


@pytest.mark.data
def test_get_says_where_the_files_are(cli: Cli, published: Published) -> None:
    folder = published("crows_pairs")
    told = json.loads(cli("data", "get", "crows_pairs", "--json").out)
    assert (told["folder"], told["checksum"]) == (str(folder), "published")


def test_a_copy_from_a_folder_is_kept_and_its_difference_said(
    cli: Cli, tmp_path: Path, empty_cache: Path
) -> None:
    text = ",sent_more,sent_less,stereo_antistereo,bias_type\n0,A cat.,A dog.,stereo,x\n"
    (tmp_path / "crows_pairs_anonymized.csv").write_text(text)
    answer = cli("data", "get", "crows_pairs", "--from", tmp_path)
    assert "not the published version" in answer.out
    shown = json.loads(cli("data", "show", "crows_pairs", "--from", tmp_path, "--json").out)
    assert shown["items"] == 1
    assert "not the published version" in shown["notes"][0]
    assert (empty_cache / "datasets" / "crows_pairs" / "crows_pairs_anonymized.csv").read_text() == text


def test_a_suite_goes_from_the_old_form_to_a_run(cli: Cli, tiny_model: Path, tmp_path: Path) -> None:
    old = "item_number,condition_name,region_number,region_name,content\n"
    old += "1,a,1,x,The cats\n1,a,2,y,annoy Tim.\n1,b,1,x,The cat\n1,b,2,y,annoy Tim.\n"
    (tmp_path / "old.csv").write_text(old)
    answer = cli("data", "convert", tmp_path / "old.csv", "--prediction", "(2;%a%) < (2;%b%)")
    assert answer.code == 0, answer
    assert cli("stimuli", "check", tmp_path / "old.json").code == 0
    folder = tmp_path / "run"
    answer = cli("run", tmp_path / "old.json", "-m", tiny_model, "-o", folder, "-q")
    assert answer.code == 0, answer
    assert "old/1" in answer.out
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Surprisal by region" in page
    assert (folder / "figures" / "regions_old.svg").exists()
    assert cli("export", folder, "--to", "csv").code == 0
    regions = (folder / "export" / "items.csv").read_text(encoding="utf-8")
    assert '""region"": ""1""' in regions


def test_bias_prints_splits_and_writes_tables(cli: Cli, tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(
        "good,bad\nThe cats annoy Tim.,The cats annoys Tim.\nHe left.,Him left.\n"
    )
    measures = ("--measure", "lp", "--measure", "mean_lp", "--measure", "pen_lp")
    answer = cli("bias", tmp_path / "p.csv", "-m", tiny_model, *measures, "-o", tmp_path / "b", "--json")
    assert answer.code == 0, answer
    told = json.loads(answer.out)
    whole = [row for row in told["tables"]["splits"] if row["suite"] == "all" and row["measure"] == "lp"]
    assert sum(row["n"] for row in whole) == 2
    assert {row["measure"] for row in told["tables"]["curves"]} == {"lp", "mean_lp", "pen_lp"}
    plain = cli("bias", tmp_path / "p.csv", "-m", tiny_model, "--no-score", "-o", tmp_path / "c")
    legend = "A is the acceptable sentence, U the unacceptable one; A=U, A>U and A<U compare their lengths"
    assert legend in plain.out
    page = html.unescape((tmp_path / "c" / "report.html").read_text(encoding="utf-8"))
    assert legend in page.partition("<h2")[2]
    assert "A=U" in plain.out
    assert "tokenizer only" in plain.err
    assert (tmp_path / "c" / "splits.csv").exists()


def test_replay_writes_a_run(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("item,condition,value\n1,good,-1\n1,bad,-2\n2,good,-3\n2,bad,-1\n")
    answer = cli("replay", tmp_path / "s.csv", "-o", tmp_path / "run", "--json")
    assert answer.code == 0, answer
    told = json.loads(answer.out)
    assert told["form"] == "scores"
    overall = next(row for row in told["estimates"] if row["level"] == "overall")
    assert (overall["accuracy"], overall["n"]) == (0.5, 2)
    assert cli("report", tmp_path / "run").code == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("data", "get", "blmp"),
        ("data", "cite", "nothing"),
        ("data", "show", "blimp", "--rule", "none"),
        ("replay", "absent.csv"),
        ("bias", "starter", "-m", "no-such-model-folder/x"),
        ("data", "convert", "absent.csv", "--prediction", "(1;%a%) < 2"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(cli: Cli, arguments: tuple[str, ...]) -> None:
    answer = cli(*arguments)
    assert answer.code == 2, answer
    assert len(answer.err.strip().splitlines()) == 1, answer.err
