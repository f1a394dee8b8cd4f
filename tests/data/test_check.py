from pathlib import Path

from felicity.data.inspection import check_pairs
from felicity.data.pairs import Columns
from felicity.data.tables import read_table


def problems(folder: Path, content: str) -> list[tuple[object, ...]]:
    path = folder / "p.tsv"
    path.write_text(content, encoding="utf-8")
    return [row[:3] for row in check_pairs(read_table(path), Columns()).iter_rows()]


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
        (5, "identical pair", "good, bad"),
        (6, "duplicate pair", "good"),
        (7, "reversed pair", "good"),
        (8, "stray space", "good"),
        (9, "stray space", "good"),
    ]


def test_a_clean_file_has_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, "good\tbad\nHe left.\tHim left.\nIs it?\tIs its?\n") == []
