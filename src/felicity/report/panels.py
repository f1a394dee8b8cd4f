"""Small multiples on one sheet: panels in a grid that share their axes, every place worked out in pixels.

Placing them here, not in Vega, keeps a drawing the same on any machine and every label where it can be read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from felicity.report.axes import Axis
from felicity.report.canvas import Canvas, plot
from felicity.report.theme import LIGHT

TITLE = 22.0
TITLE_LINE = 14.0
UNDER = 26.0
AXIS_TITLE = 24.0
LABEL = 6.6


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Where the panels stand; `left` and `right` are the sheet's margins, all else is inside them."""

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
        """A grid for a page's width, with at most two columns on a narrow one."""
        # Four panels stand better two by two than three and one.
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
        """How many rows of panels there are."""
        return -(-len(self.titles) // self.columns)

    @property
    def row_height(self) -> float:
        """A panel with its title and the labels under it."""
        return self.over + self.panel_height + self.under

    @property
    def over(self) -> float:
        """Room over a panel: for its title, in as many lines as the longest of the titles takes."""
        lines = max((len(self.break_title(title)) for title in self.titles), default=0)
        return TITLE + TITLE_LINE * (lines - 1) if lines else 6.0

    @property
    def under(self) -> float:
        """Room under a panel: more where another panel follows."""
        return UNDER if self.rows == 1 else UNDER + 14

    @property
    def height(self) -> float:
        """All rows together with the title of the x axis."""
        return self.rows * self.row_height + AXIS_TITLE

    def across(self, panel: int, value: float) -> float:
        """How far right a value of a panel stands."""
        return (panel % self.columns) * (self.panel_width + self.gap) + self.x.share(value) * self.panel_width

    def down(self, panel: int, value: float) -> float:
        """How far down a value of a panel stands."""
        bottom = (panel // self.columns + 1) * self.row_height - self.under
        return bottom - self.y.share(value) * self.panel_height

    def break_title(self, title: str) -> list[str]:
        """A title in lines that are no wider than a panel."""
        return wrap(title, max(8, int(self.panel_width / LABEL)))

    def place(self) -> dict[str, Any]:
        """The encodings that read x and y as pixels of this grid."""
        import altair as alt

        x = alt.Scale(domain=[0, self.width], nice=False, zero=False)
        y = alt.Scale(domain=[self.height, 0], nice=False, zero=False)
        return {"x": alt.X("x:Q", scale=x, axis=None), "y": alt.Y("y:Q", scale=y, axis=None)}


def draw_frames(grid: Grid, *, level: float | None = None) -> list[Any]:
    """Rules, tick labels and titles of all panels, with a dashed rule across at `level`."""
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
    for kind, look in (
        (False, {"color": LIGHT["faint"]}),
        (True, {"color": LIGHT["soft"], "strokeDash": [3, 4]}),
    ):
        own = [rule for rule in rules if rule["level"] is kind]
        if own:
            marks.append(plot(own).mark_rule(**look, aria=False).encode(**places, x2=alt.X2("x2:Q")))
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


def _shown_ticks(grid: Grid) -> list[float]:
    """As many ticks of the x axis as have room for their labels."""
    ticks = list(grid.x.ticks)
    longest = max((len(grid.x.write(tick)) for tick in ticks), default=1)
    most = max(2, int(grid.panel_width // (LABEL * longest + 14)))
    return ticks[:: -(-len(ticks) // most)] if ticks else []


def _text(word: str, x: float, y: float, align: str) -> dict[str, Any]:
    return {"word": word, "x": x, "y": y, "align": align}
