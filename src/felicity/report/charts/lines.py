"""Lines with shaded intervals, in one panel or in several: regions of a suite, lengths of a context."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from felicity.report.charts.canvas import LIGHT, Canvas, Spec, finish, plot
from felicity.report.charts.panels import (
    Axis,
    Grid,
    LineStyle,
    choose_styles,
    draw_frames,
    draw_legend,
    finish_panels,
    legend_height,
    place_legend,
)

MOST_SERIES = 6
ASIDE = 0.05
COLUMNS = 3
# Pixels of a line of tick labels and of an average character; labels have at most so many lines, and where
# a line holds fewer characters than this, only numbers are written.
LINE_HEIGHT = 12
CHARACTER = 6.2
MOST_LINES = 3
FEWEST_CHARACTERS = 5


class Point(NamedTuple):
    """One value of a series; `low` and `high` if it has an interval, `link` if it leads somewhere."""

    series: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    link: str = ""


def chart_lines(
    points: Sequence[Point],
    *,
    canvas: Canvas,
    x_title: str,
    y_title: str,
    labels: Sequence[str] = (),
    level: float | None = None,
    contrast: Point | None = None,
    height: float | None = None,
    title: str = "",
    subtitle: str = "",
) -> Spec:
    """Lines with dots, and intervals if given; `labels` name the positions of the x axis from 0 on.

    A dashed horizontal line marks `level`, if given. contrast: a difference of the values, in their unit,
    drawn with a line at zero right of the labelled positions; its `series` is its name there.
    """
    import altair as alt

    left, right, usual = (52, 14, 200) if canvas.narrow else (64, 28, 260)
    height = height or usual
    if contrast:
        labels, level = [*labels, contrast.series], 0.0
    width = canvas.width - left - right
    series = list(dict.fromkeys(point.series for point in points))
    entries, styles = place_legend(series, width), choose_styles(series)
    lines = [wrap_label(label, width / len(labels)) for label in labels]
    x = _x_axis(points, lines, x_title)
    y = alt.Y("y:Q", axis=alt.Axis(title=y_title, tickCount=5), scale=alt.Scale(zero=True, nice=True))
    marks: list[Any] = []
    if level is not None:
        rule = plot([{"y": level}]).mark_rule(strokeDash=[3, 4], color=LIGHT["soft"], aria=False)
        marks.append(rule.encode(y=y))
    for place, name in enumerate(series):
        role, dash = styles[name]
        # Intervals at one position would hide each other, so the series are slightly offset.
        aside = ASIDE * (place - (len(series) - 1) / 2)
        own = [
            point._asdict() | {"x": point.x + (aside if point.low is not None else 0.0)}
            for point in points
            if point.series == name
        ]
        spans = [point for point in own if point["low"] is not None]
        style = {"color": LIGHT[role], "aria": False}
        if spans:
            span = plot(spans).mark_rule(**style, opacity=0.35, strokeWidth=3)
            marks.append(span.encode(x=x, y=alt.Y("low:Q", title=y_title), y2=alt.Y2("high:Q")))
        line = plot(own).mark_line(**style, strokeDash=list(dash), strokeWidth=2)
        dots = plot(own).mark_circle(**style, size=46, opacity=1)
        if any(point["link"] for point in own):
            dots = dots.encode(href=alt.Href("link:N"))
        marks += [line.encode(x=x, y=y), dots.encode(x=x, y=y)]
    if contrast:
        marks += _contrast(contrast._replace(x=len(labels) - 1), x, y)
    marks += draw_legend(entries, styles)
    bottom = 34 + LINE_HEIGHT * max((len(label) for label in lines), default=1)
    return finish(
        alt.layer(*marks).properties(width=width, height=height),
        margins={"left": left, "right": right, "top": legend_height(entries), "bottom": bottom},
        title=title,
        subtitle=subtitle,
    )


def _contrast(one: Point, x: Any, y: Any) -> list[Any]:
    """A diamond with its interval, and what parts it from the values it is a difference of."""
    own, style = plot([one._asdict()]), {"color": LIGHT["ink"], "aria": False}
    return [
        plot([{"x": one.x - 0.5}]).mark_rule(color=LIGHT["line"], aria=False).encode(x=x),
        own.mark_rule(**style, opacity=0.45, strokeWidth=3).encode(x=x, y="low:Q", y2="high:Q"),
        own.mark_point(**style, shape="diamond", filled=True, size=110, opacity=1).encode(x=x, y=y),
    ]


def _x_axis(points: Sequence[Point], labels: Sequence[Sequence[str]], title: str) -> Any:
    import altair as alt

    if not labels:
        values = sorted({point.x for point in points})
        few = values if len(values) <= 24 else values[:: len(values) // 12]
        axis = alt.Axis(title=title, grid=False, values=few, format="d")
        return alt.X("x:Q", axis=axis, scale=alt.Scale(nice=False, zero=False, padding=14))
    listed = ("[" + ",".join(_quoted(line) for line in label) + "]" for label in labels)
    axis = alt.Axis(
        title=title,
        grid=False,
        values=list(range(len(labels))),
        labelExpr="[" + ",".join(listed) + "][datum.value]",
        labelAngle=0,
        labelAlign="center",
        labelLineHeight=LINE_HEIGHT,
    )
    return alt.X("x:Q", axis=axis, scale=alt.Scale(domain=[-0.5, len(labels) - 0.5], nice=False, zero=False))


def wrap_label(label: str, room: float) -> list[str]:
    """A label as lines that fit into so many pixels; of a numbered one the number alone, if it cannot fit.

    >>> wrap_label("3 embedded verb phrase", 60)
    ['3', 'embedded', 'verb phr…']
    >>> wrap_label("12 embedded verb", 20)
    ['12']
    """
    most = max(1, int(room / CHARACTER))
    number, _, name = label.partition(" ")
    numbered = number.isdecimal() and bool(name)
    if most < FEWEST_CHARACTERS:
        return [number] if numbered else [_shorten(label, most)]
    lines = textwrap.wrap(name if numbered else label, most, break_long_words=False) or [""]
    lines = [number, *lines] if numbered else lines
    kept = lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        kept[-1] = " ".join(lines[MOST_LINES - 1 :])
    return [_shorten(line, most) for line in kept]


def _shorten(text: str, most: int) -> str:
    return text if len(text) <= most else text[: max(1, most - 1)].rstrip() + "…"


def _quoted(label: str) -> str:
    return "'" + label.replace("\\", "\\\\").replace("'", "\\'") + "'"


class SeriesPoint(NamedTuple):
    """One value of a series in a panel, with the ends of its interval, and where it leads, if any."""

    panel: str
    series: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None
    link: str = ""


def chart_bands(
    steps: Sequence[SeriesPoint],
    *,
    canvas: Canvas,
    x_title: str,
    y_title: str,
    styles: Mapping[str, LineStyle] | None = None,
    level: float | None = 0.0,
    signed: bool = True,
    title: str = "",
    subtitle: str = "",
) -> Spec:
    """One panel per name, in order of occurrence, all on the same scales; a dashed line marks `level`."""
    panels = list(dict.fromkeys(step.panel for step in steps))
    series = list(dict.fromkeys(step.series for step in steps))
    chosen = choose_styles(series, styles)
    grid = Grid.choose(
        panels,
        x=_lengths(steps, x_title),
        y=_values(steps, y_title, level=level, signed=signed),
        canvas=canvas,
        columns=COLUMNS,
        height=_panel_height(len(panels), canvas),
    )
    marks = draw_frames(grid, level=level)
    for name in series:
        own = [step for step in steps if step.series == name]
        marks += _band(own, panels, grid, chosen[name])
    for name in series:
        own = [step for step in steps if step.series == name]
        marks += _line(own, panels, grid, chosen[name])
    return finish_panels(marks, grid, series, chosen, title=title, subtitle=subtitle)


def _panel_height(panels: int, canvas: Canvas) -> float:
    if panels == 1:
        return 220 if canvas.narrow else 330
    return 110 if canvas.narrow else 170


def _lengths(steps: Sequence[SeriesPoint], title: str) -> Axis:
    """The requested lengths are the ticks; there is nothing between them."""
    met = sorted({step.x for step in steps})
    low, high = (met[0], met[-1]) if met[0] < met[-1] else (met[0] - 1, met[0] + 1)
    return Axis(title=title, low=low, high=high, ticks=tuple(met))


def _values(steps: Sequence[SeriesPoint], title: str, *, level: float | None, signed: bool) -> Axis:
    met = [value for step in steps for value in (step.y, step.low, step.high) if value is not None]
    return Axis.around([*met, *([] if level is None else [level])], title=title, signed=signed)


def _band(own: Sequence[SeriesPoint], panels: Sequence[str], grid: Grid, style: LineStyle) -> list[Any]:
    import altair as alt

    records = []
    for step in own:
        if step.low is not None and step.high is not None:
            panel = panels.index(step.panel)
            ends = {"y": grid.down(panel, step.low), "y2": grid.down(panel, step.high)}
            records.append({"panel": step.panel, "x": grid.across(panel, step.x), **ends})
    if not records:
        return []
    # Thin edges keep bands apart that lie over one another, where their fills would blend into one grey.
    options = {"color": LIGHT[style.role], "aria": False}
    area = plot(records).mark_area(**options, opacity=0.1, line=False)
    lower = [{**record, "y": record["y2"]} for record in records]
    edges = [
        plot(ends)
        .mark_line(**options, opacity=0.5, strokeWidth=0.8)
        .encode(**grid.place(), detail=alt.Detail("panel:N"))
        for ends in (records, lower)
    ]
    return [area.encode(**grid.place(), y2=alt.Y2("y2:Q"), detail=alt.Detail("panel:N")), *edges]


def _line(own: Sequence[SeriesPoint], panels: Sequence[str], grid: Grid, style: LineStyle) -> list[Any]:
    import altair as alt

    records = []
    for step in own:
        panel = panels.index(step.panel)
        places = {"x": grid.across(panel, step.x), "y": grid.down(panel, step.y)}
        records.append({"panel": step.panel, "link": step.link, **places})
    options = {"color": LIGHT[style.role], "aria": False}
    size = 30 if len(panels) == 1 else 14
    line = plot(records).mark_line(**options, strokeDash=list(style.dash), strokeWidth=2)
    dots = plot(records).mark_circle(**options, size=size, opacity=1)
    if any(step.link for step in own):
        dots = dots.encode(href=alt.Href("link:N"))
    return [
        line.encode(**grid.place(), detail=alt.Detail("panel:N")),
        dots.encode(**grid.place()),
    ]
