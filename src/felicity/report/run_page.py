"""The page of one run: the frame of every page, with a large number, sentences by token and the audit."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from felicity.core.contrasts import ACCURACY
from felicity.core.policy import describe_policies
from felicity.core.schemas import NOT_CHECKED
from felicity.report import wording
from felicity.report.examples import choose_window, pick_uncertain, pick_wrong, read_cases
from felicity.report.page import Page, Provenance, render_page, write_page
from felicity.report.run_estimates import build_estimates, build_figures, build_margins
from felicity.report.run_sections import build_extras
from felicity.report.run_tables import ReportInput

HANDLED = ("command", "model", "dataset", "versions", "score")
FULL_TINT = 16.0
TEMPLATE = "run.html.j2"
EYEBROW = "felicity report"


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


def _rows(value: Any, term: str, *, skip: str = "") -> list[tuple[str, str]]:
    if value is None:
        return []
    if not isinstance(value, Mapping):
        return [(term, wording.write_value(value))]
    return [
        (str(key).replace("_", " "), wording.write_value(content))
        for key, content in value.items()
        if key != skip
    ]


def write_report(report: ReportInput, folder: Path) -> Path:
    """Write `report.html` and its figures into `folder`; returns the page's path.

    Raises FelicityError if the folder cannot be written.
    """
    page = build_run_page(report)
    shown = {figure.name for figure in page.figures}
    figures = build_figures(report, heading=_heading(report))
    return write_page(
        page,
        _provenance(report),
        folder / "report.html",
        eyebrow=EYEBROW,
        template=TEMPLATE,
        more=_content(report, page),
        beside=[figure for name, figure in figures.items() if name not in shown],
    )


def render_report(report: ReportInput) -> str:
    """The whole page as text; equal input gives equal bytes."""
    page = build_run_page(report)
    return render_page(
        page,
        _provenance(report),
        eyebrow=EYEBROW,
        template=TEMPLATE,
        more=_content(report, page),
    )


def build_run_page(report: ReportInput) -> Page:
    """What the page of a run shows, but for its number, its items and its audit."""
    figures = build_figures(report, heading=_heading(report))
    sections = [*build_estimates(report, figures), *build_extras(report, heading=_heading(report))]
    return Page(
        title=read_name(report.manifest, "model"),
        subject=read_name(report.manifest, "dataset"),
        question=ask_question(report),
        answer=give_answer(report),
        sections=(*sections, *filter(None, [build_margins(report, figures)])),
        legend=_describe_size(report),
    )


def _heading(report: ReportInput) -> str:
    return f"{read_name(report.manifest, 'model')} on {read_name(report.manifest, 'dataset')}"


def _provenance(report: ReportInput) -> Provenance:
    return Provenance(
        command=read_command(report.manifest),
        created=str(report.manifest.get("created") or ""),
        version=str(report.manifest.get("felicity") or ""),
        policies=describe_policies({"": _read_model(report.manifest)}),
    )


def _describe_size(report: ReportInput) -> str:
    """How many items, suites, phenomena and measures there are."""
    measure, others = report.measures[0], len(report.measures) - 1
    overall = report.estimated("overall", measure).row(0, named=True)
    phenomena = report.estimated("phenomenon", measure).height
    said = wording.counted(overall["n"], "pair" if report.pairs else "item")
    if overall["suites"] > 1:
        said += f" in {wording.counted(overall['suites'], 'suite')}"
        if 1 < phenomena != overall["suites"]:
            said += f" of {wording.counted(phenomena, 'phenomenon', 'phenomena')}"
    sample = (report.manifest.get("options") or {}).get("sample")
    said += f", a sample of at most {wording.counted(sample, 'item')} per suite" if sample else ""
    return f"{said}; measure {measure}" + (f" and {wording.counted(others, 'other')}." if others else ".")


def _content(report: ReportInput, page: Page) -> dict[str, Any]:
    """What the blocks of the run's own template need."""
    measure = report.measures[0]
    manifest = report.manifest
    return {
        "headline": report.headline,
        "explorer": report.explorer,
        "measure": measure,
        "pairs": report.pairs,
        "chance": report.chance,
        "noun": "pair" if report.pairs else "item",
        "overall": report.estimated("overall", measure).row(0, named=True),
        "macro": next(iter(report.estimated("macro", measure).to_dicts()), None),
        "lang": _read_language(manifest),
        "languages": report.estimated("language", measure).height,
        "audit": report.audit.to_dicts(),
        "findings": report.audit.filter(pl.col("count") > 0, pl.col("check") != NOT_CHECKED).height,
        "wrong": read_cases(report, pick_wrong(report, measure), measure),
        "uncertain": read_cases(report, pick_uncertain(report, measure), measure),
        "rules": report.judged(measure)["rule"].unique().sort().to_list(),
        "dearest": FULL_TINT,
        "facts": read_facts(manifest),
        "manifest": json.dumps(manifest, indent=2, ensure_ascii=False, default=str),
        "links": [
            *((section.name, section.title) for section in page.sections),
            *([("items", "Items to read")] if report.headline.margin else []),
            ("audit", "Audit"),
        ],
        "choose_window": choose_window,
        "tint": _tint,
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
    which = f"By {report.measures[0]}, " if len(report.measures) > 1 else ""
    said = f"{which}{wording.percent(share)}%, 95% CI {span}"
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


def _tint(logprob: float | None) -> str:
    """The strength of a cell's colour: none for a certain token, full from FULL_TINT nats on."""
    return "0" if logprob is None else f"{min(max(-logprob / FULL_TINT, 0.0), 1.0):.2f}"
