"""The sheet that every figure is drawn on: sizes, type and rules, none of Vega's own looks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from felicity.report.drawing import Spec
from felicity.report.theme import FONT, LIGHT

TITLE_HEIGHT = 62.0
EDGE = 24.0
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
    """How wide a figure is, and whether that is a phone's width."""

    width: float
    narrow: bool = False


SLIDE = Canvas(960)
WIDE = Canvas(960)
NARROW = Canvas(343, narrow=True)


def plot(records: list[dict[str, Any]]) -> Any:
    """A chart over these records, with no mark yet."""
    import altair as alt

    return alt.Chart({"values": records})


def finish(chart: Any, *, margins: Mapping[str, float], title: str = "", subtitle: str = "") -> Spec:
    """A chart with its margins and title, as a specification.

    Every margin is given, not measured, so that a drawing is the same on any machine. A figure with a
    title stands alone on a slide and gets an edge around it.
    """
    # The shape of a specification does not depend on the data; a test validates it once for all.
    spec: Spec = chart.to_dict(validate=False)
    padding = dict(margins)
    if title:
        spec["layer"] += _title(title, subtitle, left=margins["left"], top=margins["top"])
        padding = {side: size + EDGE for side, size in margins.items()}
        padding["top"] += TITLE_HEIGHT
    sheet = {"autosize": {"type": "none"}, "padding": padding, "background": LIGHT["paper"]}
    return spec | sheet | {"config": CONFIG}


def _title(title: str, subtitle: str, *, left: float, top: float) -> list[Spec]:
    """The title as marks: Vega would put its own above whatever it takes the height of the marks to be."""
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
