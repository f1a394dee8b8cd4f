"""The report page: one self-contained HTML file, and its figures as files."""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from felicity.core.contrasts import ACCURACY
from felicity.core.files import replacing
from felicity.core.policy import describe_policies
from felicity.report import wording
from felicity.report.charts import DARK, LIGHT, convert_svg, css_variables, draw_inline, draw_svg
from felicity.report.examples import choose_window, pick_uncertain, pick_wrong, read_cases
from felicity.report.explorer_links import link_items
from felicity.report.run_tables import ReportInput
from felicity.report.sections import Figure, Section, build_extras, build_figures

HANDLED = ("command", "model", "dataset", "versions", "score")
MOST_SUITES = 300
# The formats that every figure is written in, beside the page.
FILES = ("svg", "png", "pdf")
FULL_TINT = 16.0
WORDS = (
    "format_date",
    "format_interval",
    "percent",
    "decimal",
    "signed",
    "bits",
    "signed_bits",
    "count",
    "counted",
    "spaced",
    "unit",
)


class Facts(NamedTuple):
    """A heading and the rows under it."""

    heading: str
    rows: list[tuple[str, str]]


def read_facts(manifest: Mapping[str, Any]) -> list[Facts]:
    """Everything in the manifest, grouped."""
    model = manifest.get("model")
    policy = model.get("policy") if isinstance(model, Mapping) else None
    rest = {key: value for key, value in manifest.items() if key not in HANDLED}
    groups = [
        Facts("Model", _rows(model, "name", skip="policy")),
        Facts("Scoring policy", _rows(policy, "policy")),
        Facts("Data", _rows(manifest.get("dataset"), "name")),
        Facts("Run", _rows(rest, "run")),
        Facts("Software", _rows(manifest.get("versions"), "version")),
    ]
    return [group for group in groups if group.rows]


def read_command(manifest: Mapping[str, Any]) -> str:
    """The command line that made the run, quoted for a shell; empty if it is not known."""
    command = manifest.get("command") or ""
    return command if isinstance(command, str) else shlex.join(str(word) for word in command)


def read_name(manifest: Mapping[str, Any], key: str) -> str:
    """The name of the model or the dataset in the manifest."""
    value = manifest.get(key)
    name = value.get("name") if isinstance(value, Mapping) else value
    return str(name) if name else f"unnamed {key}"


def _read_model(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    model = manifest.get("model")
    return model if isinstance(model, Mapping) else {}


def read_date(manifest: Mapping[str, Any]) -> str:
    """The date of the run, without the time of day."""
    return wording.format_date(manifest.get("created"))


def _rows(value: Any, term: str, *, skip: str = "") -> list[tuple[str, str]]:
    if value is None:
        return []
    if not isinstance(value, Mapping):
        return [(term, _write(value))]
    return [(str(key).replace("_", " "), _write(content)) for key, content in value.items() if key != skip]


def _write(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        # Years and seeds are harder to read with a comma; only long counts are easier.
        return f"{value:,}" if abs(value) >= 100_000 else str(value)
    if isinstance(value, str):
        return value if value.strip() else repr(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_write(content)}" for key, content in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(_write(content) for content in value) or "none"
    return str(value)


def export_figures(figures: Iterable[Figure], folder: Path, *, endings: Sequence[str]) -> None:
    """Write each figure, with its title, as `folder`/figures/NAME.ENDING (svg, png or pdf).

    Files are written atomically. Raises FelicityError if the folder cannot be written.
    """
    for figure in figures:
        svg = draw_svg(figure.slide())
        for ending in endings:
            with replacing(folder / "figures" / f"{figure.name}.{ending}") as part:
                part.write_bytes(convert_svg(svg, ending))


def write_report(report: ReportInput, folder: Path) -> Path:
    """Write `report.html` and `figures/*.svg`, `figures/*.png` into `folder`; returns the page's path.

    Files are written atomically. Raises FelicityError if the folder cannot be written.
    """
    extras = build_extras(report, heading=_heading(report))
    figures = _all_figures(report, extras)
    export_figures(figures.values(), folder, endings=FILES)
    page = folder / "report.html"
    with replacing(page) as part:
        part.write_text(_fill(report, figures, extras), encoding="utf-8")
    return page


def render_report(report: ReportInput) -> str:
    """The whole page as text; equal input gives equal bytes."""
    extras = build_extras(report, heading=_heading(report))
    return _fill(report, _all_figures(report, extras), extras)


def _all_figures(report: ReportInput, extras: list[Section]) -> dict[str, Figure]:
    figures = build_figures(report, heading=_heading(report))
    return figures | {figure.name: figure for extra in extras for figure in extra.figures}


def _heading(report: ReportInput) -> str:
    return f"{read_name(report.manifest, 'model')} on {read_name(report.manifest, 'dataset')}"


def _fill(report: ReportInput, figures: dict[str, Figure], extras: list[Section]) -> str:
    return render_template("report.html.j2", _content(report) | {"extras": extras}, figures)


def render_template(name: str, content: dict[str, Any], figures: dict[str, Figure]) -> str:
    """A page from one of the templates, with its style sheet and its figures inlined."""
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
    environment.globals.update(choose_window=choose_window, tint=_tint, link_items=link_items)

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


def _content(report: ReportInput) -> dict[str, Any]:
    measure = report.measures[0]
    manifest = report.manifest
    suites = report.estimated("suite", measure)
    homes = report.judged(measure).select("phenomenon", name="suite").unique(subset="name", keep="any")
    return {
        "heading": _heading(report),
        "question": ask_question(report),
        "answer": give_answer(report),
        "headline": report.headline,
        "explorer": report.explorer,
        "model": read_name(manifest, "model"),
        "dataset": read_name(manifest, "dataset"),
        "created": read_date(manifest),
        "version": manifest.get("felicity"),
        "measure": measure,
        "measures": report.measures,
        "pairs": report.pairs,
        "chance": report.chance,
        "noun": "pair" if report.pairs else "item",
        "overall": report.estimated("overall", measure).row(0, named=True),
        "macro": _first(report.estimated("macro", measure)),
        "lang": _read_language(manifest),
        "languages": report.estimated("language", measure).to_dicts(),
        "phenomena": report.estimated("phenomenon", measure).to_dicts(),
        "suites": suites.join(homes, on="name", how="left").head(MOST_SUITES).to_dicts(),
        "suites_in_all": suites.height,
        "by_measure": _by_measure(report),
        "audit": report.audit.to_dicts(),
        "findings": report.audit.filter(pl.col("count") > 0).height,
        "wrong": read_cases(report, pick_wrong(report, measure), measure),
        "uncertain": read_cases(report, pick_uncertain(report, measure), measure),
        "rules": report.judged(measure)["rule"].unique().sort().to_list(),
        "dearest": FULL_TINT,
        "command": read_command(manifest),
        "policy": describe_policies({"": _read_model(manifest)}),
        "facts": read_facts(manifest),
        "manifest": json.dumps(manifest, indent=2, ensure_ascii=False, default=str),
    }


def ask_question(report: ReportInput) -> str:
    """What the run asks, in one sentence."""
    data, noun = read_name(report.manifest, "dataset"), "pairs" if report.pairs else "items"
    if report.headline.kind == "concordance":
        return f"Does {read_name(report.manifest, 'model')} order the sentences of {data} as people do?"
    if report.headline.passed == ACCURACY.passed:
        return f"How many of the {noun} of {data} does {read_name(report.manifest, 'model')} judge right?"
    return f"How many of the {noun} of {data} come out {report.headline.passed}?"


def give_answer(report: ReportInput) -> str:
    """What came out, how sure it is, and on which side of guessing it is, in one sentence."""
    overall = report.estimated("overall", report.measures[0]).row(0, named=True)
    share, low, high = (overall[key] for key in ("accuracy", "low", "high"))
    span = wording.format_interval(low, high, wording.percent)
    said = f"{wording.percent(share)}%, 95% CI {span}"
    if report.chance is None or low is None or high is None:
        return f"{said}."
    guess = f"{report.headline.chance_name} ({wording.percent(report.chance).removesuffix('.0')}%)"
    if low <= report.chance <= high:
        return f"{said}: no detectable difference from {guess}."
    return f"{said}: {'above' if low > report.chance else 'below'} {guess}."


def _read_language(manifest: Mapping[str, Any]) -> str:
    """The language of all sentences, for fonts and screen readers; empty if not stated or several."""
    tags = manifest.get("options", {}).get("languages", [])
    return str(tags[0]) if len(tags) == 1 else ""


def _by_measure(report: ReportInput) -> list[tuple[str, list[dict[str, Any] | None]]]:
    """One row per name, one cell per measure: all items, the mean over suites, then each phenomenon."""
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
    """The strength of a cell's colour: none for a certain token, full from FULL_TINT nats on."""
    return "0" if logprob is None else f"{min(max(-logprob / FULL_TINT, 0.0), 1.0):.2f}"
