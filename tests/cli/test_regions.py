"""Regions from the command line: bars are marks, not words, and a region has one surprisal everywhere."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.core.units import to_bits
from tests.conftest import Answer

Cli = Callable[..., Answer]
BARRED = "The cats | annoy | Tim."
PLAIN = "The cats annoy Tim."
SUITE = """
name = "agreement"
regions = ["subject", "verb", "end"]
predictions = ["(verb;%match%) < (verb;%mismatch%)"]
[[items]]
match = ["The cats", "annoy", "Tim."]
mismatch = ["The cats", "annoys", "Tim."]
"""


@pytest.fixture
def barred(tmp_path: Path) -> Path:
    path = tmp_path / "garden.csv"
    path.write_text(f"item,text\n1,{BARRED}\n2,The cat sleeps here.\n", encoding="utf-8")
    return path


@pytest.mark.parametrize("by", ["token", "word", "sentence"])
def test_bars_are_no_words_without_by_region(cli: Cli, barred: Path, tiny_model: Path, by: str) -> None:
    answer = cli("surprisal", barred, "-m", tiny_model, "--by", by, "--json")
    rows = [row for row in json.loads(answer.out) if row["row"] == 1]
    whole = to_bits(-fe.model(str(tiny_model)).score(PLAIN)["lp"].item())
    assert sum(row["surprisal"] for row in rows) == pytest.approx(whole, abs=1e-3)
    assert "|" not in [row.get("word", row.get("piece", "")).strip() for row in rows]
    said = cli("surprisal", barred, "-m", tiny_model, "--by", by).err
    assert "region bars: 1 of 2 (bars between regions, taken out before scoring)" in said


def test_run_takes_bars_out_and_the_audit_counts_them(cli: Cli, tmp_path: Path, tiny_model: Path) -> None:
    path, out = tmp_path / "pairs.csv", tmp_path / "run"
    path.write_text(f"item,number,text\n1,good,{BARRED}\n1,bad,The cats | annoys | Tim.\n", encoding="utf-8")
    answer = cli("run", path, "--factor", "number", "-m", tiny_model, "-o", out, "--no-report")
    assert answer.code == 0, answer.err
    assert "Audit: region bars: 2 of 2" in answer.err
    assert fe.read_run(out)["items"]["text"].to_list() == [PLAIN, "The cats annoys Tim."]
    checked = cli("stimuli", "check", path, "--factor", "number")
    assert checked.out.count("region bars") == 2


def test_judge_takes_bars_out_and_says_so(cli: Cli, tiny_model: Path) -> None:
    barred = cli("judge", BARRED, "The cats | annoys | Tim.", "-m", tiny_model)
    plain = cli("judge", PLAIN, "The cats annoys Tim.", "-m", tiny_model)
    assert barred.out == plain.out
    assert "Bars between regions were taken out" in barred.err


def test_a_region_has_the_same_surprisal_in_a_run_and_in_surprisal(
    cli: Cli, tmp_path: Path, tiny_model: Path
) -> None:
    suite, texts, out = tmp_path / "attr.toml", tmp_path / "attr.csv", tmp_path / "run"
    suite.write_text(SUITE, encoding="utf-8")
    texts.write_text(f"text\n{BARRED}\nThe cats | annoys | Tim.\n", encoding="utf-8")
    ran = cli("run", suite, "-m", tiny_model, "-o", out)
    assert ran.code == 0, ran.err
    assert "Surprisal of regions: corrected for trailing white space." in ran.out
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "The surprisal of a region is corrected for trailing white space." in page
    told = cli("surprisal", texts, "-m", tiny_model, "--by", "region")
    assert "Surprisal in bits, corrected for trailing white space" in told.out
    alone = json.loads(cli("surprisal", texts, "-m", tiny_model, "--by", "region", "--json").out)
    regions = fe.read_run(out)["regions"]
    assert regions["surprisal_bits"].to_list() == pytest.approx([row["surprisal"] for row in alone], abs=1e-5)
    assert [row["place"] for row in alone] == [1, 2, 3, 1, 2, 3]
    assert regions["region"].to_list() == ["1", "2", "3"] * 2
    plain = json.loads(
        cli("surprisal", texts, "-m", tiny_model, "--by", "region", "--boundary", "plain", "--json").out
    )
    assert plain[1]["surprisal"] != pytest.approx(alone[1]["surprisal"], abs=1e-3)


def test_a_suite_may_ask_for_plain_sums(cli: Cli, tmp_path: Path, tiny_model: Path) -> None:
    suite, out = tmp_path / "attr.toml", tmp_path / "run"
    suite.write_text(SUITE.replace("regions =", 'boundary = "plain"\nregions ='), encoding="utf-8")
    ran = cli("run", suite, "-m", tiny_model, "-o", out, "--no-report")
    assert "Surprisal of regions: the plain sum of tokens." in ran.out
    lm = fe.model(str(tiny_model))
    words = lm.words(PLAIN, regions=[[(0, 8), (9, 14), (15, 19)]], boundary="plain")["lp"]
    found = fe.read_run(out)["regions"].filter(condition="match")["surprisal_bits"]
    assert found.to_list() == pytest.approx([to_bits(-lp) for lp in words], abs=1e-5)
    suite.write_text(SUITE, encoding="utf-8")
    other = cli("run", suite, "-m", tiny_model, "-o", out, "--no-report")
    assert other.code == 2
    assert "region surprisals that are plain, not corrected" in other.err


def test_words_corrected_for_white_space_are_not_scored_twice(
    tiny_model: Path, monkeypatch: pytest.MonkeyPatch, empty_cache: Path
) -> None:
    once = fe.model(str(tiny_model)).words(PLAIN)
    again = fe.model(str(tiny_model))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("scored again")

    monkeypatch.setattr(again.engine, "score", refuse)
    assert again.words(PLAIN).equals(once)
    assert again.score(PLAIN)["lp"].item() == pytest.approx(once["lp"].sum(), abs=1e-5)


def test_a_text_without_spaces_is_refused_as_one_word(cli: Cli, tmp_path: Path, tiny_model: Path) -> None:
    path = tmp_path / "japanese.txt"
    path.write_text("猫が庭で鳴く。\n", encoding="utf-8")
    answer = cli("surprisal", path, "-m", tiny_model)
    assert answer.code == 2
    assert "'猫が庭で鳴く' is written without spaces, so its words are unknown" in answer.err
    assert cli("surprisal", path, "-m", tiny_model, "--by", "token").code == 0
    path.write_text("猫|が|庭|で|鳴く。\n", encoding="utf-8")
    rows = json.loads(cli("surprisal", path, "-m", tiny_model, "--by", "region", "--json").out)
    assert [row["region"] for row in rows] == ["猫", "が", "庭", "で", "鳴く。"]
    whole = to_bits(-fe.model(str(tiny_model)).score("猫が庭で鳴く。")["lp"].item())
    assert sum(row["surprisal"] for row in rows) == pytest.approx(whole, abs=1e-3)


def test_surprisal_is_audited_as_a_run_is(cli: Cli, tmp_path: Path, tiny_model: Path) -> None:
    path = tmp_path / "texts.csv"
    rows = [" The cat sleeps.", "The cat’s tail.", "The cat sleeps", "The cаt sleeps.", "The dog sleeps."]
    pl.DataFrame({"text": rows}).write_csv(path)
    said = cli("surprisal", path, "-m", tiny_model).err
    for check in ("stray spaces", "curly quotes", "missing full stops", "mixed scripts"):
        assert f"Audit: {check}: 1 of 5" in said, said
    run = cli("run", path, "-m", tiny_model, "-o", tmp_path / "run")
    assert run.code == 2  # neither pairs nor ratings: only surprisal takes single texts
    pairs = pl.DataFrame({"good": rows, "bad": [f"{row[:-1]}s." for row in rows]})
    pairs.write_csv(tmp_path / "pairs.csv")
    audited = cli("run", tmp_path / "pairs.csv", "-m", tiny_model, "-o", tmp_path / "run", "--no-report").err
    for check in ("stray spaces: 2", "curly quotes: 2", "missing full stops: 1", "mixed scripts: 2"):
        assert f"Audit: {check} of 10" in audited, audited
