"""Lines with shaded intervals over a length, in one panel or in many: what context does to a score."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from felicity.report.axes import Axis
from felicity.report.canvas import Canvas, finish, plot
from felicity.report.drawing import Spec
from felicity.report.legend import Look, choose_looks, draw_legend, legend_height, place_legend
from felicity.report.panels import Grid, draw_frames
from felicity.report.theme import LIGHT

COLUMNS = 3


class Step(NamedTuple):
    """One value of a series of a panel; `low` and `high` where it has an interval."""

    panel: str
    series: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None


def chart_bands(
    steps: Sequence[Step],
    *,
    canvas: Canvas,
    x_title: str,
    y_title: str,
    looks: Mapping[str, Look] | None = None,
    level: float | None = 0.0,
    signed: bool = True,
    title: str = "",
    subtitle: str = "",
) -> Spec:
    """A panel for each name in the order met, all on the same scales; the dashed rule marks `level`."""
    import altair as alt

    panels = list(dict.fromkeys(step.panel for step in steps))
    series = list(dict.fromkeys(step.series for step in steps))
    chosen = choose_looks(series, looks)
    grid = Grid.choose(
        panels,
        x=_lengths(steps, x_title),
        y=_values(steps, y_title, level=level, signed=signed),
        canvas=canvas,
        columns=COLUMNS,
        height=_panel_height(len(panels), canvas),
    )
    entries = place_legend(series, grid.width)
    marks = draw_frames(grid, level=level)
    for name in series:
        own = [step for step in steps if step.series == name]
        marks += _band(own, panels, grid, chosen[name])
    for name in series:
        own = [step for step in steps if step.series == name]
        marks += _line(own, panels, grid, chosen[name])
    marks += draw_legend(entries, chosen)
    return finish(
        alt.layer(*marks).properties(width=grid.width, height=grid.height),
        margins={"left": grid.left, "right": grid.right, "top": legend_height(entries), "bottom": 6},
        title=title,
        subtitle=subtitle,
    )


def _panel_height(panels: int, canvas: Canvas) -> float:
    if panels == 1:
        return 220 if canvas.narrow else 330
    return 110 if canvas.narrow else 170


def _lengths(steps: Sequence[Step], title: str) -> Axis:
    """The lengths that were asked for are the ticks; there is nothing to read between them."""
    met = sorted({step.x for step in steps})
    low, high = (met[0], met[-1]) if met[0] < met[-1] else (met[0] - 1, met[0] + 1)
    return Axis(title=title, low=low, high=high, ticks=tuple(met))


def _values(steps: Sequence[Step], title: str, *, level: float | None, signed: bool) -> Axis:
    met = [value for step in steps for value in step[3:] if value is not None]
    return Axis.around([*met, *([] if level is None else [level])], title=title, signed=signed)


def _band(own: Sequence[Step], panels: Sequence[str], grid: Grid, look: Look) -> list[Any]:
    import altair as alt

    records = []
    for step in own:
        if step.low is not None and step.high is not None:
            panel = panels.index(step.panel)
            ends = {"y": grid.down(panel, step.low), "y2": grid.down(panel, step.high)}
            records.append({"panel": step.panel, "x": grid.across(panel, step.x), **ends})
    if not records:
        return []
    area = plot(records).mark_area(color=LIGHT[look.role], opacity=0.14, line=False, aria=False)
    return [area.encode(**grid.place(), y2=alt.Y2("y2:Q"), detail=alt.Detail("panel:N"))]


def _line(own: Sequence[Step], panels: Sequence[str], grid: Grid, look: Look) -> list[Any]:
    import altair as alt

    records = []
    for step in own:
        panel = panels.index(step.panel)
        places = {"x": grid.across(panel, step.x), "y": grid.down(panel, step.y)}
        records.append({"panel": step.panel, **places})
    look_of_line = {"color": LIGHT[look.role], "aria": False}
    size = 30 if len(panels) == 1 else 14
    line = plot(records).mark_line(**look_of_line, strokeDash=list(look.dash), strokeWidth=2)
    dots = plot(records).mark_circle(**look_of_line, size=size, opacity=1)
    return [
        line.encode(**grid.place(), detail=alt.Detail("panel:N")),
        dots.encode(**grid.place()),
    ]
