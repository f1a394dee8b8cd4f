"""Bands, matrices and scatters: what is drawn, where, and that no label runs into another."""

import re

import altair as alt
import pytest

from felicity.report.charts.canvas import (
    NARROW,
    SLIDE,
    WIDE,
    Canvas,
    Spec,
    convert_svg,
    draw_inline,
    draw_svg,
)
from felicity.report.charts.lines import SeriesPoint, chart_bands
from felicity.report.charts.matrix import SHADES, Cell, chart_matrix, shade
from felicity.report.charts.panels import Axis, Grid, legend_height, place_legend, round_step
from felicity.report.charts.scatter import Dot, LabelledPoint, chart_scatter, fit_line, place_names

CANVASES = pytest.mark.parametrize("canvas", [WIDE, NARROW])
STEPS = [
    SeriesPoint(panel, series, x, y * x, y * x - 2, y * x + 2)
    for panel in ("binding", "ellipsis")
    for series, y in (("matched", 0.1), ("unrelated", -0.02))
    for x in (0, 100, 200)
]
NAMES = [f"sentential_negation_npi_licensor_present_{place}" for place in range(67)]
CELLS = [
    Cell(one, two, float(a - b)) for a, one in enumerate(NAMES) for b, two in enumerate(NAMES) if (a + b) % 9
]


def texts(spec: Spec) -> list[str]:
    return re.findall(r"<text [^>]*>([^<]*)</text>", draw_svg(spec))


def bands(canvas: Canvas, **options: str) -> Spec:
    return chart_bands(STEPS, canvas=canvas, x_title="length (tokens)", y_title="points", **options)


@CANVASES
def test_bands_have_every_panel_series_and_axis(canvas: Canvas) -> None:
    spec = bands(canvas)
    alt.LayerChart.from_dict(spec)
    written = texts(spec)
    for word in ("binding", "ellipsis", "matched", "unrelated", "length (tokens)", "points", "0", "200"):
        assert word in written, word
    areas = [layer for layer in spec["layer"] if layer["mark"]["type"] == "area"]
    lines = [layer for layer in spec["layer"] if layer["mark"]["type"] == "line"]
    assert len(areas) == 2  # one a series, both panels in it
    assert len(lines) == 3 * len(areas)  # the line itself, and the two edges of its band


def test_a_band_reaches_from_low_to_high() -> None:
    # One panel, y from -2 to 22 on ticks of 5: the axis runs from -5 to 25 over 330 pixels.
    steps = [SeriesPoint("", "a", x, y, y - 2, y + 2) for x, y in ((0, 0.0), (100, 20.0))]
    spec = chart_bands(steps, canvas=WIDE, x_title="x", y_title="y")
    area = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "area")
    rows = spec["datasets"][area["data"]["name"]] if "name" in area["data"] else area["data"]["values"]
    assert [round(row["y"] - row["y2"], 6) for row in rows] == [round(330 * 4 / 30, 6)] * 2
    assert round(rows[0]["y"] - rows[1]["y"], 6) == round(330 * 20 / 30, 6)


def test_a_series_without_intervals_has_a_line_and_no_band() -> None:
    steps = [SeriesPoint("", "a", x, float(x)) for x in (0, 1)]
    kinds = [
        layer["mark"]["type"] for layer in chart_bands(steps, canvas=WIDE, x_title="", y_title="")["layer"]
    ]
    assert "line" in kinds
    assert "area" not in kinds


def test_one_length_only_can_be_drawn() -> None:
    assert "900" in texts(
        chart_bands([SeriesPoint("", "a", 900, 1.0)], canvas=NARROW, x_title="x", y_title="y")
    )


def test_the_title_of_a_slide_stands_within_the_sheet_whatever_rises_above_the_plot() -> None:
    spec = chart_matrix(CELLS, canvas=SLIDE, row_title="r", column_title="c", unit="", title="The title")
    title = next(layer for layer in spec["layer"] if layer.get("data") == {"values": [{"word": "The title"}]})
    assert -spec["padding"]["top"] < title["encoding"]["y"]["value"] - 10
    assert "The title" in texts(spec)


@CANVASES
def test_a_matrix_of_67_suites_names_every_row_and_fits_the_page(canvas: Canvas) -> None:
    spec = chart_matrix(CELLS, canvas=canvas, row_title="judged", column_title="from", unit="points")
    alt.LayerChart.from_dict(spec)
    written = texts(spec)
    rows = [word for word in written if "sentential" in word]
    assert len(rows) == (67 if canvas.narrow else 134)
    assert spec["padding"]["left"] + spec["width"] + spec["padding"]["right"] == pytest.approx(
        canvas.width, abs=1
    )
    assert spec["height"] / 67 >= 10  # rows as high as their letters


def test_columns_stand_in_the_order_of_rows() -> None:
    cells = [Cell("a", "b", 1.0), Cell("b", "a", 1.0), Cell("a", "z", 1.0), Cell("b", "b", 1.0)]
    spec = chart_matrix(cells, canvas=NARROW, row_title="r", column_title="c", unit="")
    assert [word for word in texts(spec) if word[-1:] in ("a", "b")] == ["1 a", "2 b"]


def test_every_cell_of_a_matrix_is_drawn_once() -> None:
    svg = draw_svg(chart_matrix(CELLS, canvas=WIDE, row_title="r", column_title="c", unit=""))
    drawn, ramp = (group.count("M") for group in re.findall(r'<g class="mark-symbol[^>]*>(.*?)</g>', svg))
    assert (drawn, ramp) == (len(CELLS), 2 * SHADES + 1)


def test_shades_are_even_steps_about_zero() -> None:
    assert [shade(value, 40.0) for value in (-40, -20, 0, 2.4, 2.6, 40)] == [
        -SHADES,
        -SHADES // 2,
        0,
        0,
        1,
        SHADES,
    ]


@pytest.mark.parametrize(
    "spec",
    [
        bands(WIDE),
        chart_matrix(CELLS, canvas=WIDE, row_title="r", column_title="c", unit=""),
        chart_scatter(
            [Dot("", "a", 1.0, 2.0, "x"), Dot("", "a", 2.0, 1.0, "y")], canvas=WIDE, x_title="", y_title=""
        ),
    ],
    ids=["bands", "matrix", "scatter"],
)
def test_an_inline_drawing_takes_all_its_colours_from_the_page(spec: Spec) -> None:
    svg = draw_inline(spec, label="l", kind="wide")
    assert not re.search(r'(?:fill|stroke)="(?:#|rgb|white|black)', svg)
    assert "var(--" in svg


def test_least_squares_as_r_gives_it() -> None:
    # R: coef(lm(c(2, 1, 4, 3, 7) ~ c(1, 2, 3, 4, 6))) gives 0.027027027 and 1.054054054.
    intercept, slope = fit_line([(1, 2), (2, 1), (3, 4), (4, 3), (6, 7)]) or (0.0, 0.0)
    assert (round(intercept, 9), round(slope, 9)) == (0.027027027, 1.054054054)
    assert fit_line([(1, 2), (1, 3), (1, 4)]) is None


@CANVASES
def test_a_scatter_says_r_in_each_panel_and_draws_every_dot(canvas: Canvas) -> None:
    dots = [Dot(panel, panel, float(x), float(x * x), "") for panel in ("one", "two") for x in range(30)]
    spec = chart_scatter(
        dots, canvas=canvas, x_title="x", y_title="y", corners={"one": "r = .96", "two": "ρ = 1"}
    )
    alt.LayerChart.from_dict(spec)
    svg = draw_svg(spec)
    assert {"r = .96", "ρ = 1", "one", "two"} <= set(texts(spec))
    assert len(re.findall(r'<path [^>]*d="M[^"]*A', svg)) == 60


def test_the_fitted_line_stays_in_its_panel() -> None:
    dots = [Dot("", "a", x, y) for x, y in ((0.0, 0.0), (1.0, 10.0), (2.0, 0.0), (100.0, 10.0))]
    spec = chart_scatter(dots, canvas=WIDE, x_title="x", y_title="y")
    line = next(
        row
        for rows in spec["datasets"].values()
        for row in rows
        if row.get("y2") is not None and "level" not in row
    )
    assert min(line["y"], line["y2"]) >= 0
    assert max(line["y"], line["y2"]) <= spec["height"]


def test_names_of_near_dots_do_not_overlap_and_stay_in_the_panel() -> None:
    box = (0.0, 0.0, 300.0, 200.0)
    dots = [LabelledPoint(0, 290.0 - place, 100.0, f"perturbation {place}") for place in range(5)]
    placed = place_names(dots, box=box)
    assert len(placed) == 5
    for place, one in enumerate(placed):
        assert 6 * len(one.name) / 2 <= one.x <= 300 - 6 * len(one.name) / 2
        assert all(abs(one.y - other.y) >= 12 for other in placed[:place])


def test_a_legend_breaks_into_rows_where_the_page_is_narrow() -> None:
    names = ["matched, acceptable", "matched, unacceptable", "unrelated"]
    assert {entry.row for entry in place_legend(names, 900)} == {0}
    assert [entry.row for entry in place_legend(names, 300)] == [0, 1, 1]
    assert legend_height([]) == 14


def test_axes_end_on_round_numbers() -> None:
    axis = Axis.around([-23.0, 11.0], title="", signed=True)
    assert (axis.low, axis.high) == (-30, 20)
    assert [axis.write(tick) for tick in axis.ticks] == ["−30", "−20", "−10", "0", "+10", "+20"]
    assert [round_step(rough) for rough in (0.011, 0.21, 3.0)] == [0.02, 0.25, 5.0]


def test_panels_fill_rows_from_the_left() -> None:
    axis = Axis.around([0.0, 10.0], title="")
    four = Grid.choose(list("abcd"), x=axis, y=axis, canvas=WIDE, columns=3, height=100)
    assert (four.columns, four.rows) == (2, 2)
    grid = Grid.choose(list("abcde"), x=axis, y=axis, canvas=WIDE, columns=3, height=100)
    assert grid.rows == 2
    assert grid.across(3, 0) == grid.across(0, 0)
    assert grid.down(3, 0) - grid.down(0, 0) == grid.row_height
    assert grid.across(2, 10) == pytest.approx(grid.width)


def test_a_title_wider_than_its_panel_is_broken_into_lines() -> None:
    titles = ["mismatched, unacceptable, in a long title", "short"]
    axis = Axis.around([0.0, 10.0], title="")
    grid = Grid.choose(titles, x=axis, y=axis, canvas=NARROW, columns=3, height=100)
    assert len(grid.break_title(titles[0])) > 1
    assert " ".join(grid.break_title(titles[0])) == titles[0]
    assert all(6.6 * len(line) <= grid.panel_width for line in grid.break_title(titles[0]))
    one_line = Grid.choose(["short"] * 2, x=axis, y=axis, canvas=NARROW, columns=3, height=100)
    assert grid.row_height > one_line.row_height


def test_a_drawing_becomes_a_picture_and_a_page_for_a_paper() -> None:
    svg = draw_svg(bands(SLIDE, title="t"))
    assert convert_svg(svg, "png").startswith(b"\x89PNG")
    assert convert_svg(svg, "pdf").startswith(b"%PDF")
    assert convert_svg(svg, "svg").decode("utf-8") == svg
