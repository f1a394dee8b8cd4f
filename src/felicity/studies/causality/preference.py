"""Which of two nouns a model expects next: surprisal, agreement with people's bias, mixed models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from felicity.core.contrasts import Contrast
from felicity.core.errors import BadInput
from felicity.core.units import NATS_PER_BIT
from felicity.data import find_entry
from felicity.design import build_requests
from felicity.run import Plan
from felicity.stats import bootstrap_mean, compare_conclusions, fit_lmm, wilson_interval
from felicity.studies.causality.stimuli import FEMALE, MALE, StimulusSet

BIN_WIDTH, BINS, LOWEST = 20, 10, -100
SUBJECT, OBJECT = "subject", "object"
CONTRASTS = (
    Contrast(name="subject_biased", better=SUBJECT, worse=(OBJECT,), phenomenon="subject_biased"),
    Contrast(name="object_biased", better=OBJECT, worse=(SUBJECT,), phenomenon="object_biased"),
)
PREFERENCE = "subject_preference ~ bias * subject_male + (1 | noun_pair)"
QUADRATIC = "subject_preference ~ (bias + I(bias ** 2)) * subject_male + (1 | noun_pair)"
# Verbs are what the study generalizes over. Slopes are kept where they converge and are not singular: bias
# varies between verbs, so that only gender has a slope by verb.
BY_VERB = "preference by verb"
MAXIMAL = tuple(
    f"subject_preference ~ bias * subject_male + {random}"
    for random in (
        "(1 + bias * subject_male | noun_pair) + (1 + subject_male | verb)",
        "(1 | noun_pair) + (1 + subject_male | verb)",
        "(1 | noun_pair) + (1 | verb)",
    )
)
RESIDUALS = "squared_residual ~ log_frequency + (1 + log_frequency | noun_pair)"


def plan_preference(stimuli: StimulusSet, *, seed: int, options: dict[str, Any]) -> Plan:
    """Both texts after every prompt, judged by the verb's bias; verbs without one are scored only."""
    rows = stimuli.rows
    sign = pl.col("bias").fill_null(0.0).sign()
    phenomenon = (
        pl.when(sign > 0).then(pl.lit("subject_biased")).when(sign < 0).then(pl.lit("object_biased"))
    ).otherwise(pl.lit("unbiased"))
    parts = [
        rows.select(
            "item",
            suite=pl.col("verb"),
            phenomenon=phenomenon,
            condition=pl.lit(side),
            text=pl.col(f"{side}_text"),
            context_text=pl.col("prompt"),
        )
        for side in (SUBJECT, OBJECT)
    ]
    items = pl.concat(parts).sort("item", maintain_order=True)
    requests, contexts = build_requests(items)
    return Plan(
        dataset=stimuli.name,
        stimuli=items,
        items=items,
        requests=requests,
        contexts=contexts,
        tables={"items": items, "contexts": contexts, "requests": requests},
        rule="contrast",
        measures=("lp",),
        contrasts=CONTRASTS,
        score=find_entry("implicit_causality").methods["pronoun"].score,
        seed=seed,
        options=options | {"seed": seed, "stimuli": stimuli.key},
    )


def tabulate_preference(stimuli: pl.DataFrame, requests: pl.DataFrame, scores: pl.DataFrame) -> pl.DataFrame:
    """One row per stimulus: surprisal of both texts in bits, and the subject preference.

    Subject preference is the surprisal of the text for the object minus that of the text for the subject.
    """
    values = requests.select("request", "item", "condition").join(
        scores.filter(measure="lp").select("request", "value"), on="request"
    )
    wide = values.with_columns(surprisal=-pl.col("value") / NATS_PER_BIT).pivot(
        on="condition", index="item", values="surprisal"
    )
    found = stimuli.join(wide, on="item", how="left", maintain_order="left")
    return add_figures(
        found.rename(
            {f"{SUBJECT}_right": "surprisal_subject", f"{OBJECT}_right": "surprisal_object"}
        ).with_columns(subject_preference=pl.col("surprisal_object") - pl.col("surprisal_subject"))
    )


def add_figures(table: pl.DataFrame) -> pl.DataFrame:
    """The columns that the analyses need: gender as a number, the bin of the bias, and the match with it.

    match: whether preference and bias have the same sign; null for a bias of 0, which predicts nothing, and
    where there is no preference, both texts being impossible for the model.
    """
    # polars takes NaN for larger than any number.
    table = table.with_columns(pl.col("subject_preference").fill_nan(None))
    match = (pl.col("subject_preference") * pl.col("bias") > 0).cast(pl.Float64)
    return table.with_columns(
        subject_male=(pl.col("subject_gender") == MALE).cast(pl.Int64),
        bias_bin=find_bin(pl.col("bias")),
        match=pl.when(pl.col("bias") == 0).then(None).otherwise(match),
    )


def find_bin(bias: pl.Expr) -> pl.Expr:
    """The left-closed bin of a bias, named by its lower end; 100 is in the last bin."""
    number = ((bias - LOWEST) / BIN_WIDTH).floor().clip(0, BINS - 1)
    return (number * BIN_WIDTH + LOWEST).cast(pl.Int64)


def draw_agreement(table: pl.DataFrame) -> pl.DataFrame:
    """Figure 1: agreement with the bias by bin and subject gender, counted in two ways.

    counting: `without bias 0` leaves verbs of bias 0 out; `bias 0 wrong` counts them as wrong, as the authors
    do. Intervals are Wilson's within a bin; over all bins whole verbs are resampled, since the prompts of one
    verb are not independent: where a model expects one gender everywhere, one order of a verb matches and the
    other does not.
    """
    known = table.drop_nulls("bias").filter(pl.col("subject_gender") != pl.col("object_gender"))
    rows = []
    for counting in ("without bias 0", "bias 0 wrong"):
        counted = known.drop_nulls("match") if counting == "without bias 0" else known
        counted = counted.with_columns(pl.col("match").fill_null(0.0))
        groups = [(gender, counted.filter(subject_gender=gender)) for gender in ("m", "f")]
        for gender, part in [*groups, ("all", counted)]:
            for (lower,), cell in sorted(part.group_by("bias_bin")):
                rows.append(_agreement(counting, gender, int(lower), cell))
            if part.height:
                rows.append(_agreement(counting, gender, None, part))
    return pl.DataFrame(rows, infer_schema_length=None)


def _agreement(counting: str, gender: str, lower: int | None, cell: pl.DataFrame) -> dict[str, Any]:
    right, n = float(cell["match"].sum()), cell.height
    low, high = _interval(cell["match"], cell["verb"]) if lower is None else wilson_interval(right, n)
    return {
        "counting": counting,
        "subject_gender": gender,
        "bias_bin": lower,
        "n": n,
        "matching": int(right),
        "agreement": right / n,
        "low": low,
        "high": high,
    }


def count_pronouns(table: pl.DataFrame, pronouns: Mapping[str, str]) -> pl.DataFrame:
    """How often the model expects the pronoun that it expects more often, by gender of the subject.

    A model that follows the bias alone expects each pronoun after half of the prompts, since both orders of
    every noun pair are there; one that follows the gender alone expects one pronoun after all of them.
    Intervals resample whole verbs.
    """
    known = table.filter(
        pl.col("subject_preference") != 0, pl.col("subject_gender") != pl.col("object_gender")
    ).with_columns(male=(pl.col("subject_preference") > 0) == (pl.col("subject_male") == 1))
    if known.is_empty():
        return pl.DataFrame()
    male = float(known["male"].cast(pl.Float64).to_numpy().mean()) >= 0.5
    chosen = known.with_columns(chosen=(pl.col("male") == male).cast(pl.Float64))
    rows = []
    for gender in (MALE, FEMALE, "all"):
        part = chosen if gender == "all" else chosen.filter(subject_gender=gender)
        if part.height:
            low, high = _interval(part["chosen"], part["verb"])
            told = {"subject_gender": gender, "pronoun": pronouns[MALE if male else FEMALE], "n": part.height}
            rows.append(
                told
                | {"expected": int(part["chosen"].sum()), "share": float(part["chosen"].to_numpy().mean())}
                | {"low": low, "high": high}
            )
    return pl.DataFrame(rows)


def explain_variance(table: pl.DataFrame) -> pl.DataFrame:
    """The share of the variance of subject preference that gender and bias explain, each alone.

    The squared correlation with the gender of the subject and with the bias of the verb. Every verb has both
    orders of each noun pair, so that the two are not correlated and their shares add up.
    """
    known = table.drop_nulls(("bias", "subject_preference")).filter(
        pl.col("subject_gender") != pl.col("object_gender"), pl.col("subject_preference").is_finite()
    )
    values = known["subject_preference"].to_numpy()
    rows = []
    for source, column in (("gender", "subject_male"), ("bias", "bias")):
        other = known[column].cast(pl.Float64).to_numpy()
        if len(values) > 1 and np.ptp(values) > 0 and np.ptp(other) > 0:
            r2 = float(np.corrcoef(values, other)[0, 1]) ** 2
            rows.append({"source": source, "n": known.height, "r2": r2})
    return pl.DataFrame(rows)


def _interval(passed: pl.Series, verbs: pl.Series) -> tuple[float, float]:
    """A 95% interval of a share over verbs; Wilson's over prompts if there is one verb, or all are alike."""
    low, high = wilson_interval(float(passed.sum()), len(passed))
    clusters = verbs.rank("dense").cast(pl.Int64).to_numpy() - 1
    if clusters.max() > 0:
        found = bootstrap_mean(passed.to_numpy(), clusters=clusters)
        # Verbs that are all alike say nothing about their spread.
        if found.se > 0:
            low, high = max(found.low, 0.0), min(found.high, 1.0)
    return low, high


def average_noun_pairs(table: pl.DataFrame) -> pl.DataFrame:
    """Mean preference by noun pair and bin of the verb's bias."""
    known = table.drop_nulls("bias_bin")
    pairs = known.group_by("noun_pair", maintain_order=True).agg(
        pl.concat_str("subject", "object", separator=" / ").first().alias("nouns")
    )
    return (
        known.join(pairs, on="noun_pair", how="left", maintain_order="left")
        .group_by("noun_pair", "nouns", "bias_bin", maintain_order=True)
        .agg(pl.len().cast(pl.Int64).alias("n"), pl.col("subject_preference").mean())
        .sort("bias_bin", maintain_order=True)
    )


def average_verbs(table: pl.DataFrame) -> pl.DataFrame:
    """One row per verb and subject gender: bias, mean preference, agreement."""
    return (
        table.group_by("verb", "subject_gender", maintain_order=True)
        .agg(
            pl.col("bias").first(),
            pl.col("log_frequency").first(),
            pl.len().cast(pl.Int64).alias("n"),
            pl.col("subject_preference").mean(),
            pl.col("match").mean().alias("agreement"),
        )
        .sort("verb", "subject_gender")
    )


@dataclass(frozen=True)
class PreferenceModels:
    """Fitted models by name, and sentences about those that could not be fitted."""

    models: dict[str, Any]
    notes: list[str]


def fit_preference(table: pl.DataFrame) -> PreferenceModels:
    """The paper's two mixed models; beside the first, one with verbs as random effects and a quadratic one.

    The paper's model takes the prompts of a verb as independent. A note says which conclusions change if
    verbs are random effects, with the slopes that the data allow. preference: subject preference on bias by
    gender of the subject. residuals: squared residuals of the first on log frequency, with slopes by noun
    pair.
    """
    known = table.drop_nulls(("bias", "subject_preference")).filter(
        pl.col("subject_gender") != pl.col("object_gender")
    )
    models: dict[str, Any] = {}
    notes: list[str] = []
    for name, formula in (("preference", PREFERENCE), ("quadratic", QUADRATIC)):
        _attempt(models, notes, name, formula, known)
    if "preference" in models:
        _fit_by_verb(models, notes, known)
        squared = pl.Series("squared_residual", models["preference"].residuals ** 2)
        counted = known.with_columns(squared).drop_nulls("log_frequency")
        _attempt(models, notes, "residuals", RESIDUALS, counted)
    return PreferenceModels(models, notes)


def _fit_by_verb(models: dict[str, Any], notes: list[str], known: pl.DataFrame) -> None:
    """The fullest of MAXIMAL that converges without being singular, or the last."""
    refused: list[str] = []
    for formula in MAXIMAL:
        models.pop(BY_VERB, None)
        _attempt(models, refused, BY_VERB, formula, known)
        if BY_VERB in models and models[BY_VERB].converged and not models[BY_VERB].singular:
            break
    if BY_VERB not in models:
        notes += refused[-1:]
        return
    plain, fuller = models["preference"], models[BY_VERB]
    said = compare_conclusions(plain.fixed, fuller.fixed, against="the paper's model, which has no verbs")
    notes.append(f"With verbs as random effects ({fuller.formula}): {said[0].lower()}{said[1:]}")


def _attempt(models: dict[str, Any], notes: list[str], name: str, formula: str, frame: pl.DataFrame) -> None:
    try:
        models[name] = fit_lmm(formula, frame)
    except (BadInput, np.linalg.LinAlgError) as error:
        notes.append(f"The model '{name}' was not fitted: {error}")


def describe_models(models: Mapping[str, Any]) -> pl.DataFrame:
    """Every fixed effect of every model, with R2, n, and whether the fit is singular."""
    parts = [
        fitted.fixed.select(
            pl.lit(name).alias("model"),
            pl.lit(fitted.formula).alias("formula"),
            "term",
            "estimate",
            "se",
            pl.col("df").cast(pl.Float64)
            if "df" in fitted.fixed.columns
            else pl.lit(None, pl.Float64).alias("df"),
            "statistic",
            "p",
            "low",
            "high",
            pl.lit(fitted.n).alias("n"),
            pl.lit(fitted.r2_marginal).alias("r2_marginal"),
            pl.lit(fitted.r2_conditional).alias("r2_conditional"),
            pl.lit(fitted.singular).alias("singular"),
        )
        for name, fitted in models.items()
    ]
    return pl.concat(parts) if parts else pl.DataFrame()


def predict_curves(fitted: Any, *, quadratic: bool) -> pl.DataFrame:
    """The preference that a model predicts by bias and gender of the subject, with 95% intervals."""
    terms = fitted.fixed["term"].to_list()
    estimate = fitted.fixed["estimate"].to_numpy()
    rows = []
    for gender, male in (("m", 1.0), ("f", 0.0)):
        for bias in range(LOWEST, -LOWEST + 1, BIN_WIDTH // 2):
            design = np.array([_value(term, float(bias), male) for term in terms])
            centre = float(design @ estimate)
            spread = 1.959963984540054 * float(np.sqrt(design @ fitted.vcov @ design))
            rows.append((gender, bias, centre, centre - spread, centre + spread))
    names = ["subject_gender", "bias", "preference", "low", "high"]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(quadratic=pl.lit(quadratic))


def _value(term: str, bias: float, male: float) -> float:
    """The value of a term of the formula, such as `I(bias ** 2):subject_male`."""
    value = 1.0
    for part in term.split(":"):
        if part == "subject_male":
            value *= male
        elif part == "bias":
            value *= bias
        elif part.startswith("I("):
            value *= bias**2
    return value
