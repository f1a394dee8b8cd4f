"""What people say about the continuations: counts, reliability, the paper's mixed model, an ordinal one."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import read_frame
from felicity.core.schemas import SIMULATED_NOTE, is_simulated
from felicity.stats import correlate, fit_clmm, fit_lmm, krippendorff_alpha, leave_one_out_reliability
from felicity.studies.causality.stimuli import read_numbers

POINTS = (1, 2, 3, 4, 5)
RATING = (
    "rating ~ center(strength) * scale(log_frequency) + (1 | sentence) + (1 | participant) + (1 | noun_pair)"
)
# The columns of the ratings' table under the names that other programs give them.
NAMES = {
    "participant": ("participant", "rater"),
    "sentence": ("sentence", "idx", "item"),
}
CUTOFF = 0.4
EXAMPLES = 2
MODELS: dict[str, Callable[..., Any]] = {"linear": fit_lmm, "ordinal": fit_clmm}


@dataclass(frozen=True)
class RatingFindings:
    """Every table of the ratings, the fitted models, and what could not be computed."""

    summary: dict[str, Any]
    counts: pl.DataFrame
    thresholds: pl.DataFrame
    reliability: pl.DataFrame
    items: pl.DataFrame
    models: dict[str, Any]
    correlations: pl.DataFrame
    notes: list[str]


def read_ratings(path: Path) -> pl.DataFrame:
    """Ratings from `felicity rate export`, or any table with a rater, an item and a rating.

    Only rows of targets of raters who finished, if the table says which these are.

    Raises BadInput if a column is missing.
    """
    if path.is_dir():
        # In the CSV file, texts that a spreadsheet would run are escaped.
        exact = path / "ratings.parquet"
        path = exact if exact.exists() else path / "ratings.csv"
    frame = read_frame(path)
    for name, known in NAMES.items():
        found = next((column for column in known if column in frame.columns), None)
        if found is None:
            raise BadInput(f"{path} has no column '{known[0]}'; it has {', '.join(frame.columns)}.")
        frame = frame.with_columns(pl.col(found).cast(pl.String).alias(name))
    if "rating" not in frame.columns:
        raise BadInput(f"{path} has no column 'rating'; it has {', '.join(frame.columns)}.")
    for column, values in (("role", ["target"]), ("state", ["finished"]), ("selected", ["1", "1.0", "true"])):
        if column in frame.columns:
            frame = frame.filter(pl.col(column).cast(pl.String).str.to_lowercase().is_in(values))
    # A rater who preferred not to answer gave no rating.
    frame = frame.with_columns(read_numbers(frame["rating"], path)).drop_nulls("rating")
    if frame.is_empty():
        raise BadInput(f"{path} has no ratings that count.")
    outside = frame.filter(~pl.col("rating").is_between(POINTS[0], POINTS[-1]))
    if outside.height:
        row = outside.row(0, named=True)
        raise BadInput(
            f"{path}: the rating of '{row['sentence']}' by '{row['participant']}' is {row['rating']}, not "
            f"{POINTS[0]} to {POINTS[-1]}."
        )
    return frame


def analyse_ratings(ratings: pl.DataFrame, stimuli: pl.DataFrame) -> RatingFindings:
    """All analyses of the paper, and correlations with what the model itself preferred.

    ratings: participant, sentence, rating. stimuli: one row per sentence with noun_pair, bias,
    log_frequency and, for the correlations, subject_preference and mean_lp.

    Raises BadInput if a rated sentence is not among the stimuli.
    """
    known = stimuli.unique(subset="sentence", keep="first")
    lacking = ratings.join(known, on="sentence", how="anti")
    if lacking.height:
        raise BadInput(
            f"The rated sentence '{lacking['sentence'][0]}' is not one of the study's; name its run."
        )
    notes: list[str] = [SIMULATED_NOTE] if is_simulated(ratings) else []
    items = average_items(ratings).join(known, on="sentence", how="left", maintain_order="left")
    reliability = leave_one_out_reliability(ratings, rater="participant", item="sentence", cutoff=CUTOFF)
    frame = ratings.select("participant", "sentence", "rating").join(known, on="sentence", how="left")
    frame = frame.with_columns(strength=pl.col("bias").abs()).drop_nulls(("strength", "log_frequency"))
    models = {}
    formula = RATING
    if frame["noun_pair"].n_unique() < 2:
        formula = RATING.replace(" + (1 | noun_pair)", "")
        notes.append("There is one noun pair only, so that the models have no random effect of it.")
    for name, fit in MODELS.items():
        try:
            models[name] = fit(formula, frame)
        except (BadInput, np.linalg.LinAlgError) as error:
            notes.append(f"The {name} model was not fitted: {error}")
    values = reliability["reliability"].drop_nulls().to_numpy()
    summary = {
        "ratings": ratings.height,
        "raters": ratings["participant"].n_unique(),
        "items": items.height,
        "mean": float(ratings["rating"].to_numpy().mean()),
        "reliability_mean": float(values.mean()) if len(values) else None,
        "reliability_sd": float(values.std()) if len(values) else None,
        "below_cutoff": int((~reliability["kept"]).sum()),
    }
    try:
        alpha = krippendorff_alpha(ratings, item="sentence", scale="ordinal").row(0, named=True)
        summary["alpha"] = alpha["alpha"]
    except BadInput as error:
        notes.append(f"Krippendorff's alpha: {error}")
    return RatingFindings(
        summary=summary,
        counts=count_points(ratings),
        thresholds=share_thresholds(items),
        reliability=reliability,
        items=items,
        models=models,
        correlations=correlate_ratings(items, notes),
        notes=notes,
    )


def count_points(ratings: pl.DataFrame) -> pl.DataFrame:
    """How often each point of the scale was given, with its share."""
    counts = [int((ratings["rating"] == point).sum()) for point in POINTS]
    shares = [n / ratings.height for n in counts]
    return pl.DataFrame({"point": list(POINTS), "n": counts, "share": shares})


def average_items(ratings: pl.DataFrame) -> pl.DataFrame:
    """One row per sentence: ratings, mean, lowest, highest."""
    own = pl.col("rating")
    return ratings.group_by("sentence", maintain_order=True).agg(
        n=pl.len().cast(pl.Int64), mean=own.mean(), low=own.min(), high=own.max()
    )


def share_thresholds(items: pl.DataFrame) -> pl.DataFrame:
    """Per point: the share of sentences with an average at or above it, and those it was given by all."""
    rows = []
    for point in POINTS:
        unanimous = int(((items["low"] == point) & (items["high"] == point) & (items["n"] > 1)).sum())
        rows.append((point, float((items["mean"] >= point - 1e-9).to_numpy().mean()), unanimous))
    return pl.DataFrame(rows, schema=["point", "at_or_above", "all_raters"], orient="row")


def pick_examples(items: pl.DataFrame) -> pl.DataFrame:
    """Continuations by bin of bias, the best and the worst rated, without flagged ones."""
    if not {"continuation", "flagged", "bias_bin"} <= set(items.columns):
        return pl.DataFrame()
    rows: list[tuple[Any, ...]] = []
    for (lower,), part in sorted(
        items.filter(~pl.col("flagged")).drop_nulls("bias_bin").group_by("bias_bin")
    ):
        ranked = part.sort("mean", "sentence", descending=[True, False])
        for which, chosen in (("best", ranked.head(EXAMPLES)), ("worst", ranked.tail(EXAMPLES))):
            rows += [
                (lower, which, row["sentence"], row["continuation"], row["mean"])
                for row in chosen.iter_rows(named=True)
            ]
    names = ["bias_bin", "rated", "sentence", "continuation", "mean"]
    return pl.DataFrame(rows, schema=names, orient="row") if rows else pl.DataFrame()


def correlate_ratings(items: pl.DataFrame, notes: list[str]) -> pl.DataFrame:
    """Spearman correlations of the mean rating with what the model says about the same sentence.

    preference for the noun that people expect: subject preference times the sign of the bias. strength of
    preference: its absolute value. continuation: mean log-probability per token. A positive correlation
    means that the model is less sure where people find it wrong.
    """
    measures: dict[str, tuple[str, Callable[[pl.Expr], pl.Expr]]] = {
        "preference for the noun that people expect": (
            "subject_preference",
            lambda p: p * pl.col("bias").sign(),
        ),
        "strength of preference": ("subject_preference", lambda p: p.abs()),
        "mean log-probability of the continuation": ("mean_lp", lambda p: p),
        "log frequency of the verb": ("log_frequency", lambda p: p),
        "strength of bias": ("bias", lambda p: p.abs()),
    }
    rows = []
    for name, (column, take) in measures.items():
        if column not in items.columns:
            continue
        part = items.select("mean", value=take(pl.col(column))).drop_nulls()
        try:
            found = correlate(part["value"], part["mean"], method="spearman").row(0, named=True)
        except BadInput as error:
            notes.append(f"{name}: {error}")
            continue
        rows.append({"measure": name, **{key: found[key] for key in ("n", "r", "low", "high", "p")}})
    return pl.DataFrame(rows, infer_schema_length=None)
