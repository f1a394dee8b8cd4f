"""The findings in sentences: the highest correlations, their distance from the ceiling, what context changes.

A sentence claims a difference only if its adjusted p is at most .05; otherwise there is no detectable one.
"""

from itertools import zip_longest
from typing import Any

import polars as pl

from felicity.core.wording import NO_DIFFERENCE, decimal, format_interval, format_p, is_detected
from felicity.studies.acceptability.analysis import Results
from felicity.studies.acceptability.correlations import CONTEXT, MEASURE, PEOPLE
from felicity.studies.acceptability.rated_rows import NONE
from felicity.studies.acceptability.ratings import label_setting

WORDS = {"lp": "LP", "mean_lp": "MeanLP", "pen_lp": "PenLP", "norm_lp": "NormLP", "slor": "SLOR"}


def name_measure(measure: str) -> str:
    """A measure as the paper writes it, if it has it."""
    return WORDS.get(measure, measure)


def name_ratings(setting: str) -> str:
    """The ratings of a setting in a sentence, where a bare H0 would read as a null hypothesis.

    >>> name_ratings("none"), name_ratings("real")
    ('the ratings without a context (H0)', "the ratings in the context 'real' (H+)")
    """
    where = "without a context" if setting == NONE else f"in the context '{setting}'"
    return f"the ratings {where} ({label_setting(setting)})"


def answer_question(results: Results) -> str:
    """The score that follows the ratings of the first setting most closely, beside one person's."""
    setting = results.ratings.settings[0]
    ranked = rank_cells(results, setting=setting)
    if not ranked:
        return "It cannot be said: no score has a correlation with the ratings."
    best = ranked[0]
    claim = (
        f"{name_measure(best['measure'])} of {best['model']}{_given(best['context'])} has the highest "
        f"correlation with {name_ratings(setting)}, r = {decimal(best['r'])} "
        f"{format_interval(best['low'], best['high'])}"
    )
    bounds = dict(results["ceilings"].filter(setting=setting).select("bound", "r").iter_rows())
    if best["r"] <= 0:
        return f"Not at all: no score correlates positively; {claim}."
    if "UB1" not in bounds:
        return f"{claim}."
    side = "below" if best["r"] < bounds["UB1"] else "not below"
    return f"{claim}, {side} the {decimal(bounds['UB1'])} that one person reaches with the others (UB1)."


def _given(context: str) -> str:
    return "" if context == NONE else f" given the context '{context}'"


def describe_findings(results: Results) -> list[str]:
    """One sentence of each kind first, about the model with the highest correlation; then the others."""
    ratings = results.ratings
    ranked = rank_cells(results, setting=ratings.settings[0])
    leading = ranked[0]["model"] if ranked else ""
    models = sorted(results.models, key=lambda model: model != leading)
    kinds = [
        [text for model in models if (text := _describe_measures(results, model))],
        [text for model in models for text in _describe_contexts(results, model)],
        _describe_compression(results),
        [text for setting in ratings.settings[1:] if (text := _describe_best(results, setting))],
    ]
    return [text for group in zip_longest(*kinds) for text in group if text]


def rank_cells(results: Results, **chosen: str) -> list[dict[str, Any]]:
    """Cells that have a correlation, the highest first: every measure is higher for better sentences."""
    finite = results["correlations"].filter(**chosen).filter(pl.col("r").is_finite())
    return finite.sort("r", descending=True, maintain_order=True).to_dicts()


def _describe_best(results: Results, setting: str) -> str:
    ranked = rank_cells(results, setting=setting)
    if not ranked:
        return ""
    best = ranked[0]
    bound = results["ceilings"].filter(setting=setting, bound="UB1")["r"].to_list()
    ceiling = f"; one person reaches {decimal(bound[0], 3)} (UB1)" if bound else ""
    sign = "" if best["r"] > 0 else " (no score correlates positively)"
    return (
        f"The highest of {len(ranked)} correlations with {name_ratings(setting)}{sign} is that of "
        f"{name_measure(best['measure'])} of {best['model']} with context '{best['context']}': "
        f"r = {decimal(best['r'], 3)}{ceiling}."
    )


def _describe_measures(results: Results, model: str) -> str:
    """The measure of a model with the highest correlation without a context, and which others it exceeds.

    What holds only if p is adjusted within the model is said to do so.
    """
    setting = results.ratings.settings[0]
    ranked = rank_cells(results, model=model, context=NONE, setting=setting)
    if len(ranked) < 2:
        return ""
    best = ranked[0]
    tests = results["tests"].filter(compares=MEASURE, model=model, context=NONE, setting=setting)
    others: dict[str, list[str]] = {"all": [], "model": [], "none": []}
    for cell in ranked[1:]:
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
    clauses = [f"detectably above {_join(others['all'])}"] if others["all"] else []
    if others["model"]:
        clauses.append(
            f"above {_join(others['model'])} only if p is adjusted over the comparisons of this model and "
            "these ratings alone"
        )
    if others["none"]:
        clauses.append(f"with {NO_DIFFERENCE} from {_join(others['none'])}")
    return (
        f"Of the measures of {model} without a context, {name_measure(best['measure'])} has the highest "
        f"correlation with {name_ratings(setting)} (r = {decimal(best['r'], 3)}): {'; '.join(clauses)}."
    )


def _describe_contexts(results: Results, model: str) -> list[str]:
    """Whether the correlation of a model that is given the raters' context differs from that without it."""
    sentences = []
    for setting in results.ratings.in_context:
        bare = rank_cells(results, model=model, setting=setting, context=NONE)
        for best in rank_cells(results, model=model, setting=setting, context=setting)[:1]:
            without = next((cell for cell in bare if cell["measure"] == best["measure"]), None)
            tests = results["tests"].filter(
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
            sentences.append(
                f"{claim}: r = {decimal(best['r'], 3)} with it and {decimal(without['r'], 3)} without "
                f"(t({row['df']}) = {decimal(abs(row['t']))}, Holm-adjusted {format_p(row['p_holm'])})."
            )
    return sentences


def _describe_compression(results: Results) -> list[str]:
    """How far ratings and scores spread in context, in figures: ratios are not tested."""
    sentences = []
    for setting in results.ratings.in_context if results["effects"].height else ():
        effects = results["effects"].filter(context=setting)
        human = effects.filter(who=PEOPLE).row(0, named=True)
        ratios = []
        for model in results.models:
            for cell in rank_cells(results, model=model, context=setting, setting=setting)[:1]:
                for row in effects.filter(who=model, measure=cell["measure"]).head(1).to_dicts():
                    ratios.append(f"{model} ({name_measure(cell['measure'])}) {decimal(row['sd_ratio'])}")
        models = f", for models: {', '.join(ratios)}" if ratios else ""
        sentences.append(
            f"In the context '{setting}' the SD of people's mean ratings is {decimal(human['sd_ratio'])} "
            f"times that without{models} (below 1 values are compressed; not tested)."
        )
    return sentences


def _find_test(tests: pl.DataFrame, first: str, second: str) -> dict[str, Any] | None:
    both = (pl.col("first") == first) & (pl.col("second") == second)
    swapped = (pl.col("first") == second) & (pl.col("second") == first)
    rows = tests.filter(both | swapped)
    return rows.row(0, named=True) if len(rows) else None


def _join(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
