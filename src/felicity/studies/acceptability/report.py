"""The report of the study: the paper's table and figures, tests, examples, and how to reproduce it."""

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.report import Extra, Figure, count, counted, decimal, signed, write_sections
from felicity.report.charts import (
    Cell as Box,
)
from felicity.report.charts import (
    Dot,
    Estimate,
    Point,
    chart_estimates,
    chart_lines,
    chart_matrix,
    chart_scatter,
)
from felicity.studies.acceptability.correlations import CONTEXT, MEASURE, MODEL, PEOPLE, pick_disagreements
from felicity.studies.acceptability.findings import describe_findings, name_measure
from felicity.studies.acceptability.ratings import NONE, label_setting
from felicity.studies.acceptability.study import AcceptabilityStudy

EXAMPLES = 6
LONGEST_HOVER = 240
MOST_TESTS = 60
KINDS = {MEASURE: "Measures", MODEL: "Models", CONTEXT: "Model contexts"}


def write_acceptability_report(study: AcceptabilityStudy, folder: Path) -> Path:
    """Write report.html and its figures into `folder`; gives the page's path."""
    found = [
        _findings(study),
        _table(study),
        _ceilings(study),
        _tests(study),
        _people(study),
        _distribution(study),
        _cleaning(study),
        _ordinal(study),
        _effects(study),
        _scatter(study),
        *_examples(study),
        _reproduce(study),
    ]
    sentences = study.ratings.sentences.height
    return write_sections(
        [section for section in found if section is not None],
        folder / "report.html",
        eyebrow="felicity acceptability",
        title="Acceptability in context",
        subject=study.ratings.name,
        meta=f"{counted(sentences, 'sentence')}, {counted(study.models.height, 'model')}; settings "
        + ", ".join(f"{label_setting(name)} ({name})" for name in study.ratings.settings),
    )


def _findings(study: AcceptabilityStudy) -> Extra:
    return Extra(
        name="findings",
        title="What was found",
        lede="Pearson correlations of scores with mean ratings over sentences, with bootstrap intervals over "
        "sentences.",
        columns=("Finding",),
        rows=tuple((text,) for text in describe_findings(study)),
    )


def _table(study: AcceptabilityStudy) -> Extra:
    measures = study.correlations["measure"].unique(maintain_order=True).to_list()
    cells = {
        (row["setting"], row["model"], row["context"], row["measure"]): row
        for row in study.correlations.iter_rows(named=True)
    }
    rows, boxes = [], []
    for setting in study.ratings.settings:
        for model, context in dict.fromkeys((key[1], key[2]) for key in cells if key[0] == setting):
            own = [cells.get((setting, model, context, measure)) for measure in measures]
            rows.append((label_setting(setting), model, context, *map(_cell, own)))
            boxes += [
                Box(
                    f"{label_setting(setting)} · {model} · {context}",
                    name_measure(cell["measure"]),
                    cell["r"],
                )
                for cell in own
                if cell
            ]
        for bound in study.ceilings.filter(setting=setting).iter_rows(named=True):
            interval = f"{decimal(bound['r'], 3)} ({decimal(bound['low'])}–{decimal(bound['high'])})"
            rows.append(
                (label_setting(setting), bound["bound"], "people", interval, *[""] * (len(measures) - 1))
            )
    figure = Figure(
        name="correlations",
        title="Correlation with ratings",
        subtitle=f"{study.ratings.name}: ratings, model and model context by measure",
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
    return Extra(
        name="table",
        title="Scores against ratings",
        lede="Pearson's r of every model, context and measure with the mean ratings of every setting, in the "
        "layout "
        "of Table 3 of Lau et al. (2020), with 95% bootstrap intervals. An asterisk marks the best measure "
        "of a row, "
        "a dagger the best model and context of a column among the same ratings. UB1 is one rating against "
        "the mean "
        "of the rest, UB2 random halves; their ranges hold 95% of the trials.",
        figures=(figure,),
        columns=("Ratings", "Model", "Context", *map(name_measure, measures)),
        rows=tuple(rows),
        names=3,
        notes=("Spearman's and Kendall's coefficients of every cell are in correlations.csv.",),
    )


def _cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return "–"
    marks = ("*" if cell["best_measure"] else "") + ("†" if cell["best_model"] else "")
    return f"{decimal(cell['r'], 3)}{marks} ({decimal(cell['low'])}–{decimal(cell['high'])})"


def _ceilings(study: AcceptabilityStudy) -> Extra:
    figures = []
    for setting in study.ratings.settings:
        best = (
            study.correlations.filter(setting=setting, best_measure=True)
            .unique(["model", "context"], keep="first", maintain_order=True)
            .sort("r", descending=True)
        )
        rows = [
            Estimate(
                f"{row['model']} · {row['context']} · {name_measure(row['measure'])}",
                row["r"],
                row["low"],
                row["high"],
            )
            for row in best.iter_rows(named=True)
        ]
        bounds = study.ceilings.filter(setting=setting)
        levels = dict(zip(bounds["bound"], bounds["r"], strict=True))
        figures.append(
            Figure(
                name=f"ceilings_{setting}",
                title=f"Best measure of every model against {label_setting(setting)}",
                subtitle=f"{study.ratings.name}, setting '{setting}'",
                label=f"Correlations with {label_setting(setting)} beside UB1 and UB2; the table has the "
                "numbers.",
                chart=partial(chart_estimates, rows, axis="Pearson's r", levels=levels),
            )
        )
    return Extra(
        name="ceilings",
        title="How far to what people reach",
        lede="The best measure of every model and context, with 95% intervals, beside the upper bounds: what "
        "one "
        "person (UB1) and half of the people (UB2) reach.",
        figures=tuple(figures),
    )


def _tests(study: AcceptabilityStudy) -> Extra | None:
    known = study.tests.filter(pl.col("p").is_not_null())
    if known.is_empty():
        return None
    first = study.ratings.settings[0]
    # A table for reading: models in the raters' own context; tests.csv has every comparison.
    own = pl.col("context").is_null() | (pl.col("context") == pl.col("setting"))
    shown = known.filter(own & ((pl.col("compares") != MEASURE) | (pl.col("setting") == first)))
    shown = shown.sort("compares", "p_holm", maintain_order=True)
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
                    _p(row["p"]),
                    _p(row["p_holm"]),
                    _p(row["p_steiger"]),
                )
            )
    return Extra(
        name="tests",
        title="Does one beat another?",
        lede="Williams' t of two dependent correlations with the same ratings, for cells that differ in one "
        "respect; p also adjusted (Holm) over the comparisons of one model (of measures, or of contexts) or "
        "of all models with the same ratings; Steiger's Z beside it.",
        columns=("Compares", "Ratings", "Of", "First – second", "r", "r", "t", "p", "p, Holm", "p, Steiger"),
        rows=tuple(rows),
        names=4,
        notes=(
            f"The smallest adjusted p-values of each kind, in the context that raters saw; tests.csv has all "
            f"{count(study.tests.height)} comparisons.",
        ),
    )


def _p(value: float | None) -> str:
    if value is None:
        return "–"
    return "<0.0001" if value < 0.0001 else decimal(value, 4)


def _people(study: AcceptabilityStudy) -> Extra | None:
    ratings = study.ratings
    if len(ratings.settings) < 2:
        return None
    texts = ratings.sentences["text"].to_list()
    dots, corners = [], {}
    for row in study.pairs.iter_rows(named=True):
        panel = f"{label_setting(row['second'])} against {label_setting(row['first'])}"
        corners[panel] = f"r = {decimal(row['r'], 3)}"
        x, y = ratings.mean(row["first"]), ratings.mean(row["second"])
        dots += [
            Dot(panel, "", a, b, hover=f"{a:.2f}, {b:.2f}: {_short(text)}")
            for a, b, text in zip(x.tolist(), y.tolist(), texts, strict=True)
        ]
    figure = Figure(
        name="settings",
        title="Ratings in one setting against another",
        subtitle=ratings.name,
        label="Scatter plots of mean ratings; points above the dashed line are rated higher in the second "
        "setting.",
        chart=partial(
            chart_scatter,
            dots,
            x_title="mean rating, first setting",
            y_title="mean rating, second",
            corners=corners,
            diagonal=True,
        ),
    )
    rows = [
        (
            f"{label_setting(row['first'])}, {label_setting(row['second'])}",
            f"{decimal(row['r'], 4)} ({decimal(row['low'], 3)}–{decimal(row['high'], 3)})",
            decimal(row["spearman"], 3),
            decimal(row["kendall"], 3),
            signed(row["difference"], 3),
            _exact(row["p_greater"]),
            _exact(row["p_two_sided"]),
        )
        for row in study.pairs.iter_rows(named=True)
    ]
    notes = []
    for row in study.line_tests.filter(pl.col("term").is_in(["ctx", "x:ctx"])).iter_rows(named=True):
        what = "offset" if row["term"] == "ctx" else "slope"
        notes.append(
            f"Regression of {label_setting(row['first'])} and {label_setting(row['second'])} on "
            f"{label_setting(NONE)} (y ~ x + ctx + x:ctx): {what} {signed(row['estimate'], 3)}, "
            f"t({row['df']:.0f}) = "
            f"{signed(row['statistic'])}, p = {_exact(row['p'])}."
        )
    for row in study.shifts.iter_rows(named=True):
        if row["shift"] is not None:
            sign = "at least" if row["sentences"] == "good" else "at most"
            notes.append(
                f"{row['n']} {row['sentences']} sentences ({label_setting(NONE)} {sign} {row['bound']:g}) "
                "move by "
                f"{signed(row['shift'], 3)} in the context '{row['setting']}'"
                + ("" if row["low"] is None else f" ({signed(row['low'], 3)} to {signed(row['high'], 3)})")
                + "."
            )
    for row in study.lines.iter_rows(named=True):
        notes.append(
            f"Line of {label_setting(row['setting'])} on {label_setting(NONE)}: intercept "
            f"{decimal(row['intercept'], 3)}, slope {decimal(row['slope'], 3)} "
            f"({decimal(row['slope_low'], 3)} to "
            f"{decimal(row['slope_high'], 3)}), ratio of standard deviations {decimal(row['sd_ratio'], 3)}."
        )
    return Extra(
        name="people",
        title="What context does to people",
        lede="Mean ratings of the same sentences in two settings (the paper's scatter plots), their "
        "correlation, and "
        "Wilcoxon's signed-rank test of whether the first is rated higher.",
        figures=(figure,),
        columns=(
            "Settings",
            "Pearson's r",
            "Spearman",
            "Kendall",
            "Difference",
            "p, greater",
            "p, two-sided",
        ),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _exact(p: float | None) -> str:
    if p is None:
        return "–"
    return f"{p:.3e}" if p < 0.0001 else f"{p:.4g}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_HOVER else f"{text[: LONGEST_HOVER - 1]}…"


def _distribution(study: AcceptabilityStudy) -> Extra:
    points = [
        Point(label_setting(row["setting"]), (row["from"] + row["to"]) / 2, 100 * row["share"])
        for row in study.distribution.iter_rows(named=True)
    ]
    rows = []
    for setting in study.ratings.settings:
        means = study.ratings.mean(setting)
        quarters = pl.Series(means)
        rows.append(
            (
                label_setting(setting),
                decimal(float(means.mean()), 3),
                decimal(float(means.std(ddof=1)), 3),
                *(decimal(quarters.quantile(q), 2) for q in (0.0, 0.25, 0.5, 0.75, 1.0)),
            )
        )
    figure = Figure(
        name="distribution",
        title="Mean ratings by setting",
        subtitle=study.ratings.name,
        label="Share of sentences by mean rating, one line per setting.",
        chart=partial(chart_lines, points, x_title="mean rating", y_title="sentences (%)"),
    )
    return Extra(
        name="distribution",
        title="Distributions",
        lede="How mean ratings are distributed; ratings that are compressed in context have a smaller "
        "spread.",
        figures=(figure,),
        columns=("Ratings", "Mean", "SD", "Lowest", "25%", "Median", "75%", "Highest"),
        rows=tuple(rows),
    )


def _cleaning(study: AcceptabilityStudy) -> Extra | None:
    steps = study.ratings.steps
    if steps.is_empty():
        return None
    return Extra(
        name="cleaning",
        title="Cleaning",
        lede="What each step of the paper's rules did to the raw ratings.",
        columns=("Setting", "Step", "Raters", "Ratings", "Raters dropped", "Ratings dropped", "Changed"),
        rows=tuple(
            (row["setting"], row["step"], *(count(row[name]) for name in steps.columns[2:]))
            for row in steps.iter_rows(named=True)
        ),
        names=2,
    )


def _ordinal(study: AcceptabilityStudy) -> Extra | None:
    if study.ordinal.is_empty():
        return None
    return Extra(
        name="ordinal",
        title="Ordinal mixed models",
        lede="Single ratings as ordered answers (cumulative logit), with random intercepts of raters and "
        "sentences; a "
        "score is in standard deviations, and in the context that the rater saw.",
        columns=("Model", "Term", "Estimate", "95% interval", "p", "n"),
        rows=tuple(
            (
                row["formula"],
                row["term"],
                signed(row["estimate"], 3),
                f"{signed(row['low'], 3)} to {signed(row['high'], 3)}",
                _exact(row["p"]),
                count(row["n"]),
            )
            for row in study.ordinal.iter_rows(named=True)
        ),
        names=2,
    )


def _effects(study: AcceptabilityStudy) -> Extra | None:
    if study.effects.is_empty():
        return None
    best = study.correlations.filter(best_measure=True).filter(pl.col("context") == pl.col("setting"))
    chosen = {(row["model"], row["context"]): row["measure"] for row in best.iter_rows(named=True)}
    shown = [
        row
        for row in study.effects.iter_rows(named=True)
        if row["who"] == PEOPLE or chosen.get((row["who"], row["context"])) == row["measure"]
    ]
    estimates = [
        Estimate(f"{_who(row)} · {row['context']}", row["slope"], row["slope_low"], row["slope_high"])
        for row in shown
    ]
    figure = Figure(
        name="compression",
        title="Slope of in-context values on those without context",
        subtitle="below 1 where values are compressed, but also where they merely correlate less",
        label="Slopes with 95% intervals; the table has the numbers.",
        chart=partial(chart_estimates, estimates, axis="slope", levels={"slope 1": 1.0}),
    )
    return Extra(
        name="effects",
        title="What context does to people and to models",
        lede="Ratings and scores in the same terms: in standard deviations of the values without a context. "
        "The ratio of spreads tells compression (below 1); the slope is below 1 also where the two merely "
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
                f"{decimal(row['slope'])} ({decimal(row['slope_low'])}–{decimal(row['slope_high'])})",
                decimal(row["sd_ratio"]),
                f"{signed(row['raised'])} ({signed(row['raised_low'])} to {signed(row['raised_high'])})",
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


def _who(row: dict[str, Any]) -> str:
    return PEOPLE if row["who"] == PEOPLE else f"{row['who']}, {name_measure(row['measure'])}"


def _scatter(study: AcceptabilityStudy) -> Extra:
    texts = study.ratings.sentences["text"].to_list()
    figures = []
    for setting in study.ratings.settings:
        dots, corners = [], {}
        rating = study.ratings.mean(setting)
        for model in study.models["model"]:
            known = study.correlations.filter(model=model, setting=setting)["context"].unique().to_list()
            if not known:
                continue
            context = setting if setting in known else known[0]
            cell = study.best(setting, model=model, context=context)
            values = study.vectors[cell]
            spread = (values - values.mean()) / values.std()
            panel = f"{model}, {name_measure(cell.measure)}, context {context}"
            found = study.correlations.filter(
                model=model, setting=setting, context=context, measure=cell.measure
            )
            corners[panel] = f"r = {decimal(found['r'].item(), 3)}"
            dots += [
                Dot(panel, "", a, b, hover=f"rated {a:.2f}: {_short(text)}")
                for a, b, text in zip(rating.tolist(), spread.tolist(), texts, strict=True)
            ]
        figures.append(
            Figure(
                name=f"scatter_{setting}",
                title=f"Scores against {label_setting(setting)}",
                subtitle=f"{study.ratings.name}: the best measure of every model, in the raters' context",
                label=f"Scatter plots of scores against {label_setting(setting)}.",
                chart=partial(
                    chart_scatter,
                    dots,
                    x_title="mean rating",
                    y_title="score, in standard deviations",
                    corners=corners,
                ),
            )
        )
    return Extra(
        name="scatter",
        title="Sentence by sentence",
        lede="The best measure of every model in the context that the raters saw. Hold the pointer over a "
        "dot to read "
        "its sentence.",
        figures=tuple(figures),
    )


def _examples(study: AcceptabilityStudy) -> list[Extra]:
    setting = study.ratings.settings[0]
    found: list[Extra] = []
    for model in study.models["model"]:
        known = study.correlations.filter(model=model, setting=setting)["context"].unique(maintain_order=True)
        if known.is_empty():
            continue
        cell = study.best(setting, model=model, context=setting if setting in known else str(known[0]))
        picked = pick_disagreements(study.vectors, study.ratings, cell, setting, k=EXAMPLES)
        found.append(
            Extra(
                name=f"differ-{len(found) + 1}",
                title=f"Where people and {model} differ most",
                lede=f"{name_measure(cell.measure)} with context '{cell.context}' against "
                f"{label_setting(setting)}: first "
                "the sentences that people find better than the model does, then the reverse; z-scores.",
                columns=("Sentence", "Rating", "People, z", "Model, z"),
                rows=tuple(
                    (
                        row["text"],
                        decimal(row["rating"]),
                        signed(row["rating_z"], 1),
                        signed(row["value_z"], 1),
                    )
                    for row in picked.iter_rows(named=True)
                ),
            )
        )
    return found


def _reproduce(study: AcceptabilityStudy) -> Extra:
    rows = [
        (
            row["model"],
            row["family"],
            count(row["parameters"]),
            row["unigram"] or "–",
            row["policy"],
        )
        for row in study.models.iter_rows(named=True)
    ]
    record = study.record
    told = [
        f"Command: {record.get('command') or 'called from Python'}",
        f"Ratings: {record.get('ratings', study.ratings.name)}, digest "
        f"{str(record.get('digest', study.ratings.key))[:16]}.",
        f"Seed {record.get('seed', 0)}; felicity {record.get('felicity', '')}; "
        f"{str(record.get('created', ''))[:10]}.",
        "The run of each model, with every token, is in models/; the tables of this page are the CSV files "
        "beside it.",
    ]
    return Extra(
        name="reproduce",
        title="How to reproduce this",
        lede="What was asked of which model, under which policy.",
        columns=("Model", "Family", "Parameters", "Unigram counts", "Policy"),
        rows=tuple(rows),
        names=2,
        notes=(*told, *study.notes),
    )
