"""A value for every pair of names, as a matrix of coloured cells."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from felicity.report.charts.canvas import LIGHT, Canvas, Spec, finish, plot
from felicity.report.wording import MINUS, format_digits

SHADES = 8
GLYPH = 0.52
LARGEST_CELL = 40.0
FOOT = 66.0
NARROW_NAMES = 150.0
# Of larger matrices the names of rows lead somewhere, and not every cell: the page would become large.
MOST_LINKED = 600


class Cell(NamedTuple):
    """The value of a row in a column; `link` is where it leads."""

    row: str
    column: str
    value: float
    link: str = ""


@dataclass(frozen=True)
class Field:
    """Positions of the cells: names on the left, names or numbers above."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    across: float
    down: float
    left: float
    top: float
    font: float
    numbered: bool

    @classmethod
    def choose(cls, rows: Sequence[str], columns: Sequence[str], canvas: Canvas) -> "Field":
        """Cells as large as the page allows; on a narrow page the columns have numbers, not names."""
        font = 11.0 if len(rows) <= 40 else 9.0
        longest = GLYPH * font * max(len(name) for name in (*rows, *columns)) + 12
        if canvas.narrow:
            font, left = min(font, 10.0), min(longest + 20, NARROW_NAMES)
            across = min((canvas.width - left - 8) / len(columns), LARGEST_CELL)
            return cls(tuple(rows), tuple(columns), across, font + 3, left, 34, font, numbered=True)
        across = min((canvas.width - longest - 8) / len(columns), LARGEST_CELL)
        down = max(min(across, 22.0), font + 1.5)
        return cls(tuple(rows), tuple(columns), across, down, longest, longest + 8, font, numbered=False)


def chart_matrix(
    cells: Sequence[Cell],
    *,
    canvas: Canvas,
    row_title: str,
    column_title: str,
    unit: str,
    diverging: bool = True,
    links: Mapping[str, str] | None = None,
    title: str = "",
    subtitle: str = "",
) -> Spec:
    """Two hues around zero, or one from zero up, in steps; a cell without a value is blank.

    Rows and columns are in order of occurrence; a name that is both has the same position in both. links:
    where the names of rows lead.
    """
    import altair as alt

    rows = list(dict.fromkeys(cell.row for cell in cells))
    met = list(dict.fromkeys(cell.column for cell in cells))
    columns = [name for name in rows if name in met] + [name for name in met if name not in rows]
    field = Field.choose(rows, columns, canvas)
    width, height = field.across * len(columns), field.down * len(rows)
    largest = max((abs(cell.value) for cell in cells), default=0.0) or 1.0
    marks = [
        _shades(cells, field, largest, diverging=diverging),
        *_names(field, width, height, links or {}),
        *_titles(field, row_title, column_title),
        *_linked(cells, field, width, height),
        *_ramp(-field.left if canvas.narrow else 0.0, height, largest, unit, diverging=diverging),
    ]
    right = max(8.0, canvas.width - field.left - width)
    return finish(
        alt.layer(*marks).properties(width=width, height=height),
        margins={"left": field.left, "right": right, "top": field.top + 22, "bottom": FOOT},
        title=title,
        subtitle=subtitle,
    )


def shade(value: float, largest: float) -> int:
    """The shade of a value, from -SHADES to SHADES; 0 only for values close to zero."""
    return round(SHADES * max(-1.0, min(1.0, value / largest)))


def _colour(step: int, *, diverging: bool) -> dict[str, Any]:
    role = "tie" if step == 0 else "bad" if step < 0 else "good" if diverging else "accent"
    return {"colour": LIGHT[role], "opacity": 0.06 + 0.94 * (abs(step) / SHADES) ** 1.1 if step else 0.12}


def _shades(cells: Sequence[Cell], field: Field, largest: float, *, diverging: bool) -> Any:
    """All cells of one shade as one path: thousands of single cells would make the file large."""
    rows = {name: place for place, name in enumerate(field.rows)}
    columns = {name: place for place, name in enumerate(field.columns)}
    shapes: dict[int, list[str]] = defaultdict(list)
    gap = 1.0 if field.across >= 8 else 0.25
    box = f"h{field.across - gap:.2f}v{field.down - gap:.2f}h-{field.across - gap:.2f}z"
    for cell in cells:
        x, y = columns[cell.column] * field.across, rows[cell.row] * field.down
        shapes[shade(cell.value, largest)].append(f"M{x:.2f},{y:.2f}{box}")
    records = [
        {"shape": "".join(shapes[step]), **_colour(step, diverging=diverging)} for step in sorted(shapes)
    ]
    return _shaped(records, x=0, y=0)


def _linked(cells: Sequence[Cell], field: Field, width: float, height: float) -> list[Any]:
    """Invisible boxes over the cells that lead somewhere, if there are not too many."""
    import altair as alt

    leading = [cell for cell in cells if cell.link]
    if not leading or len(leading) > MOST_LINKED:
        return []
    records = []
    for cell in leading:
        x, y = field.columns.index(cell.column) * field.across, field.rows.index(cell.row) * field.down
        records.append({"x": x, "y": y, "x2": x + field.across, "y2": y + field.down, "link": cell.link})
    box = plot(records).mark_rect(opacity=0.01, color=LIGHT["tie"], aria=False)
    return [
        box.encode(
            x=alt.X("x:Q", scale=alt.Scale(domain=[0, width], nice=False, zero=False), axis=None),
            y=alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False, zero=False), axis=None),
            x2=alt.X2("x2:Q"),
            y2=alt.Y2("y2:Q"),
            href=alt.Href("link:N"),
        )
    ]


def _shaped(records: list[dict[str, Any]], *, x: float, y: float) -> Any:
    import altair as alt

    # A symbol of size 4 draws its path in pixels, from its position.
    mark = plot(records).mark_point(filled=True, size=4, strokeWidth=0, aria=False)
    return mark.encode(
        x=alt.value(x),
        y=alt.value(y),
        shape=alt.Shape("shape:N", scale=None),
        fill=alt.Fill("colour:N", scale=None),
        opacity=alt.Opacity("opacity:Q", scale=None),
    )


def _names(field: Field, width: float, height: float, links: Mapping[str, str]) -> list[Any]:
    import altair as alt

    x = alt.X("x:Q", scale=alt.Scale(domain=[0, width], nice=False, zero=False), axis=None)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False, zero=False), axis=None)
    style = {"fontSize": field.font, "color": LIGHT["ink"], "baseline": "middle", "aria": False}
    number = {name: place + 1 for place, name in enumerate(field.columns)}
    down = [
        {
            "y": (place + 0.5) * field.down,
            "name": f"{number[name]} {name}" if field.numbered and name in number else name,
            "link": links.get(name, ""),
        }
        for place, name in enumerate(field.rows)
    ]
    rows = plot(down).mark_text(**style, align="right", x=-6, limit=field.left - 8)
    rows = rows.encode(href=alt.Href("link:N")) if links else rows
    every = 1 if field.across >= 16 else 5
    along = [
        {"x": (place + 0.5) * field.across, "name": str(place + 1) if field.numbered else name}
        for place, name in enumerate(field.columns)
        if not field.numbered or place % every == 0
    ]
    turned = {} if field.numbered else {"angle": 270}
    align = "center" if field.numbered else "left"
    columns = plot(along).mark_text(**style, **turned, align=align, y=-12 if field.numbered else -6)
    return [rows.encode(y=y, text=alt.Text("name:N")), columns.encode(x=x, text=alt.Text("name:N"))]


def _titles(field: Field, row_title: str, column_title: str) -> list[Any]:
    import altair as alt

    style = {"fontSize": 12, "color": LIGHT["soft"], "aria": False}
    above = plot([{"word": f"{column_title} →"}]).mark_text(**style, align="left", x=0, y=-field.top - 6)
    aside = plot([{"word": f"{row_title} ↓"}]).mark_text(**style, align="right", x=-6, y=-12)
    return [mark.encode(text=alt.Text("word:N")) for mark in (above, aside)]


def _ramp(start: float, height: float, largest: float, unit: str, *, diverging: bool) -> list[Any]:
    """The colour scale under the matrix, with its end values."""
    import altair as alt

    steps = list(range(-SHADES if diverging else 0, SHADES + 1))
    boxes = [
        {"shape": f"M{14 * place},0h13v10h-13z", **_colour(step, diverging=diverging)}
        for place, step in enumerate(steps)
    ]
    low = f"{MINUS}{format_digits(largest, 3)}" if diverging else "0"
    high = f"{'+' if diverging else ''}{format_digits(largest, 3)} {unit}".rstrip()
    style = {"y": height + 44, "fontSize": 12, "color": LIGHT["soft"], "aria": False}
    texts = [
        plot([{"word": low}]).mark_text(**style, align="left", x=start),
        plot([{"word": high}]).mark_text(**style, align="right", x=start + 14 * len(steps)),
    ]
    return [_shaped(boxes, x=start, y=height + 20), *(mark.encode(text=alt.Text("word:N")) for mark in texts)]
