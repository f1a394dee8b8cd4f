"""Accuracy as dots with intervals, one row per name: phenomena, suites or measures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from felicity.report.charts.canvas import LIGHT, Canvas, Spec, finish, plot
from felicity.report.wording import count, format_interval, percent

GLYPH_WIDTH = 6.9
LONGEST_NAME = 330.0
FEW_ROWS = 24


class Row(NamedTuple):
    """One estimate to draw.

    parts: the accuracies of its components, drawn behind it. link: where its name, its dot and its bar lead.
    """

    name: str
    accuracy: float
    low: float
    high: float
    n: int
    parts: tuple[float, ...] = ()
    link: str = ""


@dataclass(frozen=True)
class Layout:
    """Positions: names in a margin if there is room, otherwise above their row."""

    narrow: bool
    left: float
    right: float
    width: float
    step: float
    floor: float

    @classmethod
    def choose(cls, rows: Sequence[Row], *, canvas: Canvas, chance: float | None) -> "Layout":
        """The layout for a page width, the number of rows and the longest name."""
        floor = _floor(rows, chance=chance)
        if canvas.narrow:
            return cls(narrow=True, left=16, right=16, width=canvas.width - 32, step=50, floor=floor)
        longest = GLYPH_WIDTH * max(len(row.name) for row in rows)
        left = min(max(longest, 80), LONGEST_NAME) + 20
        right = 206
        step = 34 if len(rows) <= FEW_ROWS else 22
        width = canvas.width - left - right
        return cls(narrow=False, left=left, right=right, width=width, step=step, floor=floor)

    def dot_at(self, place: int) -> float:
        """The vertical position of a row's dot."""
        return self.step * place + (34 if self.narrow else self.step / 2)

    def name_at(self, place: int) -> float:
        """The vertical position of a row's name."""
        return self.step * place + (14 if self.narrow else self.step / 2)


def _floor(rows: Sequence[Row], *, chance: float | None) -> float:
    lowest = min(100 * min(row.accuracy, row.low, *row.parts, 1.0) for row in rows)
    if chance is not None:
        lowest = min(lowest, 100 * chance - 2)
    return max(0.0, 10 * (lowest // 10))


def chart_accuracy(
    rows: Sequence[Row],
    *,
    canvas: Canvas,
    chance: float | None,
    noun: str,
    chance_name: str = "chance",
    title: str = "",
    subtitle: str = "",
) -> Spec:
    """Dots, intervals, names and numbers; a dashed line at the share that guessing would give, if known."""
    import altair as alt

    layout = Layout.choose(rows, canvas=canvas, chance=chance)
    height = layout.step * len(rows)
    marks = [
        *(_chance(100 * chance, chance_name, len(rows), layout) if chance is not None else []),
        *_parts(rows, layout),
        *_dots(rows, layout),
        *_words(rows, layout, noun=noun),
    ]
    y = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False, zero=False), axis=None)
    return finish(
        alt.layer(*[mark.encode(y=y) for mark in marks]).properties(width=layout.width, height=height),
        margins={"left": layout.left, "right": layout.right, "top": 30, "bottom": 30},
        title=title,
        subtitle=subtitle,
    )


def _across(field: str, layout: Layout) -> Any:
    import altair as alt

    ticks = [value for value in range(0, 101, 10 if layout.floor >= 40 else 25) if value >= layout.floor]
    return alt.X(
        f"{field}:Q",
        scale=alt.Scale(domain=[layout.floor, 100], nice=False, zero=False),
        axis=alt.Axis(
            values=ticks,
            labelExpr="datum.value + '%'",
            labelFlush=False,
            title=None,
            grid=not layout.narrow,
        ),
    )


def _chance(at: float, name: str, rows: int, layout: Layout) -> list[Any]:
    import altair as alt

    # In a narrow figure names are between the rows; an unbroken line would strike them through.
    half = 11 if layout.narrow else layout.step / 2
    records = [
        {"at": at, "y": layout.dot_at(place) - half, "to": layout.dot_at(place) + half}
        for place in range(rows)
    ]
    word = plot([{"at": at, "y": 0, "word": name}])
    dash = {"strokeDash": [3, 4], "strokeWidth": 1.25, "color": LIGHT["soft"]}
    return [
        plot(records).mark_rule(**dash, aria=False).encode(x=_across("at", layout), y2=alt.Y2("to:Q")),
        word.mark_text(dy=-12, fontSize=12, color=LIGHT["soft"], aria=False).encode(
            x=_across("at", layout), text=alt.Text("word:N")
        ),
    ]


def _parts(rows: Sequence[Row], layout: Layout) -> list[Any]:
    records = [
        {"y": layout.dot_at(place), "accuracy": 100 * part}
        for place, row in enumerate(rows)
        for part in row.parts
    ]
    if not records:
        return []
    tick = plot(records).mark_tick(thickness=1.5, size=11, color=LIGHT["tie"], opacity=0.7, aria=False)
    return [tick.encode(x=_across("accuracy", layout))]


def _dots(rows: Sequence[Row], layout: Layout) -> list[Any]:
    import altair as alt

    records = [
        {
            "y": layout.dot_at(place),
            "accuracy": 100 * row.accuracy,
            "low": 100 * row.low,
            "high": 100 * row.high,
            "link": row.link,
        }
        for place, row in enumerate(rows)
    ]
    href = {"href": alt.Href("link:N")} if any(row.link for row in rows) else {}
    span = {"size": 7, "cornerRadius": 3.5, "orient": "horizontal", "color": LIGHT["accent"], "opacity": 0.28}
    return [
        plot(records)
        .mark_bar(**span, aria=False)
        .encode(x=_across("low", layout), x2=alt.X2("high:Q"), **href),
        plot(records)
        .mark_circle(size=100, color=LIGHT["accent"], opacity=1, aria=False)
        .encode(x=_across("accuracy", layout), **href),
    ]


def _words(rows: Sequence[Row], layout: Layout, *, noun: str) -> list[Any]:
    records = [
        {
            "y": layout.name_at(place),
            "name": row.name,
            "link": row.link,
            "accuracy": percent(row.accuracy),
            "interval": format_interval(row.low, row.high, percent) if row.low < row.high else "",
            "n": count(row.n),
        }
        for place, row in enumerate(rows)
    ]
    body, edge = plot(records), layout.width
    linked = any(row.link for row in rows)
    if layout.narrow:
        return [
            _column(body, "name", at=0, align="left", color="ink", limit=edge - 50, linked=linked),
            _column(body, "accuracy", at=edge, color="ink", weight="bold"),
        ]
    heads = plot([{"y": 0, "accuracy": "%", "interval": "95% interval", "n": noun}])
    columns = {"accuracy": edge + 62, "interval": edge + 150, "n": edge + 204}
    return [
        _column(body, "name", at=-18, color="ink", limit=layout.left - 18, linked=linked),
        _column(body, "accuracy", at=columns["accuracy"], color="ink", weight="bold"),
        _column(body, "interval", at=columns["interval"], color="soft"),
        _column(body, "n", at=columns["n"], color="soft"),
        *(_column(heads, name, at=at, color="soft", rise=12) for name, at in columns.items()),
    ]


def _column(
    chart: Any,
    field: str,
    *,
    at: float,
    color: str,
    align: str = "right",
    weight: str = "normal",
    limit: float = 0,
    rise: float = 0,
    linked: bool = False,
) -> Any:
    import altair as alt

    text = chart.mark_text(
        x=at,
        align=align,
        baseline="middle",
        color=LIGHT[color],
        fontSize=12 if rise else 13,
        fontWeight=weight,
        limit=limit,
        dy=-rise,
        aria=False,
    )
    shown = text.encode(text=alt.Text(f"{field}:N"))
    return shown.encode(href=alt.Href("link:N")) if linked else shown
