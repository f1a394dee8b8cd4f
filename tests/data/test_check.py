from pathlib import Path

import pytest

from felicity.core.errors import UnknownName
from felicity.data.inspection import check_file
from felicity.data.pairs import Columns


def problems(folder: Path, content: str) -> list[tuple[object, ...]]:
    path = folder / "p.tsv"
    path.write_text(content, encoding="utf-8")
    return [row[:3] for row in check_file(path, Columns()).problems.iter_rows()]


def test_each_problem_is_reported_by_line(tmp_path: Path) -> None:
    content = (
        "good\tbad\n"
        "He left.\tHim left.\n"
        "She  left.\tHer left.\n"
        "We left.\t\n"
        "You left.\tYou left.\n"
        "He left.\tHim left.\n"
        "Him left.\tHe left.\n"
        "It left .\tIts left.\n"
        " I left.\tMe left.\n"
    )
    assert problems(tmp_path, content) == [
        (3, "stray space", "good"),
        (4, "empty cell", "bad"),
        (5, "identical texts", "good, bad"),
        (6, "duplicate item", "good"),
        (7, "reversed pair", "good"),
        (8, "stray space", "good"),
        (9, "stray space", "good"),
    ]


def test_a_clean_file_has_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, "good\tbad\nHe left.\tHim left.\nIs it?\tIs its?\n") == []


def test_a_repeated_item_number_is_a_problem_because_a_run_refuses_it(tmp_path: Path) -> None:
    (found,) = check_csv(tmp_path, "item,good,bad\n1,He left.,Him left.\n1,She left.,Her left.\n")
    assert found["problem"] == "cannot be used"
    assert "line 3: item 'p/1' is already on line 2" in found["detail"]


@pytest.mark.parametrize(
    ("rows", "problem", "said"),
    [
        ("1,good,He left.\n1,bad,Him left.\n1,bad,Them left.\n", "cannot be used", "as on line 3"),
        ("1,good,He left.\n1,bad,Him left.\n2,good,She left.\n", "cannot be used", "lacks the condition"),
        ("1,good,He left.\n1,bad,He left.\n", "identical texts", "He left."),
        ("1,good,He left.\n1,bad,\n", "empty cell", ""),
        (
            "1,good,He left.\n1,bad,Him left.\n2,good,He left.\n2,bad,Him left.\n",
            "duplicate item",
            "as on line 2",
        ),
    ],
)
def test_a_table_of_conditions_is_checked_like_one_of_pairs(
    tmp_path: Path, rows: str, problem: str, said: str
) -> None:
    (found,) = check_csv(tmp_path, f"item,condition,text\n{rows}")
    assert found["problem"] == problem
    assert said in found["detail"]


def test_identical_conditions_and_repeated_items_of_a_suite_are_found(tmp_path: Path) -> None:
    item = '[[items]]\na = ["He", "left."]\nb = ["He", "left."]\n'
    path = tmp_path / "s.toml"
    path.write_text(f'name = "s"\npredictions = ["(1;%a%) < (1;%b%)"]\n{item}{item}')
    found = check_file(path, Columns()).problems
    assert found.select("line", "problem").rows() == [
        (3, "identical texts"),
        (6, "identical texts"),
        (6, "duplicate item"),
    ]


def check_csv(folder: Path, content: str) -> list[dict[str, str]]:
    path = folder / "p.csv"
    path.write_text(content, encoding="utf-8")
    return check_file(path, Columns()).problems.to_dicts()


@pytest.mark.parametrize("named", [{}, {"suite": "set", "phenomenon": "kind"}])
def test_all_empty_suites_and_phenomena_are_listed(tmp_path: Path, named: dict[str, str]) -> None:
    suite, phenomenon = named.get("suite", "suite"), named.get("phenomenon", "phenomenon")
    path = tmp_path / "p.csv"
    path.write_text(
        f"good,bad,{suite},{phenomenon}\n"
        "He left.,Him left.,,a\nShe left.,Her left.,s,\nWe  left.,Us left.,,a\n"
    )
    found = check_file(path, Columns(**named)).problems
    assert found.select("line", "problem", "column").rows() == [
        (2, "empty cell", suite),
        (3, "empty cell", phenomenon),
        (4, "empty cell", suite),
        (4, "stray space", "good"),
    ]


def test_all_problems_of_ratings_and_factors_are_listed(tmp_path: Path) -> None:
    rated = check_csv(tmp_path, "text,rating,suite\nHe left.,high,a\n,4,a\nWe left.,,\nIt  left.,2,a\n")
    assert [(row["line"], row["problem"], row["column"]) for row in rated] == [
        (2, "cannot be used", "rating"),
        (3, "empty cell", "text"),
        (4, "empty cell", "rating"),
        (4, "empty cell", "suite"),
        (5, "stray space", "text"),
    ]
    path = tmp_path / "f.csv"
    path.write_text("item,form,text\n1,a,He left.\n1,,Him left.\n2,a,\n2,b,Her left.\n")
    found = check_file(path, Columns(good="a", factors=("form",))).problems
    assert found.select("line", "column").rows() == [(3, "form"), (4, "text")]


def test_a_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("good,bad,set\nHe left.,Him left.,a\n")
    with pytest.raises(UnknownName, match="did you mean 'set'"):
        check_file(path, Columns(suite="sett"))
