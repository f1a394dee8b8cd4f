"""Scatter plots: a dot per observation, the least-squares line, and r in the corner."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from felicity.report.charts.canvas import LIGHT, Canvas, Spec, plot
from felicity.report.charts.panels import (
    Axis,
    Grid,
    LineStyle,
    choose_styles,
    draw_frames,
    finish_panels,
)

MOST_NAMES = 12
LETTER = 6.0
LINE = 13.0
# How far above or below its dot a name may be, the nearest first.
OFFSETS = (-11.0, 12.0, -24.0, 25.0, -37.0, 38.0)
COLUMNS = 3
# With more dots than this per panel they are small and faint, so that dense regions remain visible.
MANY = 400


class LabelledPoint(NamedTuple):
    """A dot in pixels, with its name."""

    panel: int
    x: float
    y: float
    name: str


def place_names(
    places: Sequence[LabelledPoint], *, box: tuple[float, float, float, float]
) -> list[LabelledPoint]:
    """Positions for the names of one panel: near their dots, inside the box, without overlap.

    box: left, top, right and bottom of the panel. A name that fits nowhere is left out.
    """
    left, top, right, bottom = box
    placed: list[LabelledPoint] = []
    for dot in sorted(places, key=lambda place: (place.x, place.y)):
        half = LETTER * len(dot.name) / 2
        x = max(left + half, min(dot.x, right - half))
        tries = [dot._replace(x=x, y=dot.y + offset) for offset in OFFSETS]
        inside = [one for one in tries if top + LINE / 2 <= one.y <= bottom - LINE / 2]
        free = [one for one in inside if not any(_meet(one, other) for other in placed)]
        placed += free[:1]
    return placed


def draw_names(places: Sequence[LabelledPoint], grid: Grid) -> list[Any]:
    """The names of the dots, in panels with few enough to be read."""
    import altair as alt

    records = []
    for panel in range(len(grid.titles)):
        own = [place for place in places if place.panel == panel and place.name]
        if len(own) <= MOST_NAMES:
            box = (
                grid.across(panel, grid.x.low),
                grid.down(panel, grid.y.high),
                grid.across(panel, grid.x.high),
                grid.down(panel, grid.y.low),
            )
            records += [place._asdict() for place in place_names(own, box=box)]
    if not records:
        return []
    text = plot(records).mark_text(baseline="middle", fontSize=11, color=LIGHT["soft"], aria=False)
    return [text.encode(**grid.place(), text=alt.Text("name:N"))]


def draw_corners(corners: Mapping[str, str], places: Sequence[LabelledPoint], grid: Grid) -> list[Any]:
    """A text in each panel that has one, in the corner with the fewest dots around it."""
    import altair as alt

    marks = []
    for panel, title in enumerate(grid.titles):
        word = corners.get(title)
        if not word:
            continue
        x, y, align = _free_corner([place for place in places if place.panel == panel], word, panel, grid)
        text = plot([{"x": x, "y": y, "word": word}]).mark_text(
            align=align, baseline="middle", fontSize=13, fontWeight="bold", color=LIGHT["ink"], aria=False
        )
        marks.append(text.encode(**grid.place(), text=alt.Text("word:N")))
    return marks


def _free_corner(
    places: Sequence[LabelledPoint], word: str, panel: int, grid: Grid
) -> tuple[float, float, str]:
    left, right = grid.across(panel, grid.x.low) + 4, grid.across(panel, grid.x.high) - 4
    top, bottom = grid.down(panel, grid.y.high) + 12, grid.down(panel, grid.y.low) - 12
    reach = 1.2 * LETTER * len(word) + 10

    def crowd(corner: tuple[float, float, str]) -> int:
        x, y, _ = corner
        return sum(abs(place.x - x) <= reach and abs(place.y - y) <= 2 * LINE for place in places)

    choices = [(right, bottom, "right"), (left, top, "left"), (right, top, "right"), (left, bottom, "left")]
    return min(choices, key=crowd)


def _meet(one: LabelledPoint, other: LabelledPoint) -> bool:
    wide = LETTER * (len(one.name) + len(other.name)) / 2
    return abs(one.x - other.x) < wide and abs(one.y - other.y) < LINE


class Dot(NamedTuple):
    """One point of a series in a panel; `name` is written beside it if there are few, `hover` shown on
    hover, `link` where it leads."""

    panel: str
    series: str
    x: float
    y: float
    name: str = ""
    hover: str = ""
    link: str = ""


def chart_scatter(
    dots: Sequence[Dot],
    *,
    canvas: Canvas,
    x_title: str,
    y_title: str,
    corners: Mapping[str, str] | None = None,
    styles: Mapping[str, LineStyle] | None = None,
    diagonal: bool = False,
    signed: bool = False,
    title: str = "",
    subtitle: str = "",
) -> Spec:
    """One panel per name; `corners` is the text in its corner, such as r.

    With `diagonal` both axes are the same and a dashed line shows where y equals x.
    """
    if canvas.narrow:  # a phone has no pointer to hold over a dot
        dots = [dot._replace(hover="") for dot in dots]
    panels = list(dict.fromkeys(dot.panel for dot in dots))
    series = list(dict.fromkeys(dot.series for dot in dots))
    chosen = choose_styles(series, styles)
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
    # If every panel shows the one series it is named after, a legend would add nothing.
    titled = all(dot.panel == dot.series for dot in dots)
    legend = [] if titled else [name for name in series if name]
    marks = draw_frames(grid, level=None if diagonal else 0.0 if min(ys) <= 0 <= max(ys) else None)
    if diagonal:
        marks.append(_diagonals(grid))
    for name in series:
        own = [dot for dot in dots if dot.series == name]
        marks += [*_dots(own, panels, grid, chosen[name]), *_fits(own, panels, grid, chosen[name])]
    places = [LabelledPoint(panels.index(dot.panel), *_at(dot, panels, grid), dot.name) for dot in dots]
    marks += [*draw_names(places, grid), *draw_corners(corners or {}, places, grid)]
    return finish_panels(marks, grid, legend, chosen, title=title, subtitle=subtitle)


def fit_line(points: Sequence[tuple[float, float]]) -> tuple[float, float] | None:
    """Intercept and slope of least squares; None if all x are equal or there are fewer than three points.

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


def _dots(own: Sequence[Dot], panels: Sequence[str], grid: Grid, style: LineStyle) -> list[Any]:
    import altair as alt

    places = [_at(dot, panels, grid) for dot in own]
    named, linked = any(dot.hover for dot in own), any(dot.link for dot in own)
    records: list[dict[str, Any]] = [
        {"x": round(x, 1), "y": round(y, 1)}
        | ({"hover": dot.hover} if named else {})
        | ({"link": dot.link} if linked else {})
        for (x, y), dot in zip(places, own, strict=True)
    ]
    many = len(own) > MANY * len(panels)
    mark = plot(records).mark_circle(
        color=LIGHT[style.role], size=10 if many else 40, opacity=0.35 if many else 0.6, aria=named
    )
    told = {"description": alt.Description("hover:N")} if named else {}
    led = {"href": alt.Href("link:N")} if linked else {}
    return [mark.encode(**grid.place(), **told, **led)]


def _fits(own: Sequence[Dot], panels: Sequence[str], grid: Grid, style: LineStyle) -> list[Any]:
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
        color=LIGHT[style.role], strokeDash=list(style.dash), strokeWidth=2, aria=False
    )
    return [rule.encode(**grid.place(), x2=alt.X2("x2:Q"), y2=alt.Y2("y2:Q"))]


def _inside(line: tuple[float, float], low: float, high: float, grid: Grid) -> tuple[float, float]:
    """The range over which a line is drawn: as far as there are dots, within its panel."""
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
