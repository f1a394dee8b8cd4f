"""What commands say beside their result: advice that can be copied, and nothing that misleads."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import felicity as fe
from felicity.stats.mixed.binomial import deviance_residuals
from tests.conftest import ROOT, Answer, make_tiny_model

Cli = Callable[..., Answer]
RATED = """item,condition,text,rating
1,a,The cat sleeps.,5
1,b,The cat sleep.,2
2,a,The dog barks.,6
2,b,The dog bark.,1
"""


def test_rated_items_in_conditions_are_checked_and_run_alike(
    cli: Cli, tmp_path: Path, tiny_model: Path
) -> None:
    path, out = tmp_path / "rated.csv", tmp_path / "run"
    path.write_text(RATED, encoding="utf-8")
    assert "nothing to fix" in cli("stimuli", "check", path).out
    answer = cli("run", path, "-m", tiny_model, "-o", out, "--no-report")
    assert answer.code == 0, answer.err
    items = fe.read_run(out)["items"]
    assert items["item"].to_list() == ["rated/1/a", "rated/1/b", "rated/2/a", "rated/2/b"]
    assert items["design_item"].to_list() == ["rated/1", "rated/1", "rated/2", "rated/2"]
    assert fe.read_run(out)["correlations"].filter(level="all")["n"].to_list() == [4, 4]
    path.write_text(RATED + "2,b,The dog bark.,3\n", encoding="utf-8")
    checked, ran = cli("stimuli", "check", path), cli("run", path, "-m", tiny_model, "-o", tmp_path / "other")
    assert (checked.code, ran.code) == (1, 2)
    assert "item 'rated/2' in the condition 'b' is already on line 5" in ran.err
    assert f"felicity acceptability {path}" in ran.err


def test_advice_repeats_the_options_that_named_the_columns(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("right,wrong one\nThe cat sleeps.,\n", encoding="utf-8")
    said = cli("run", path, "--good", "right", "--bad", "wrong one").err
    advice = re.search(r"`felicity (stimuli check .*?)`", " ".join(said.split()))
    assert advice is not None
    assert advice[1] == f"stimuli check {path} --good right --bad 'wrong one'"
    assert "empty cell" in cli("stimuli", "check", path, "--good", "right", "--bad", "wrong one").out


def test_columns_of_a_run_are_listed_once(cli: Cli, tmp_path: Path, tiny_model: Path) -> None:
    fe.evaluate(pl.DataFrame({"good": ["A cat."], "bad": ["Cat a."]}), str(tiny_model), out=tmp_path / "run")
    said = cli("fit", "nope ~ 1 + (1|item)", tmp_path / "run").err
    listed = said.partition("known: ")[2].strip().split(", ")
    assert sorted(set(listed)) == listed
    assert {"item", "passed", "surprisal"} <= set(listed)


@pytest.fixture
def crossed(tmp_path: Path) -> Path:
    """Two crossed factors within items; the interaction is 1, 2 and 3: mean 2, SD 1."""
    rows = [
        {"frame": item, "a": a, "b": b, "y": item * 1.0 if (a, b) == ("1", "1") else 0.0}
        for item in (1, 2, 3)
        for a in "12"
        for b in "12"
    ]
    path = tmp_path / "crossed.csv"
    pl.DataFrame(rows).write_csv(path)
    return path


def test_plot_prints_the_interaction_whatever_the_items_are_called(cli: Cli, crossed: Path) -> None:
    command = ("plot", crossed, "--y", "y", "--x", "a", "--by", "b", "-o", crossed.with_suffix(".svg"))
    # Student's t with 2 degrees of freedom: 4.303 / sqrt(3) = 2.484.
    named = cli(*command, "--item", "frame").out
    assert "Interaction over 3 items: 2.000, 95% CI [−0.484, 4.484], d = 2.00" in named
    assert "the table has no column 'item'; name that of the items with --item" in " ".join(
        cli(*command).out.split()
    )


def test_the_figure_names_unit_factor_regions_and_interaction(cli: Cli, crossed: Path) -> None:
    figure = crossed.with_suffix(".svg")
    asked = ("plot", crossed, "--y", "y", "--x", "a", "--by", "b", "--item", "frame", "-o", figure)
    more = ("--unit", "ms", "--title", "Reading", "--size", "500x300", "--within", "--regions", "noun,verb")
    told = cli(*asked, *more)
    assert told.code == 0, told.err
    words = re.findall(r">([^<>]+)</(?:text|tspan)>", figure.read_text())
    assert {"y (ms)", "Reading", "b: 1", "b: 2", "interaction", "noun", "verb"} <= set(words)
    assert any(word.startswith("within-item 95% intervals") for word in words)
    assert "2.000 ms, 95% CI" in told.out


@pytest.mark.parametrize(
    ("option", "told"),
    [
        (("--regions", "noun"), "1 regions are named, but a has 2 values (1, 2)"),
        (("--size", "big"), "--size big is not WIDTHxHEIGHT"),
        (("--within",), "There is no column 'item'"),
    ],
)
def test_a_figure_that_cannot_be_drawn_is_refused(
    cli: Cli, crossed: Path, option: tuple[str, ...], told: str
) -> None:
    answer = cli("plot", crossed, "--y", "y", "--x", "a", "--by", "b", "-o", "x.svg", *option)
    assert answer.code == 2
    assert told in answer.err


def test_a_forecast_leaves_no_folder_behind(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = make_tiny_model(tmp_path / "tiny", seed=1, window=512)
    pl.DataFrame({"good": ["A cat.", "A dog."], "bad": ["Cat a.", "Dog a."]}).write_csv("pairs.csv")
    answer = cli(
        "context", "pairs.csv", "-m", model, "--kind", "matched_acceptable", "--sentences", "1", "--forecast"
    )
    assert answer.code == 0, answer.err
    assert "texts to score" in answer.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pairs.csv", "tiny"]


def test_a_certain_probability_has_a_residual_without_a_warning() -> None:
    # Two hits of two at p = 1 and none at p = 0 fit exactly; one of two at 1/2 does too.
    hits, trials, fitted = np.array([2.0, 0.0, 1.0]), np.array([2.0, 2.0, 2.0]), np.array([1.0, 0.0, 0.5])
    with np.errstate(all="raise"):
        assert deviance_residuals(hits, trials, fitted).tolist() == [0.0, 0.0, 0.0]
        # One of two where 1/4 was expected: 2 (ln 2 + ln(2/3)), positive.
        one = deviance_residuals(np.array([1.0]), np.array([2.0]), np.array([0.25]))
    assert one.tolist() == pytest.approx([np.sqrt(2 * np.log(4 / 3))])


def test_raters_see_neither_a_file_name_nor_a_guessed_duration(cli: Cli, tmp_path: Path) -> None:
    table = tmp_path / "exp3_final_NEW.csv"
    table.write_text("item,text\n1,It rains.\n2,It snows.\n", encoding="utf-8")
    said = cli("rate", "new", tmp_path / "bare", "--from", table)
    assert said.code == 0, said.err
    assert "give --title and --minutes" in " ".join(said.out.split())
    written = (tmp_path / "bare" / "study.toml").read_text(encoding="utf-8")
    assert "exp3" not in written
    assert "minutes." not in written
    told = cli("rate", "new", tmp_path / "told", "--from", table, "--title", "Weather", "--minutes", 5)
    assert "--title" not in told.out
    page = (tmp_path / "told" / "study.toml").read_text(encoding="utf-8")
    assert 'title = "Weather"' in page
    assert "It takes\nabout 5 minutes." in page


def test_the_tutorial_quotes_what_judge_prints(cli: Cli, tiny_model: Path) -> None:
    quoted = re.search(
        r"^    (A is more acceptable.*)$", (ROOT / "docs/tutorial.md").read_text(), re.MULTILINE
    )
    assert quoted is not None
    said = cli("judge", "The cats annoy Tim.", "The cats annoys Tim.", "-m", tiny_model).out
    # The sentence that wins and the numbers are those of another model.
    printed, form = (
        re.sub(r"[+-]\d+\.\d+", "N", line.removeprefix("A").removeprefix("B"))
        for line in (said.strip().splitlines()[-1], quoted[1].replace("smollm2", tiny_model.name))
    )
    assert printed == form


@pytest.mark.parametrize(("old", "new"), [("--anyway", "--force"), ("--cut-by=gpt2", "--length-tokenizer")])
def test_the_old_name_of_an_option_answers_with_the_new_one(cli: Cli, old: str, new: str) -> None:
    answer = cli("report", "runs/none", old)
    assert (answer.code, answer.err) == (2, f"The option {old.split('=')[0]} is now called {new}.\n")
    assert "--anyway" not in cli("judge", "--", "One text.", "--anyway").err


def test_the_option_of_another_command_is_answered_with_that_command(cli: Cli) -> None:
    answer = cli("run", "babylm", "--task=wug_adj")
    assert (answer.code, answer.err) == (
        2,
        "`felicity run` has no option --task; `felicity benchmark` has it.\n",
    )


def test_a_study_prints_its_question_before_its_answer(cli: Cli, tmp_path: Path, tiny_model: Path) -> None:
    path = tmp_path / "blanks.csv"
    path.write_text("item,condition,context_text,text\n1,a,The cat saw the,dog\n2,a,The dog saw the,cat\n")
    answer = cli("cloze", path, "-m", tiny_model, "-o", tmp_path / "out", "-q")
    question, found, *_ = [line for line in answer.out.splitlines() if line.startswith(("How", "The target"))]
    assert question == "How often is the target among a model's likeliest words?"
    assert found.startswith("The target is among")
    assert (
        "Words that count as found: in blanks the targets of the frames of every condition (a)." in answer.out
    )
