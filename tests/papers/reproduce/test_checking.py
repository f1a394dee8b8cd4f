"""Claims checked: published papers, changed and missing inputs, users' own files, models."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.papers.reproduce import check_paper, count_statuses, read_paper
from felicity.papers.reproduce.checking import Checked
from tests.conftest import Answer

Published = Callable[[str], Path]
TABLE = "group,score,right\na,1,1\na,2,0\nb,3,1\nb,6,1\nb,7,0\n"


def make_claims(folder: Path, *claims: str) -> Path:
    """A claims file about a small table, with the table beside it."""
    data = folder / "scores.csv"
    data.write_text(TABLE)
    digest = hashlib.sha256(TABLE.encode()).hexdigest()
    head = f'paper = "mine"\ntitle = "Mine"\n\n[inputs]\n"scores.csv" = "{digest}"\n'
    path = folder / "claims.toml"
    path.write_text(head + "\n".join(claims))
    return path


def claim(name: str, printed: str, compute: str, arguments: str = "", more: str = "") -> str:
    return (
        f'\n[[claim]]\nid = "{name}"\nwhere = "Section 1"\nprinted = "{printed}"\ncompute = "{compute}"\n'
        f'arguments = {{ file = "scores.csv"{", " if arguments else ""}{arguments} }}\n{more}'
    )


def check(path: Path, **options: object) -> Checked:
    return check_paper(read_paper(str(path)), **options)  # type: ignore[arg-type]


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("lau2020", {"all claims": {"holds": 19}}),
        ("huynh2022", {"all claims": {"holds": 45, "does not hold": 1}}),
        pytest.param("ueda2024", {"all claims": {"holds": 22}}, marks=pytest.mark.slow),
        pytest.param("sinha2023", {"all claims": {"holds": 7, "not run": 3}}, marks=pytest.mark.slow),
        pytest.param("blimp", {"all claims": {"holds": 55, "does not hold": 13}}, marks=pytest.mark.slow),
        ("syntaxgym", {"all claims": {"holds": 7, "not run": 1}}),
        ("crows_pairs", {"all claims": {"holds": 10, "not run": 3}}),
        pytest.param(
            "shivagunde2023",
            {
                "21 models with weights": {
                    "holds": 300,
                    "holds with the authors' slip": 20,
                    "does not hold": 16,
                },
                "GPT-3": {"holds": 13, "does not hold": 9},
                "other claims": {"holds": 5, "holds with the authors' slip": 3},
            },
            marks=pytest.mark.slow,
        ),
    ],
)
def test_every_published_claim_has_its_expected_status(
    name: str, counts: dict[str, dict[str, int]], published: Published
) -> None:
    published("SOURCES.md")
    checked = check_paper(read_paper(name))
    assert checked.as_expected, [v.claim.id for v in checked.verdicts if not v.as_expected]
    assert count_statuses(checked) == counts
    assert not checked.complaints
    assert all(v.why for v in checked.verdicts if v.status != "holds")


@pytest.mark.data
def test_one_changed_byte_names_the_file_and_its_claims(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., Answer]
) -> None:
    ratings = tmp_path / "data" / "lau2020" / "human-ratings"
    ratings.mkdir(parents=True)
    for file in published("lau2020/human-ratings").iterdir():
        shutil.copyfile(file, ratings / file.name)
    changed = ratings / "context-real-ratings.csv"
    content = bytearray(changed.read_bytes())
    content[-2] = content[-2] ^ 1
    changed.write_bytes(content)
    monkeypatch.setenv("FELICITY_DATA", str(tmp_path / "data"))
    answer = cli("reproduce", "lau2020", "--claim", "ratings/*", "--json", "-o", tmp_path / "out")
    assert answer.code == 1
    assert "lau2020/human-ratings/context-real-ratings.csv has changed" in answer.err
    assert "ratings/H+/H0" in answer.err
    assert {row["status"] for row in json.loads(answer.out)["claims"]} == {"input changed"}


def test_a_missing_input_is_named_and_what_reads_it_is_not_run(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    path = make_claims(tmp_path, claim("n", "5", "count", more='inputs = ["scores.csv"]\n'))
    digest = hashlib.sha256(other.read_bytes()).hexdigest()
    path.write_text(path.read_text().replace("[inputs]\n", f'[inputs]\n"other.csv" = "{digest}"\n'))
    (tmp_path / "scores.csv").unlink()
    checked = check(path)
    assert [(v.status, v.as_expected) for v in checked.verdicts] == [("not run", False)]
    assert checked.complaints == ["scores.csv is missing; 1 claims use it: n."]
    other.unlink()
    with pytest.raises(BadInput, match="No input of mine is on this machine"):
        check(path)


def test_general_computations_need_no_code(tmp_path: Path) -> None:
    # By hand: 1, 2, 3, 6, 7 have the mean 3.8; 3, 6, 7 the SD sqrt(13 / 3); the slope of score on right
    # is 10/3 - 4.5, and r is -1.4 / sqrt(26.8 * 1.2).
    path = make_claims(
        tmp_path,
        claim("n", "5", "count"),
        claim("groups", "2", "count", 'distinct = "group"'),
        claim("b", "3", "count", 'where = { group = "b" }'),
        claim("mean", "3.8", "mean", 'column = "score"'),
        claim("sd", "2.0817", "sd", 'column = "score", where = { group = "b" }'),
        claim("share", "60", "percent", 'column = "right", value = 1'),
        claim("slope", "-1.1667", "fit", 'formula = "score ~ right", term = "right"'),
        claim("rows", "5", "fit", 'formula = "score ~ right", figure = "n"'),
        claim("r", "-0.247", "correlation", 'x = "score", y = "right"'),
    )
    checked = check(path)
    assert checked.as_expected, [(v.claim.id, v.computed) for v in checked.verdicts if not v.as_expected]


def test_a_wrong_claim_exits_with_1_and_a_right_one_with_0(
    tmp_path: Path, cli: Callable[..., Answer]
) -> None:
    path = make_claims(tmp_path, claim("n", "5", "count"))
    assert cli("reproduce", path, "-o", tmp_path / "out").code == 0
    path.write_text(path.read_text().replace('"5"', '"6"'))
    answer = cli("reproduce", path, "-o", tmp_path / "out")
    assert answer.code == 1
    assert "does not hold (expected: holds)" in answer.out
    assert "1 of 1 claims do not have their expected status" in answer.out


def test_an_expected_failure_that_holds_after_all_is_not_as_expected(tmp_path: Path) -> None:
    more = 'expected = "does not hold"\nwhy = "a misprint"\n'
    assert not check(make_claims(tmp_path, claim("n", "5", "count", more=more))).as_expected
    assert check(make_claims(tmp_path, claim("n", "6", "count", more=more))).as_expected


def test_a_claim_that_fails_otherwise_than_the_file_says_is_not_as_expected(tmp_path: Path) -> None:
    more = 'expected = "does not hold"\nwhy = "a misprint"\ninstead = "4"\n'
    verdict = check(make_claims(tmp_path, claim("n", "6", "count", more=more))).verdicts[0]
    assert (verdict.status, verdict.as_expected) == ("does not hold", False)
    assert "4" in verdict.why


def test_a_slip_is_found_by_computing_it(tmp_path: Path) -> None:
    more = (
        'slip = { where = { group = "a" } }\nexpected = "holds with the authors\' slip"\n'
        'why = "group b was forgotten"\ncorrected = { where = { group = "b" } }\n'
    )
    verdict = check(make_claims(tmp_path, claim("n", "2", "count", more=more))).verdicts[0]
    assert (verdict.status, verdict.as_expected) == ("holds with the authors' slip", True)
    assert (verdict.computed, verdict.corrected) == (5.0, 3.0)
    assert verdict.why == "group b was forgotten"


def test_a_function_in_a_file_beside_the_claims_is_run(tmp_path: Path) -> None:
    (tmp_path / "analysis.py").write_text(
        "def largest(files, *, file, column):\n    return files.table(file)[column].max()\n"
    )
    assert check(
        make_claims(tmp_path, claim("max", "7", "analysis.py:largest", 'column = "score"'))
    ).as_expected


@pytest.mark.parametrize("how", ["../outside.py", "absolute", "link.py", "linked/outside.py"])
def test_a_file_elsewhere_than_beside_the_claims_is_not_run(tmp_path: Path, how: str) -> None:
    outside, beside = tmp_path / "outside.py", tmp_path / "paper"
    outside.write_text(f"open({str(tmp_path / 'executed')!r}, 'w')\ndef f(files, **_):\n    return 7\n")
    beside.mkdir()
    (beside / "link.py").symlink_to(outside)
    (beside / "linked").symlink_to(tmp_path)
    name = str(outside) if how == "absolute" else how
    with pytest.raises(BadInput, match="is not beside the claims file"):
        check(make_claims(beside, claim("x", "7", f"{name}:f")))
    assert not (tmp_path / "executed").exists()


@pytest.mark.parametrize(
    ("compute", "arguments", "said"),
    [
        ("cuont", "", "line 7: there is no computation 'cuont'; did you mean 'count'"),
        ("mean", 'column = "scor"', "line 7: 'x' cannot be computed: there is no column 'scor'"),
        ("mean", 'column = "group"', "has no numbers"),
        ("mean", "", "missing a required argument: 'column'"),
        ("analysis.py:nothing", "", "has no function 'nothing'"),
        ("nowhere.py:f", "", "There is no file|there is no file"),
        ("analysis.py:fails", "", "ZeroDivisionError"),
        ("analysis.py:reads_other", "", "is not among the inputs of the claims file"),
    ],
)
def test_a_claim_that_cannot_be_computed_is_refused_with_its_line(
    tmp_path: Path, compute: str, arguments: str, said: str
) -> None:
    (tmp_path / "analysis.py").write_text(
        "def fails(files, **_):\n    return 1 / 0\n\n\n"
        "def reads_other(files, **_):\n    return files.table('other.csv').height\n"
    )
    with pytest.raises(BadInput, match=said):
        check(make_claims(tmp_path, claim("x", "1", compute, arguments)))


def test_a_computation_reads_only_what_its_claim_lists(tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text("a\n1\n")
    digest = hashlib.sha256(other.read_bytes()).hexdigest()
    path = make_claims(
        tmp_path, claim("first", "5", "count"), claim("second", "5", "count", more='inputs = ["other.csv"]\n')
    )
    path.write_text(path.read_text().replace("[inputs]\n", f'[inputs]\n"other.csv" = "{digest}"\n'))
    # Also where an earlier claim has read the file already.
    with pytest.raises(
        BadInput, match=r"'second' cannot be computed: the claim does not list the input scores\.csv"
    ):
        check(path)


RUN = """
[[claim]]
id = "score"
where = "Table 1"
printed = "> 0"
model = "gpt2"
run = "analysis.py:total"
"""


def test_a_model_is_not_run_unless_its_weights_are_given(
    tmp_path: Path, tiny_model: Path, cli: Callable[..., Answer]
) -> None:
    (tmp_path / "analysis.py").write_text(
        "def total(files, model):\n    return -model.score(['The cats annoy Tim.'])['lp'][0]\n"
    )
    path = make_claims(tmp_path, claim("n", "5", "count"), RUN)
    answer = cli("reproduce", path, "--json", "-o", tmp_path / "out")
    assert answer.code == 0
    row = json.loads(answer.out)["claims"][1]
    assert (row["status"], row["computed"], row["needs"]) == ("not run", None, "model gpt2")
    ran = cli(
        "reproduce", path, "--level", "model", "-m", f"gpt2={tiny_model}", "--json", "-o", tmp_path / "out"
    )
    assert ran.code == 0, ran.err
    row = json.loads(ran.out)["claims"][1]
    assert row["status"] == "holds"
    assert row["computed"] > 0
    assert row["source"] == f"model gpt2={tiny_model}"


def test_a_model_that_no_claim_names_is_refused(tmp_path: Path) -> None:
    path = make_claims(tmp_path, RUN)
    with pytest.raises(UnknownName, match="did you mean 'gpt2'"):
        check(path, level="model", models={"gpt3": "x"})
    with pytest.raises(BadInput, match="--level model only"):
        check(path, models={"gpt2": "x"})


@pytest.mark.data
def test_surprisals_of_a_model_go_through_the_mixed_model_of_huynh(
    published: Published,
) -> None:
    # The authors' own surprisals put in the place of a model's give the printed estimates.
    from felicity.papers.reproduce import huynh2022
    from felicity.papers.reproduce.inputs import Files, find_inputs

    class Recorded:
        spec = "recorded"

        def score(self, texts: list[str], context: list[str]) -> pl.DataFrame:
            path = published("huynh2022/experiment1_surprisals.csv.gz")
            table = {row["sent"]: row for row in pl.read_csv(path).iter_rows(named=True)}
            bits = [table[frame][f"surprisal_{word}"] for frame, word in zip(context, texts, strict=True)]
            return pl.DataFrame({"lp": [-value * 0.6931471805599453 for value in bits]})

    paper = read_paper("huynh2022")
    inputs = find_inputs(paper.inputs, [published("huynh2022").parent])
    files = Files(inputs, allowed=frozenset(inputs))
    found = huynh2022.run_preference(files, Recorded(), term="bias")  # type: ignore[arg-type]
    assert found == pytest.approx(0.00280958, abs=5e-9)


def test_results_are_written_as_json_csv_and_a_page(tmp_path: Path, cli: Callable[..., Answer]) -> None:
    rows = (
        'rows = [{ name = "a<b>", where = { group = "a" }, cells = ["2"] }, { name = "b", cells = ["9"] }]\n'
    )
    table = (
        '\n[[table]]\nid = "t"\ntitle = "Table 1: rows"\ncompute = "count"\n'
        f'arguments = {{ file = "scores.csv" }}\ncolumns = ["n"]\n{rows}'
    )
    told_in = 'read_in = "a <second> source"\n'
    path = make_claims(tmp_path, claim("mean", "3.8", "mean", 'column = "score"'), table + told_in)
    cli("reproduce", path, "-o", tmp_path / "out")
    told = json.loads((tmp_path / "out" / "claims.json").read_text(encoding="utf-8"))
    assert told["paper"] == "mine"
    assert {"id", "where", "printed", "computed", "status", "expected", "why"} <= set(told["claims"][0])
    assert Counter(row["status"] for row in told["claims"]) == {"holds": 2, "does not hold": 1}
    assert [row["read_in"] for row in told["claims"]] == ["a <second> source"] * 2 + [""]
    written = pl.read_csv(tmp_path / "out" / "claims.csv")
    assert written["id"].to_list() == ["t/a<b>/n", "t/b/n", "mean"]
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "a&lt;b&gt;" in page
    assert "Where the printed figures were read: a &lt;second&gt; source." in page
    assert "<b>9</b> <span>5</span>" in page
    # The code is one click away.
    assert 'href="#code-count"' in page
    assert 'id="code-count"' in page
    assert "def count_rows(" in page


def test_the_list_names_every_paper(cli: Callable[..., Answer]) -> None:
    papers = {row["paper"]: row for row in json.loads(cli("reproduce", "list", "--json").out)["papers"]}
    assert papers["shivagunde2023"]["claims"] == 366
    assert "lau2020" in cli("reproduce", "list").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lau2021",), "did you mean 'lau2020'"),
        (("nowhere.toml",), "nowhere.toml"),
        (("lau2020", "--level", "weights"), "no level 'weights'"),
        (("huynh2022", "--level", "model", "-m", "gpt2"), "NAME=MODEL"),
        (("lau2020", "--claim", "nothing"), "No claim of lau2020 is called nothing"),
    ],
)
def test_what_cannot_be_reproduced_is_refused_in_a_sentence(
    cli: Callable[..., Answer], arguments: tuple[str, ...], said: str
) -> None:
    answer = cli("reproduce", *arguments)
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.count("\n") == 1
