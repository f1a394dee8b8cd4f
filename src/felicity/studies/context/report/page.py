"""The report page of a context study: its sections in order, and its figures as files."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from felicity.core.files import replacing
from felicity.report import Figure, Section, export_figures, render_template
from felicity.studies.context.report.accuracy import (
    build_change,
    build_margins,
    build_models,
    build_perturbations,
    build_phenomena,
    build_ratio,
    build_regions,
    list_numbers,
    name_numbers,
)
from felicity.studies.context.report.contents import ContextPage
from felicity.studies.context.report.correlations import build_links, build_regression, build_unrelated
from felicity.studies.context.report.suites import build_gains, build_matrices

ENDINGS = ("svg", "png", "pdf")
BEFORE_LINKS: tuple[Callable[[ContextPage], Section | None], ...] = (
    build_change,
    build_phenomena,
    build_models,
    build_ratio,
    build_regression,
    build_unrelated,
)
AFTER_LINKS: tuple[Callable[[ContextPage], Section | None], ...] = (
    build_margins,
    build_gains,
    build_perturbations,
    build_matrices,
    build_regions,
)

__all__ = ["ContextPage", "render_context_page", "write_context_page"]


def write_context_page(study: ContextPage, folder: Path) -> Path:
    """Write report.html and figures/NAME.svg, .png and .pdf into `folder`; returns the page's path.

    Files are written atomically. Raises FelicityError if the folder cannot be written.
    """
    extras = build_sections(study)
    figures = _figures(extras)
    export_figures(figures.values(), folder, endings=ENDINGS)
    page = folder / "report.html"
    with replacing(page) as part:
        part.write_text(_fill(study, extras, figures), encoding="utf-8")
    return page


def render_context_page(study: ContextPage) -> str:
    """The whole page as text; equal studies give equal bytes."""
    extras = build_sections(study)
    return _fill(study, extras, _figures(extras))


def build_sections(study: ContextPage) -> list[Section]:
    """The sections that apply to this study, in the order of the page."""
    built = [
        *(build(study) for build in BEFORE_LINKS),
        *build_links(study),
        *(build(study) for build in AFTER_LINKS),
    ]
    found = [extra for extra in built if extra is not None]
    return found if len(study.models) > 1 else [_without_model(extra) for extra in found]


def _without_model(extra: Section) -> Section:
    """A section whose table does not repeat the name of the only model in every row."""
    if extra.columns[:1] != ("Model",):
        return extra
    rows = tuple(row[1:] for row in extra.rows)
    return replace(extra, columns=extra.columns[1:], rows=rows, names=extra.names - 1)


def _figures(extras: list[Section]) -> dict[str, Figure]:
    return {figure.name: figure for extra in extras for figure in extra.figures}


def _fill(study: ContextPage, extras: list[Section], figures: dict[str, Figure]) -> str:
    content: dict[str, Any] = {
        "study": study,
        "extras": extras,
        "files": ENDINGS,
        "numbers": list_numbers(study),
        "number_columns": name_numbers(study),
    }
    return render_template("context.html.j2", content, figures)
