"""Values along an axis, one line a series: surprisal by region, accuracy by difference in length."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from felicity.report.canvas import Canvas, finish, plot
from felicity.report.drawing import Spec
from felicity.report.legend import choose_looks, draw_legend, legend_height, place_legend
from felicity.report.theme import LIGHT

MOST_SERIES = 6
ASIDE = 0.05


class Point(NamedTuple):
    """One value of a series; `low` and `high` where it has an interval."""

    series: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None


def chart_lines(
    points: Sequence[Point],
    *,
    canvas: Canvas,
    x_title: str,
    y_title: str,
    labels: Sequence[str] = (),
    level: float | None = None,
    title: str = "",
    subtitle: str = "",
) -> Spec:
    """Lines with dots, intervals where there are any; `labels` name the places of the x axis from 0 on.

    A dashed line across marks `level`, if one is given.
    """
    import altair as alt

    left, right, height = (44, 14, 200) if canvas.narrow else (64, 28, 260)
    width = canvas.width - left - right
    series = list(dict.fromkeys(point.series for point in points))
    entries, looks = place_legend(series, width), choose_looks(series)
    x = _x_axis(points, labels, x_title, canvas)
    y = alt.Y("y:Q", axis=alt.Axis(title=y_title, tickCount=5), scale=alt.Scale(zero=True, nice=True))
    marks: list[Any] = []
    if level is not None:
        rule = plot([{"y": level}]).mark_rule(strokeDash=[3, 4], color=LIGHT["soft"], aria=False)
        marks.append(rule.encode(y=y))
    for place, name in enumerate(series):
        role, dash = looks[name]
        # Intervals at one place would hide each other, so that each series stands a little aside.
        aside = ASIDE * (place - (len(series) - 1) / 2)
        own = [
            point._asdict() | {"x": point.x + (aside if point.low is not None else 0.0)}
            for point in points
            if point.series == name
        ]
        spans = [point for point in own if point["low"] is not None]
        look = {"color": LIGHT[role], "aria": False}
        if spans:
            span = plot(spans).mark_rule(**look, opacity=0.35, strokeWidth=3)
            marks.append(span.encode(x=x, y=alt.Y("low:Q", title=y_title), y2=alt.Y2("high:Q")))
        line = plot(own).mark_line(**look, strokeDash=list(dash), strokeWidth=2)
        dots = plot(own).mark_circle(**look, size=46, opacity=1)
        marks += [line.encode(x=x, y=y), dots.encode(x=x, y=y)]
    marks += draw_legend(entries, looks)
    bottom = 70 if labels else 48
    return finish(
        alt.layer(*marks).properties(width=width, height=height),
        margins={"left": left, "right": right, "top": legend_height(entries), "bottom": bottom},
        title=title,
        subtitle=subtitle,
    )


def _x_axis(points: Sequence[Point], labels: Sequence[str], title: str, canvas: Canvas) -> Any:
    import altair as alt

    if not labels:
        values = sorted({point.x for point in points})
        few = values if len(values) <= 24 else values[:: len(values) // 12]
        axis = alt.Axis(title=title, grid=False, values=few, format="d")
        return alt.X("x:Q", axis=axis, scale=alt.Scale(nice=False, zero=False, padding=14))
    expression = "[" + ",".join(_quoted(label) for label in labels) + "][datum.value]"
    axis = alt.Axis(
        title=title,
        grid=False,
        values=list(range(len(labels))),
        labelExpr=expression,
        labelAngle=-30 if not canvas.narrow else -60,
        labelAlign="right",
        labelLimit=110,
    )
    return alt.X("x:Q", axis=axis, scale=alt.Scale(domain=[-0.3, len(labels) - 0.7], nice=False, zero=False))


def _quoted(label: str) -> str:
    return "'" + label.replace("\\", "\\\\").replace("'", "\\'") + "'"
