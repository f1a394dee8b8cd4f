"""The page of a study of reading: does surprisal predict how people read, and by how much?"""

from functools import partial
from typing import Any

import polars as pl

from felicity.core.wording import MISSING, NO_DIFFERENCE, format_interval, format_p, is_detected, p_cell
from felicity.report import Figure, Linked, Page, Section, count, counted, decimal, signed, spaced
from felicity.report.charts import Dot, Estimate, chart_estimates, chart_scatter
from felicity.studies.reading.fit_sections import (
    THOUSAND,
    link_words,
    list_alignment,
    list_beyond,
    list_comparisons,
    list_correction,
    list_curves,
    list_fit,
    list_mixed,
    list_slopes,
)
from felicity.studies.reading.predictive_fit import SURPRISAL, build_recipe, describe_recipe
from felicity.studies.study import Study

MOST_LOST = 100


def sections(study: Study) -> Page:
    """The answer, what each model adds, how sure it is; then slopes, curves, alignment and exclusions."""
    fit = study["fit"]
    lead = fit.filter(pl.col("lead") & (pl.col("predictor") == SURPRISAL))
    subject = study.facts["words"]
    evidence = (
        list_fit(lead),
        list_slopes(study["slopes"]),
        list_curves(study["curves"], fit, study.facts["times"]),
        list_beyond(fit),
        list_correction(study["correction"]),
        list_alignment(study["alignment"]),
        list_mixed(study.tables.get("mixed")),
        list_comparisons(study["comparisons"], study["quality"]),
        _conditions(study.tables.get("conditions")),
        _effects(study),
        _excluded(study["excluded"]),
        _lost(study["not_joined"]),
    )
    return Page(
        title="Reading",
        subject=subject,
        question="Does surprisal predict how people read, beyond length, frequency and position?"
        if len(lead)
        else "Is surprisal higher where people find a sentence hard?",
        answer=_answer(lead, study),
        hero=_hero(lead, subject) or _effect_figure(study),
        sure=tuple(_sure(lead, study)),
        findings=tuple(_findings(study)),
        sections=tuple(section for section in evidence if section is not None),
        legend="Delta log-likelihood: natural log density of the regression with surprisal minus that of the "
        "baseline, per word; above 0, surprisal helps to predict."
        if len(lead)
        else "Bits: surprisal of the hard minus that of the easy sentence.",
        summary="fit" if len(lead) else "effects",
    )


def _answer(lead: pl.DataFrame, study: Study) -> str:
    if lead.is_empty():
        return _answer_effects(study)
    tested = lead.filter(pl.col("p_holm").is_not_null())
    sure = tested.filter((pl.col("p_holm") <= 0.05) & (pl.col("delta_ll") > 0))
    best = (lead if sure.is_empty() else sure).sort("delta_ll", descending=True).row(0, named=True)
    slope = study["slopes"].filter(
        pl.col("lead") & (pl.col("lag") == 0), measure=best["measure"], model=best["model"]
    )
    if best["delta_ll"] <= 0:
        several = lead["model"].n_unique() > 1
        whose = (
            f"none of {lead['model'].n_unique()} models predicts any"
            if several
            else f"{best['model']} predicts no"
        )
        return f"No: on held-out sentences surprisal of {whose} measure better than the baseline does."
    if tested.is_empty():
        how = "in sample, where any predictor adds something"
    else:
        if sure.is_empty():
            return (
                f"{NO_DIFFERENCE.capitalize()}: on held-out sentences surprisal of {best['model']} adds "
                f"most, for {spaced(best['measure'])} {_say_gain(best)} ({format_p(best['p_holm'])}, Holm)."
            )
        tests = counted(len(tested), "comparison")
        how = f"a difference is detected in {len(sure)} of {tests} on held-out sentences"
    subject = "Yes: surprisal" if len(sure) else "Surprisal"
    most = "adds most for" if len(lead) > 1 else "adds to the prediction of"
    return (
        f"{subject} of {best['model']} {most} {spaced(best['measure'])}, {_say_gain(best)}"
        f"{_say_slope(slope)}; {how}."
    )


def _say_gain(best: dict[str, Any]) -> str:
    low, high = (None if best[end] is None else THOUSAND * best[end] for end in ("low", "high"))
    span = format_interval(low, high)
    shown = decimal(THOUSAND * best["delta_ll"]) + ("" if span == MISSING else f" {span}")
    return f"{shown} thousandths of a nat per word over {count(best['n'])} words"


def _say_slope(slope: pl.DataFrame) -> str:
    if slope.is_empty():
        return ""
    row = slope.row(0, named=True)
    span = format_interval(row["low"], row["high"])
    return f", {signed(row['slope'])} {span} {row['unit']} at the word itself"


def _answer_effects(study: Study) -> str:
    tested = study.tables.get("conditions")
    if tested is not None and len(tested):
        row = tested.sort("p").row(0, named=True)
        return (
            f"{spaced(row['response'])} of {row['model']} differs most between {row['first']} and "
            f"{row['second']}: by {signed(row['difference'])}, F = {decimal(row['f'])}, {format_p(row['p'])}."
        )
    effects = study.tables.get("effects", pl.DataFrame())
    if effects.is_empty():
        return "Surprisals were computed; there is no measure to predict."
    known = effects.drop_nulls("r")
    higher = effects.filter(pl.col("place") == 0)
    harder = higher.filter(pl.col("bits") > 0)
    largest = known.sort("r", descending=True).row(0, named=True) if len(known) else None
    rest = (
        f"; over items its size goes best with people's in {largest['effect']} at word +{largest['place']} "
        f"(r = {decimal(largest['r'])} {format_interval(largest['low'], largest['high'])})"
        if largest
        else ""
    )
    return f"Surprisal is higher at the critical word in {len(harder)} of {len(higher)} constructions{rest}."


def _sure(lead: pl.DataFrame, study: Study) -> list[str]:
    if lead.is_empty():
        return ["Correlations are over items, with Fisher's intervals."]
    recipe = build_recipe(study.settings)
    rows = lead.unique("measure", maintain_order=True)
    sizes = "; ".join(
        f"{spaced(row['measure'])}: {count(row['n'])} words of {counted(row['sentences'], 'sentence')}"
        for row in rows.head(4).iter_rows(named=True)
    )
    held = (
        "Intervals resample sentences; p flips the sign of whole sentences' differences (10,000 draws), "
        "adjusted by Holm over models and measures."
        if recipe.scheme is not None
        else "Log-likelihoods are in sample, so that they are never below 0 and have no test here."
    )
    said = [f"{describe_recipe(recipe)}", f"Identical rows for all models. {sizes}.", held]
    said.append(
        "A time is the mean over readers, so a word's is predicted better than a single reader's would be."
    )
    if "text_position" not in recipe.baseline:
        said.append(
            "Readers speed up in a long text, and position in the text is not in the baseline: see what "
            "`--control text_position` leaves."
        )
    return said


def _findings(study: Study) -> list[str]:
    found = [note for note in study.notes if note.startswith("Alignment")]
    fit = study["fit"]
    curved = fit.filter((pl.col("predictor") == "smooth surprisal") & pl.col("p_holm").is_not_null())
    for row in curved.head(3).iter_rows(named=True):
        verdict = (
            "bends" if is_detected(row["p_holm"]) and row["delta_ll"] > 0 else "shows no detectable bend"
        )
        found.append(
            f"The curve of {spaced(row['measure'])} over surprisal ({row['model']}) {verdict}: a smooth adds "
            f"{signed(THOUSAND * row['delta_ll'])} thousandths of a nat per word to a straight line "
            f"({format_p(row['p_holm'])})."
        )
    lost = study["not_joined"]
    if len(lost):
        found.append(f"{counted(len(lost), 'word')} without a surprisal: see the list at the end.")
    return found


def _hero(lead: pl.DataFrame, subject: str) -> Figure | None:
    if lead.is_empty():
        return None
    several = lead["model"].n_unique() > 1
    rows = []
    for row in lead.iter_rows(named=True):
        name = f"{row['model']}, {spaced(row['measure'])}" if several else spaced(row["measure"])
        ends = [row["delta_ll"] if row[end] is None else row[end] for end in ("low", "high")]
        low, high = (THOUSAND * end for end in ends)
        link = link_words(row["measure"], row["model"])
        rows.append(Estimate(name, THOUSAND * row["delta_ll"], low, high, link))
    return Figure(
        name="fit",
        title="What surprisal adds",
        subtitle=f"{subject}; right of zero, surprisal helps to predict",
        label="Delta log-likelihood per word with its 95% interval, for every model and measure; the numbers "
        "are in the table of fits.",
        chart=partial(chart_estimates, rows, axis="delta log-likelihood, thousandths of a nat per word"),
    )


def _effect_figure(study: Study) -> Figure | None:
    """Bits against milliseconds over items at the word after the critical one, a panel per effect."""
    single = study.tables.get("item_effects")
    if single is None:
        return None
    known = single.drop_nulls(["bits", "observed_ms"]).filter(pl.col("place") == 1)
    if known.height < 2:
        return None
    hard = study["words"].filter(side="hard").unique(["effect", "item"], keep="first", maintain_order=True)
    texts = {(effect, str(item)): text for effect, item, text in hard.select("effect", "item", "text").rows()}
    dots = [
        Dot(
            row["effect"],
            row["model"],
            row["bits"],
            row["observed_ms"],
            hover=f"item {row['item']}",
            link=link_words(None, row["model"], text=texts[row["effect"], row["item"]]),
        )
        for row in known.iter_rows(named=True)
    ]
    return Figure(
        name="effects",
        title="Effects by item",
        subtitle="one word after the critical one; hard minus easy sentence",
        label=f"Observed effects in milliseconds against differences of surprisal for {len(dots)} items; the "
        "numbers are in item_effects.csv.",
        chart=partial(chart_scatter, dots, x_title="surprisal, bits", y_title="observed, ms"),
    )


def _conditions(tested: pl.DataFrame | None) -> Section | None:
    if tested is None or tested.is_empty():
        return None
    return Section(
        name="conditions",
        title="Conditions",
        lede="Two conditions at a time: difference of means, and F of condition in a mixed model with "
        "intercepts of items and words, Satterthwaite's degrees of freedom, p also adjusted over all rows "
        "(Benjamini and Hochberg).",
        columns=("Model", "Response", "Conditions", "Difference", "F", "df", "p", "p adjusted", "n"),
        rows=tuple(
            (
                row["model"],
                spaced(row["response"]),
                f"{row['first']} − {row['second']}",
                signed(row["difference"]),
                decimal(row["f"]),
                f"{row['df']:.0f}, {decimal(row['df_residual'])}",
                p_cell(row["p"]),
                p_cell(row["p_bh"]),
                count(row["n"]),
            )
            for row in tested.iter_rows(named=True)
        ),
        names=3,
    )


def _effects(study: Study) -> Section | None:
    effects = study.tables.get("effects")
    if effects is None or effects.is_empty():
        return None
    figure = _effect_figure(study)
    return Section(
        name="effects",
        title="Effects by construction and item",
        lede="Hard minus easy sentence at the critical word (0) and the two after it: mean difference of "
        "surprisal, people's mean effect, the effect predicted with the slopes of your fillers, if there are "
        "any, and over items the correlation of the predicted effects, or else of bits, with people's.",
        figures=(figure,) if figure else (),
        columns=("Effect", "Model", "Word", "Items", "Bits", "Observed, ms", "Predicted, ms", "r", "95%"),
        rows=tuple(
            (
                row["effect"],
                row["model"],
                f"+{row['place']}" if row["place"] else "0",
                count(row["items"]),
                Linked(signed(row["bits"]), link_words(None, row["model"])),
                signed(row["observed_ms"], 1),
                signed(row["predicted_ms"], 1),
                decimal(row["r"]),
                format_interval(row["low"], row["high"]),
            )
            for row in effects.iter_rows(named=True)
        ),
        names=2,
    )


def _excluded(excluded: pl.DataFrame) -> Section | None:
    if excluded.is_empty():
        return None
    return Section(
        name="excluded",
        title="What was left out",
        lede="Words that each rule left out, in this order, and how many were left.",
        columns=("Measure", "Rule", "Left out", "Left"),
        rows=tuple(
            (
                spaced(row["measure"]),
                row["rule"],
                Linked(count(row["rows"]), link_words(row["measure"])),
                count(row["left"]),
            )
            for row in excluded.iter_rows(named=True)
        ),
        names=2,
    )


def _lost(lost: pl.DataFrame) -> Section | None:
    if lost.is_empty():
        return None
    more = f" The first {MOST_LOST} are shown; all are in not_joined.csv." if len(lost) > MOST_LOST else ""
    return Section(
        name="not_joined",
        title="Words without a surprisal",
        lede=f"{counted(len(lost), 'word')} could not be joined to a model's text or had no value.{more}",
        columns=("Model", "Text", "Sentence", "Word", "Reason", "Position"),
        rows=tuple(
            (
                row["model"],
                row["text"],
                row["sentence"],
                Linked(row["word"], link_words(None, row["model"], text=row["text"])),
                row["reason"],
                str(row["position"]),
            )
            for row in lost.head(MOST_LOST).iter_rows(named=True)
        ),
        names=5,
    )
