"""Runs are compared by one measure, on the same stimuli, with ties counted half."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, NotPossible
from felicity.run.answers import judgements_by, read_run_judgements
from felicity.run.evaluate import evaluate, read_run
from felicity.run.folder import RunFolder
from felicity.run.model import open_model
from tests.conftest import Answer

Cli = Callable[..., Answer]
WORDS = ("cats", "dogs", "birds", "boys")


def write_pairs(path: Path, *, verb: str = "annoy") -> Path:
    rows = [f"s{i % 2},The {word} {verb} Tim.,The {word} {verb}s Tim." for i, word in enumerate(WORDS)]
    path.write_text("suite,good,bad\n" + "\n".join(rows) + "\n")
    return path


@pytest.fixture
def run(tmp_path: Path, tiny_model: Path) -> Path:
    evaluate(str(write_pairs(tmp_path / "pairs.csv")), open_model(str(tiny_model)), out=tmp_path / "run")
    return tmp_path / "run"


def test_an_added_measure_never_becomes_the_main_one(run: Path, tmp_path: Path, tiny_model: Path) -> None:
    before = judgements_by(read_run(run))
    evaluate(str(tmp_path / "pairs.csv"), open_model(str(tiny_model)), measures=["mean_lp"], out=run)
    assert read_run(run).manifest["measures"] == ["lp", "mean_lp"]
    assert judgements_by(read_run(run)).equals(before)


def test_runs_are_compared_by_the_measure_they_share(
    cli: Cli, run: Path, tmp_path: Path, tiny_model: Path
) -> None:
    both = tmp_path / "both"
    for measure in ("lp", "mean_lp"):
        evaluate(str(tmp_path / "pairs.csv"), open_model(str(tiny_model)), measures=[measure], out=both)
    (row,) = json.loads(cli("compare", run, both, "--json").out)
    assert row["measure"] == "lp"
    assert (row["difference"], row["p"]) == (0.0, 1.0)
    assert "Judged by lp; ties count half" in cli("compare", run, both).out


def test_runs_without_a_shared_measure_are_refused(run: Path, tmp_path: Path, tiny_model: Path) -> None:
    other = tmp_path / "other"
    evaluate(str(tmp_path / "pairs.csv"), open_model(str(tiny_model)), measures=["mean_lp"], out=other)
    with pytest.raises(NotPossible, match="No measure is shared by all runs.*has lp.*has mean_lp"):
        read_run_judgements([run, other])


def test_two_runs_of_one_model_on_different_items_are_refused_with_an_item(
    cli: Cli, run: Path, tmp_path: Path, tiny_model: Path
) -> None:
    part = tmp_path / "part.csv"
    part.write_text("\n".join((tmp_path / "pairs.csv").read_text().splitlines()[:3]) + "\n")
    evaluate(str(part), open_model(str(tiny_model)), out=tmp_path / "part")
    told = cli("compare", run, tmp_path / "part")
    assert told.code == 2
    assert f"{tmp_path / 'part'} has no answer to 2 items of {run}, such as" in told.err


def test_items_of_one_name_and_other_texts_are_refused(
    cli: Cli, run: Path, tmp_path: Path, tiny_model: Path
) -> None:
    pairs = write_pairs(tmp_path / "others.csv", verb="see")
    evaluate(str(pairs), open_model(str(tiny_model)), out=tmp_path / "others")
    with pytest.raises(BadInput, match="Item 's0/1' is not the same in .*: its texts differ"):
        read_run_judgements([run, tmp_path / "others"])
    for command in ("compare", "power"):
        answer = cli(command, run, tmp_path / "others")
        assert answer.code == 2
        assert "its texts differ" in answer.err


def test_measures_of_one_run_are_compared_with_each_other(
    cli: Cli, run: Path, tmp_path: Path, tiny_model: Path
) -> None:
    with pytest.raises(NotPossible, match="one measure only"):
        read_run_judgements([run])
    evaluate(str(tmp_path / "pairs.csv"), open_model(str(tiny_model)), measures=["mean_lp"], out=run)
    (row,) = json.loads(cli("compare", run, "--json").out)
    assert (row["first"], row["second"], row["measure"]) == ("lp", "mean_lp", None)


def test_ties_count_half_in_compare_and_are_left_out_of_power(cli: Cli, run: Path, tmp_path: Path) -> None:
    other = tmp_path / "tied"
    other.mkdir()
    for file in run.iterdir():
        if file.is_file():
            (other / file.name).write_bytes(file.read_bytes())
    judged = pl.read_parquet(run / "judgements.parquet")
    passed = {"run": [1.0, 0.0, 1.0, 0.0], "tied": [0.5, 0.5, 1.0, 1.0]}
    for name, answers in passed.items():
        folder = RunFolder(tmp_path / name)
        folder.write("judgements", judged.with_columns(pl.Series("passed", answers)))
        folder.finish(folder.read_manifest())
    (row,) = json.loads(cli("compare", run, other, "--items", "--json").out)
    # (1 - .5) + (0 - .5) + 0 + (0 - 1), over four items.
    assert row["difference"] == pytest.approx(-0.25)
    assert (row["ties"], row["left_out"], row["test"]) == (2, 2, "score")
    assert "2 tied items are left out" in cli("power", run, other).out


def test_compare_within_phenomena_adjusts_over_all_of_them(cli: Cli, run: Path, tmp_path: Path) -> None:
    other = tmp_path / "copy"
    other.mkdir()
    for file in run.iterdir():
        if file.is_file():
            (other / file.name).write_bytes(file.read_bytes())
    rows = json.loads(cli("compare", run, other, "--by", "suite", "--json").out)
    assert [row["group"] for row in rows] == ["s0", "s1"]
    page = tmp_path / "compare.html"
    assert cli("compare", run, other, "--by", "suite", "--page", page).code == 0
    assert "Differences" in page.read_text(encoding="utf-8")
