"""Words among dots: names that do not run into each other, and a corner that is free."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from felicity.report.canvas import plot
from felicity.report.panels import Grid
from felicity.report.theme import LIGHT

MOST_NAMES = 12
LETTER = 6.0
LINE = 13.0
# How far above or below its dot a name may stand, the nearest first.
OFFSETS = (-11.0, 12.0, -24.0, 25.0, -37.0, 38.0)


class Place(NamedTuple):
    """A dot in pixels, with the name it goes by."""

    panel: int
    x: float
    y: float
    name: str


def place_names(places: Sequence[Place], *, box: tuple[float, float, float, float]) -> list[Place]:
    """Where the names of one panel stand: near their dots, inside the box, on no other name.

    box: left, top, right and bottom of the panel. A name that fits nowhere is left out.
    """
    left, top, right, bottom = box
    placed: list[Place] = []
    for dot in sorted(places, key=lambda place: (place.x, place.y)):
        half = LETTER * len(dot.name) / 2
        x = max(left + half, min(dot.x, right - half))
        tries = [dot._replace(x=x, y=dot.y + offset) for offset in OFFSETS]
        inside = [one for one in tries if top + LINE / 2 <= one.y <= bottom - LINE / 2]
        free = [one for one in inside if not any(_meet(one, other) for other in placed)]
        placed += free[:1]
    return placed


def draw_names(places: Sequence[Place], grid: Grid) -> list[Any]:
    """The names of the dots, in panels that have few enough to be read."""
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


def draw_corners(corners: Mapping[str, str], places: Sequence[Place], grid: Grid) -> list[Any]:
    """A word in each panel that has one, in the corner with the fewest dots about it."""
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


def _free_corner(places: Sequence[Place], word: str, panel: int, grid: Grid) -> tuple[float, float, str]:
    left, right = grid.across(panel, grid.x.low) + 4, grid.across(panel, grid.x.high) - 4
    top, bottom = grid.down(panel, grid.y.high) + 12, grid.down(panel, grid.y.low) - 12
    reach = 1.2 * LETTER * len(word) + 10

    def crowd(corner: tuple[float, float, str]) -> int:
        x, y, _ = corner
        return sum(abs(place.x - x) <= reach and abs(place.y - y) <= 2 * LINE for place in places)

    choices = [(right, bottom, "right"), (left, top, "left"), (right, top, "right"), (left, bottom, "left")]
    return min(choices, key=crowd)


def _meet(one: Place, other: Place) -> bool:
    wide = LETTER * (len(one.name) + len(other.name)) / 2
    return abs(one.x - other.x) < wide and abs(one.y - other.y) < LINE
