"""The report's colours, once for page and figures, light and dark.

Figures are drawn in the light colours. On the page each of those is replaced by the CSS variable of
its role, so that one drawing serves both schemes; no two roles may share a light colour.
"""

from collections.abc import Mapping

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


def css_variables(colours: Mapping[str, str]) -> str:
    """The roles as CSS custom properties; the accent also as bare channels, to be made translucent."""
    lines = [f"--{role}:{colour}" for role, colour in colours.items()]
    channels = [str(int(colours["accent"][place : place + 2], 16)) for place in (1, 3, 5)]
    return ";".join([*lines, f"--accent-rgb:{' '.join(channels)}"])
