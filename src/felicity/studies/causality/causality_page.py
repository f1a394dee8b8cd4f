"""The page about implicit causality: whether models expect the noun that people hold responsible.

A flagged continuation is counted on the page, but its text is never shown.
"""

from functools import partial
from typing import Any

import polars as pl

from felicity.core.schemas import SIMULATED_NOTE
from felicity.core.wording import share_interval
from felicity.report import Figure, Page, Section, count, percent
from felicity.report.charts import SeriesPoint, chart_bands
from felicity.studies.causality.findings import (
    ABSENT,
    COUNTED,
    FOUND,
    REVERSED,
    Finding,
    check_preference,
    check_ratings,
    judge_share,
)
from felicity.studies.causality.preference import BIN_WIDTH
from felicity.studies.causality.preference_sections import GENDERS, link_prompts, show_preference
from felicity.studies.causality.text_sections import show_continuations, show_ratings
from felicity.studies.study import Study

HERO = "agreement"
# How the table of findings calls what people's ratings say.
RATINGS = "Ratings"
CHANCE = {
    FOUND: "more often than chance",
    REVERSED: "less often than chance",
    ABSENT: "no detectable difference from chance",
}
# Of the variance that gender and bias explain, the share from which a preference is "almost only" gender.
ALMOST_ONLY = 0.9


def sections(study: Study) -> Page:
    """The answer, agreement by bias and gender with chance, then everything it rests on."""
    unrated = [*show_preference(study), *show_continuations(study)]
    return Page(
        title="Implicit causality",
        subject=study.facts["stimuli"],
        question="Do models expect the noun that people hold responsible?",
        answer=_answer(study),
        hero=_hero(study) if "agreement" in study.tables else None,
        sure=_doubts(study),
        findings=(*_ranges(study), *_tell(study)),
        sections=(_claims(study), *unrated, *show_ratings(study)),
        legend="Subject preference is the surprisal, in bits, of the pronoun for the object minus that of "
        "the pronoun for the subject. Agreement is the share of prompts whose preference has the sign of the "
        "verb's bias, as people's norms give it; chance is 50%. Verbs of bias 0 predict nothing: our "
        "counting leaves them out (ours), that of Huynh et al. (2022) counts them as wrong (authors').",
        summary="agreement",
        simulated=SIMULATED_NOTE in study.notes,
        unrated=(HERO, *(figure.name for section in unrated for figure in section.figures)),
    )


def _overall(study: Study, lm: str) -> dict[str, Any] | None:
    """Agreement of a model over all bins."""
    if "agreement" not in study.tables:
        return None
    rows = study["agreement"].filter(
        pl.col("bias_bin").is_null(), lm=lm, counting=COUNTED, subject_gender="all"
    )
    return rows.row(0, named=True) if rows.height else None


def _explained(study: Study, lm: str) -> dict[str, float]:
    """The shares of variance that gender and bias explain."""
    if "variance" not in study.tables:
        return {}
    return dict(study["variance"].filter(lm=lm).select("source", "r2").iter_rows())


def _follows_gender(study: Study, lm: str) -> bool:
    """Whether nearly all that gender and bias explain of a preference is explained by gender."""
    r2 = _explained(study, lm)
    return len(r2) == 2 and r2["gender"] >= ALMOST_ONLY * (r2["gender"] + r2["bias"])


def _answer(study: Study) -> str:
    if len(study.models) > 1:
        return _answer_several(study)
    lm = study.models[0]
    row = _overall(study, lm)
    if row is None:
        return f"It cannot be said: no verb that {lm} was asked about has a bias."
    verdict = judge_share(row["low"], row["high"])
    agreed = share_interval(row["agreement"], row["low"], row["high"])
    share = f"{lm} expects it after {agreed} of the prompts, {CHANCE[verdict]}"
    r2 = _explained(study, lm)
    if len(r2) < 2 or r2["gender"] <= r2["bias"]:
        return f"{'Yes' if verdict == FOUND else 'No'}: {share}."
    almost = _follows_gender(study, lm)
    yes = "Hardly" if almost else "Yes"
    return (
        f"{yes if verdict == FOUND else 'No'}: {share}; its preference is "
        f"{'almost only' if almost else 'mostly'} the pronoun's gender, which explains "
        f"{percent(r2['gender'])}% of its variance, the verb's bias {percent(r2['bias'])}%."
    )


def _answer_several(study: Study) -> str:
    """The models by verdict, with their agreement."""
    named: dict[str, list[str]] = {}
    for lm in study.models:
        row = _overall(study, lm)
        if row is None:
            continue
        told = CHANCE[judge_share(row["low"], row["high"])]
        if _follows_gender(study, lm):
            told = "almost only by the pronoun's gender"
        named.setdefault(told, []).append(f"{lm} ({percent(row['agreement'])}%)")
    listed = "; ".join(f"{told}: {', '.join(models)}" for told, models in named.items())
    return f"By agreement with people: {listed}." if listed else "It cannot be said: no verb has a bias."


def _ranges(study: Study) -> list[str]:
    """Which pronoun a model that follows gender expects, and how far that moves its agreement."""
    found = []
    for lm in study.models:
        if _overall(study, lm) is None or not _follows_gender(study, lm):
            continue
        cells = study["agreement"].filter(pl.col("bias_bin").is_not_null(), lm=lm, counting=COUNTED)
        ends = []
        for gender, name in GENDERS.items():
            ranked = cells.filter(subject_gender=gender).sort("bias_bin")["agreement"].to_list()
            if ranked:
                ends.append(f"from {percent(ranked[0])}% to {percent(ranked[-1])}% with a {name}")
        expected = {row["subject_gender"]: row for row in study["pronouns"].filter(lm=lm).to_dicts()}
        often = " and ".join(
            f"{percent(expected[gender]['share'])}% of the prompts with a {name}"
            for gender, name in GENDERS.items()
            if gender in expected
        )
        found.append(
            f"{lm} expects “{expected['all']['pronoun']}” after {often}; agreement goes "
            f"{' and '.join(ends)}, from verbs of strong object bias to verbs of strong subject bias."
        )
    return found


def _checked(study: Study) -> list[tuple[str, Finding]]:
    """Every finding of the paper with the model, or the ratings, that it was checked on."""
    mixed = study.tables.get("mixed_models", pl.DataFrame())
    found = []
    for lm in study.models:
        own = mixed.filter(lm=lm) if mixed.width else mixed
        if _overall(study, lm) is not None:
            agreement = study["agreement"].filter(lm=lm)
            found += [(lm, finding) for finding in check_preference(own, agreement)]
    if "rating_thresholds" in study.tables:
        models = study.tables.get("rating_models", pl.DataFrame())
        found += [(RATINGS, finding) for finding in check_ratings(models, study["rating_thresholds"])]
    return found


def _tell(study: Study) -> list[str]:
    """The findings as sentences, claim by claim; that against chance is the answer."""
    several = len(study.models) > 1
    checked = [(lm, one) for lm, one in _checked(study) if one.sentence and "than chance" not in one.claim]
    order = list(dict.fromkeys(one.claim for _, one in checked))
    checked.sort(key=lambda pair: order.index(pair[1].claim))
    return [
        f"{lm}: {one.sentence[0].lower()}{one.sentence[1:]}" if several or lm == RATINGS else one.sentence
        for lm, one in checked
    ]


def _hero(study: Study) -> Figure:
    """Agreement by bias and gender of the subject, with chance; one panel per model."""
    cells = study["agreement"].filter(
        pl.col("bias_bin").is_not_null(), pl.col("subject_gender") != "all", counting=COUNTED
    )
    steps = [
        SeriesPoint(
            row["lm"],
            GENDERS[row["subject_gender"]],
            row["bias_bin"] + BIN_WIDTH / 2,
            100 * row["agreement"],
            100 * row["low"],
            100 * row["high"],
            link_prompts(study, row["lm"], row["bias_bin"], row["subject_gender"]),
        )
        for row in cells.sort("bias_bin", maintain_order=True).iter_rows(named=True)
    ]
    return Figure(
        name=HERO,
        title="Agreement with people by bias of the verb and gender of the subject",
        subtitle="middle of each bin of bias; dashed: chance, 50%",
        label="Share of prompts after which each model expects the noun that people hold responsible, by "
        "bias of the verb and gender of the subject, with 95% intervals; the table of agreement has the "
        "numbers.",
        chart=partial(
            chart_bands,
            steps,
            x_title="bias of the verb (negative: to the object)",
            y_title="agreement (%)",
            level=50.0,
            signed=False,
        ),
    )


def _doubts(study: Study) -> tuple[str, ...]:
    stimuli = study.place.read("stimuli")
    told = [
        f"{count(stimuli.height)} prompts with {count(stimuli['verb'].n_unique())} verbs. The interval over "
        "all bins resamples whole verbs, whose prompts are not independent; within a bin it is Wilson's over "
        "prompts, which is too narrow with many noun pairs.",
    ]
    mixed = study.tables.get("mixed_models")
    if mixed is not None:
        told.append(
            "Effects are those of mixed models with verbs as random effects if that model can be fitted; "
            "the table of findings gives the paper's own model, which takes prompts of a verb as "
            "independent, beside it. p-values are not adjusted."
        )
        singular = mixed.filter(pl.col("singular")).select("lm", "model").unique(maintain_order=True).rows()
        if singular:
            named = ", ".join(f"{model} ({lm})" for lm, model in singular)
            told.append(f"Singular fits, whose tests are doubtful: {named}.")
    return tuple(told)


def _claims(study: Study) -> Section:
    return Section(
        name="findings",
        title="The paper's findings",
        lede="Whether each finding of Huynh et al. (2022) holds here, at the level .05.",
        columns=("Model", "Finding", "Here", "Figures"),
        rows=tuple((lm, one.claim, one.verdict, one.figures) for lm, one in _checked(study)),
        names=4,
    )
