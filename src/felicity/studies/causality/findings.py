"""The paper's findings, each with whether a model shows it: one sentence, one verdict."""

from typing import Any, NamedTuple

import polars as pl

from felicity.core.wording import format_p, is_detected
from felicity.studies.causality.preference import BY_VERB
from felicity.studies.causality.ratings import RatingFindings

FOUND, REVERSED, ABSENT = "found", "the other way round", "no detectable effect"


class Finding(NamedTuple):
    """A finding of the paper, the verdict, and the figures behind it."""

    claim: str
    verdict: str
    figures: str


def check_preference(models: dict[str, Any], agreement: pl.DataFrame) -> list[Finding]:
    """What the paper says about surprisal: bias, gender, their interaction, frequency, and above chance."""
    found = []
    overall = agreement.filter(pl.col("bias_bin").is_null(), subject_gender="all", counting="without bias 0")
    if overall.height:
        row = overall.row(0, named=True)
        verdict = FOUND if row["low"] > 0.5 else REVERSED if row["high"] < 0.5 else ABSENT
        found.append(
            Finding(
                "The model prefers the noun that people hold responsible more often than chance.",
                verdict,
                f"{100 * row['agreement']:.1f}% of {row['n']:,} (95% CI {100 * row['low']:.1f} to "
                f"{100 * row['high']:.1f})",
            )
        )
    claims = (
        ("preference", "bias", 1, "The more a verb is biased to its subject, the more the model expects it."),
        ("preference", "bias:subject_male", 1, "The effect of bias is stronger where the subject is male."),
        ("residuals", "log_frequency", -1, "The fit is better for frequent verbs."),
    )
    for model, term, sign, claim in claims:
        if model in models:
            checked = _check_term(models[model], term, sign, claim)
            if model == "preference" and BY_VERB in models:
                fuller = _check_term(models[BY_VERB], term, sign, claim)
                beside = f"; with verbs as random effects {fuller.figures}: {fuller.verdict}"
                checked = checked._replace(figures=checked.figures + beside)
            found.append(checked)
    return found


def check_ratings(ratings: RatingFindings) -> list[Finding]:
    """What the paper says about the ratings."""
    found = []
    half = ratings.thresholds.filter(point=3)["at_or_above"][0]
    found.append(
        Finding(
            "About half of the continuations are rated in the middle of the scale or above.",
            FOUND if 0.4 <= half <= 0.6 else "not so",
            f"{100 * half:.1f}% at or above 3 (paper: 54.6%); half is taken as 40% to 60%",
        )
    )
    claims = (
        ("center(strength)", 1, "Continuations of strongly biased verbs are rated higher."),
        ("scale(log_frequency)", -1, "Continuations of frequent verbs are rated lower."),
        ("center(strength):scale(log_frequency)", -1, "The effect of bias is smaller for frequent verbs."),
    )
    if "linear" in ratings.models:
        for term, sign, claim in claims:
            found.append(_check_term(ratings.models["linear"], term, sign, claim))
    return found


def _check_term(fitted: Any, term: str, sign: int, claim: str) -> Finding:
    rows = fitted.fixed.filter(term=term)
    if rows.is_empty():
        return Finding(claim, "not tested", f"{term} is not in the model")
    row = rows.row(0, named=True)
    same = row["estimate"] * sign > 0
    verdict = ABSENT if not is_detected(row["p"]) else FOUND if same else REVERSED
    singular = "; the fit is singular" if fitted.singular else ""
    figures = f"estimate {row['estimate']:.5f} (SE {row['se']:.5f}), {format_p(row['p'])}{singular}"
    return Finding(claim, verdict, figures)
