"""Implicit causality in GPT-2 (Huynh et al. 2022): surprisals of pronouns, and ratings of continuations."""

from typing import Any

import numpy as np
import polars as pl

from felicity.papers.reproduce.computations import COMPUTATIONS, MODEL_COMPUTATIONS, read_fit
from felicity.papers.reproduce.inputs import Files
from felicity.run import Model
from felicity.stats import fit_lmm, leave_one_out_reliability

SURPRISALS = "huynh2022/experiment1_surprisals.csv.gz"
RATINGS = "huynh2022/ratings_long_anonymous.csv"
SELECTION = "huynh2022/experiment2_selection.csv"
FREQUENCY = "huynh2022/verb_bias_frequency.csv"
STIMULI = "huynh2022/IC_mismatch.csv.gz"
PREFERENCE = "subject_preference ~ bias * subject_gender + (1 | item)"
RATING = "rating ~ center(strength) * scale(lg) + (1 | idx) + (1 | participant) + (1 | item)"
# The frequency list lacks one rated verb, 'charmed'; the study's own model frame has this count for it.
CHARMED = 311.0


def _preference_model(files: Files) -> Any:
    return files.once("preference", lambda: fit_lmm(PREFERENCE, files.table(SURPRISALS)))


def _ratings(files: Files) -> pl.DataFrame:
    return files.table(RATINGS).filter(pl.col("selected") == 1)


@COMPUTATIONS.add("huynh2022.stimuli")
def count_stimuli(files: Files, *, distinct: str | None = None) -> float:
    """Sentence beginnings of study 1, or distinct verbs (verb) or noun pairs (item) among them."""
    table = files.table(SURPRISALS)
    return float(table.height if distinct is None else table[distinct].n_unique())


@COMPUTATIONS.add("huynh2022.preference")
def preference(files: Files, *, term: str | None = None, figure: str = "estimate") -> float:
    """Subject preference on bias by gender with a random intercept per noun pair, by REML."""
    return read_fit(_preference_model(files), term, figure)


@COMPUTATIONS.add("huynh2022.squared_residuals")
def squared_residuals(files: Files, *, term: str | None = None, figure: str = "estimate") -> float:
    """Squared residuals of the preference model on log frequency, with random slopes per noun pair."""

    def fit_residuals() -> Any:
        squared = pl.Series("squared", _preference_model(files).residuals ** 2)
        frequency = files.table(FREQUENCY).select("verb", "Lg10WF")
        frame = files.table(SURPRISALS).with_columns(squared).join(frequency, on="verb")
        return fit_lmm("squared ~ Lg10WF + (1 + Lg10WF | item)", frame.drop_nulls("Lg10WF"))

    return read_fit(files.once("squared residuals", fit_residuals), term, figure)


@COMPUTATIONS.add("huynh2022.selection")
def count_selection(files: Files, *, distinct: str | None = None) -> float:
    """Continuations chosen for rating, or distinct values of a column among them."""
    table = files.table(SELECTION)
    return float(table.height if distinct is None else table[distinct].n_unique())


@COMPUTATIONS.add("huynh2022.ratings")
def count_ratings(files: Files, *, rating: int | None = None, distinct: str | None = None) -> float:
    """Ratings kept for the analysis, those of one value, or distinct participants, items or lists (block)."""
    table = _ratings(files)
    if rating is not None:
        table = table.filter(pl.col("rating") == rating)
    return float(table.height if distinct is None else table[distinct].n_unique())


@COMPUTATIONS.add("huynh2022.ratings_of_each")
def ratings_of_each(files: Files, *, column: str) -> float:
    """Ratings of each participant, or of each item (idx), if all have the same number; else none."""
    counts = _ratings(files)[column].value_counts()["count"].unique().to_list()
    return float(counts[0]) if len(counts) == 1 else float("nan")


@COMPUTATIONS.add("huynh2022.items")
def rate_items(files: Files, *, at_least: float | None = None, all_ratings: int | None = None) -> float:
    """Per cent of items with an average at or above a value; or items all of whose ratings are one value."""
    items = (
        _ratings(files)
        .group_by("idx")
        .agg(
            pl.col("rating").mean().alias("mean"),
            pl.col("rating").min().alias("low"),
            pl.col("rating").max().alias("high"),
        )
    )
    if all_ratings is not None:
        return float(items.filter((pl.col("low") == all_ratings) & (pl.col("high") == all_ratings)).height)
    return 100 * float((items["mean"] >= at_least).to_numpy().mean())


@COMPUTATIONS.add("huynh2022.reliability")
def reliability(files: Files, *, figure: str) -> float:
    """Mean or SD over raters of Spearman's correlation with the mean of the two others."""
    table = files.once(
        "reliability", lambda: leave_one_out_reliability(_ratings(files), rater="participant", item="idx")
    )
    values = table["reliability"].to_numpy()
    return float(values.mean() if figure == "mean" else values.std())


@COMPUTATIONS.add("huynh2022.rating_model")
def rating_model(files: Files, *, term: str | None = None, figure: str = "estimate") -> float:
    """Rating on strength of bias by log frequency, with random sentences, participants and noun pairs."""

    def fit_ratings() -> Any:
        frequency = files.table(FREQUENCY).select("verb", "FREQcount")
        stimuli = files.table(SELECTION).select("idx", "verb", "item", "bias")
        frame = _ratings(files).join(stimuli, on="idx").join(frequency, on="verb", how="left")
        frame = frame.with_columns(
            strength=pl.col("bias").abs(), lg=(pl.col("FREQcount").fill_null(CHARMED) + 1.0).log10()
        )
        return fit_lmm(RATING, frame)

    return read_fit(files.once("ratings", fit_ratings), term, figure)


@MODEL_COMPUTATIONS.add("huynh2022.preference")
def run_preference(files: Files, model: Model, *, term: str | None = None, figure: str = "estimate") -> float:
    """The preference model on surprisals, in bits, of ` he` and ` she` under a model."""

    def fit_surprisals() -> Any:
        stimuli = files.table(STIMULI).with_columns(
            pl.col("sent").str.extract(r"^(.*) \S+$").alias("frame"),
            pl.col("sent").str.extract(r"(\S+)$").alias("word"),
        )
        scored = model.score(stimuli["word"].to_list(), context=stimuli["frame"].to_list())
        surprisal = pl.Series("surprisal", scored["lp"].to_numpy() / -np.log(2.0))
        wide = stimuli.with_columns(surprisal).pivot(
            on="isHigh", index=["frame", "item", "bias"], values="surprisal"
        )
        gender = stimuli.filter(pl.col("isHigh") == 1).select(
            "frame", (pl.col("gender") == "m").cast(pl.Int64).alias("subject_gender")
        )
        frame = wide.with_columns((pl.col("0") - pl.col("1")).alias("subject_preference")).join(
            gender, on="frame"
        )
        return fit_lmm(PREFERENCE, frame)

    return read_fit(files.once(("preference", model.spec), fit_surprisals), term, figure)
