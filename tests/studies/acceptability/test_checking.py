"""`felicity stimuli check` on tables of single ratings."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.studies.acceptability import check_ratings, has_single_ratings
from tests.conftest import Answer

HEAD = "item,text,rating,rater\n"
ROWS = [f"{item},Sentence {item}.,{1 + item % 4},{rater}\n" for item in range(6) for rater in ("ada", "bob")]


def problems(path: Path, content: str) -> list[tuple[object, ...]]:
    path.write_text(content, encoding="utf-8")
    return [row[:3] for row in check_ratings(path).problems.iter_rows()]


def test_what_can_be_used_has_no_problem(tmp_path: Path, cli: Callable[..., Answer]) -> None:
    table = tmp_path / "rated.csv"
    assert problems(table, HEAD + "".join(ROWS)) == []
    told = cli("stimuli", "check", table)
    assert (told.code, told.out) == (0, "6 items in 12 ratings, nothing to fix.\n")


def test_empty_cells_are_listed_line_by_line(tmp_path: Path, cli: Callable[..., Answer]) -> None:
    table = tmp_path / "rated.csv"
    rows = [ROWS[0].replace("ada", ""), ROWS[1].replace("Sentence 0.", ""), *ROWS[2:]]
    assert problems(table, HEAD + "".join(rows)) == [(2, "empty cell", "rater"), (3, "empty cell", "text")]
    told = cli("stimuli", "check", table, "--json")
    assert told.code == 1
    assert len(json.loads(told.out)["problems"]) == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda rows: [*rows, rows[0]], "is rated twice in the setting 'none' by the rater 'ada'"),
        (lambda rows: [rows[0].replace(",1,", ",inf,"), *rows[1:]], "'rating' is 'inf', not a number"),
        (lambda rows: [rows[0].replace(",1,", ",1_0,"), *rows[1:]], "'rating' is '1_0', not a number"),
        (lambda rows: [rows[0].replace("Sentence 0.", "Another."), *rows[1:]], "has 2 different texts"),
    ],
)
def test_what_the_study_refuses_is_a_problem(
    tmp_path: Path, change: Callable[[list[str]], list[str]], told: str
) -> None:
    table = tmp_path / "rated.csv"
    table.write_text(HEAD + "".join(change(ROWS)), encoding="utf-8")
    row = check_ratings(table).problems.row(-1, named=True)
    assert row["problem"] == "cannot be used"
    assert told in row["detail"]


def test_stray_spaces_are_told_once_for_each_sentence(tmp_path: Path) -> None:
    rows = [row.replace("Sentence 3.", "Sentence  3.") for row in ROWS]
    assert problems(tmp_path / "rated.csv", HEAD + "".join(rows)) == [(8, "stray space", "text")]


def test_another_table_is_not_one_of_single_ratings(tmp_path: Path) -> None:
    for name, content in (("pairs.csv", "good,bad\na,b\n"), ("rated.csv", "text,rating\na,1\n")):
        (tmp_path / name).write_text(content, encoding="utf-8")
        assert not has_single_ratings(tmp_path / name)


def test_ratings_without_sentences_are_checked_line_by_line(
    tmp_path: Path, cli: Callable[..., Answer]
) -> None:
    table = tmp_path / "ratings.csv"
    rows = [f"{rater},{item},{1 + item}\n" for item in range(4) for rater in ("ada", "bob")]
    assert problems(table, "rater,item,rating\n" + "".join(rows)) == []
    assert cli("stimuli", "check", table).out == "4 items in 8 ratings, nothing to fix.\n"
    assert problems(table, "rater,item,rating\nada,1,high\n,1,2\nbob,,\n") == [
        (2, "cannot be used", "rating"),
        (3, "empty cell", "rater"),
        (4, "empty cell", "item"),
        (4, "empty cell", "rating"),
    ]
    assert problems(table, "participant,sentence,rating\nada,1,2\nada,1,3\n") == [
        (3, "cannot be used", "sentence"),
        (None, "cannot be used", "participant"),
    ]


def test_empty_labels_are_listed_if_their_column_is_named(tmp_path: Path, cli: Callable[..., Answer]) -> None:
    table = tmp_path / "rated.csv"
    table.write_text(
        "set," + HEAD + "".join("a," + row for row in ROWS[:-2]) + "".join("," + r for r in ROWS[-2:])
    )
    assert cli("stimuli", "check", table).code == 0
    told = cli("stimuli", "check", table, "--suite", "set", "--json")
    assert [row["line"] for row in json.loads(told.out)["problems"]] == [12, 13]
    assert "did you mean 'set'" in cli("stimuli", "check", table, "--suite", "sett").err
