"""What every page is made of: figures, and sections with their tables."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from felicity.report.charts import NARROW, SLIDE, WIDE, Spec
from felicity.report.explorer_links import Linked


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One picture in three formats: for a slide, for a wide page and for a narrow one.

    label: the text alternative for readers who cannot see it.
    """

    name: str
    title: str
    subtitle: str
    label: str
    chart: Callable[..., Spec]

    def slide(self) -> Spec:
        """Standalone, with its title."""
        return self.chart(canvas=SLIDE, title=self.title, subtitle=self.subtitle)

    def wide(self) -> Spec:
        """Under a heading of a wide page."""
        return self.chart(canvas=WIDE)

    def narrow(self) -> Spec:
        """Under a heading of a narrow page."""
        return self.chart(canvas=NARROW)


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section: a heading, a sentence, figures, and a table of texts.

    names: how many of the first columns are text, the rest being numbers; wide: the columns that only wide
    windows show. notes: sentences under the table. folded: whether the table is shown only on demand, as
    tables under figures are.
    """

    name: str
    title: str
    lede: str
    figures: tuple[Figure, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    names: int = 1
    wide: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    folded: bool = False


def mark_figure(figure: Figure, mark: str) -> Figure:
    """A figure whose subtitle ends with a mark."""
    return replace(figure, subtitle=" · ".join(part for part in (figure.subtitle, mark) if part))


class Bar(Linked):
    """An interval with its estimate, drawn from 0 to 1 beside its text; a chance of one half is marked."""

    estimate: float | None
    low: float | None
    high: float | None
    chance: float | None

    @classmethod
    def draw(cls, text: str, href: str, row: Mapping[str, Any], *, chance: float | None) -> "Bar":
        """The bar of a row of estimates (accuracy, low, high)."""
        made = cls(text, href)
        made.estimate, made.low, made.high, made.chance = row["accuracy"], row["low"], row["high"], chance
        return made
