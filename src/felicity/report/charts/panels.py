"""Small multiples: panels in a grid with shared axes, all positions computed in pixels.

Computing them here, not in Vega, makes a drawing the same on every machine and keeps every label readable.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, NamedTuple

from felicity.report.charts.canvas import LIGHT, Canvas, Spec, finish, plot
from felicity.report.wording import MINUS

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
LETTER = 6.3
ROW = 18
TITLE = 22.0
TITLE_LINE = 14.0
UNDER = 26.0
AXIS_TITLE = 24.0
LABEL = 6.6


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A linear scale with its ticks; `signed` writes a plus sign above zero."""

    title: str
    low: float
    high: float
    ticks: tuple[float, ...]
    signed: bool = False

    @classmethod
    def around(
        cls, values: Sequence[float], *, title: str, ticks: int = 5, signed: bool = False, room: float = 0.0
    ) -> "Axis":
        """A scale that contains all values, its ends on round ticks or `room` (a share) beyond the values."""
        low, high = min(values, default=0.0), max(values, default=1.0)
        if high <= low:
            low, high = low - 1.0, high + 1.0
        step = round_step((high - low) / ticks)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if room:
            low, high = low - room * (high - low), high + room * (high - low)
        else:
            low, high = first * step, last * step
        marks = [round(place * step, 10) for place in range(first, last + 1)]
        kept = tuple(mark for mark in marks if low - 1e-9 <= mark <= high + 1e-9)
        return cls(title=title, low=low, high=high, ticks=kept, signed=signed)

    def share(self, value: float) -> float:
        """The position of a value between the ends, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)

    def write(self, value: float) -> str:
        """A tick label."""
        text = f"{value:,g}" if abs(value) < 1e5 else f"{value:.0e}"
        return text.replace("-", MINUS) if value <= 0 or not self.signed else f"+{text}"


def round_step(rough: float) -> float:
    """The next number of the form 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in STEPS if factor * power >= rough * 0.999)


class LineStyle(NamedTuple):
    """A role of the theme and a dash pattern: a series has both, so that colour is not needed."""

    role: str
    dash: tuple[int, ...] = ()


LINE_STYLES: tuple[LineStyle, ...] = (
    LineStyle("accent"),
    LineStyle("bad", (6, 3)),
    LineStyle("good", (2, 3)),
    LineStyle("ink", (8, 3, 2, 3)),
    LineStyle("tie"),
    LineStyle("soft", (4, 4)),
    LineStyle("good"),
    LineStyle("bad", (2, 3)),
    LineStyle("accent", (6, 3)),
    LineStyle("ink"),
)


class LegendEntry(NamedTuple):
    """One name of a legend: its row from the top and its distance from the left in pixels."""

    name: str
    row: int
    at: float


def choose_styles(names: Sequence[str], given: Mapping[str, LineStyle] | None = None) -> dict[str, LineStyle]:
    """A style for each name: the given one, else the next of the palette."""
    given = given or {}
    return {name: given.get(name, LINE_STYLES[place % len(LINE_STYLES)]) for place, name in enumerate(names)}


def place_legend(names: Sequence[str], width: float) -> list[LegendEntry]:
    """The position of each name, as many in a row as fit."""
    placed: list[LegendEntry] = []
    row, at = 0, 0.0
    for name in names:
        needed = 34 + LETTER * len(name) + 18
        if at and at + needed > width:
            row, at = row + 1, 0.0
        placed.append(LegendEntry(name, row, at))
        at += needed
    return placed


def legend_height(entries: Sequence[LegendEntry]) -> float:
    """The height of the legend above the figure."""
    return 14 + ROW * (max((entry.row for entry in entries), default=-1) + 1)


def draw_legend(entries: Sequence[LegendEntry], styles: Mapping[str, LineStyle]) -> list[Any]:
    """The legend's marks, to be laid over a figure whose top is at 0."""
    import altair as alt

    rows = max((entry.row for entry in entries), default=0) + 1
    marks = []
    for name, row, at in entries:
        role, dash = styles[name]
        level = alt.value(-12 - ROW * (rows - 1 - row))
        stroke = plot([{"name": name}]).mark_rule(
            color=LIGHT[role], strokeDash=list(dash), strokeWidth=2.5, aria=False
        )
        text = plot([{"name": name}]).mark_text(
            align="left", baseline="middle", fontSize=12, color=LIGHT["soft"], aria=False
        )
        marks += [
            stroke.encode(x=alt.value(at), x2=alt.value(at + 26), y=level),
            text.encode(x=alt.value(at + 34), y=level, text=alt.Text("name:N")),
        ]
    return marks


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Positions of the panels; `left` and `right` are the margins of the figure, all else is inside them."""

    titles: tuple[str, ...]
    x: Axis
    y: Axis
    columns: int
    left: float
    right: float
    gap: float
    width: float
    panel_width: float
    panel_height: float

    @classmethod
    def choose(
        cls, titles: Sequence[str], *, x: Axis, y: Axis, canvas: Canvas, columns: int, height: float
    ) -> "Grid":
        """A grid for a page width, with at most two columns on a narrow page."""
        # Four panels look better two by two than three and one.
        most = min(columns, 2 if canvas.narrow or len(titles) == 4 else columns)
        columns = max(1, min(len(titles), most))
        left = 42 + LABEL * max((len(y.write(tick)) for tick in y.ticks), default=1)
        right, gap = (12.0, 16.0) if canvas.narrow else (24.0, 26.0)
        width = canvas.width - left - right
        return cls(
            titles=tuple(titles),
            x=x,
            y=y,
            columns=columns,
            left=left,
            right=right,
            gap=gap,
            width=width,
            panel_width=(width - gap * (columns - 1)) / columns,
            panel_height=height,
        )

    @property
    def rows(self) -> int:
        """The number of rows of panels."""
        return -(-len(self.titles) // self.columns)

    @property
    def row_height(self) -> float:
        """A panel with its title and the labels under it."""
        return self.over + self.panel_height + self.under

    @property
    def over(self) -> float:
        """The space above a panel: for its title, in as many lines as the longest title takes."""
        lines = max((len(self.break_title(title)) for title in self.titles), default=0)
        return TITLE + TITLE_LINE * (lines - 1) if lines else 6.0

    @property
    def under(self) -> float:
        """The space below a panel, larger if another panel follows."""
        return UNDER if self.rows == 1 else UNDER + 14

    @property
    def height(self) -> float:
        """All rows together with the title of the x axis."""
        return self.rows * self.row_height + AXIS_TITLE

    def across(self, panel: int, value: float) -> float:
        """The horizontal position of a value in a panel."""
        return (panel % self.columns) * (self.panel_width + self.gap) + self.x.share(value) * self.panel_width

    def down(self, panel: int, value: float) -> float:
        """The vertical position of a value in a panel."""
        bottom = (panel // self.columns + 1) * self.row_height - self.under
        return bottom - self.y.share(value) * self.panel_height

    def break_title(self, title: str) -> list[str]:
        """A title broken into lines no wider than a panel."""
        return wrap(title, max(8, int(self.panel_width / LABEL)))

    def place(self) -> dict[str, Any]:
        """The encodings that take x and y as pixels of this grid."""
        import altair as alt

        x = alt.Scale(domain=[0, self.width], nice=False, zero=False)
        y = alt.Scale(domain=[self.height, 0], nice=False, zero=False)
        return {"x": alt.X("x:Q", scale=x, axis=None), "y": alt.Y("y:Q", scale=y, axis=None)}


def draw_frames(grid: Grid, *, level: float | None = None) -> list[Any]:
    """Lines, tick labels and titles of all panels, with a dashed horizontal line at `level`."""
    import altair as alt

    rules, texts = [], []
    shown = _shown_ticks(grid)
    for panel, title in enumerate(grid.titles):
        start, end = grid.across(panel, grid.x.low), grid.across(panel, grid.x.high)
        top, bottom = grid.down(panel, grid.y.high), grid.down(panel, grid.y.low)
        texts += [
            _text(line, start, top - 12 - TITLE_LINE * back, "left")
            for back, line in enumerate(reversed(grid.break_title(title)))
        ]
        for tick in grid.y.ticks:
            rules.append({"x": start, "x2": end, "y": grid.down(panel, tick), "level": tick == level})
            if panel % grid.columns == 0:
                texts.append(_text(grid.y.write(tick), start - 8, grid.down(panel, tick), "right"))
        texts += [
            _text(grid.x.write(tick), grid.across(panel, tick), bottom + 14, "center") for tick in shown
        ]
    if level is not None and level not in grid.y.ticks:
        rules += [
            {"x": rule["x"], "x2": rule["x2"], "y": grid.down(panel, level), "level": True}
            for panel, rule in enumerate(rules[:: len(grid.y.ticks)])
        ]
    texts.append(_text(grid.x.title, grid.width / 2, grid.height - 8, "center"))
    places = grid.place()
    marks = []
    for kind, style in (
        (False, {"color": LIGHT["faint"]}),
        (True, {"color": LIGHT["soft"], "strokeDash": [3, 4]}),
    ):
        own = [rule for rule in rules if rule["level"] is kind]
        if own:
            marks.append(plot(own).mark_rule(**style, aria=False).encode(**places, x2=alt.X2("x2:Q")))
    for align, role in (("left", "ink"), ("right", "soft"), ("center", "soft")):
        own = [text for text in texts if text["align"] == align]
        mark = plot(own).mark_text(align=align, baseline="middle", fontSize=12, color=LIGHT[role], aria=False)
        marks.append(mark.encode(**places, text=alt.Text("word:N")))
    side = plot([{"word": grid.y.title}]).mark_text(
        angle=270, baseline="middle", fontSize=12, color=LIGHT["soft"], aria=False
    )
    middle = alt.value((grid.height - AXIS_TITLE) / 2)
    marks.append(side.encode(x=alt.value(14 - grid.left), y=middle, text=alt.Text("word:N")))
    return marks


def finish_panels(
    marks: Sequence[Any],
    grid: Grid,
    legend: Sequence[str],
    styles: Mapping[str, LineStyle],
    *,
    title: str,
    subtitle: str,
) -> Spec:
    """The marks of all panels under a legend of these names, as a specification."""
    import altair as alt

    entries = place_legend(legend, grid.width)
    above = draw_legend(entries, styles) if entries else []
    return finish(
        alt.layer(*marks, *above).properties(width=grid.width, height=grid.height),
        margins={"left": grid.left, "right": grid.right, "top": legend_height(entries), "bottom": 6},
        title=title,
        subtitle=subtitle,
    )


def _shown_ticks(grid: Grid) -> list[float]:
    """As many ticks of the x axis as have room for their labels."""
    ticks = list(grid.x.ticks)
    longest = max((len(grid.x.write(tick)) for tick in ticks), default=1)
    most = max(2, int(grid.panel_width // (LABEL * longest + 14)))
    return ticks[:: -(-len(ticks) // most)] if ticks else []


def _text(word: str, x: float, y: float, align: str) -> dict[str, Any]:
    return {"word": word, "x": x, "y": y, "align": align}
