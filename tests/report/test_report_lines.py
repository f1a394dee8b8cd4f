"""Lines by region and by length: what is drawn, and that the drawing is whole."""

import re

import altair as alt
import pytest

from felicity.report.charts.canvas import NARROW, WIDE, Canvas, draw_svg
from felicity.report.charts.lines import Point, chart_lines

POINTS = [Point(series, x, y) for series, y in (("match", 2.0), ("mis'match", 5.0)) for x in (0, 1, 2)]


@pytest.mark.parametrize("canvas", [WIDE, NARROW])
def test_every_series_and_label_is_written(canvas: Canvas) -> None:
    spec = chart_lines(
        POINTS, canvas=canvas, x_title="region", y_title="bits", labels=["1 a", "2 b's", "3 c"]
    )
    alt.LayerChart.from_dict(spec)
    svg = draw_svg(spec)
    for text in ("match", "mis'match", ">1<", ">a<", ">b's<", ">c<", "region", "bits"):
        assert text in svg.replace("&#39;", "'").replace("&apos;", "'"), text
    assert len(re.findall(r'aria-roledescription="circle"|mark-symbol', svg)) >= 2


def test_intervals_of_series_at_one_place_stand_side_by_side() -> None:
    points = [Point(name, 0, 50.0, 40.0, 60.0) for name in ("lp", "mean_lp")]
    spec = chart_lines(points, canvas=WIDE, x_title="d", y_title="%", level=50)
    places = {row["x"] for rows in spec["datasets"].values() for row in rows if row.get("low") is not None}
    assert len(places) == 2


def test_a_long_legend_takes_several_lines_without_losing_a_name() -> None:
    names = [f"a rather long name of a condition {n}" for n in range(6)]
    points = [Point(name, x, float(x)) for name in names for x in (0, 1)]
    svg = draw_svg(chart_lines(points, canvas=NARROW, x_title="x", y_title="y"))
    assert all(name in svg for name in names)
