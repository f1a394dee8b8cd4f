"""Vega-Lite specifications into files and into the page, without a browser."""

import re
from html import escape
from typing import Any

from felicity.report.theme import LIGHT

Spec = dict[str, Any]

PNG_SCALE = 2.0
HEADER = re.compile(r"<svg [^>]*?(viewBox=\"[^\"]*\")[^>]*>")
BACKGROUND = re.compile(r"^(<svg [^>]*>)<rect [^>]*/>")
FONTS = re.compile(r' font-family="[^"]*"')
EMPTY_PATHS = re.compile(r'<path [^>]*d=""[^>]*/>|<path class="background"[^>]*d="M0,0h0v0h0Z"[^>]*/>')


def draw_svg(spec: Spec) -> str:
    """A specification as an SVG document."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(spec))


def draw_png(spec: Spec) -> bytes:
    """A specification as a PNG image, two pixels to the point."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(spec, scale=PNG_SCALE))


def convert_svg(svg: str, ending: str) -> bytes:
    """A drawing as the bytes of a file: svg as it stands, png two pixels to the point, pdf for a paper."""
    import vl_convert

    if ending == "svg":
        return svg.encode("utf-8")
    if ending == "png":
        return bytes(vl_convert.svg_to_png(svg, scale=PNG_SCALE))
    return bytes(vl_convert.svg_to_pdf(svg))


def draw_inline(spec: Spec, *, label: str, kind: str) -> str:
    """A specification as an SVG element that takes font and colours from the page around it."""
    svg = BACKGROUND.sub(r"\1", draw_svg(spec))
    opening = f'<svg class="figure {kind}" role="img" aria-label="{escape(label)}"'
    svg = HEADER.sub(lambda found: f"{opening} {found[1]}>", svg, count=1)
    svg = EMPTY_PATHS.sub("", FONTS.sub("", svg))
    for role, colour in LIGHT.items():
        svg = svg.replace(f'"{colour}"', f'"var(--{role})"')
    return svg
