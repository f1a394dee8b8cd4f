"""The canvas of every figure: colours, sizes, fonts and rendering, without Vega's default style."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import Any

FONT = "Liberation Sans, Arial, Helvetica, sans-serif"

LIGHT: Mapping[str, str] = {
    "paper": "#ffffff",
    "surface": "#f5f6f8",
    "ink": "#16191d",
    "soft": "#5a626c",
    "line": "#cfd5dc",
    "faint": "#e9ecf0",
    "accent": "#4a3f9f",
    "good": "#1b6ca8",
    "bad": "#bf4f0b",
    "tie": "#8a929c",
}
DARK: Mapping[str, str] = {
    "paper": "#131619",
    "surface": "#1c2025",
    "ink": "#e9ebee",
    "soft": "#a0a9b4",
    "line": "#3b424a",
    "faint": "#282d33",
    "accent": "#aaa0ff",
    "good": "#6db3ea",
    "bad": "#f2914d",
    "tie": "#868f99",
}
PNG_SCALE = 2.0
HEADER = re.compile(r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>")
BACKGROUND = re.compile(r"^(<svg [^>]*>)<rect [^>]*/>")
FONTS = re.compile(r' font-family="[^"]*"')
EMPTY_PATHS = re.compile(r'<path [^>]*d=""[^>]*/>|<path class="background"[^>]*d="M0,0h0v0h0Z"[^>]*/>')
# A dot, which Vega draws as a path of two arcs; a scatter plot has thousands, so they are written as circles.
# A description is shown on hover.
DOT = re.compile(
    r'<path (?:aria-label="([^"]*)" role="graphics-symbol" aria-roledescription="circle" )?'
    r'transform="translate\(([-\d.]+),([-\d.]+)\)" '
    r'd="M([\d.]+),0A\4,\4,0,1,1,-\4,0A\4,\4,0,1,1,\4,0"([^>]*)/>'
)
STROKE_WIDTH = re.compile(r' stroke-width="[^"]*"')
# The renderer takes relative addresses for those of its examples.
RENDERER_BASE = "https://vega.github.io/vega-datasets/"
LINKS = re.compile(r"<a [^>]*>|</a>")
TITLE_HEIGHT = 62.0
EDGE = 24.0


def css_variables(colours: Mapping[str, str]) -> str:
    """The roles as CSS custom properties; the accent also as bare channels, for transparency."""
    lines = [f"--{role}:{colour}" for role, colour in colours.items()]
    channels = [str(int(colours["accent"][place : place + 2], 16)) for place in (1, 3, 5)]
    return ";".join([*lines, f"--accent-rgb:{' '.join(channels)}"])


Spec = dict[str, Any]


def as_altair(spec: Spec) -> Any:
    """A specification as an altair chart, which a notebook shows and `chart.save("figure.svg")` writes."""
    import altair as alt

    kinds: dict[str, Any] = {
        "layer": alt.LayerChart,
        "vconcat": alt.VConcatChart,
        "hconcat": alt.HConcatChart,
        "concat": alt.ConcatChart,
        "facet": alt.FacetChart,
    }
    kind = next((kind for key, kind in kinds.items() if key in spec), alt.Chart)
    return kind.from_dict(spec, validate=False)


def draw_svg(spec: Spec) -> str:
    """A specification as an SVG document."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(spec)).replace(RENDERER_BASE, "")


def draw_png(spec: Spec) -> bytes:
    """A specification as a PNG image, two pixels per point."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(spec, scale=PNG_SCALE))


def convert_svg(svg: str, ending: str) -> bytes:
    """A drawing as the bytes of a file: svg, png with two pixels per point, or pdf; without links."""
    import vl_convert

    svg = LINKS.sub("", svg)
    if ending == "svg":
        return svg.encode("utf-8")
    if ending == "png":
        return bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))
    return bytes(vl_convert.svg_to_pdf(svg))


def draw_inline(spec: Spec, *, label: str, kind: str) -> str:
    """A specification as an SVG element that takes its font and colours from the page.

    Descriptions are shown on hover, except in the narrow figure: phones have no pointer.
    """
    svg = BACKGROUND.sub(r"\1", draw_svg(spec))
    opening = f'<svg class="figure {kind}" role="img" aria-label="{escape(label)}"'
    svg = HEADER.sub(lambda found: f"{opening} {found[1]}>", svg, count=1)
    svg = EMPTY_PATHS.sub("", FONTS.sub("", svg))
    svg = DOT.sub(partial(_write_circle, named=kind != "narrow"), svg)
    for role, colour in LIGHT.items():
        svg = svg.replace(f'"{colour}"', f'"var(--{role})"')
    return svg


def _write_circle(found: re.Match[str], *, named: bool) -> str:
    x, y, radius = (f"{float(number):.5g}" for number in found.groups()[1:4])
    style = found[5] if " stroke=" in found[5] else STROKE_WIDTH.sub("", found[5])
    opening = f'<circle cx="{x}" cy="{y}" r="{radius}"{style}'
    return f"{opening}><title>{found[1]}</title></circle>" if named and found[1] else f"{opening}/>"


CONFIG: Spec = {
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 12,
        "labelColor": LIGHT["soft"],
        "labelPadding": 8,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titleColor": LIGHT["soft"],
        "titlePadding": 10,
        "domain": False,
        "ticks": False,
        "gridColor": LIGHT["faint"],
        "aria": False,
    },
}


@dataclass(frozen=True)
class Canvas:
    """The width of a figure, and whether it is a phone's."""

    width: float
    narrow: bool = False


SLIDE = Canvas(960)
WIDE = Canvas(960)
NARROW = Canvas(343, narrow=True)


def plot(records: list[dict[str, Any]]) -> Any:
    """A chart over these records, without marks yet."""
    import altair as alt

    return alt.Chart({"values": records})


def finish(chart: Any, *, margins: Mapping[str, float], title: str = "", subtitle: str = "") -> Spec:
    """A chart with its margins and title, as a specification.

    Margins are given, not measured, so that a drawing is the same on every machine. A figure with a
    title is standalone and gets a border.
    """
    # The structure of a specification does not depend on the data; a test validates it once.
    spec: Spec = chart.to_dict(validate=False)
    padding = dict(margins)
    if title:
        spec["layer"] += _title(title, subtitle, left=margins["left"], top=margins["top"])
        padding = {side: size + EDGE for side, size in margins.items()}
        padding["top"] += TITLE_HEIGHT
    sheet = {"autosize": {"type": "none"}, "padding": padding, "background": LIGHT["paper"]}
    return spec | sheet | {"config": CONFIG}


def _title(title: str, subtitle: str, *, left: float, top: float) -> list[Spec]:
    """The title as marks: Vega would place its own by an estimate of the height of the marks."""
    lines = [(title, 46, 19, "bold", "ink"), (subtitle, 22, 13, "normal", "soft")]
    return [
        {
            "data": {"values": [{"word": word}]},
            "mark": {
                "type": "text",
                "align": "left",
                "baseline": "middle",
                "fontSize": size,
                "fontWeight": weight,
                "color": LIGHT[role],
                "aria": False,
            },
            "encoding": {
                "x": {"value": -left},
                "y": {"value": -top - rise},
                "text": {"field": "word", "type": "nominal"},
            },
        }
        for word, rise, size, weight, role in lines
        if word
    ]
