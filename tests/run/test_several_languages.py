"""Runs of several languages: each has its own average, and the overall one is their plain mean."""

from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.data.pairs import Columns
from felicity.stats import add_people, estimate_accuracy


def judge(language: str, suite: str, right: int, n: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "item": [f"{suite}/{place}" for place in range(n)],
            "suite": suite,
            "phenomenon": suite,
            "measure": "lp",
            "rule": "pair",
            "passed": [1.0] * right + [0.0] * (n - right),
            "margin": 1.0,
            "stable": True,
            "language": language,
        }
    )


JUDGED = pl.concat([judge("de", "de/a", 9, 10), judge("de", "de/b", 30, 90), judge("fr", "fr/a", 10, 10)])


def test_the_overall_accuracy_is_the_plain_mean_of_the_languages() -> None:
    rows = {(row["level"], row["name"]): row for row in estimate_accuracy(JUDGED).iter_rows(named=True)}
    assert rows["language", "de"]["accuracy"] == pytest.approx(39 / 100)
    assert rows["language", "fr"]["accuracy"] == 1.0
    # 49 of all 110 items are right, but languages are not pooled.
    assert rows["overall", "all"]["accuracy"] == pytest.approx((39 / 100 + 1) / 2)
    assert rows["macro", "all"]["accuracy"] == pytest.approx(((0.9 + 1 / 3) / 2 + 1) / 2)
    assert rows["overall", "all"]["interval"] == "Wilson over languages"


def test_people_stand_beside_the_model_on_the_suites_that_they_judged() -> None:
    people = pl.DataFrame({"suite": ["de/a", "fr/a"], "n": [10, 10], "people": [0.8, 0.6]})
    found = add_people(estimate_accuracy(JUDGED), JUDGED, people)
    rows = {(row["level"], row["name"]): row["people"] for row in found.iter_rows(named=True)}
    assert (rows["suite", "de/a"], rows["suite", "de/b"], rows["language", "fr"]) == (0.8, None, 0.6)
    assert rows["overall", "all"] == pytest.approx(0.7)


def test_a_run_of_two_languages_keeps_them_apart(tiny_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = ["de,Die Katze schläft.,Die Katze schlafen.", "he,ה מלצר רוקד,ה מלצר רוקדים"]
    path.write_text("\n".join(["language,good,bad", *rows]) + "\n", encoding="utf-8")
    run = fe.evaluate(
        str(path), fe.model(str(tiny_model)), columns=Columns(language="all"), out=tmp_path / "run"
    )
    assert run.accuracy(by="language")["name"].to_list() == ["de", "he"]
    assert run.manifest["options"]["languages"] == ["de", "he"]
    page = run.report().read_text(encoding="utf-8")
    assert "the plain mean of 2 languages" in page
