import gzip
import json
import sys
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicity.core.errors import BadInput, FelicityError, NotPossible, UnknownName
from felicity.data.pairs import Columns, read_pairs
from felicity.data.tables import read_table

PAIRS = [
    {"good": "The cat purrs, loudly.", "bad": "The cat purr, loudly."},
    {"good": "He left.", "bad": "Him left."},
]


def write(folder: Path, ending: str) -> Path:
    path = folder / f"pairs{ending}"
    frame = pl.DataFrame(PAIRS)
    if ending.startswith(".csv"):
        content = frame.write_csv().encode()
    elif ending.startswith(".tsv"):
        content = frame.write_csv(separator="\t").encode()
    elif ending.startswith(".jsonl"):
        content = "\n".join(json.dumps(row) for row in PAIRS).encode()
    else:
        frame.write_parquet(path)
        return path
    path.write_bytes(gzip.compress(content) if ending.endswith(".gz") else content)
    return path


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".jsonl", ".jsonl.gz", ".parquet"])
def test_every_format_gives_the_same_items(tmp_path: Path, ending: str) -> None:
    items = read_pairs(read_table(write(tmp_path, ending)), Columns())
    assert items["text"].to_list() == [p["good"] for p in PAIRS] + [p["bad"] for p in PAIRS]
    assert items["item"].to_list() == ["pairs/1", "pairs/2"] * 2
    assert items["condition"].to_list() == ["good", "good", "bad", "bad"]
    assert items["suite"].unique().to_list() == ["pairs"]


def test_columns_can_be_named(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("ok,no,kind,group\nA b.,B a.,k1,g1\nC d.,D c.,k2,g1\n")
    columns = Columns(good="ok", bad="no", suite="kind", phenomenon="group")
    items = read_pairs(read_table(path), columns)
    assert items.filter(condition="good")["item"].to_list() == ["k1/1", "k2/1"]
    assert items["phenomenon"].unique().to_list() == ["g1"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"", "a.csv is empty"),
        ("a.csv", b"good,bad\n", "has a header but no rows"),
        ("a.csv", b"good,bad\nA.,\xe9\n", "line 2: not UTF-8"),
        ("a.csv", b"good,bad\nA.,B.,C.\n", "line 2: 3 cells instead of 2"),
        ("a.csv", b'good,bad\n"A.,B.\n', "line 2: .*quotes"),
        ("a.csv", b"good,good\nA.,B.\n", "names the column 'good' twice"),
        ("a.jsonl", b'{"good": "A.", "bad": "B."}\n{"good"\n', "line 2: not JSON"),
        ("a.jsonl", b"[1]\n", "line 1: not an object"),
        ("a.jsonl.gz", b"nonsense", "not a complete gzip file"),
        ("a.parquet", b"PAR1 cut off", "not a complete Parquet file"),
        ("a.docx", b"x", "of an unsupported kind"),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BadInput, match=message):
        read_table(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("goood,bad\nA.,B.\n", "no column 'good' in .*; did you mean 'goood'"),
        ("left,right\nA.,B.\n", "name another with --good .columns: left, right"),
        ("good,bad\n1,B.\n2.5,C.\n", "Column 'good' of .* contains numbers"),
        ("good,bad\nA.,\n", "line 2: 'bad' is empty"),
        ("item,good,bad\n1,A.,B.\n1,C.,D.\n", "line 3: item 'a/1' is already on line 2"),
        ("suite,good,bad\n,A.,B.\n", "line 2: 'suite' is empty"),
    ],
)
def test_a_table_that_holds_no_pairs_is_one_sentence(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "a.csv"
    path.write_text(content)
    with pytest.raises(FelicityError, match=message):
        read_pairs(read_table(path), Columns())


def test_a_parquet_column_of_numbers_is_refused_by_row(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"good": [1], "bad": ["B."]}).write_parquet(path)
    with pytest.raises(BadInput, match="line 1: 'good' is 1, not text"):
        read_pairs(read_table(path), Columns())


def test_a_named_column_that_is_not_there_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, ".csv")
    with pytest.raises(UnknownName, match="no column 'kind' in "):
        read_pairs(read_table(path), Columns(suite="kind"))


SENTENCE = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1).filter(lambda t: t.strip())


@given(st.lists(st.tuples(SENTENCE, SENTENCE), min_size=1, max_size=20))
def test_no_sentence_is_lost_or_changed_between_file_and_items(
    tmp_path_factory: pytest.TempPathFactory, pairs: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    rows = [{"good": f"x {good}", "bad": f"x {bad}"} for good, bad in pairs]
    for ending in (".csv", ".jsonl", ".parquet"):
        path = folder / f"p{ending}"
        if ending == ".csv":
            pl.DataFrame(rows).write_csv(path)
        elif ending == ".jsonl":
            path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows), encoding="utf-8")
        else:
            pl.DataFrame(rows).write_parquet(path)
        items = read_pairs(read_table(path), Columns())
        assert items.filter(condition="good")["text"].to_list() == [row["good"] for row in rows]
        assert items.filter(condition="bad")["text"].to_list() == [row["bad"] for row in rows]


@given(st.binary(max_size=400))
def test_any_bytes_give_items_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    for ending in (".csv", ".tsv", ".jsonl", ".csv.gz", ".parquet"):
        path = folder / f"p{ending}"
        path.write_bytes(content)
        try:
            read_pairs(read_table(path), Columns())
        except FelicityError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("separator", "encoding"), [(";", "utf-8"), ("\t", "utf-8"), (",", "utf-16"), ("\t", "utf-16")]
)
def test_what_spreadsheets_write_into_a_csv_file_is_read(
    tmp_path: Path, separator: str, encoding: str
) -> None:
    path = tmp_path / "p.csv"
    path.write_bytes(f"good{separator}bad\r\nÉva left.{separator}Éva leaved.\r\n".encode(encoding))
    assert read_pairs(read_table(path), Columns())["text"].to_list() == ["Éva left.", "Éva leaved."]


def test_files_of_blimps_kin_are_read_by_their_own_column_names(tmp_path: Path) -> None:
    path = tmp_path / "zho.jsonl"
    row = {"sentence_good": "A b.", "sentence_bad": "B a.", "UID": "order", "linguistics_term": "word_order"}
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")
    items = read_pairs(read_table(path), Columns())
    assert items.select("suite", "phenomenon", "text").rows() == [
        ("order", "word_order", "A b."),
        ("order", "word_order", "B a."),
    ]
    tsv = tmp_path / "multi.tsv"
    tsv.write_text("sen\twrong_sen\nA b.\tB a.\n")
    assert read_pairs(read_table(tsv), Columns())["suite"].to_list() == ["multi", "multi"]


def write_workbook(path: Path, rows: list[tuple[object, ...]]) -> Path:
    """Save rows as the first sheet of a workbook, as a spreadsheet program would."""
    from openpyxl import Workbook

    book = Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_a_workbook_is_read_as_the_same_table_in_csv(tmp_path: Path) -> None:
    rows = [
        ("item", "good", "bad", "list"),
        (1, "He left.", "Him left.", 2),
        (2, "She left.", "Her left.", 1),
    ]
    book = write_workbook(tmp_path / "p.xlsx", rows)
    text = tmp_path / "p.csv"
    text.write_text("\n".join(",".join(map(str, row)) for row in rows))
    one, other = read_table(book), read_table(text)
    assert (one.columns, one.rows, one.lines) == (other.columns, other.rows, other.lines)


def test_an_empty_cell_of_a_workbook_is_named_by_its_row(tmp_path: Path) -> None:
    book = write_workbook(
        tmp_path / "p.xlsx", [("good", "bad"), ("He left.", "Him left."), ("She left.", None)]
    )
    with pytest.raises(BadInput, match="line 3: 'bad' is empty"):
        read_pairs(read_table(book), Columns())


def test_a_damaged_or_empty_workbook_is_refused_in_a_sentence(tmp_path: Path) -> None:
    broken = tmp_path / "p.xlsx"
    broken.write_bytes(b"not a workbook")
    with pytest.raises(BadInput, match="not a complete Excel workbook"):
        read_table(broken)
    with pytest.raises(BadInput, match="no rows below its header"):
        read_table(write_workbook(tmp_path / "q.xlsx", [("good", "bad")]))


def test_without_the_library_a_workbook_is_refused_with_the_command_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = write_workbook(tmp_path / "p.xlsx", [("good", "bad"), ("He left.", "Him left.")])
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    with pytest.raises(NotPossible, match=r"pip install 'felicity\[excel\]'"):
        read_table(book)
