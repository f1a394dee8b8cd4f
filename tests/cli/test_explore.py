"""felicity explore on the command line: the offline file, the report's link, what is refused."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.explore import contents, open_collections
from felicity.run import evaluate, open_model, write_record
from tests.conftest import Answer, make_tiny_model


@pytest.fixture
def run(tiny_model: Path, tmp_path: Path) -> Path:
    (tmp_path / "pairs.csv").write_text("good,bad\nThe cat is here.,The cat are here.\n", encoding="utf-8")
    evaluate(tmp_path / "pairs.csv", open_model(str(tiny_model)), out=tmp_path / "run").report(
        tmp_path / "run"
    )
    return tmp_path / "run"


def test_the_offline_file_is_written_and_the_report_links_to_it(
    cli: Callable[..., Answer], run: Path
) -> None:
    # Until then there is a note that says how to open it.
    assert "felicity explore . --static explore.html" in (run / "explore.html").read_text(encoding="utf-8")
    assert 'href="explore.html#/items"' in (run / "report.html").read_text(encoding="utf-8")
    answer = cli("explore", run, "--static", run / "explore.html")
    assert answer.code == 0, answer.err
    assert "The cat are here." in (run / "explore.html").read_text(encoding="utf-8")
    (run / "explore.html").unlink()
    assert cli("report", run).code == 0
    assert "The cat are here." in (run / "explore.html").read_text(encoding="utf-8")


def test_a_page_of_few_items_is_written_with_the_report_and_a_larger_one_is_not(
    cli: Callable[..., Answer], tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pairs.csv").write_text("good,bad\nThe cat is here.,The cat are here.\n", encoding="utf-8")
    given = ("run", tmp_path / "pairs.csv", "-m", tiny_model, "-q")
    pages = {}
    for name, more in (("few", ()), ("none", ("--no-explorer",)), ("bare", ("--no-report",))):
        assert cli(*given, "-o", tmp_path / name, *more).code == 0
        page = tmp_path / name / "explore.html"
        pages[name] = page.read_text(encoding="utf-8") if page.exists() else None
    assert "The cat are here." in pages["few"]
    assert "felicity explore . --static explore.html" in pages["none"]
    assert pages["bare"] is None
    # A page that was asked for stays while the results are the same, and goes with newer ones.
    monkeypatch.setattr(contents, "SMALL", 0)
    run = tmp_path / "few"
    assert cli("report", run).code == 0
    assert "The cat are here." in (run / "explore.html").read_text(encoding="utf-8")
    os.utime(run / "explore.html", (0, 0))
    assert cli("report", run).code == 0
    assert "felicity explore . --static explore.html" in (run / "explore.html").read_text(encoding="utf-8")


def test_reports_of_several_models_lead_to_one_page_and_each_to_its_own_run(
    cli: Callable[..., Answer], tiny_model: Path, tmp_path: Path
) -> None:
    other = make_tiny_model(tmp_path / "other", seed=2)
    (tmp_path / "pairs.csv").write_text("good,bad\nThe cat is here.,The cat are here.\n", encoding="utf-8")
    both = tmp_path / "both"
    answer = cli("run", tmp_path / "pairs.csv", "-m", tiny_model, "-m", other, "-q", "-o", both)
    assert answer.code == 0, answer.err
    assert (both / "explore.html").exists()
    assert not (both / "other" / "explore.html").exists()
    assert "../explore.html#/items?run=other" in (both / "other" / "report.html").read_text(encoding="utf-8")
    data = (both / "explore.html").read_text(encoding="utf-8")
    assert '"run":"other"' in data


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-m", "smollm2"], "add --live"),
        (["--live", "--static", "x.html"], "leave out --live or --static"),
    ],
)
def test_options_that_contradict_are_refused(
    cli: Callable[..., Answer], tmp_path: Path, options: list[str], told: str
) -> None:
    answer = cli("explore", tmp_path, *options)
    assert answer.code == 2
    assert told in answer.err


def test_a_folder_without_a_run_is_refused(cli: Callable[..., Answer], tmp_path: Path) -> None:
    answer = cli("explore", tmp_path / "nothing", "--static", tmp_path / "x.html")
    assert answer.code == 2
    assert "no run folder" in answer.err


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_does_not_exist_is_refused(cli: Callable[..., Answer], run: Path, port: int) -> None:
    answer = cli("explore", run, "--no-browser", "--port", port)
    assert answer.code == 2
    assert answer.err.strip() == f"There is no port {port}; choose a --port from 0 to 65535."


def test_a_page_must_end_in_html(cli: Callable[..., Answer], run: Path) -> None:
    answer = cli("explore", run, "--static", run / "page.pdf")
    assert answer.code == 2
    assert "page.pdf does not end in .html" in answer.err


def test_the_runs_below_a_study_or_a_folder_are_shown_together(
    cli: Callable[..., Answer], run: Path, tmp_path: Path
) -> None:
    study = tmp_path / "study"
    (study / "models").mkdir(parents=True)
    run.rename(study / "models" / "tiny")
    shutil.copytree(study / "models" / "tiny", study / "models" / "again")
    for folder in (study / "models", study):
        with open_collections([folder]) as (collection,):
            assert sorted(source.run.path.name for source in collection.sources) == ["again", "tiny"]
        # The second time round the models are those of a study.
        write_record(study, {"study": "acceptability"})


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["study.toml", "stimuli.csv"], "look at it with `felicity rate preview {path}`"),
        (["task.json", "log.jsonl"], "look at them with `felicity stimuli review {path}`"),
        (["trained.json"], "try it with `felicity run starter -m {path}` and explore that run"),
        (["config.json"], "try it with `felicity run starter -m {path}` and explore that run"),
        (["checkpoint-1/config.json"], "compare them with `felicity trajectory starter -m {path}`"),
        (["report.html", "ratings.csv"], "open {path}/report.html in a browser"),
        (["report.html", "words.csv"], "analyse them with `felicity reading {path}/words.csv -m MODEL`"),
        (["something.txt"], "give the folder of a run, of several runs, or of a study"),
    ],
)
def test_a_folder_of_another_kind_is_refused_with_what_to_do_instead(
    cli: Callable[..., Answer], tmp_path: Path, names: list[str], told: str
) -> None:
    for name in names:
        (tmp_path / "made" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "made" / name).write_text("{}")
    answer = cli("explore", tmp_path / "made", "--no-browser")
    assert answer.code == 2
    assert told.format(path=tmp_path / "made") in answer.err
    assert len(answer.err.strip().splitlines()) == 1


def test_a_file_is_refused_with_the_command_that_makes_a_run(
    cli: Callable[..., Answer], tmp_path: Path
) -> None:
    for name, told in (("pairs.csv", "`felicity run {path} -o FOLDER`"), ("words.arpa", "is a file; give")):
        (tmp_path / name).write_text("good,bad\n")
        answer = cli("explore", tmp_path / name, "--no-browser")
        assert answer.code == 2
        assert told.format(path=tmp_path / name) in answer.err
