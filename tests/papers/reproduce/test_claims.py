"""Claims files: figures as printed, tables as they stand, and refusals with the line."""

from pathlib import Path

import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.papers.replay.shivagunde import read_published
from felicity.papers.reproduce import list_papers, read_paper
from felicity.papers.reproduce.claims import Printed
from felicity.papers.reproduce.claims_file import read_claims

HEAD = 'paper = "mine"\ntitle = "My paper"\n'
CLAIM = '[[claim]]\nid = "a"\nwhere = "Section 1"\nprinted = "2"\ncompute = "count"\n'
INPUT = f'[inputs]\n"a.csv" = "{"0" * 64}"\n'
TABLE = '[[table]]\nid = "t"\ntitle = "Table 1: counts"\ncompute = "count"\ncolumns = ["x", "y"]\n'


def write(folder: Path, text: str) -> Path:
    path = folder / "claims.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("0.940", 0.94, 0.001),
        (".94", 0.94, 0.01),
        ("22,326", 22326, 1),
        ("1.916e-8", 1.916e-8, 1e-11),
        ("-0.077", -0.077, 0.001),
        ("+.452", 0.452, 0.001),
        ("79.0 %", 79.0, 0.1),
    ],
)
def test_a_printed_figure_has_a_value_and_the_unit_of_its_last_digit(
    text: str, value: float, unit: float
) -> None:
    printed = Printed.parse(text)
    assert printed.value == pytest.approx(value)
    assert printed.unit == pytest.approx(unit)


@pytest.mark.parametrize(
    ("text", "computed", "holds"),
    [
        ("0.94", 0.9449, True),
        ("0.94", 0.9451, False),
        # 70.05 may be printed as 70.0 or as 70.1.
        ("70.0", 70.05, True),
        ("70.1", 70.05, True),
        ("250", 251, False),
        ("< .001", 0.0009, True),
        ("< .001", 0.001, False),
        ("> 0", -0.1, False),
        ("yes", 1.0, True),
        ("no", 1.0, False),
    ],
)
def test_a_claim_holds_within_half_the_last_printed_digit(text: str, computed: float, holds: bool) -> None:
    assert Printed.parse(text).matches(computed) is holds


def test_a_computed_figure_is_shown_with_one_digit_more() -> None:
    assert Printed.parse("0.94").show(0.94009) == "0.940"
    assert Printed.parse("22,326").show(22326.0) == "22,326"
    assert Printed.parse("2e-6").show(1.983e-6) == "1.983e-06"
    assert Printed.parse("yes").show(0.0) == "no"


def test_a_table_gives_one_claim_for_each_cell_that_is_not_empty(tmp_path: Path) -> None:
    rows = (
        'rows = [\n  { name = "first", where = { kind = "a" }, cells = ["1", ""] },\n'
        '  { name = "second", cells = ["3", "4"] },\n]\n'
    )
    differs = (
        "[[table.differs]]\n"
        'row = "second"\ncolumn = "y"\nexpected = "does not hold"\ninstead = "5"\nwhy = "a misprint"\n'
    )
    paper = read_claims(write(tmp_path, HEAD + TABLE + rows + differs))
    assert [claim.id for claim in paper.claims] == ["t/first/x", "t/second/x", "t/second/y"]
    assert paper.claims[0].arguments == {"where": {"kind": "a"}}
    assert paper.claims[0].where == "Table 1, first, x"
    assert (paper.claims[2].expected, paper.claims[2].why) == ("does not hold", "a misprint")
    assert paper.tables[0].rows == ("first", "second")


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("paper = \n", 1, "not TOML"),
        ('paper = "x"\n', 1, "begins with title"),
        (HEAD, 1, r"no \[\[claim\]\] and no \[\[table\]\]"),
        (HEAD + CLAIM + "tolerence = 1\n", 8, "no field 'tolerence'; did you mean 'tolerance'"),
        (HEAD + CLAIM + "tolerance = 1\n", 8, "needs an argument; add because"),
        (HEAD + CLAIM + 'tolerance = "wide"\nbecause = "x"\n', 8, "tolerance is not a number"),
        (HEAD + CLAIM.replace('"2"', '"two"'), 6, "printed is 'two', not a figure"),
        (HEAD + CLAIM.replace('"2"', "2"), 6, "printed = .*in quotation marks"),
        (HEAD + CLAIM.replace('compute = "count"\n', ""), 3, "neither compute nor run"),
        (HEAD + CLAIM + 'arguments = "x"\n', 8, "arguments is not a table in braces"),
        (HEAD + CLAIM + "group = 1\n", 8, "group is not a text"),
        (HEAD + CLAIM + 'expected = "perhaps"\n', 8, "'perhaps' is not a status"),
        (HEAD + CLAIM + 'expected = "does not hold"\n', 3, "say why"),
        (HEAD + CLAIM + "expected = \"holds with the authors' slip\"\nwhy = \"x\"\n", 3, "needs slip"),
        (HEAD + CLAIM + 'run = "f.py:g"\n', 3, "name it with model"),
        (HEAD + CLAIM + "\n" + CLAIM, 9, "the id 'a' is taken by line 3"),
        (HEAD + '[inputs]\n"a.csv" = "123"\n' + CLAIM, 4, "not 64 hexadecimal digits"),
        (HEAD + INPUT + CLAIM + 'inputs = ["b.csv"]\n', 10, "no input matches 'b.csv'"),
        (HEAD + TABLE + 'rows = [\n  { name = "r", cells = ["1"] },\n]\n', 9, "1 cells, but there are 2"),
        (HEAD + TABLE + 'rows = [\n  { name = "r", cells = ["1", "x"] },\n]\n', 9, "printed is 'x'"),
        (
            HEAD + TABLE + 'rows = [\n  { name = "r", cells = ["1", ""] },\n]\n'
            '[[table.differs]]\nrow = "r"\ncolumn = "z"\nwhy = "x"\n',
            13,
            "has no column 'z'",
        ),
    ],
)  # fmt: skip
def test_a_bad_claims_file_is_refused_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(BadInput, match=rf"claims\.toml, line {line}: .*{said}"):
        read_claims(write(tmp_path, text))


def test_a_bad_list_of_sums_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "in.sha256").write_text(f"{'0' * 64}  a.csv\nnothing\n")
    with pytest.raises(BadInput, match=r"in\.sha256, line 2: not a line that sha256sum writes"):
        read_claims(write(tmp_path, HEAD + 'sums = ["in.sha256"]\n' + CLAIM))


def test_an_unknown_paper_suggests_the_near_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'lau2020'"):
        read_paper("lau2021")


@pytest.mark.parametrize("name", list_papers())
def test_the_claims_of_every_paper_can_be_read(name: str) -> None:
    paper = read_paper(name)
    assert paper.name == name
    assert paper.claims
    assert paper.inputs


def test_the_five_studies_are_among_the_papers() -> None:
    assert {"sinha2023", "lau2020", "shivagunde2023", "ueda2024", "huynh2022"} <= set(list_papers())


def test_the_cells_of_shivagunde_are_those_that_replay_compares() -> None:
    listed = {(r["model"], r["dataset"], r["figure"]): r["published"] for r in read_published().to_dicts()}
    claimed = {
        tuple(claim.arguments[name] for name in ("model", "dataset", "figure")): claim.printed.value
        for claim in read_paper("shivagunde2023").claims
        if claim.table
    }
    assert claimed == listed
