"""The page of a study: the question, the answer, one figure, how sure it is, then the evidence."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from felicity.core.files import replacing
from felicity.core.schemas import SIMULATED_MARK, SIMULATED_NOTE
from felicity.report.explorer_links import remove_links
from felicity.report.page import FILES, export_figures, render_template
from felicity.report.sections import Figure, Section, mark_figure

# Findings beyond these are folded.
MOST_FINDINGS = 3


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a page shows, in this order.

    question, answer: one sentence each. hero: the figure that shows the answer, with chance, ceiling or zero.
    sure: how sure the answer is: interval, n, test, what is doubtful. findings: further results as
    sentences, the most important first. sections: the evidence. legend: what the words of the page mean.
    summary: the name of the section whose table the command prints; by default the first with a table.
    simulated: the page has ratings of simulated raters, and says so. unrated: the names of figures without
    ratings, which do not say so.
    """

    title: str
    subject: str
    question: str
    answer: str
    hero: Figure | None = None
    sure: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    legend: str = ""
    summary: str = ""
    simulated: bool = False
    unrated: tuple[str, ...] = ()

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Every figure, the main one first."""
        first = (self.hero,) if self.hero else ()
        return (*first, *(figure for section in self.sections for figure in section.figures))

    @property
    def table(self) -> Section | None:
        """The section whose table stands for the study in a terminal or a notebook."""
        chosen = [section for section in self.sections if section.name == self.summary and section.rows]
        return next(iter(chosen or [section for section in self.sections if section.rows]), None)


@dataclass(frozen=True, kw_only=True)
class Provenance:
    """How a page came about: what a reader needs to audit it and to make it again."""

    command: str = ""
    created: str = ""
    version: str = ""
    policies: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def write_page(page: Page, about: Provenance, path: Path, *, eyebrow: str) -> Path:
    """Write a page and, beside it, its figures as files; returns the page's path.

    Figures with ratings of simulated raters say so, wherever they are shown.
    """
    if page.simulated:
        page = _mark_simulated(page)
    figures = {figure.name: figure for figure in page.figures}
    export_figures(figures.values(), path.parent, endings=FILES)
    content = {
        "page": page,
        "about": about,
        "eyebrow": eyebrow,
        "most": MOST_FINDINGS,
        "files": FILES,
        "warning": SIMULATED_NOTE if page.simulated else "",
    }
    with replacing(path) as part:
        part.write_text(render_template("study.html.j2", content, figures), encoding="utf-8")
    return path


def _mark_simulated(page: Page) -> Page:
    """The page with figures of ratings that say that the raters are simulated."""

    def mark(figure: Figure) -> Figure:
        return figure if figure.name in page.unrated else mark_figure(figure, SIMULATED_MARK)

    sections = [replace(one, figures=tuple(mark(figure) for figure in one.figures)) for one in page.sections]
    return replace(page, hero=page.hero and mark(page.hero), sections=tuple(sections))


def render_snippet(page: Page) -> str:
    """The answer, its table and its figure as HTML for a notebook, which is far from the explorer's page."""
    figures = {page.hero.name: page.hero} if page.hero else {}
    warning = SIMULATED_NOTE if page.simulated else ""
    return remove_links(render_template("snippet.html.j2", {"page": page, "warning": warning}, figures))
