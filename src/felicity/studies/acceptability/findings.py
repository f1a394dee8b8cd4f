"""The findings in sentences: the highest correlations, their distance from the ceiling, what context changes.

A sentence claims a difference only if its adjusted p is at most .05; otherwise there is no detectable one.
"""

from typing import Any

import polars as pl

from felicity.stats import NO_DIFFERENCE, format_p, is_detected
from felicity.studies.acceptability.correlations import CONTEXT, MEASURE, PEOPLE
from felicity.studies.acceptability.rated_rows import NONE
from felicity.studies.acceptability.ratings import label_setting
from felicity.studies.acceptability.study import AcceptabilityStudy

WORDS = {"lp": "LP", "mean_lp": "MeanLP", "pen_lp": "PenLP", "norm_lp": "NormLP", "slor": "SLOR"}


def name_measure(measure: str) -> str:
    """A measure as the paper writes it, if it has it."""
    return WORDS.get(measure, measure)


def describe_findings(study: AcceptabilityStudy) -> list[str]:
    """The answers to the questions of the study, one sentence each."""
    found = [_describe_best(study, setting) for setting in study.ratings.settings]
    for model in study.models["model"]:
        found += [_describe_measures(study, model), *_describe_contexts(study, model)]
    return [text for text in [*found, *_describe_compression(study)] if text]


def name_ratings(setting: str) -> str:
    """The ratings of a setting in a sentence, where a bare H0 would read as a null hypothesis.

    >>> name_ratings("none"), name_ratings("real")
    ('the ratings without a context (H0)', "the ratings in the context 'real' (H+)")
    """
    where = "without a context" if setting == NONE else f"in the context '{setting}'"
    return f"the ratings {where} ({label_setting(setting)})"


def _rank(correlations: pl.DataFrame) -> list[dict[str, Any]]:
    """Cells that have a correlation, the highest first: every measure is higher for better sentences."""
    known = correlations.filter(pl.col("r").is_finite())
    return known.sort("r", descending=True, maintain_order=True).to_dicts()


def _describe_best(study: AcceptabilityStudy, setting: str) -> str:
    ranked = _rank(study.correlations.filter(setting=setting))
    if not ranked:
        return ""
    best = ranked[0]
    bound = study.ceilings.filter(setting=setting, bound="UB1")
    ceiling = ""
    if len(bound):
        r = bound["r"].item()
        apart = f"{abs(r - best['r']):.3f} {'below' if best['r'] < r else 'above'} it"
        ceiling = (
            f" One person's ratings correlate with the mean of the others at {r:.3f} (UB1); this is {apart}."
        )
    sign = "" if best["r"] > 0 else " (no score correlates positively)"
    return (
        f"The highest of {len(ranked)} correlations with {name_ratings(setting)}{sign} is that of "
        f"{name_measure(best['measure'])} of {best['model']} with context '{best['context']}': r = "
        f"{best['r']:.3f}, 95% interval {best['low']:.3f} to {best['high']:.3f}, not corrected for the "
        f"choice.{ceiling}"
    )


def _describe_measures(study: AcceptabilityStudy, model: str) -> str:
    """The measure of a model with the highest correlation without a context, and which others it exceeds.

    What holds only if p is adjusted within the model is said to do so.
    """
    setting = study.ratings.settings[0]
    own = _rank(study.correlations.filter(model=model, context=NONE, setting=setting))
    if len(own) < 2:
        return ""
    best = own[0]
    tests = study.tests.filter(compares=MEASURE, model=model, context=NONE, setting=setting)
    others: dict[str, list[str]] = {"all": [], "model": [], "none": []}
    for cell in own[1:]:
        row = _find_test(tests, best["measure"], cell["measure"]) or {}
        above = best["r"] > cell["r"]
        rule = (
            "all"
            if above and is_detected(row.get("p_holm"))
            else "model"
            if above and is_detected(row.get("p_holm_within"))
            else "none"
        )
        others[rule].append(name_measure(cell["measure"]))
    told = [f"detectably above {_join(others['all'])}"] if others["all"] else []
    if others["model"]:
        told.append(
            f"above {_join(others['model'])} only if p is adjusted over the comparisons of this model and "
            "these ratings alone"
        )
    if others["none"]:
        told.append(f"with {NO_DIFFERENCE} from {_join(others['none'])}")
    return (
        f"Of the measures of {model} without a context, {name_measure(best['measure'])} has the highest "
        f"correlation with {name_ratings(setting)} (r = {best['r']:.3f}): {'; '.join(told)} (Williams' test, "
        "p Holm-adjusted over all comparisons of measures in the study)."
    )


def _describe_contexts(study: AcceptabilityStudy, model: str) -> list[str]:
    """Whether the correlation of a model that is given the raters' context differs from that without it."""
    found = []
    for setting in study.ratings.in_context:
        own = study.correlations.filter(model=model, setting=setting)
        given, bare = _rank(own.filter(context=setting)), _rank(own.filter(context=NONE))
        for best in given[:1]:
            without = next((cell for cell in bare if cell["measure"] == best["measure"]), None)
            tests = study.tests.filter(
                compares=CONTEXT, model=model, measure=best["measure"], setting=setting
            )
            row = _find_test(tests, NONE, setting)
            if without is None or row is None or row["p"] is None:
                continue
            verb = "raises" if best["r"] > without["r"] else "lowers"
            what = (
                f"the correlation of {name_measure(best['measure'])} of {model} with {name_ratings(setting)}"
            )
            detected = is_detected(row["p_holm"]) and best["r"] != without["r"]
            claim = (
                f"The context '{setting}' {verb} {what}"
                if detected
                else f"The context '{setting}' makes {NO_DIFFERENCE} to {what}"
            )
            found.append(
                f"{claim}: r = {best['r']:.3f} with it and {without['r']:.3f} without (t({row['df']}) = "
                f"{abs(row['t']):.2f}, Holm-adjusted {format_p(row['p_holm'])})."
            )
    return found


def _describe_compression(study: AcceptabilityStudy) -> list[str]:
    """How far ratings and scores spread in context, in figures: ratios are not tested."""
    found = []
    for setting in study.ratings.in_context if study.effects.height else ():
        own = study.effects.filter(context=setting)
        human = own.filter(who=PEOPLE).row(0, named=True)
        same = []
        for model in study.models["model"]:
            for cell in _rank(study.correlations.filter(model=model, context=setting, setting=setting))[:1]:
                for value in own.filter(who=model, measure=cell["measure"]).head(1).to_dicts():
                    same.append(f"{model} ({name_measure(cell['measure'])}) {value['sd_ratio']:.2f}")
        models = f" For models: {', '.join(same)}." if same else ""
        found.append(
            f"In the context '{setting}' the SD of people's mean ratings is {human['sd_ratio']:.2f} times "
            f"that without (slope {human['slope']:.2f}; below 1 ratings are compressed; not tested).{models}"
        )
    return found


def _find_test(tests: pl.DataFrame, first: str, second: str) -> dict[str, Any] | None:
    both = (pl.col("first") == first) & (pl.col("second") == second)
    swapped = (pl.col("first") == second) & (pl.col("second") == first)
    found = tests.filter(both | swapped)
    return found.row(0, named=True) if len(found) else None


def _join(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
