"""The page itself: one HTML file that needs nothing else, and its figures as files."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.files import replacing
from felicity.report import wording
from felicity.report.cases import pick_uncertain, pick_wrong, read_cases
from felicity.report.drawing import draw_inline
from felicity.report.exporting import export_figures
from felicity.report.extras import Extra, build_extras
from felicity.report.facts import read_command, read_date, read_facts, read_name
from felicity.report.figures import Figure, build_figures
from felicity.report.input import ReportInput
from felicity.report.sentences import choose_window
from felicity.report.theme import DARK, LIGHT, css_variables

MOST_SUITES = 300
DEAREST = 16.0


def write_report(report: ReportInput, folder: Path) -> Path:
    """Write `report.html` and `figures/*.svg`, `figures/*.png` into `folder`; gives the page's path.

    Each file is whole or absent. Raises FelicityError where the folder cannot be written.
    """
    extras = build_extras(report, heading=_heading(report))
    figures = _all_figures(report, extras)
    export_figures(figures.values(), folder, endings=("svg", "png"))
    page = folder / "report.html"
    with replacing(page) as part:
        part.write_text(_fill(report, figures, extras), encoding="utf-8")
    return page


def render_report(report: ReportInput) -> str:
    """The whole page as text: the same input gives the same bytes."""
    extras = build_extras(report, heading=_heading(report))
    return _fill(report, _all_figures(report, extras), extras)


def _all_figures(report: ReportInput, extras: list[Extra]) -> dict[str, Figure]:
    figures = build_figures(report, heading=_heading(report))
    return figures | {figure.name: figure for extra in extras for figure in extra.figures}


def _heading(report: ReportInput) -> str:
    return f"{read_name(report.manifest, 'model')} on {read_name(report.manifest, 'dataset')}"


def _fill(report: ReportInput, figures: dict[str, Figure], extras: list[Extra]) -> str:
    return render_template("report.html.j2", _content(report) | {"extras": extras}, figures)


def render_template(name: str, content: dict[str, Any], figures: dict[str, Figure]) -> str:
    """A page of one of the templates, with its looks and its figures in it."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("felicity.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update({name: getattr(wording, name) for name in WORDS})
    environment.globals.update(choose_window=choose_window, tint=_tint)

    def inlined(name: str) -> Markup:
        source, _, _ = jinja2.PackageLoader("felicity.report", "templates").get_source(environment, name)
        return Markup(source)

    def draw(name: str) -> Markup:
        figure = figures[name]
        return Markup(
            draw_inline(figure.wide(), label=figure.label, kind="wide")
            + draw_inline(figure.narrow(), label=figure.label, kind="narrow")
        )

    page = environment.get_template(name).render(
        content,
        figures=tuple(figures),
        draw=draw,
        css=inlined("report.css"),
        script=inlined("report.js"),
        light=css_variables(LIGHT),
        dark=css_variables(DARK),
    )
    return page.rstrip() + "\n"


WORDS = (
    "percent",
    "decimal",
    "signed",
    "bits",
    "signed_bits",
    "count",
    "counted",
    "spaced",
    "unit",
    "interval_name",
)


def _content(report: ReportInput) -> dict[str, Any]:
    measure = report.measures[0]
    manifest = report.manifest
    suites = report.estimated("suite", measure)
    homes = report.judged(measure).select("phenomenon", name="suite").unique(subset="name", keep="any")
    return {
        "heading": _heading(report),
        "model": read_name(manifest, "model"),
        "dataset": read_name(manifest, "dataset"),
        "created": read_date(manifest),
        "version": manifest.get("felicity"),
        "measure": measure,
        "measures": report.measures,
        "pairs": report.pairs,
        "noun": "pair" if report.pairs else "item",
        "overall": report.estimated("overall", measure).row(0, named=True),
        "macro": _first(report.estimated("macro", measure)),
        "phenomena": report.estimated("phenomenon", measure).to_dicts(),
        "suites": suites.join(homes, on="name", how="left").head(MOST_SUITES).to_dicts(),
        "suites_in_all": suites.height,
        "by_measure": _by_measure(report),
        "audit": report.audit.to_dicts(),
        "findings": report.audit.filter(pl.col("count") > 0).height,
        "wrong": read_cases(report, pick_wrong(report, measure), measure),
        "uncertain": read_cases(report, pick_uncertain(report, measure), measure),
        "rules": report.judged(measure)["rule"].unique().sort().to_list(),
        "dearest": f"{DEAREST:g}",
        "command": read_command(manifest),
        "facts": read_facts(manifest),
        "manifest": json.dumps(manifest, indent=2, ensure_ascii=False, default=str),
    }


def _by_measure(report: ReportInput) -> list[tuple[str, list[dict[str, Any] | None]]]:
    """A row per name, a cell per measure: all items, the mean over suites, then each phenomenon."""
    lines = [("all items", "overall", None), ("mean over suites", "macro", None)]
    names = report.estimated("phenomenon", report.measures[0])["name"].to_list()
    lines += [(name, "phenomenon", name) for name in names if len(names) > 1]
    table = []
    for shown, level, name in lines:
        cells = []
        for measure in report.measures:
            rows = report.estimated(level, measure)
            cells.append(_first(rows if name is None else rows.filter(pl.col("name") == name)))
        table.append((shown, cells))
    return table


def _first(rows: pl.DataFrame) -> dict[str, Any] | None:
    return None if rows.is_empty() else rows.row(0, named=True)


def _tint(logprob: float | None) -> str:
    """How strongly a cell is coloured: nothing for a certain token, fully from DEAREST nats on."""
    return "0" if logprob is None else f"{min(max(-logprob / DEAREST, 0.0), 1.0):.2f}"
