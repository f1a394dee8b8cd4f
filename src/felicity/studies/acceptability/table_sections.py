"""Models against people in the report: the paper's table, the ceilings, tests, and effects of context."""

from functools import partial
from typing import Any

import polars as pl

from felicity.core.wording import format_interval
from felicity.report import Figure, Linked, Section, count, decimal, signed
from felicity.report.charts import Cell as Box
from felicity.report.charts import Estimate, chart_estimates, chart_matrix
from felicity.studies.acceptability.analysis import Results
from felicity.studies.acceptability.correlations import CONTEXT, MEASURE, MODEL, PEOPLE
from felicity.studies.acceptability.findings import name_measure
from felicity.studies.acceptability.people_sections import show_p
from felicity.studies.acceptability.ratings import label_setting

MOST_TESTS = 60
BOUNDS = {"UB1": "UB1: one person", "UB2": "UB2: half of them"}
KINDS = {MEASURE: "Measures", MODEL: "Models", CONTEXT: "Model contexts"}


def show_table(results: Results) -> Section:
    """Every correlation in the layout of the paper, as a table and as a heat map."""
    measures = results["correlations"]["measure"].unique(maintain_order=True).to_list()
    cells = {
        (row["setting"], row["model"], row["context"], row["measure"]): row
        for row in results["correlations"].iter_rows(named=True)
    }
    rows, boxes = [], []
    for setting in results.ratings.settings:
        for model, context in dict.fromkeys((key[1], key[2]) for key in cells if key[0] == setting):
            own = [cells.get((setting, model, context, measure)) for measure in measures]
            shown = [Linked(_cell(cell), _link(results, cell)) for cell in own]
            rows.append((label_setting(setting), model, context, *shown))
            boxes += [
                Box(
                    f"{label_setting(setting)} · {model} · {context}",
                    name_measure(cell["measure"]),
                    cell["r"],
                    _link(results, cell),
                )
                for cell in own
                if cell
            ]
        for bound in results["ceilings"].filter(setting=setting).iter_rows(named=True):
            interval = f"{decimal(bound['r'], 3)} {format_interval(bound['low'], bound['high'])}"
            rows.append(
                (label_setting(setting), bound["bound"], "people", interval, *[""] * (len(measures) - 1))
            )
    figure = Figure(
        name="correlations",
        title="Correlation with ratings",
        subtitle=f"{results.ratings.name}: ratings, model and model context by measure",
        label="Heat map of the correlations in the table below.",
        chart=partial(
            chart_matrix,
            boxes,
            row_title="ratings, model",
            column_title="measure",
            unit="r",
            diverging=any(box.value < 0 for box in boxes),
        ),
    )
    return Section(
        name="table",
        title="Scores against ratings",
        lede="Pearson's r of every model, context and measure with the mean ratings of every setting, in the "
        "layout "
        "of Table 3 of Lau et al. (2020), with 95% bootstrap intervals. An asterisk marks the highest r of a "
        "row, a dagger that of a column among the same ratings, whether or not it is detectably above the "
        "next. UB1 is one rating against "
        "the mean "
        "of the rest, UB2 random halves; their ranges hold 95% of the trials.",
        figures=(figure,),
        columns=("Ratings", "Model", "Context", *map(name_measure, measures)),
        rows=tuple(rows),
        names=3,
        notes=("Spearman's and Kendall's coefficients of every cell are in correlations.csv.",),
    )


def _link(results: Results, cell: dict[str, Any] | None) -> str:
    """Where the scores of a cell are: the sentences in its context, by its measure."""
    if cell is None:
        return ""
    return results.link(cell["model"], measure=cell["measure"], condition=cell["context"])


def _cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "–"
    marks = ("*" if cell["best_measure"] else "") + ("†" if cell["best_model"] else "")
    return f"{decimal(cell['r'], 3)}{marks} {format_interval(cell['low'], cell['high'])}"


def draw_ceilings(results: Results, setting: str) -> Figure:
    """The best measure of every model and context beside the upper bounds of a setting."""
    best = (
        results["correlations"]
        .filter(setting=setting, best_measure=True)
        .unique(["model", "context"], keep="first", maintain_order=True)
        .sort("r", descending=True)
    )
    rows = [
        Estimate(
            f"{row['model']} · {row['context']} · {name_measure(row['measure'])}",
            row["r"],
            row["low"],
            row["high"],
            _link(results, row),
        )
        for row in best.iter_rows(named=True)
    ]
    bounds = results["ceilings"].filter(setting=setting)
    levels = {BOUNDS[bound]: r for bound, r in bounds.select("bound", "r").iter_rows()}
    return Figure(
        name=f"ceilings_{setting}",
        title=f"Highest correlation of every model with {label_setting(setting)}",
        subtitle=f"{results.ratings.name}, setting '{setting}'; model · context · measure",
        label=f"Correlations with {label_setting(setting)} beside UB1 and UB2; the table has the numbers.",
        chart=partial(chart_estimates, rows, axis="Pearson's r", levels=levels),
    )


def show_ceilings(results: Results) -> Section | None:
    """The same for the other settings; None if there is one."""
    others = results.ratings.settings[1:]
    if not others:
        return None
    return Section(
        name="ceilings",
        title="How close models come to people in context",
        lede="The measure with the highest correlation of every model and context, with 95% intervals, "
        "beside the upper bounds: what one person (UB1) and half of the people (UB2) reach.",
        figures=tuple(draw_ceilings(results, setting) for setting in others),
    )


def show_tests(results: Results) -> Section | None:
    """Whether one measure, model or context beats another; None if nothing could be tested."""
    known = results["tests"].filter(pl.col("p").is_not_null())
    if known.is_empty():
        return None
    first = results.ratings.settings[0]
    # A table for reading: models in the raters' own context; tests.csv has every comparison.
    own = pl.col("context").is_null() | (pl.col("context") == pl.col("setting"))
    shown = known.filter(own & ((pl.col("compares") != MEASURE) | (pl.col("setting") == first)))
    shown = shown.sort("compares", "p_holm", "p", maintain_order=True)
    rows = []
    for kind in KINDS:
        for row in shown.filter(compares=kind).head(MOST_TESTS // len(KINDS)).iter_rows(named=True):
            fixed = [row["model"], row["context"], row["measure"] and name_measure(row["measure"])]
            rows.append(
                (
                    KINDS[kind],
                    label_setting(row["setting"]),
                    " · ".join(part for part in fixed if part),
                    f"{name_measure(row['first'])} – {name_measure(row['second'])}",
                    decimal(row["r_first"], 3),
                    decimal(row["r_second"], 3),
                    signed(row["t"]),
                    show_p(row["p"]),
                    show_p(row["p_holm"]),
                    show_p(row["p_holm_within"]),
                    show_p(row["p_steiger"]),
                )
            )
    return Section(
        name="tests",
        title="Does one beat another?",
        lede="Williams' t of two dependent correlations with the same ratings, for cells that differ in one "
        "respect. Holm's adjustment is over all comparisons of the same kind in the study; within is over "
        "those with the same ratings, and of the same model where measures or contexts are compared: use it "
        "only for a model that you chose beforehand. The p of Steiger's Z is beside it, not adjusted.",
        columns=(
            "Compares",
            "Ratings",
            "Of",
            "First – second",
            "r",
            "r",
            "t",
            "p",
            "p, Holm",
            "p, Holm within",
            "p, Steiger",
        ),
        rows=tuple(rows),
        names=4,
        notes=(
            f"The smallest adjusted p-values of each kind, in the context that raters saw; tests.csv has all "
            f"{count(results['tests'].height)} comparisons.",
        ),
    )


def show_effects(results: Results) -> Section | None:
    """What a context does to ratings and to scores, side by side; None without ratings in no context."""
    if results["effects"].is_empty():
        return None
    best = results["correlations"].filter(best_measure=True).filter(pl.col("context") == pl.col("setting"))
    chosen = {(row["model"], row["context"]): row["measure"] for row in best.iter_rows(named=True)}
    shown = [
        row
        for row in results["effects"].iter_rows(named=True)
        if row["who"] == PEOPLE or chosen.get((row["who"], row["context"])) == row["measure"]
    ]
    estimates = [
        Estimate(
            f"{_who(row)} · {row['context']}",
            row["slope"],
            row["slope_low"],
            row["slope_high"],
            _link_effect(results, row),
        )
        for row in shown
    ]
    figure = Figure(
        name="compression",
        title="Slope of in-context values on those without context",
        subtitle="below 1 where values are compressed, but also where they merely correlate less",
        label="Slopes with 95% intervals; the table has the numbers.",
        chart=partial(chart_estimates, estimates, axis="slope", levels={"slope 1": 1.0}),
    )
    return Section(
        name="effects",
        title="What context does to people and to models",
        lede="Ratings and scores in the same terms: in standard deviations of the values without a context. "
        "The ratio of spreads shows compression (below 1); the slope is below 1 also where the two merely "
        "correlate imperfectly. Raised is the mean change; good and bad are the changes "
        "of sentences that people rate high and low without a context, beyond the mean change: a good "
        "sentence that "
        "falls and a bad one that rises is compression at both ends.",
        figures=(figure,),
        columns=("Who", "Context", "Slope", "Ratio of SD", "Raised", "Good", "Bad"),
        rows=tuple(
            (
                _who(row),
                row["context"],
                Linked(
                    f"{decimal(row['slope'])} {format_interval(row['slope_low'], row['slope_high'])}",
                    _link_effect(results, row),
                ),
                decimal(row["sd_ratio"]),
                f"{signed(row['raised'])} {format_interval(row['raised_low'], row['raised_high'], signed)}",
                signed(row["good"]),
                signed(row["bad"]),
            )
            for row in shown
        ),
        names=2,
        notes=(
            "Noise in the values without a context makes a slope smaller than 1 by itself; the ratio of "
            "spreads does "
            "not suffer from it. effects.csv has every measure.",
        ),
    )


def _link_effect(results: Results, row: dict[str, Any]) -> str:
    """Where the scores of an effect are; people's ratings stand beside those of the first model."""
    model = results.models[0] if row["who"] == PEOPLE else row["who"]
    chosen = {} if row["who"] == PEOPLE else {"measure": row["measure"]}
    return results.link(model, condition=row["context"], **chosen)


def _who(row: dict[str, Any]) -> str:
    return PEOPLE if row["who"] == PEOPLE else f"{row['who']}, {name_measure(row['measure'])}"
