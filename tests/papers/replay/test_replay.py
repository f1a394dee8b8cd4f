"""Published numbers, judged without a model, come out as published."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, FelicityError
from felicity.papers.replay.formats import replay_file
from felicity.papers.replay.replayed import leave_out, write_replay
from felicity.run.evaluate import read_run, report_run

Published = Callable[[str], Path]
NOT_IN_THE_PAPER = ["fgd-embed3", "fgd-embed4", "nn-nv-rpl"]


def accuracy(estimates: pl.DataFrame, level: str, name: str = "all", measure: str | None = None) -> float:
    rows = estimates.filter(level=level, name=name)
    return float((rows if measure is None else rows.filter(measure=measure))["accuracy"].item())


@pytest.mark.data
@pytest.mark.parametrize(
    ("model", "mean"),
    [
        ("gpt-2-pretrained_", 0.7842),
        ("gpt-2-xl-pretrained_", 0.8424),
        ("transformer-xl_", 0.5957),
        ("jrnn_", 0.5627),
        ("grnn_", 0.5514),
    ],
)
def test_the_means_over_31_suites_are_those_of_the_paper(
    model: str, mean: float, published: Published
) -> None:
    path = published(f"syntaxgym/sg_results/syntaxgym_results_{model}.csv.gz")
    replayed = leave_out(replay_file(path), NOT_IN_THE_PAPER)
    estimates = replayed.estimate()
    assert estimates.filter(level="macro")["suites"].item() == 31
    assert accuracy(estimates, "macro") == pytest.approx(mean, abs=5e-5)


@pytest.mark.data
def test_formulas_give_the_reference_verdicts_of_distilgpt2(published: Published) -> None:
    replayed = replay_file(published("syntaxgym/distilgpt2_reference.json"))
    passed = {
        suite: (part["passed"].sum(), len(part))
        for (suite,), part in replayed.verdicts.judgements.group_by("suite")
    }
    assert passed["subordination_src-src"] == (13, 23)
    assert passed["number_prep"] == (11, 19)


@pytest.mark.data
def test_blimps_summaries_give_the_published_means(published: Published) -> None:
    models = replay_file(published("blimp/models_summary.jsonl"))
    means = {m: round(100 * accuracy(models.estimate(), "macro", measure=m), 2) for m in models.measures}
    assert means == {"ngram": 61.24, "lstm": 69.81, "txl": 69.63, "gpt2": 83.02}
    assert models.verdicts.judgements["phenomenon"].n_unique() == 12
    assert models.notes == (("rows that are not one of BLiMP's 67 suites", 13, 80),)


@pytest.mark.data
def test_blimps_people_agree_as_published(published: Published) -> None:
    people = replay_file(published("blimp/human_validation_summary.csv"))
    estimates = people.estimate()
    assert accuracy(estimates, "macro", measure="individual") == pytest.approx(0.8855, abs=5e-5)
    majority = estimates.filter(level="overall", measure="majority").row(0, named=True)
    assert (round(majority["accuracy"] * majority["n"]), majority["n"]) == (323, 335)


SCORES = "item,condition,value,suite,model\n1,good,-1,s,x\n1,bad,-2,s,x\n2,good,-3,t,x\n2,bad,-3,t,x\n"


def test_a_table_of_scores_becomes_a_run_with_a_report(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(SCORES)
    run = write_replay(replay_file(path), path, tmp_path / "run")
    assert run["judgements"].select("item", "passed", "margin").rows() == [("1", 1.0, 1.0), ("2", 0.5, 0.0)]
    assert run.manifest["replay"]["form"] == "scores"
    page = report_run(read_run(tmp_path / "run"), tmp_path / "run")
    assert "75.0" in page.read_text(encoding="utf-8")


def test_other_numbers_are_not_written_into_the_same_folder(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(SCORES)
    write_replay(replay_file(path), path, tmp_path / "run")
    write_replay(replay_file(path), path, tmp_path / "run")
    path.write_text(SCORES.replace("-1", "-5"))
    with pytest.raises(BadInput, match="contains another run"):
        write_replay(replay_file(path), path, tmp_path / "run")


@pytest.mark.data
def test_scores_of_a_known_dataset_are_judged_by_its_own_rule(published: Published, tmp_path: Path) -> None:
    published("ettinger2020")
    rows = ["item,condition,value"]
    for condition, value in (("aff_true", -1), ("aff_false", -2), ("neg_true", -3), ("neg_false", -2)):
        rows += [f"neg_136_simp/{n},{condition},{value}" for n in range(18)]
    path = tmp_path / "scores.csv"
    path.write_text("\n".join(rows))
    replayed = replay_file(path, dataset="neg_136_simp")
    estimates = replayed.estimate()
    assert accuracy(estimates, "prediction", "affirmative") == 1.0
    assert accuracy(estimates, "prediction", "negative") == 0.0
    path.write_text("item,condition,value\nneg_136_simp/99,aff_true,1\n")
    with pytest.raises(BadInput, match="'neg_136_simp/99', condition 'aff_true', which 'neg_136_simp' lacks"):
        replay_file(path, dataset="neg_136_simp")


@pytest.mark.data
def test_region_surprisals_from_a_table_are_judged_by_formulas(published: Published, tmp_path: Path) -> None:
    published("syntaxgym")
    rows = ["item,condition,region,value"]
    for number in (1, 2):
        for condition in ("match_sing", "match_plural", "mismatch_sing", "mismatch_plural"):
            value = 5 if condition.startswith("match") or number == 2 else 6
            rows += [f"number_prep/{number},{condition},{region},{value}" for region in range(1, 8)]
    path = tmp_path / "surprisals.csv"
    path.write_text("\n".join(rows))
    assert replay_file(path).verdicts.judgements["passed"].to_list() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("item,condition,value\n1,good,x\n", "line 2: 'value' is 'x', not a number"),
        ("item,condition,value\n1,a,1\n1,b,2\n", "name the one that should score highest with --good"),
        ("item,condition,value\n1,good,1\n1,good,2\n1,bad,3\n", "gives '1/good' more than one value"),
        ("item,condition,value\n1,good,1\n2,bad,3\n", "item '1' without its condition 'bad'"),
        ("suite,item,correct\nnumber_prep,0,maybe\n", "line 2: 'correct' is 'maybe', not true or false"),
        ("suite,item,correct\nnumber_prep,x,True\n", "line 2: 'item' is 'x', not a number from 0 on"),
        ("suite,item,correct\nnumber_prep,0,True\nnumber_prep,0,True\n", "more than once for one model"),
        ("UID,m\nnothing,0.5\n", "No row of .* is about a suite of BLiMP"),
        ("UID,m\nadjunct_island,88\n", "accuracies are between 0 and 1"),
        ("a,b\n1,2\n", "felicity replays tables with item, condition, value"),
    ],
)
def test_what_cannot_be_replayed_is_said(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "numbers.csv"
    path.write_text(content)
    with pytest.raises(FelicityError, match=said):
        replay_file(path)


def test_a_suite_that_is_not_there_cannot_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(SCORES)
    with pytest.raises(BadInput, match="no suite 'u' to leave out; there are s, t"):
        leave_out(replay_file(path), ["u"])
    assert leave_out(replay_file(path), ["t"]).estimate().filter(level="overall")["n"].item() == 1


def write(folder: Path, name: str, *lines: str) -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def test_two_impossible_sentences_are_level_and_not_stable(tmp_path: Path) -> None:
    path = write(tmp_path, "s.csv", "item,condition,value", "1,good,-inf", "1,bad,-inf")
    judged = replay_file(path).verdicts.judgements
    assert judged.select("passed", "margin", "stable").rows() == [(0.5, 0.0, False)]


def test_a_value_that_is_not_a_number_is_refused_by_line(tmp_path: Path) -> None:
    path = write(tmp_path, "s.csv", "item,condition,value", "1,good,-1", "1,bad,nan")
    with pytest.raises(BadInput, match="line 3: 'value' is 'nan'"):
        replay_file(path)


def test_an_item_without_one_of_its_conditions_is_refused_not_left_out(tmp_path: Path) -> None:
    rows = ("1,good,-1", "1,bad,-2", "2,good,-1", "3,bad,-1", "4,good,-1")
    path = write(tmp_path, "s.csv", "item,condition,value", *rows)
    with pytest.raises(BadInput, match=r"item '2' without its condition 'bad' \(3 such items\)"):
        replay_file(path)


def test_a_suite_named_twice_is_refused(tmp_path: Path) -> None:
    row = '{"UID": "adjunct_island", "gpt2": 0.9}'
    path = write(tmp_path, "models.jsonl", row, row)
    with pytest.raises(BadInput, match="'adjunct_island' more than once"):
        replay_file(path)


@pytest.mark.parametrize("lost", ["item", "condition", "value"])
def test_a_row_without_a_field_is_refused_by_line(tmp_path: Path, lost: str) -> None:
    row = {"item": "1", "condition": "good", "value": -1.0}
    other = {name: value for name, value in row.items() if name != lost}
    path = write(tmp_path, "s.jsonl", json.dumps(row), json.dumps(other))
    with pytest.raises(BadInput, match=f"line 2: there is no '{lost}'"):
        replay_file(path)
