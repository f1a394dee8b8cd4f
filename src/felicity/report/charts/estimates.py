"""Estimates with their intervals around zero: coefficients of a model, differences between runs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from felicity.core.errors import BadInput
from felicity.core.files import replacing
from felicity.report.charts.canvas import LIGHT, SLIDE, Canvas, Spec, draw_png, draw_svg, finish, plot

STEP = 34
NAME_WIDTH = 7.2
ENDINGS = (".svg", ".png")


@dataclass(frozen=True)
class Estimate:
    """One row: a name, a value and its interval; `link` is where its dot and bar lead."""

    name: str
    value: float
    low: float
    high: float
    link: str = ""


def chart_estimates(
    rows: Sequence[Estimate],
    *,
    canvas: Canvas = SLIDE,
    title: str = "",
    subtitle: str = "",
    axis: str = "",
    levels: Mapping[str, float] | None = None,
) -> Spec:
    """A dot and a bar per row, a dashed line at zero; `levels` are further lines with their names above."""
    import altair as alt

    left = min(24 + NAME_WIDTH * max(len(row.name) for row in rows), 0.5 * canvas.width)
    marked = dict(levels or {})
    low = min(0.0, *(row.low for row in rows), *marked.values())
    high = max(0.0, *(row.high for row in rows), *marked.values())
    room = 0.04 * (high - low or 1.0)
    x = alt.X(
        "value:Q",
        scale=alt.Scale(domain=[low - room, high + room], nice=False),
        axis=alt.Axis(title=axis, tickCount=5 if canvas.narrow else 8),
    )
    labels = alt.Axis(title=None, labelLimit=left - 24, grid=False)
    y = alt.Y("name:N", sort=[row.name for row in rows], axis=labels)
    base = plot([row.__dict__ for row in rows])
    zero = plot([{"value": 0.0}]).mark_rule(strokeDash=[3, 3], color=LIGHT["soft"]).encode(x=x)
    bars = base.mark_rule(strokeWidth=6, opacity=0.28, strokeCap="round", color=LIGHT["accent"]).encode(
        x=alt.X("low:Q"), x2="high:Q", y=y
    )
    dots = base.mark_circle(size=95, opacity=1, color=LIGHT["accent"]).encode(x=x, y=y)
    if any(row.link for row in rows):
        bars, dots = (mark.encode(href=alt.Href("link:N")) for mark in (bars, dots))
    size = {"width": canvas.width - left - 40, "height": STEP * len(rows)}
    beyond = []
    for place, (name, value) in enumerate(marked.items()):
        line = plot([{"value": value, "word": name}])
        # Names of neighbouring lines stand above one another.
        style = {"color": LIGHT["bad"], "fontSize": 12, "y": -10 - 13 * (place % 2)}
        beyond += [
            line.mark_rule(color=LIGHT["bad"], strokeWidth=1.5).encode(x=x),
            line.mark_text(**style).encode(x=x, text=alt.Text("word:N")),
        ]
    return finish(
        alt.layer(zero, *beyond, bars, dots).properties(**size),
        margins={"left": left, "right": 40, "top": 40 if marked else 10, "bottom": 54 if axis else 34},
        title=title,
        subtitle=subtitle,
    )


def chart_curve(
    points: Sequence[tuple[float, float]],
    *,
    title: str,
    subtitle: str,
    x_title: str,
    y_title: str,
    goal: float,
) -> Spec:
    """A line from 0 to 1 over a number, with a dashed line at the goal."""
    import altair as alt

    x = alt.X("x:Q", axis=alt.Axis(title=x_title, grid=False))
    y = alt.Y("y:Q", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(title=y_title))
    line = plot([{"x": a, "y": b} for a, b in points]).mark_line(strokeWidth=3, color=LIGHT["accent"])
    aim = plot([{"y": goal}]).mark_rule(strokeDash=[3, 3], color=LIGHT["soft"]).encode(y=y)
    return finish(
        alt.layer(aim, line.encode(x=x, y=y)).properties(width=SLIDE.width - 120, height=320),
        margins={"left": 72, "right": 40, "top": 10, "bottom": 58},
        title=title,
        subtitle=subtitle,
    )


def write_figure(spec: Spec, path: Path) -> None:
    """Write one figure to a .svg or .png file.

    Raises BadInput for another ending.
    """
    if path.suffix.lower() not in ENDINGS:
        raise BadInput(f"{path} is not a supported figure; use a name that ends in .svg or .png.")
    with replacing(path) as part:
        if path.suffix.lower() == ".svg":
            part.write_text(draw_svg(spec), encoding="utf-8")
        else:
            part.write_bytes(draw_png(spec))
