"""`fe.check`: names, files, frames, seed lists and folders give one result; the command prints it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import felicity as fe

PAIRS = {
    "suite": ["a"] * 4,
    "good": ["He saw a owl.", "The dog barks at us.", "The boys run home.", "The girl sees it."],
    "bad": ["Him saw a owl.", "The dog bark at us.", "The boys runs home.", "The girl see it"],
}


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame], ids=["polars", "pandas"])
def test_a_frame_is_checked_like_its_file(frame: Callable[[Any], Any], tmp_path: Path) -> None:
    pl.DataFrame(PAIRS).write_csv(tmp_path / "pairs.csv")
    from_file, from_frame = fe.check(tmp_path / "pairs.csv"), fe.check(frame(PAIRS))
    assert from_frame.findings["rule"].to_list() == ["wrong article", "punctuation"]
    assert from_frame.findings.drop("line", "item").equals(from_file.findings.drop("line", "item"))
    assert from_file.findings["line"].to_list() == [2, 5]
    assert from_file.problems["problem"].to_list() == ["missing full stop"]
    assert not from_file.usable


def test_a_named_set_of_pairs_is_checked_and_shows_itself() -> None:
    found = fe.check("starter")
    assert (found.items, found.rows) == (720, 1440)
    assert found.usable
    assert set(found.counts) <= {"unequal length"}
    assert found.baselines.filter(level="suite")["name"].n_unique() == 48
    page = found._repr_html_()
    assert "Check of starter" in page
    assert "Judged right without a model" in page


def test_seeds_ratings_and_suites_are_checked(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("A orange is a fruit,\nA orange is not a tool,\n", encoding="utf-8")
    assert fe.check(tmp_path / "seeds.txt").findings["rule"].to_list() == ["wrong article"]
    rated = {"text": ["He ate an apple.", "She is a engineer."], "rating": [5, 3]}
    found = fe.check(pl.DataFrame(rated))
    assert found.findings.select("item", "rule").rows() == [("frame/2", "wrong article")]
    single = {"text": ["She is a engineer."] * 2, "rating": [5, 3], "rater": ["ada", "bob"], "item": [1, 1]}
    assert "wrong article" in fe.check(pl.DataFrame(single)).counts
    suite = tmp_path / "s.toml"
    item = '[[items]]\na = ["An", "dog", "sees", "us."]\nb = ["An", "dog", "see", "us."]\n'
    suite.write_text(f'name = "s"\npredictions = ["(3;%a%) < (3;%b%)"]\n{item}', encoding="utf-8")
    assert fe.check(suite).findings["rule"].to_list() == ["wrong article"]


def test_only_rules_that_are_named_are_kept_and_unknown_ones_are_refused() -> None:
    assert fe.check(pl.DataFrame(PAIRS), rules="punctuation").findings["rule"].to_list() == ["punctuation"]
    with pytest.raises(fe.FelicityError, match="did you mean 'punctuation'"):
        fe.check(pl.DataFrame(PAIRS), rules=["punctation"])
    with pytest.raises(fe.FelicityError, match="--last is a hash of the log"):
        fe.check(pl.DataFrame(PAIRS), last="1f")


def test_sentences_of_another_language_are_not_checked_as_english() -> None:
    pairs = {"good": ["Die Katze sieht den Hund."] * 2, "bad": ["Die Katze sehen den Hund."] * 2}
    found = fe.check(pl.DataFrame(pairs))
    assert "The sentences are not English, so their words were not checked." in found.notes
    assert found.baselines["baseline"].unique().to_list() == ["length"]


def test_a_model_says_which_labels_may_be_swapped_and_counts_tokens(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    good, bad = PAIRS["good"], [text * 1 for text in PAIRS["bad"]]
    margins = lm.score(good)["lp"] - lm.score(bad)["lp"]
    swapped = [(b, g) if m > 0 else (g, b) for g, b, m in zip(good, bad, margins, strict=True)]
    frame = pl.DataFrame({"good": [one for one, _ in swapped], "bad": [two for _, two in swapped]})
    found = fe.check(frame, model=lm)
    told = found.findings.filter(rule="labels swapped?")["detail"].to_list()
    assert any("prefers the bad sentence in 4 of 4 pairs" in detail for detail in told)
    assert "unequal tokens" in fe.check(frame, tokenizers=str(tiny_model)).counts


def test_the_command_prints_what_the_function_gives(cli: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    pl.DataFrame(PAIRS).write_csv(path)
    told = cli("stimuli", "check", path, "--json")
    assert told.code == 1
    assert json.loads(told.out) == json.loads(json.dumps(fe.check(path).as_dict()))
    shown = cli("stimuli", "check", path)
    assert "'a owl' in the good sentence" in shown.out
    assert "1 problem in 4 items. To look at: punctuation 1, wrong article 1." in shown.out
    assert "The 5-gram was trained on" in shown.err


@pytest.mark.parametrize("words", [("data", "check", "x.csv"), ("stimuli", "log", "verify", "x")])
def test_old_names_answer_with_the_new_one(cli: Callable[..., Any], words: tuple[str, ...]) -> None:
    told = cli(*words)
    assert told.code == 2
    assert "is now `felicity stimuli check`" in told.err
