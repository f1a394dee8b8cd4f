"""A biased set beside its debiased counterpart."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from felicity.api.pairs import accept_repairs
from felicity.core.errors import BadInput
from felicity.studies.bias import compare_sets


def judge(passed: list[float], splits: list[str], suite: str = "s") -> pl.DataFrame:
    return pl.DataFrame(
        {
            "item": [f"{suite}/{number}" for number in range(len(passed))],
            "suite": [suite] * len(passed),
            "measure": ["lp"] * len(passed),
            "passed": passed,
            "split": splits,
        }
    )


def test_splits_and_sets_stand_side_by_side_with_mcnemars_p() -> None:
    biased = judge([1, 1, 0, 0, 0, 0], ["A=U", "A<U", "A>U", "A>U", "A>U", "A>U"])
    fair = judge([1, 1, 1, 1, 1, 1], ["A=U"] * 6)
    row = compare_sets(biased, fair, model="m").filter(suite="s").to_dicts()[0]
    assert (row["A=U"], row["A<U"], row["A>U"]) == (1.0, 1.0, 0.0)
    assert row["n A>U"] == 4
    assert row["debiased"] == 1.0
    assert row["unequal in debiased"] == 0
    # Four discordant items, all one way: McNemar's z is 4 / sqrt(4), and R's 2 * pnorm(-2) is 0.04550026.
    assert row["p"] == pytest.approx(0.04550026)


def test_sets_of_other_items_are_compared_over_suites_alone() -> None:
    biased = pl.concat([judge([1, 0], ["A=U"] * 2, suite) for suite in "abc"])
    fair = pl.concat([judge([1, 1, 0], ["A=U"] * 3, suite) for suite in "abc"])
    table = compare_sets(biased, fair, model="m")
    assert table["p"].null_count() == len(table)
    assert table.filter(suite="all")["p_suites"][0] is not None


def test_sets_without_a_common_suite_are_refused() -> None:
    with pytest.raises(BadInput, match="no suite in common"):
        compare_sets(judge([1], ["A=U"], "a"), judge([1], ["A=U"], "b"), model="m")


def test_a_reviewed_sheet_keeps_what_nobody_refused() -> None:
    sheet = pl.DataFrame(
        {
            "item": ["1", "2", "3", "4"],
            "status": ["kept", "proposed", "proposed", "dropped"],
            "good": list("abcd"),
            "bad": list("efgh"),
            "decision": ["", "No", "", ""],
        }
    )
    assert accept_repairs(sheet)["good"].to_list() == ["a", "c"]


def test_the_commands_work_from_end_to_end(cli: Callable[..., Any], tiny_model: Path, tmp_path: Path) -> None:
    pytest.importorskip("wordfreq")
    for name, match in (("fair", "length"), ("twin", "none")):
        answer = cli(
            "stimuli", "pairs", "--paradigm", "transitive", "-n", 6, "-m", tiny_model, "--match", match, "-q",
            "-o", tmp_path / f"{name}.parquet",
        )  # fmt: skip
        assert answer.code == 0, answer.err
    fair = pl.read_parquet(tmp_path / "fair.parquet")
    assert fair["tokens_good_tiny-gpt2"].to_list() == fair["tokens_bad_tiny-gpt2"].to_list()
    answer = cli(
        "bias", tmp_path / "twin.parquet", "--debias", tmp_path / "fair.parquet", "-m", tiny_model,
        "-o", tmp_path / "out",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    assert (tmp_path / "out" / "debias.csv").exists()
    page = (tmp_path / "out" / "report.html").read_text()
    for section in ("Biased and debiased", "Splits", "By suite"):
        assert section in page
    for name in ("biased", "debiased"):
        assert (tmp_path / "out" / "models" / "tiny-gpt2" / name / "judgements.parquet").exists()
    answer = cli(
        "stimuli", "repair", tmp_path / "twin.parquet", "-m", tiny_model, "-o", tmp_path / "sheet.tsv"
    )
    assert answer.code == 0, answer.err
    answer = cli("stimuli", "repair", tmp_path / "sheet.tsv", "--reviewed", "-o", tmp_path / "done.csv")
    assert answer.code == 0, answer.err
    assert cli("stimuli", "check", tmp_path / "fair.parquet").code == 0


def test_debias_needs_a_model_that_scores(cli: Callable[..., Any], tiny_model: Path, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("suite,good,bad\ns,The cats sleep.,The cats sleeps.\n")
    tokenizer = tmp_path / "tokenizer"
    tokenizer.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (tokenizer / name).write_bytes((tiny_model / name).read_bytes())
    answer = cli("bias", pairs, "--debias", pairs, "-m", tokenizer, "-o", tmp_path / "out")
    assert answer.code == 2
    assert "tokenizer has no weights" in answer.err
    answer = cli("bias", pairs, "--debias", pairs, "-m", tiny_model, "--no-score", "-o", tmp_path / "out")
    assert answer.code == 2
    assert "leave out --no-score" in answer.err


def test_a_sample_goes_to_the_rating_site_in_one_command(
    cli: Callable[..., Any], tiny_model: Path, tmp_path: Path
) -> None:
    answer = cli(
        "stimuli", "pairs", "--paradigm", "transitive", "--paradigm", "causative", "-n", 6, "-m", tiny_model,
        "--match", "length", "-q", "-o", tmp_path / "fair.parquet",
    )  # fmt: skip
    assert answer.code == 0, answer.err
    answer = cli(
        "rate", "new", tmp_path / "validation", "--from", tmp_path / "fair.parquet", "--task", "choice",
        "--sample", 2,
    )  # fmt: skip
    assert answer.code == 0, answer.err
    stimuli = pl.read_csv(tmp_path / "validation" / "stimuli.csv")
    fair = pl.read_parquet(tmp_path / "fair.parquet")
    assert sorted(stimuli["suite"]) == ["causative"] * 2 + ["transitive"] * 2
    assert set(zip(stimuli["text"], stimuli["text_b"], strict=True)) <= set(
        zip(fair["good"], fair["bad"], strict=True)
    )
