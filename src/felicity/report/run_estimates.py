"""The estimates of a run as figures and sections: by language, phenomenon, measure, suite; the margins."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import polars as pl

from felicity.core.contrasts import Headline
from felicity.report.charts import Row, chart_accuracy, chart_margins
from felicity.report.explorer_links import Linked, link_items
from felicity.report.run_tables import ReportInput
from felicity.report.sections import Bar, Figure, Section
from felicity.report.wording import (
    MISSING,
    count,
    counted,
    format_interval,
    percent,
    percent_interval,
    spaced,
    unit,
)

MOST_ROWS = 120
MOST_SUITES = 300
# What the explorer can select by a name.
FACETS = ("phenomenon", "suite")


def build_figures(report: ReportInput, *, heading: str) -> dict[str, Figure]:
    """Figures by name; one with a single row, or with too many to read, is left out."""
    measure = report.measures[0]
    with_measure = f"{heading} · {measure}"
    found = [
        _accuracy(report, _rows(report, "phenomenon", measure), by="phenomenon", subtitle=with_measure),
        _accuracy(report, _rows(report, "suite", measure), by="suite", subtitle=with_measure),
        _accuracy(report, _measure_rows(report), by="measure", subtitle=heading),
        _margins(report, measure, subtitle=with_measure),
    ]
    return {figure.name: figure for figure in found if figure is not None}


def _accuracy(report: ReportInput, rows: list[Row], *, by: str, subtitle: str) -> Figure | None:
    if not 1 < len(rows) <= MOST_ROWS:
        return None
    ranked = sorted(rows, key=lambda row: row.accuracy)
    lowest, highest = ranked[0], ranked[-1]
    return Figure(
        name=f"accuracy_by_{by}",
        title=f"{report.headline.name} by {by}",
        subtitle=subtitle,
        label=(
            f"{report.headline.name} by {by}: {counted(len(rows), 'row')}, each with a 95% interval, from "
            f"{highest.name} at {percent(highest.accuracy)}% to {lowest.name} at "
            f"{percent(lowest.accuracy)}%; the "
            "numbers are in the table that follows."
        ),
        chart=partial(
            chart_accuracy,
            rows,
            chance=report.chance,
            chance_name=report.headline.chance_name,
            noun="pairs" if report.pairs else "items",
        ),
    )


def _margins(report: ReportInput, measure: str, *, subtitle: str) -> Figure | None:
    judged = report.judged(measure)
    if not report.headline.margin or not judged["margin"].is_finite().any():
        return None
    return Figure(
        name="margins",
        title="Margins",
        subtitle=subtitle,
        label="Histogram of margins: {1} left of zero, {0} right of it.".format(*report.headline.verdicts),
        chart=partial(
            chart_margins,
            judged,
            unit=unit(measure),
            verdicts=_judged(report.headline),
            link=partial(_link_margins, report.explorer, measure) if report.explorer else None,
        ),
    )


def _link_margins(explorer: str, measure: str, low: float, high: float) -> str:
    return link_items(explorer, measure=measure, low=f"{low:.6g}", high=f"{high:.6g}")


def _judged(headline: Headline) -> tuple[str, str]:
    passed, failed = headline.verdicts
    return (f"judged {passed}", f"judged {failed}") if headline.graded else (passed, failed)


def _rows(report: ReportInput, level: str, measure: str) -> list[Row]:
    parts = _suites_of(report, measure) if level == "phenomenon" else {}
    whole = report.estimated(level, measure).drop_nulls(["accuracy", "low", "high"])
    return [
        Row(
            spaced(row["name"]),
            row["accuracy"],
            row["low"],
            row["high"],
            row["n"],
            parts.get(row["name"], ()),
            link_items(report.explorer, measure=measure, **({level: row["name"]} if level in FACETS else {})),
        )
        for row in whole.iter_rows(named=True)
    ]


def _suites_of(report: ReportInput, measure: str) -> dict[str, tuple[float, ...]]:
    """The accuracies of the suites of each phenomenon that has more than one."""
    suites = report.estimated("suite", measure).drop_nulls("accuracy").select("name", "accuracy")
    homes = report.judged(measure).select("phenomenon", name="suite").unique()
    gathered = suites.join(homes, on="name").sort("phenomenon", "accuracy").group_by("phenomenon")
    several = gathered.agg("accuracy").filter(pl.col("accuracy").list.len() > 1)
    return {name: tuple(values) for name, values in several.iter_rows()}


def _measure_rows(report: ReportInput) -> list[Row]:
    return [
        row._replace(name=measure) for measure in report.measures for row in _rows(report, "overall", measure)
    ]


def build_estimates(report: ReportInput, figures: Mapping[str, Figure]) -> list[Section]:
    """The sections that a run of several languages, phenomena, measures or suites has."""
    found = [_languages(report), _phenomena(report, figures), _measures(report, figures), _suites(report)]
    return [section for section in found if section is not None]


def build_margins(report: ReportInput, figures: Mapping[str, Figure]) -> Section | None:
    """How far judgements are from the other verdict; None if the run's margins mean nothing."""
    headline, measure = report.headline, report.measures[0]
    if not headline.margin:
        return None
    what = "How far each judgement is from the other verdict"
    if report.pairs:
        what = (
            f"The score of the {headline.call('good')} sentence less that of the {headline.call('bad')} one"
        )
    right = headline.graded and headline.verdicts[0] == "right"
    side = " the judgement is right" if right else f": {headline.verdicts[0]}"
    units = f" in {unit(measure)}" if unit(measure) else ""
    return Section(
        name="margins",
        title="Margins",
        lede=f"{what}, {measure}{units}. Right of zero{side}.",
        figures=_chosen(figures, "margins"),
        notes=() if "margins" in figures else ("No margin is a finite number.",),
    )


def _chosen(figures: Mapping[str, Figure], name: str) -> tuple[Figure, ...]:
    return (figures[name],) if name in figures else ()


def _languages(report: ReportInput) -> Section | None:
    rows = report.estimated("language", report.measures[0])
    if rows.is_empty():
        return None
    return _estimate_section(report, rows, name="languages", by="language", lede="")


def _phenomena(report: ReportInput, figures: Mapping[str, Figure]) -> Section | None:
    measure = report.measures[0]
    rows = report.estimated("phenomenon", measure)
    if "accuracy_by_phenomenon" not in figures:
        return None
    ticks = report.estimated("suite", measure).height > rows.height
    more = " Grey ticks: the suites of a phenomenon that has more than one." if ticks else ""
    lede = f"Dot and bar: {report.headline.noun} under {measure} with its 95% interval.{more}"
    shown = _chosen(figures, "accuracy_by_phenomenon")
    return _estimate_section(report, rows, name="phenomena", by="phenomenon", lede=lede, figures=shown)


def _estimate_section(
    report: ReportInput,
    estimates: pl.DataFrame,
    *,
    name: str,
    by: str,
    lede: str,
    figures: tuple[Figure, ...] = (),
) -> Section:
    people = "people" in estimates.columns
    return Section(
        name=name,
        title=f"By {by}",
        lede=lede,
        figures=figures,
        columns=(
            by.capitalize(),
            *("%", "95% interval", f"{_noun(report).capitalize()}s", "Suites", "Ties", "Within noise"),
            *(("People, %",) if people else ()),
        ),
        rows=tuple(
            (
                Linked(spaced(row["name"]), link),
                Linked(percent(row["accuracy"]), link),
                Linked(format_interval(row["low"], row["high"], percent), link),
                Linked(count(row["n"]), link),
                count(row["suites"]),
                Linked(count(row["ties"]), _link(report, by, row["name"], verdict="tie")),
                Linked(count(row["unstable"]), _link(report, by, row["name"], stability="unstable")),
                *((percent(row["people"]) if row["people"] is not None else MISSING,) if people else ()),
            )
            for row in estimates.iter_rows(named=True)
            for link in [_link(report, by, row["name"])]
        ),
    )


def _link(report: ReportInput, by: str, name: str, **more: str) -> str:
    if by not in FACETS:
        return ""
    return link_items(report.explorer, measure=report.measures[0], **{by: name}, **more)


def _noun(report: ReportInput) -> str:
    return "pair" if report.pairs else "item"


def _measures(report: ReportInput, figures: Mapping[str, Figure]) -> Section | None:
    """One row per name, one column per measure: all items, the mean over suites, then each phenomenon."""
    if len(report.measures) < 2:
        return None
    levels = [("all items", "overall", None), ("mean over suites", "macro", None)]
    names = report.estimated("phenomenon", report.measures[0])["name"].to_list()
    levels += [(spaced(name), "phenomenon", name) for name in names if len(names) > 1]
    return Section(
        name="measures",
        title="By measure",
        lede=f"The same token scores under each measure. The rest of this page uses {report.measures[0]}.",
        figures=_chosen(figures, "accuracy_by_measure"),
        columns=(f"{report.headline.name}, %", *report.measures),
        rows=tuple(
            (shown, *(_measured(report, measure, level, name) for measure in report.measures))
            for shown, level, name in levels
        ),
    )


def _measured(report: ReportInput, measure: str, level: str, name: str | None) -> Linked:
    rows = report.estimated(level, measure)
    found = (rows if name is None else rows.filter(pl.col("name") == name)).to_dicts()
    if not found:
        return Linked(MISSING, "")
    facet = {} if name is None else {level: name}
    text = percent_interval(*(found[0][key] for key in ("accuracy", "low", "high")))
    return Linked(text, link_items(report.explorer, measure=measure, **facet))


def _suites(report: ReportInput) -> Section | None:
    measure = report.measures[0]
    suites = report.estimated("suite", measure)
    if suites.height < 2:
        return None
    homes = report.judged(measure).select("phenomenon", name="suite").unique(subset="name", keep="any")
    shown = suites.join(homes, on="name", how="left", maintain_order="left").head(MOST_SUITES)
    first = "best" if report.headline.graded else "highest"
    cut = f"; the first {MOST_SUITES} are shown, all are in the run's estimates.csv"
    kept = cut if suites.height > MOST_SUITES else ""
    return Section(
        name="suites",
        title="By suite",
        lede=f"{counted(suites.height, 'suite')}, {first} first{kept}.",
        columns=(
            *("Suite", "Phenomenon", "%", "95% interval"),
            *(f"{_noun(report).capitalize()}s", "Ties", "Within noise"),
        ),
        wide=("Phenomenon", f"{_noun(report).capitalize()}s", "Ties", "Within noise"),
        names=2,
        rows=tuple(_suite_row(report, row) for row in shown.iter_rows(named=True)),
    )


def _suite_row(report: ReportInput, row: Mapping[str, Any]) -> tuple[str, ...]:
    link = _link(report, "suite", row["name"])
    span = format_interval(row["low"], row["high"], percent)
    return (
        Linked(spaced(row["name"]), link),
        Linked(spaced(row["phenomenon"]), _link(report, "phenomenon", row["phenomenon"])),
        Linked(percent(row["accuracy"]), link),
        Bar.draw(span, link, row, chance=report.chance),
        Linked(count(row["n"]), link),
        Linked(count(row["ties"]), _link(report, "suite", row["name"], verdict="tie")),
        Linked(count(row["unstable"]), _link(report, "suite", row["name"], stability="unstable")),
    )
