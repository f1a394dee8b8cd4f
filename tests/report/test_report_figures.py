"""Figures show the numbers they were given, in both schemes."""

import re
from xml.dom.minidom import parseString

import altair as alt
import polars as pl
import pytest

from felicity.core.schemas import JUDGEMENTS
from felicity.report import ReportInput
from felicity.report.charts import Dot, chart_scatter
from felicity.report.charts.canvas import DARK, LIGHT, NARROW, WIDE, css_variables, draw_inline, draw_svg
from felicity.report.charts.margins import bin_margins, chart_margins
from felicity.report.run_estimates import build_figures


def judged(*rows: tuple[float, float]) -> pl.DataFrame:
    full = [
        (str(place), "s", "p", "lp", "r", passed, margin, True) for place, (passed, margin) in enumerate(rows)
    ]
    return pl.DataFrame(full, schema=JUDGEMENTS, orient="row")


def test_margins_are_counted_in_bins_that_meet_at_zero() -> None:
    # Span 10 in at most 10 bins: width 1; [-2, -1) holds -1.5, [0, 1) the tie and 0.5, [8, 9) the rest.
    width, counts = bin_margins(judged((0.0, -1.5), (0.5, 0.0), (1.0, 0.5), (1.0, 8.0), (1.0, 8.5)), bins=10)
    assert width == 1.0
    assert counts.rows() == [(-2, 0.0, 1), (0, 0.5, 1), (0, 1.0, 1), (8, 1.0, 2)]


def test_margins_that_are_not_finite_are_left_out() -> None:
    _, counts = bin_margins(judged((1.0, float("inf")), (1.0, 1.0), (0.0, float("nan"))))
    assert counts["count"].sum() == 1


def test_zero_is_in_the_picture_even_where_all_margins_are_far_from_it() -> None:
    spec = chart_margins(judged((0.0, -8.0), (0.0, -8.4)), canvas=WIDE, unit="nats")
    low, high = spec["layer"][0]["encoding"]["x"]["scale"]["domain"]
    assert low <= -8.4 < 0 < high


@pytest.mark.parametrize("setting", ["slide", "wide", "narrow"])
def test_every_phenomenon_and_its_accuracy_is_in_the_figure(starter_run: ReportInput, setting: str) -> None:
    figure = build_figures(starter_run, heading="m on d")["accuracy_by_phenomenon"]
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", draw_svg(getattr(figure, setting)()))
    for row in starter_run.estimated("phenomenon", "lp").iter_rows(named=True):
        assert row["name"].replace("_", " ") in texts
        assert f"{100 * row['accuracy']:.1f}" in texts
    assert "chance" in texts


def test_every_specification_is_valid_vega_lite(starter_run: ReportInput) -> None:
    for figure in build_figures(starter_run, heading="m on d").values():
        for spec in (figure.slide(), figure.narrow()):
            assert alt.Chart.from_dict(spec, validate=True).to_dict()["config"]


def test_a_phenomenon_of_several_suites_shows_each(large_run: ReportInput) -> None:
    figure = build_figures(large_run, heading="m on d")["accuracy_by_phenomenon"]
    ticks = re.search(r'<g class="mark-rect[^>]*>(?:<path [^>]*/>)+</g>', draw_svg(figure.wide()))
    assert ticks is not None
    assert ticks[0].count("<path ") == 67


def test_an_inline_figure_takes_all_its_colours_from_the_page(starter_run: ReportInput) -> None:
    for figure in build_figures(starter_run, heading="m on d").values():
        svg = draw_inline(figure.wide(), label='of "this" & <that>', kind="wide")
        assert not re.search(r'(?:fill|stroke)="(?:#|rgb|white|black)', svg)
        assert 'aria-label="of &quot;this&quot; &amp; &lt;that&gt;"' in svg
        assert "var(--" in svg


def test_both_schemes_know_every_role_and_no_two_roles_share_a_colour() -> None:
    assert LIGHT.keys() == DARK.keys()
    assert len(set(LIGHT.values())) == len(LIGHT)
    assert "--accent-rgb:74 63 159" in css_variables(LIGHT)  # #4a3f9f


@pytest.mark.parametrize("colours", [LIGHT, DARK])
@pytest.mark.parametrize("role", ["ink", "soft", "accent", "good", "bad"])
def test_text_is_legible_on_paper(colours: dict[str, str], role: str) -> None:
    """WCAG 2.1, 1.4.3: contrast of at least 4.5 to 1 for text."""

    def luminance(colour: str) -> float:
        channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(colours[role]), luminance(colours["paper"])), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_dots_are_circles_that_are_named_on_hover_where_there_is_a_pointer() -> None:
    dots = [Dot("panel", "", float(k), float(k * k), hover=f"sentence <{k}>") for k in range(5)]
    for canvas, kind in ((WIDE, "wide"), (NARROW, "narrow")):
        spec = chart_scatter(dots, canvas=canvas, x_title="x", y_title="y")
        svg = draw_inline(spec, label="dots", kind=kind)
        shapes = re.findall(r'translate\(([\d.]+),([\d.]+)\)" d="M3.162,0A', draw_svg(spec))
        circles = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
        assert [tuple(map(float, place)) for place in circles] == [
            pytest.approx(tuple(map(float, place)), abs=0.01) for place in shapes
        ]
        titles = [title.firstChild.data for title in parseString(svg).getElementsByTagName("title")]
        assert titles == ([f"sentence <{k}>" for k in range(5)] if kind == "wide" else [])
