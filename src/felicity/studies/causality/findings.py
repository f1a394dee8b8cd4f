"""The paper's findings, each with whether a model shows it: a claim, a verdict, and a sentence."""

from typing import NamedTuple

import polars as pl

from felicity.core.wording import format_p, is_detected, percent, share_interval
from felicity.report import count, decimal
from felicity.studies.causality.preference import BY_VERB

FOUND, REVERSED, ABSENT = "found", "the other way round", "no detectable difference"
COUNTED = "without bias 0"
DIGITS = 5


class Finding(NamedTuple):
    """A finding of the paper, the verdict by the paper's own test, the figures behind it, and a sentence.

    The sentence states what holds with verbs as random effects, if that model was fitted.
    """

    claim: str
    verdict: str
    figures: str
    sentence: str


class Claim(NamedTuple):
    """A term of a mixed model, the sign that the paper found, and what each verdict is in words."""

    model: str
    term: str
    sign: int
    found: str
    reversed: str
    absent: str

    def say(self, verdict: str) -> str:
        """The verdict as a sentence without its end."""
        return {FOUND: self.found, REVERSED: self.reversed}.get(verdict, self.absent)


PREFERENCE_CLAIMS = (
    Claim(
        "preference",
        "bias",
        1,
        "The more a verb is biased to its subject, the more the model expects the subject",
        "The more a verb is biased to its subject, the less the model expects the subject",
        "No detectable difference in preference between verbs of subject and of object bias",
    ),
    Claim(
        "preference",
        "bias:subject_male",
        1,
        "The effect of bias is stronger where the subject is male",
        "The effect of bias is weaker where the subject is male",
        "No detectable difference in the effect of bias between male and female subjects",
    ),
    Claim(
        "residuals",
        "log_frequency",
        -1,
        "The fit is better for frequent verbs",
        "The fit is worse for frequent verbs",
        "No detectable difference in fit between frequent and rare verbs",
    ),
)
RATING_CLAIMS = (
    Claim(
        "linear",
        "center(strength)",
        1,
        "Continuations of strongly biased verbs are rated higher",
        "Continuations of strongly biased verbs are rated lower",
        "No detectable difference in ratings between strongly and weakly biased verbs",
    ),
    Claim(
        "linear",
        "scale(log_frequency)",
        -1,
        "Continuations of frequent verbs are rated lower",
        "Continuations of frequent verbs are rated higher",
        "No detectable difference in ratings between frequent and rare verbs",
    ),
    Claim(
        "linear",
        "center(strength):scale(log_frequency)",
        -1,
        "The effect of bias on ratings is smaller for frequent verbs",
        "The effect of bias on ratings is larger for frequent verbs",
        "No detectable difference in the effect of bias on ratings between frequent and rare verbs",
    ),
)


def judge_share(low: float, high: float) -> str:
    """The verdict on a share with this 95% interval: above chance, below it, or neither.

    >>> judge_share(0.53, 0.58), judge_share(0.49, 0.55)
    ('found', 'no detectable difference')
    """
    return FOUND if low > 0.5 else REVERSED if high < 0.5 else ABSENT


def check_preference(models: pl.DataFrame, agreement: pl.DataFrame) -> list[Finding]:
    """What the paper says about surprisal: above chance, bias, gender, their interaction, frequency.

    models: the rows of `describe_models` of one language model; agreement: its rows of `draw_agreement`.
    """
    found = []
    overall = agreement.filter(pl.col("bias_bin").is_null(), subject_gender="all", counting=COUNTED)
    if overall.height:
        row = overall.row(0, named=True)
        verdict = judge_share(row["low"], row["high"])
        figures = f"{share_interval(row['agreement'], row['low'], row['high'])} of {count(row['n'])}"
        said = {FOUND: "more often than chance", REVERSED: "less often than chance"}
        found.append(
            Finding(
                "The model prefers the noun that people hold responsible more often than chance.",
                verdict,
                figures,
                f"The model prefers the noun that people hold responsible "
                f"{said.get(verdict, 'with no detectable difference from chance')}: {figures}.",
            )
        )
    fitted = set(models["model"]) if models.width else set()
    for claim in PREFERENCE_CLAIMS:
        if claim.model in fitted:
            checked = _check_claim(models, claim)
            if claim.model == "preference" and BY_VERB in fitted:
                fuller = _check_claim(models, claim._replace(model=BY_VERB))
                beside = f"; with verbs as random effects {fuller.figures}: {fuller.verdict}"
                checked = checked._replace(figures=checked.figures + beside, sentence=fuller.sentence)
            found.append(checked)
    return found


def check_ratings(models: pl.DataFrame, thresholds: pl.DataFrame) -> list[Finding]:
    """What the paper says about the ratings; models: the rows of `describe_models` of them."""
    half = float(thresholds.filter(point=3)["at_or_above"][0])
    figures = f"{percent(half)}% at or above 3 (paper: 54.6%); half is taken as 40% to 60%"
    found = [
        Finding(
            "About half of the continuations are rated in the middle of the scale or above.",
            FOUND if 0.4 <= half <= 0.6 else "not so",
            figures,
            f"{percent(half)}% of the continuations are rated in the middle of the scale or above.",
        )
    ]
    fitted = set(models["model"]) if models.width else set()
    return found + [_check_claim(models, claim) for claim in RATING_CLAIMS if claim.model in fitted]


def _check_claim(models: pl.DataFrame, claim: Claim) -> Finding:
    rows = models.filter(model=claim.model, term=claim.term)
    if rows.is_empty():
        return Finding(f"{claim.found}.", "not tested", f"{claim.term} is not in the model", "")
    row = rows.row(0, named=True)
    same = row["estimate"] * claim.sign > 0
    verdict = ABSENT if not is_detected(row["p"]) else FOUND if same else REVERSED
    singular = "; the fit is singular" if row["singular"] else ""
    estimate, se = decimal(row["estimate"], DIGITS), decimal(row["se"], DIGITS)
    figures = f"estimate {estimate} (SE {se}), {format_p(row['p'])}{singular}"
    return Finding(f"{claim.found}.", verdict, figures, f"{claim.say(verdict)}: {figures}.")
