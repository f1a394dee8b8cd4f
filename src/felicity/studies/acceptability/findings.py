"""The findings in sentences: which measure is best, how far it is from the ceiling, whether context helps."""

from typing import Any

import polars as pl

from felicity.stats import format_p
from felicity.studies.acceptability.correlations import CONTEXT, MEASURE, PEOPLE
from felicity.studies.acceptability.rated_rows import NONE
from felicity.studies.acceptability.ratings import label_setting
from felicity.studies.acceptability.study import AcceptabilityStudy

ALPHA = 0.05
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


def _describe_best(study: AcceptabilityStudy, setting: str) -> str:
    best = study.correlations.filter(setting=setting).sort("r", descending=True).row(0, named=True)
    bound = study.ceilings.filter(setting=setting, bound="UB1")
    ceiling = ""
    if len(bound):
        r = bound["r"].item()
        ceiling = (
            f"; one person's ratings correlate with the mean of the others at {r:.3f} (UB1), so the best "
            "score is " + (f"{r - best['r']:.3f} below" if best["r"] < r else f"{best['r'] - r:.3f} above")
        )
    return (
        f"{label_setting(setting)} is predicted best by {name_measure(best['measure'])} of {best['model']} "
        "with "
        f"context '{best['context']}': r = {best['r']:.3f}, 95% interval {best['low']:.3f} to "
        f"{best['high']:.3f}"
        f"{ceiling}."
    )


def _describe_measures(study: AcceptabilityStudy, model: str) -> str:
    """The best measure of a model without a context, and which others it significantly beats.

    What holds only if p is adjusted within the model is said to do so.
    """
    setting = study.ratings.settings[0]
    own = study.correlations.filter(model=model, context=NONE, setting=setting).sort("r", descending=True)
    if len(own) < 2:
        return ""
    best = str(own["measure"][0])
    tests = study.tests.filter(compares=MEASURE, model=model, context=NONE, setting=setting)
    others = [row for name in own["measure"][1:] if (row := _find_test(tests, best, str(name)))]
    beaten = [row for row in others if row["p"] is not None and row["p_holm"] <= ALPHA]
    within = [row for row in others if row["p"] is not None and row["p_holm_within"] <= ALPHA < row["p_holm"]]
    told = (
        f"which is significantly more than {_name_others(beaten, best)}"
        if beaten
        else "not significantly more than any other"
    )
    alone = (
        f"; with p adjusted over the comparisons of this model and {label_setting(setting)} alone, it is "
        f"{'also ' if beaten else ''}significantly above {_name_others(within, best)}"
        if within
        else ""
    )
    return (
        f"Of the measures of {model} without a context, {name_measure(best)} correlates most strongly with "
        f"{label_setting(setting)} (r = {own['r'][0]:.3f}), {told} (Williams' test, p Holm-adjusted over all "
        f"comparisons of measures in the study){alone}."
    )


def _name_others(tests: list[dict[str, Any]], best: str) -> str:
    return _join([name_measure(row["second"] if row["first"] == best else row["first"]) for row in tests])


def _describe_contexts(study: AcceptabilityStudy, model: str) -> list[str]:
    """Whether a model that is given the raters' context predicts their ratings better than without it."""
    found = []
    for setting in study.ratings.in_context:
        own = study.correlations.filter(model=model, setting=setting)
        given, bare = own.filter(context=setting), own.filter(context=NONE)
        if given.is_empty() or bare.is_empty():
            continue
        best = given.sort("r", descending=True).row(0, named=True)
        without = bare.filter(measure=best["measure"])
        row = _find_test(
            study.tests.filter(compares=CONTEXT, model=model, measure=best["measure"], setting=setting),
            NONE,
            setting,
        )
        if without.is_empty() or row is None or row["p"] is None:
            continue
        change = best["r"] - without["r"].item()
        verb = "helps" if change > 0 else "harms"
        sure = "" if row["p_holm"] <= ALPHA else ", which may be chance"
        found.append(
            f"For {label_setting(setting)}, the context '{setting}' {verb} {model}: "
            f"{name_measure(best['measure'])} "
            f"correlates at {best['r']:.3f} with it and at {without['r'].item():.3f} without "
            f"(t({row['df']}) = {abs(row['t']):.2f}, Holm-adjusted {format_p(row['p_holm'])}){sure}."
        )
    return found


def _describe_compression(study: AcceptabilityStudy) -> list[str]:
    found = []
    for setting in study.ratings.in_context if study.effects.height else ():
        own = study.effects.filter(context=setting)
        human = own.filter(who=PEOPLE).row(0, named=True)
        same = []
        for model in study.models["model"]:
            cells = study.correlations.filter(model=model, context=setting, setting=setting)
            if cells.height:
                measure = str(cells.sort("r", descending=True)["measure"][0])
                row = own.filter(who=model, measure=measure)
                if row.height:
                    value = row.row(0, named=True)
                    same.append(f"{model} ({name_measure(measure)}) {value['sd_ratio']:.2f}")
        models = f" For models: {', '.join(same)}." if same else ""
        found.append(
            f"In the context '{setting}' people's ratings spread {human['sd_ratio']:.2f} times as far as "
            "without "
            f"(slope {human['slope']:.2f}), "
            f"{'a compression' if human['sd_ratio'] < 1 else 'no compression'}.{models}"
        )
    return found


def _find_test(tests: pl.DataFrame, first: str, second: str) -> dict[str, Any] | None:
    both = (pl.col("first") == first) & (pl.col("second") == second)
    swapped = (pl.col("first") == second) & (pl.col("second") == first)
    found = tests.filter(both | swapped)
    return found.row(0, named=True) if len(found) else None


def _join(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
