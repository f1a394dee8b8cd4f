"""The sections of a reading study's page about regressions: fit, slopes, curves, places, mixed models."""

from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl

from felicity.core.wording import format_interval, p_cell
from felicity.report import EXPLORER, Figure, Linked, Section, count, decimal, link_items, signed, spaced
from felicity.report.charts import (
    MOST_SERIES,
    Dot,
    Point,
    SeriesPoint,
    chart_bands,
    chart_lines,
    chart_scatter,
)
from felicity.studies.reading.predictive_fit import LINEAR, WITH_SURPRISAL

THOUSAND = 1000.0
# Measures whose figures are drawn; the tables have all of them.
MOST_FIGURES = 6


def link_words(measure: str | None = None, *models: str, **more: str) -> str:
    """Where the explorer shows the words, with a measure and the surprisals of these models."""
    return link_items(EXPLORER, "words", measure=measure or "", model=models, **more)


def _interval(value: float | None, low: float | None, high: float | None, scale: float = 1.0) -> str:
    ends = [None if end is None else scale * end for end in (value, low, high)]
    if ends[1] is None:
        return decimal(ends[0])
    return f"{decimal(ends[0])} {format_interval(ends[1], ends[2])}"


def list_fit(lead: pl.DataFrame) -> Section | None:
    """What the surprisal of each model adds for each measure."""
    if lead.is_empty():
        return None
    return Section(
        name="fit",
        title="Fit",
        lede="Delta log-likelihood over the baseline in thousandths of a nat per word, with 95% intervals "
        "over sentences; the same in sample, change of AIC, and the share of the variance that the baseline "
        "leaves, %.",
        columns=("Model", "Measure", "Delta LL (95%)", "p", "p Holm", "In sample", "Delta AIC", "Share", "n"),
        rows=tuple(
            (
                row["model"],
                spaced(row["measure"]),
                Linked(
                    _interval(row["delta_ll"], row["low"], row["high"], THOUSAND),
                    link_words(row["measure"], row["model"]),
                ),
                p_cell(row["p"]),
                p_cell(row["p_holm"]),
                decimal(THOUSAND * row["in_sample"]),
                signed(row["delta_aic"], 1),
                decimal(row["variance_share"]),
                Linked(count(row["n"]), link_words(row["measure"], row["model"])),
            )
            for row in lead.iter_rows(named=True)
        ),
        names=2,
    )


def list_slopes(slopes: pl.DataFrame) -> Section | None:
    """Slopes of the word's surprisal and of the words before it, as a table and by lag."""
    if slopes.is_empty():
        return None
    lead = slopes.filter(pl.col("lead"))
    figures: list[Figure] = []
    for (measure,), part in lead.group_by("measure", maintain_order=True):
        if part["lag"].n_unique() > 1 and len(figures) < MOST_FIGURES:
            shown = part["model"].unique(maintain_order=True).head(MOST_SERIES).to_list()
            points = [
                Point(
                    row["model"],
                    row["lag"],
                    row["slope"],
                    row["low"],
                    row["high"],
                    link_words(row["measure"], row["model"]),
                )
                for row in part.filter(pl.col("model").is_in(shown)).iter_rows(named=True)
            ]
            figures.append(
                Figure(
                    name=f"lags_{measure}",
                    title=f"{spaced(str(measure))} by lag",
                    subtitle="slope of the surprisal of the word itself (0) and of words before it, 95% "
                    "intervals",
                    label=f"Slopes of surprisal for {spaced(str(measure))} by lag; the numbers are in the "
                    "table of slopes.",
                    chart=partial(
                        chart_lines,
                        points,
                        x_title="words before",
                        y_title=part["unit"][0],
                        labels=[str(lag) for lag in sorted(set(part["lag"]))],
                        level=0.0,
                    ),
                )
            )
    return Section(
        name="slopes",
        title="Slopes",
        lede="Change of the measure per bit of surprisal, all lags and the baseline in one regression over "
        "words; 95% intervals resample sentences.",
        figures=tuple(figures),
        columns=("Model", "Measure", "Words before", "Slope (95%)", "p", "Unit"),
        rows=tuple(
            (
                row["model"],
                spaced(row["measure"]),
                str(row["lag"]),
                Linked(
                    _interval(row["slope"], row["low"], row["high"]), link_words(row["measure"], row["model"])
                ),
                p_cell(row["p"]),
                row["unit"],
            )
            for row in lead.iter_rows(named=True)
        ),
        names=3,
    )


def list_curves(curves: pl.DataFrame, fit: pl.DataFrame, times: Sequence[str]) -> Section | None:
    """The smooth of surprisal for each measure, and what it adds to a straight line."""
    if curves.is_empty():
        return None
    figures: list[Figure] = []
    for (measure,), part in curves.group_by("measure", maintain_order=True):
        if len(figures) == MOST_FIGURES:
            break
        shown = part["model"].unique(maintain_order=True).head(MOST_SERIES).to_list()
        unit = "ms" if measure in times else "units"
        figures.append(
            Figure(
                name=f"curve_{measure}",
                title=f"{spaced(str(measure))} over surprisal",
                subtitle="additive model, relative to the least surprising word, 95% interval",
                label=f"Curve of {spaced(str(measure))} over surprisal; the numbers are in curves.csv.",
                chart=partial(
                    chart_bands,
                    [point for name in shown for point in _draw_curve(part.filter(model=name), str(name))],
                    x_title="surprisal, bits",
                    y_title=f"{spaced(str(measure))}, {unit}",
                ),
            )
        )
    bent = fit.filter(pl.col("over") == LINEAR)
    edf = {
        (row["measure"], row["model"]): row["edf"]
        for row in curves.unique(["measure", "model"]).iter_rows(named=True)
    }
    return Section(
        name="curves",
        title="Is it a straight line?",
        lede="A smooth of the word's surprisal in place of a slope (penalized spline, weights by generalized "
        "cross-validation as in mgcv): effective degrees of freedom, 1 being a line, and what it adds to the "
        "line in thousandths of a nat per word.",
        figures=tuple(figures),
        columns=("Model", "Measure", "Degrees of freedom", "Smooth over line (95%)", "p Holm"),
        rows=tuple(
            (
                row["model"],
                spaced(row["measure"]),
                decimal(edf.get((row["measure"], row["model"]))),
                Linked(
                    _interval(row["delta_ll"], row["low"], row["high"], THOUSAND),
                    link_words(row["measure"], row["model"], show="residual"),
                ),
                p_cell(row["p_holm"]),
            )
            for row in bent.iter_rows(named=True)
        ),
        names=2,
    )


def _draw_curve(part: pl.DataFrame, model: str) -> list[SeriesPoint]:
    """A curve at whole bits, between which it is straight in the drawing."""
    x = part["x"].to_numpy()
    first, last = int(np.ceil(x[0])), int(np.floor(x[-1]))
    places = np.arange(first, last + 1) if last > first else x[[0, -1]]
    lines = {name: np.interp(places, x, part[name].to_numpy()) for name in ("y", "low", "high")}
    return [
        SeriesPoint(
            "",
            model,
            float(at),
            float(lines["y"][i]),
            float(lines["low"][i]),
            float(lines["high"][i]),
            link_words(str(part["measure"][0]), model),
        )
        for i, at in enumerate(places)
    ]


def list_beyond(fit: pl.DataFrame) -> Section | None:
    """What entropy and further predictors add to surprisal."""
    more = fit.filter(pl.col("over") == WITH_SURPRISAL)
    if more.is_empty():
        return None
    return Section(
        name="beyond",
        title="Beside surprisal",
        lede="What each predictor adds to baseline and surprisal, in thousandths of a nat per word. Entropy "
        "is that of the prediction at the word's first token; its reduction is how much of it reading the "
        "word takes away.",
        columns=("Model", "Measure", "Predictor", "Delta LL (95%)", "p Holm", "n"),
        rows=tuple(
            (
                row["model"],
                spaced(row["measure"]),
                spaced(row["predictor"]),
                Linked(
                    _interval(row["delta_ll"], row["low"], row["high"], THOUSAND),
                    link_words(row["measure"], row["model"]),
                ),
                p_cell(row["p_holm"]),
                count(row["n"]),
            )
            for row in more.iter_rows(named=True)
        ),
        names=3,
    )


def list_correction(correction: pl.DataFrame) -> Section | None:
    """Both ways to sum the tokens of a word, side by side."""
    if correction.is_empty():
        return None
    return Section(
        name="correction",
        title="With and without the correction for trailing white space",
        lede="The end of a word counts to the word (corrected) or to the next one (plain sum of tokens). "
        "Delta log-likelihood of both on the same words, thousandths of a nat per word; p flips whole "
        "sentences, adjusted by Holm over all rows.",
        columns=("Model", "Measure", "Corrected", "Plain", "Difference (95%)", "p", "p Holm"),
        rows=tuple(
            (
                row["model"],
                spaced(row["measure"]),
                *(
                    Linked(decimal(THOUSAND * row[way]), link_words(row["measure"], row["model"], way=way))
                    for way in ("corrected", "plain")
                ),
                _interval(row["difference"], row["low"], row["high"], THOUSAND),
                p_cell(row["p"]),
                p_cell(row["p_holm"]),
            )
            for row in correction.iter_rows(named=True)
        ),
        names=2,
    )


def list_alignment(alignment: pl.DataFrame) -> Section | None:
    """Correlation of the measure with surprisal of words before and after."""
    known = alignment.drop_nulls("r")
    if known.is_empty():
        return None
    shown = known["model"].unique(maintain_order=True).head(MOST_SERIES).to_list()
    points = [
        SeriesPoint(
            spaced(row["measure"]),
            row["model"],
            row["shift"],
            row["r"],
            link=link_words(row["measure"], row["model"]),
        )
        for row in known.filter(pl.col("model").is_in(shown)).iter_rows(named=True)
    ]
    figure = Figure(
        name="alignment",
        title="Do the times belong to these words?",
        subtitle="correlation with the surprisal of the word itself (0), words before (+) and after (−)",
        label="Correlation of each measure with surprisal at shifts from -2 to 2; the numbers are in the "
        "table of alignment.",
        chart=partial(chart_bands, points, x_title="words before", y_title="r"),
    )
    wide = known.pivot("shift", index=["model", "measure"], values="r", maintain_order=True)
    shifts = sorted(int(name) for name in wide.columns if name not in ("model", "measure"))
    return Section(
        name="alignment",
        title="Alignment",
        lede="Times should go with the surprisal of their own word or, with spillover, of the one before, "
        "and not with that of a word that was not yet read.",
        figures=(figure,),
        columns=("Model", "Measure", *(signed(shift, 0) for shift in shifts)),
        rows=tuple(
            (row["model"], spaced(row["measure"]), *(decimal(row[str(shift)], 3) for shift in shifts))
            for row in wide.iter_rows(named=True)
        ),
        names=2,
    )


def list_mixed(mixed: pl.DataFrame | None) -> Section | None:
    """Mixed models of single times."""
    if mixed is None or mixed.is_empty():
        return None
    return Section(
        name="mixed",
        title="Single readers",
        lede="Linear mixed models of single times by maximum likelihood: slopes per bit with Satterthwaite's "
        "intervals, delta log-likelihood per trial against the model without surprisal, with the same random "
        "part.",
        columns=("Model", "Measure", "Words before", "Slope (95%)", "p", "Delta LL", "Trials", "Readers"),
        rows=tuple(
            (
                row["model"],
                spaced(row["measure"]),
                str(row["lag"]),
                Linked(
                    _interval(row["slope"], row["low"], row["high"]), link_words(row["measure"], row["model"])
                ),
                p_cell(row["p"]),
                decimal(THOUSAND * row["delta_ll"], 3),
                count(row["trials"]),
                count(row["readers"]),
            )
            for row in mixed.iter_rows(named=True)
        ),
        names=3,
        notes=tuple(
            dict.fromkeys(
                f"{spaced(row['measure'])}, {row['model']}: left out of the random part: {row['left_out']}."
                for row in mixed.iter_rows(named=True)
                if row["left_out"]
            )
        ),
    )


def list_comparisons(comparisons: pl.DataFrame, quality: pl.DataFrame) -> Section | None:
    """Every two models, and perplexity against fit."""
    if comparisons.is_empty() and quality["model"].n_unique() < 2:
        return None
    dots = [
        Dot(
            spaced(row["measure"]),
            "",
            row["bits_per_word"],
            THOUSAND * row["delta_ll"],
            row["model"],
            hover=row["model"],
            link=link_words(row["measure"], row["model"]),
        )
        for row in quality.iter_rows(named=True)
    ]
    figure = Figure(
        name="quality",
        title="Model quality and fit",
        subtitle="bits per word on these words, against delta log-likelihood",
        label="Delta log-likelihood against bits per word for every model; the numbers are in quality.csv.",
        chart=partial(
            chart_scatter,
            dots,
            x_title="bits per word",
            y_title="delta log-likelihood × 1000",
            corners={
                spaced(row["measure"]): f"r = {decimal(row['r'])}"
                for row in quality.drop_nulls("r").iter_rows(named=True)
            },
        ),
    )
    return Section(
        name="comparisons",
        title="Models compared",
        lede="Difference of delta log-likelihood on the same words, thousandths of a nat per word; p flips "
        "whole sentences, adjusted by Holm within a measure.",
        figures=(figure,),
        columns=("Measure", "First", "Second", "Difference (95%)", "p", "p Holm", "n"),
        rows=tuple(
            (
                spaced(row["measure"]),
                row["first"],
                row["second"],
                Linked(
                    _interval(row["difference"], row["low"], row["high"], THOUSAND),
                    link_words(row["measure"], row["first"], row["second"]),
                ),
                p_cell(row["p"]),
                p_cell(row["p_holm"]),
                count(row["n"]),
            )
            for row in comparisons.iter_rows(named=True)
        ),
        names=3,
    )
