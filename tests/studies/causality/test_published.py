"""Every figure of the study that the published files give."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from felicity.studies.causality import (
    add_figures,
    analyse_ratings,
    draw_agreement,
    find_offensive,
    find_reference,
    find_repetition,
    fit_preference,
    flag_continuations,
    read_ratings,
    read_stimuli_set,
    trim_repetition,
)
from felicity.studies.causality.continuations import describe_diversity

pytestmark = pytest.mark.data
Published = Callable[[str], Path]
# The count that the paper's own model frame has for the one verb that the frequency list lacks.
CHARMED = 311.0


@pytest.fixture(scope="module")
def preference(published: Published) -> pl.DataFrame:
    """The stimuli of the study with the preferences that the authors measured in GPT-2."""
    given = pl.read_csv(published("huynh2022/experiment1_surprisals.csv.gz"))
    rows = read_stimuli_set("implicit_causality").rows
    return add_figures(
        rows.join(
            given.select("subject_preference", prompt="sent"),
            on="prompt",
            how="left",
            maintain_order="left",
        )
    )


@pytest.fixture(scope="module")
def golden(published: Published) -> dict[str, Any]:
    lines = published("lme4/golden.jsonl").read_text().splitlines()
    return {entry["name"]: entry for entry in map(json.loads, lines)}


@pytest.fixture(scope="module")
def references(published: Published) -> pl.DataFrame:
    return pl.read_csv(published("huynh2022/experiment2_subject_reference.csv.gz"))


def after_because(texts: pl.Series) -> list[str]:
    return [text.split(" because", 1)[1].rstrip(".") for text in texts]


def test_the_stimuli_are_those_of_the_paper(published: Published) -> None:
    stimuli = read_stimuli_set("implicit_causality")
    given = pl.read_csv(published("huynh2022/experiment1_surprisals.csv.gz"))
    assert stimuli.rows.height == 246 * 14 * 2 == 6888
    assert set(stimuli.rows["prompt"]) == set(given["sent"])
    assert stimuli.rows["noun_pair"].n_unique() == 14
    assert stimuli.rows.null_count()["subject"][0] == 0
    assert stimuli.pronouns == {"m": "he", "f": "she"}
    assert any("20 verbs have no frequency" in note for note in stimuli.notes)


def test_the_model_of_preference_is_that_of_lme4(preference: pl.DataFrame, golden: dict[str, Any]) -> None:
    fitted = fit_preference(preference).models["preference"]
    for row, expected in zip(fitted.fixed.to_dicts(), golden["huynh_study1"]["fixed"], strict=True):
        assert row["estimate"] == pytest.approx(expected["Estimate"], rel=1e-5)
        assert row["se"] == pytest.approx(expected["Std. Error"], rel=1e-4)
        assert row["p"] == pytest.approx(expected["Pr(>|t|)"], rel=1e-3)
    assert fitted.r2_marginal == pytest.approx(0.14194, abs=1e-5)
    assert fitted.r2_conditional == pytest.approx(0.23006, abs=1e-5)
    assert not fitted.singular


def test_the_model_of_squared_residuals_is_singular_and_has_the_paper_s_slope(
    preference: pl.DataFrame,
) -> None:
    fitted = fit_preference(preference).models["residuals"]
    slope = fitted.fixed.filter(term="log_frequency").row(0, named=True)
    assert slope["estimate"] == pytest.approx(-0.04858, abs=5e-6)
    assert slope["se"] == pytest.approx(0.01197, abs=5e-6)
    assert fitted.singular
    assert fitted.n == 6328


def test_figure_1_is_counted_in_both_ways(preference: pl.DataFrame) -> None:
    table = draw_agreement(preference)
    ours = table.filter(counting="without bias 0", subject_gender="all")
    theirs = table.filter(counting="bias 0 wrong", subject_gender="all")
    zero = preference.filter(pl.col("bias") == 0)
    assert zero["verb"].n_unique() == 2
    total = {one["counting"][0]: one.row(0, named=True) for one in (ours.tail(1), theirs.tail(1))}
    assert total["without bias 0"]["n"] == 6888 - zero.height == 6832
    assert total["bias 0 wrong"]["n"] == 6888
    assert total["without bias 0"]["matching"] == total["bias 0 wrong"]["matching"] == 4332
    # The countings differ in the bin that holds 0 alone, since bins are closed on the left.
    both = ours.join(theirs, on="bias_bin", suffix="_authors")
    changed = both.filter(pl.col("n") != pl.col("n_authors"))
    assert changed["bias_bin"].to_list() == [0]
    assert changed.select("n", "n_authors").row(0) == (588, 644)
    assert ours.filter(bias_bin=-100)["agreement"][0] == pytest.approx(474 / 588)
    assert (ours["low"] < ours["agreement"]).all()
    assert (ours["high"] > ours["agreement"]).all()


def test_references_are_the_authors_on_all_continuations(references: pl.DataFrame) -> None:
    wanted = {1: "subject", 0: "object", None: "unknown"}
    nouns = references["cleaned_output"].str.extract_groups(r"^The (\S+) .+ the (\S+) because").to_list()
    found = []
    for row, given, text in zip(
        references.iter_rows(named=True), nouns, after_because(references["cleaned_output"]), strict=True
    ):
        genders = ("m", "f") if row["subject_gender"] == 1 else ("f", "m")
        side, _ = find_reference(
            text,
            {"subject": given["1"], "object": given["2"]},
            dict(zip(("subject", "object"), genders, strict=True)),
            {"m": "he", "f": "she"},
        )
        found.append(side == wanted[row["subject_reference"]])
    assert references["subject_reference"].null_count() == 2
    assert sum(found) == 1000


def test_flags_find_what_the_authors_set_aside_and_little_else(references: pl.DataFrame) -> None:
    offensive = after_because(references["replaced_output"].drop_nulls())
    repetitive = after_because(references.filter(modification="repetition")["original_output"])
    rest = after_because(references.filter(modification="None")["original_output"])
    assert (len(offensive), len(repetitive), len(rest)) == (64, 126, 810)
    assert sum(bool(find_offensive(text)) for text in offensive) == 61
    # One more is flagged for its repetition; the other two are harmless by their words.
    assert flag_continuations(pl.Series(offensive))["flagged"].sum() == 62
    assert sum(find_repetition(text) is not None for text in repetitive) == 122
    assert flag_continuations(pl.Series(rest))["flagged"].sum() == 55


def test_proposed_trims_are_mostly_the_authors_own(references: pl.DataFrame) -> None:
    part = references.filter(modification="repetition")
    pairs = zip(after_because(part["original_output"]), after_because(part["cleaned_output"]), strict=True)
    # Quotation marks aside; the authors also changed words of some sentences by hand.
    same = [plain(trim_repetition(text)) == plain(kept) for text, kept in pairs]
    assert sum(same) == 114


def plain(text: str | None) -> str:
    return (text or "").replace('"', "").strip(" ,.")


def test_the_ratings_are_those_of_the_paper(published: Published, golden: dict[str, Any]) -> None:
    frequency = pl.read_csv(published("huynh2022/verb_bias_frequency.csv")).select("verb", "FREQcount")
    stimuli = (
        pl.read_csv(published("huynh2022/experiment2_selection.csv"))
        .join(frequency, on="verb", how="left")
        .select(
            sentence=pl.col("idx").cast(pl.String),
            noun_pair=pl.col("item").cast(pl.String),
            bias=pl.col("bias").cast(pl.Float64),
            log_frequency=(pl.col("FREQcount").fill_null(CHARMED) + 1.0).log10(),
        )
    )
    found = analyse_ratings(read_ratings(published("huynh2022/ratings_long_anonymous.csv")), stimuli)
    assert found.counts["n"].to_list() == [689, 571, 333, 782, 625]
    assert [round(100 * share, 1) for share in found.thresholds["at_or_above"]] == [
        100,
        79.0,
        54.6,
        31.8,
        6.9,
    ]
    assert found.thresholds["all_raters"].to_list()[0] == 72
    assert found.thresholds["all_raters"].to_list()[-1] == 69
    assert found.summary["reliability_mean"] == pytest.approx(0.638, abs=5e-4)
    assert found.summary["reliability_sd"] == pytest.approx(0.105, abs=5e-4)
    assert (found.summary["raters"], found.summary["below_cutoff"]) == (75, 0)
    for row, expected in zip(
        found.models["linear"].fixed.to_dicts(), golden["huynh_study2"]["fixed"], strict=True
    ):
        assert row["estimate"] == pytest.approx(expected["Estimate"], rel=1e-4)
        assert row["se"] == pytest.approx(expected["Std. Error"], rel=1e-4)
        assert row["p"] == pytest.approx(expected["Pr(>|t|)"], rel=1e-2)
    # The ordinal model, whose coefficients are on another scale, says the same of every effect.
    ordinal = found.models["ordinal"].fixed
    linear = found.models["linear"].fixed.filter(pl.col("term") != "(Intercept)")
    assert ordinal["term"].to_list() == linear["term"].to_list()
    assert (ordinal["estimate"].sign() == linear["estimate"].sign()).all()
    assert (ordinal["p"] < 0.05).all()


def test_diversity_of_the_published_continuations(published: Published) -> None:
    table = pl.read_csv(published("huynh2022/experiment2_textgeneration.csv.gz"), separator=";")
    found = describe_diversity(pl.DataFrame({"continuation": after_because(table["output"])}))
    assert (found["n"], found["distinct"]) == (6888, 1670)
    assert found["repeated_often"] == pytest.approx(0.2635, abs=1e-4)
