"""Two numbers against each other: a dot each, the line of least squares, and r in the corner."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from felicity.report.axes import Axis
from felicity.report.canvas import Canvas, finish, plot
from felicity.report.dot_names import MOST_NAMES, Place, draw_corners, draw_names
from felicity.report.drawing import Spec
from felicity.report.legend import Look, choose_looks, draw_legend, legend_height, place_legend
from felicity.report.panels import Grid, draw_frames
from felicity.report.theme import LIGHT

COLUMNS = 3
# More dots than this to a panel are drawn small and faint, so that one sees where they crowd.
MANY = 400


class Dot(NamedTuple):
    """One point of a series of a panel; `name` is written beside it where there are few."""

    panel: str
    series: str
    x: float
    y: float
    name: str = ""


def chart_scatter(
    dots: Sequence[Dot],
    *,
    canvas: Canvas,
    x_title: str,
    y_title: str,
    corners: Mapping[str, str] | None = None,
    looks: Mapping[str, Look] | None = None,
    diagonal: bool = False,
    signed: bool = False,
    title: str = "",
    subtitle: str = "",
) -> Spec:
    """A panel for each name; `corners` is what stands in its lower right corner, such as r.

    With `diagonal` both axes are the same and a dashed line runs where y equals x.
    """
    import altair as alt

    panels = list(dict.fromkeys(dot.panel for dot in dots))
    series = list(dict.fromkeys(dot.series for dot in dots))
    chosen = choose_looks(series, looks)
    xs, ys = [dot.x for dot in dots], [dot.y for dot in dots]
    both = [*xs, *ys] if diagonal else []
    grid = Grid.choose(
        panels,
        x=Axis.around(both or xs, title=x_title, room=0.04),
        y=Axis.around(both or ys, title=y_title, room=0.06, signed=signed),
        canvas=canvas,
        # Names beside dots need the whole width of a narrow page.
        columns=1 if canvas.narrow and _are_named(dots, panels) else COLUMNS,
        height=_panel_height(len(panels), canvas),
    )
    # Where every panel shows the one series it is named after, there is nothing for a legend to add.
    told = all(dot.panel == dot.series for dot in dots)
    entries = place_legend([] if told else [name for name in series if name], grid.width)
    marks = draw_frames(grid, level=None if diagonal else 0.0 if min(ys) <= 0 <= max(ys) else None)
    if diagonal:
        marks.append(_diagonals(grid))
    for name in series:
        own = [dot for dot in dots if dot.series == name]
        marks += [*_dots(own, panels, grid, chosen[name]), *_fits(own, panels, grid, chosen[name])]
    places = [Place(panels.index(dot.panel), *_at(dot, panels, grid), dot.name) for dot in dots]
    marks += [*draw_names(places, grid), *draw_corners(corners or {}, places, grid)]
    marks += draw_legend(entries, chosen) if entries else []
    return finish(
        alt.layer(*marks).properties(width=grid.width, height=grid.height),
        margins={"left": grid.left, "right": grid.right, "top": legend_height(entries), "bottom": 6},
        title=title,
        subtitle=subtitle,
    )


def fit_line(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Intercept and slope of least squares; none where all x are the same or there are fewer than three.

    >>> fit_line([(0, 1), (1, 3), (2, 5)])
    (1.0, 2.0)
    """
    if len(points) < 3:
        return None
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    if spread == 0:
        return None
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread
    return mean_y - slope * mean_x, slope


def _are_named(dots: Sequence[Dot], panels: Sequence[str]) -> bool:
    numbers = [sum(dot.panel == panel and bool(dot.name) for dot in dots) for panel in panels]
    return any(0 < number <= MOST_NAMES for number in numbers)


def _panel_height(panels: int, canvas: Canvas) -> float:
    if panels == 1:
        return 240 if canvas.narrow else 380
    return 140 if canvas.narrow else 230


def _at(dot: Dot, panels: Sequence[str], grid: Grid) -> tuple[float, float]:
    panel = panels.index(dot.panel)
    return grid.across(panel, dot.x), grid.down(panel, dot.y)


def _dots(own: Sequence[Dot], panels: Sequence[str], grid: Grid, look: Look) -> list[Any]:
    places = [_at(dot, panels, grid) for dot in own]
    records = [{"x": round(x, 1), "y": round(y, 1)} for x, y in places]
    many = len(own) > MANY * len(panels)
    mark = plot(records).mark_circle(
        color=LIGHT[look.role], size=10 if many else 40, opacity=0.35 if many else 0.6, aria=False
    )
    return [mark.encode(**grid.place())]


def _fits(own: Sequence[Dot], panels: Sequence[str], grid: Grid, look: Look) -> list[Any]:
    import altair as alt

    records = []
    for panel, name in enumerate(panels):
        points = [(dot.x, dot.y) for dot in own if dot.panel == name]
        fitted = fit_line(points)
        if fitted is None:
            continue
        ends = _inside(fitted, min(points)[0], max(points)[0], grid)
        (x, y), (x2, y2) = (
            (grid.across(panel, end), grid.down(panel, fitted[0] + fitted[1] * end)) for end in ends
        )
        records.append({"x": x, "y": y, "x2": x2, "y2": y2})
    if not records:
        return []
    rule = plot(records).mark_rule(
        color=LIGHT[look.role], strokeDash=list(look.dash), strokeWidth=2, aria=False
    )
    return [rule.encode(**grid.place(), x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q"))]


def _inside(line: tuple[float, float], low: float, high: float, grid: Grid) -> tuple[float, float]:
    """From where to where a line is drawn: as far as there are dots, and not out of its panel."""
    intercept, slope = line
    if slope:
        cuts = sorted((edge - intercept) / slope for edge in (grid.y.low, grid.y.high))
        low, high = max(low, cuts[0]), min(high, cuts[1])
    return low, high


def _diagonals(grid: Grid) -> Any:
    import altair as alt

    low, high = max(grid.x.low, grid.y.low), min(grid.x.high, grid.y.high)
    records = [
        {
            "x": grid.across(panel, low),
            "y": grid.down(panel, low),
            "x2": grid.across(panel, high),
            "y2": grid.down(panel, high),
        }
        for panel in range(len(grid.titles))
    ]
    rule = plot(records).mark_rule(color=LIGHT["soft"], strokeDash=[3, 4], aria=False)
    return rule.encode(**grid.place(), x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q"))
