"""Every page: the question, the answer, one figure, how sure it is, the evidence, and how it was made.

What a page shows is a `Page`; the one template, `page.html.j2`, says in which order. A page with parts of its
own (sentences token by token, a paper's tables) fills blocks of that template and adds nothing to its frame.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from felicity.core.files import replacing
from felicity.core.schemas import SIMULATED_MARK, SIMULATED_NOTE
from felicity.report import wording
from felicity.report.charts import DARK, LIGHT, convert_svg, css_variables, draw_inline, draw_svg
from felicity.report.explorer_links import link_items, remove_links
from felicity.report.sections import Figure, Section, mark_figure

# The formats that every figure is written in, beside the page.
FILES = ("svg", "png", "pdf")
FRAME = "page.html.j2"
# What messages put between backticks: commands, names of files.
CODE = re.compile("`([^`]+)`")
# The functions of `wording` that templates call.
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
    "write_value",
)

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


def write_page(
    page: Page,
    about: Provenance,
    path: Path,
    *,
    eyebrow: str,
    template: str = FRAME,
    more: Mapping[str, Any] | None = None,
    beside: Iterable[Figure] = (),
) -> Path:
    """Write a page and, beside it, its figures as files; returns the page's path.

    Figures with ratings of simulated raters say so, wherever they are shown. beside: figures that are files
    only. Files are written atomically. Raises FelicityError if the folder cannot be written.
    """
    page = _mark_simulated(page) if page.simulated else page
    export_figures((*page.figures, *beside), path.parent, endings=FILES)
    with replacing(path) as part:
        text = render_page(page, about, eyebrow=eyebrow, template=template, more=more)
        part.write_text(text, encoding="utf-8")
    return path


def render_page(
    page: Page,
    about: Provenance,
    *,
    eyebrow: str,
    template: str = FRAME,
    more: Mapping[str, Any] | None = None,
) -> str:
    """A page as text; equal input gives equal bytes.

    template: one that fills blocks of the frame. more: what those blocks need; `links` of it are the
    anchors and titles of all sections, where the template has more of them.
    """
    content = {
        "page": page,
        "about": about,
        "eyebrow": eyebrow,
        "most": MOST_FINDINGS,
        "files": FILES,
        "warning": SIMULATED_NOTE if page.simulated else "",
        "links": [(section.name, section.title) for section in page.sections],
        "explorer": "",
    }
    return render_template(
        template, content | dict(more or {}), {figure.name: figure for figure in page.figures}
    )


def export_figures(figures: Iterable[Figure], folder: Path, *, endings: Sequence[str]) -> None:
    """Write each figure, with its title, as `folder`/figures/NAME.ENDING (svg, png or pdf).

    Files are written atomically. Raises FelicityError if the folder cannot be written.
    """
    for figure in figures:
        svg = draw_svg(figure.slide())
        for ending in endings:
            with replacing(folder / "figures" / f"{figure.name}.{ending}") as part:
                part.write_bytes(convert_svg(svg, ending))


def render_template(name: str, content: Mapping[str, Any], figures: Mapping[str, Figure]) -> str:
    """A page from one of the templates, with its style sheet and its figures inlined."""
    import jinja2
    from markupsafe import Markup, escape

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("felicity.report", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update({name: getattr(wording, name) for name in WORDS}, link_items=link_items)
    environment.filters["code"] = lambda text: Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))

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
        draw=draw,
        css=inlined("report.css"),
        script=inlined("report.js"),
        light=css_variables(LIGHT),
        dark=css_variables(DARK),
    )
    return page.rstrip() + "\n"


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
