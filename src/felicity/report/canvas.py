"""The sheet that every figure is drawn on: sizes, type and rules, none of Vega's own looks."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from felicity.report.drawing import Spec
from felicity.report.theme import FONT, LIGHT

TITLE_HEIGHT = 62.0
EDGE = 24.0


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
    import altair as alt

    padding = dict(margins)
    if title:
        heading = alt.TitleParams(
            text=title,
            subtitle=subtitle,
            anchor="start",
            frame="group",
            dx=-padding["left"],
            offset=padding["top"] + 2,
        )
        chart = chart.properties(title=heading)
        padding = {side: size + EDGE for side, size in padding.items()}
        padding["top"] += TITLE_HEIGHT
    chart = chart.properties(
        autosize=alt.AutoSizeParams(type="none"), padding=padding, background=LIGHT["paper"]
    )
    spec: Spec = _plain(chart).to_dict()
    return spec


def _plain(chart: Any) -> Any:
    small = {"labelFontSize": 12, "labelColor": LIGHT["soft"], "labelFont": FONT, "labelPadding": 8}
    chart = chart.configure(font=FONT).configure_view(stroke=None)
    chart = chart.configure_axis(
        **small,
        titleFont=FONT,
        titleFontSize=12,
        titleFontWeight="normal",
        titleColor=LIGHT["soft"],
        titlePadding=10,
        domain=False,
        ticks=False,
        grid=True,
        gridColor=LIGHT["faint"],
        aria=False,
    )
    return chart.configure_title(
        font=FONT,
        fontSize=19,
        fontWeight="bold",
        color=LIGHT["ink"],
        subtitleFont=FONT,
        subtitleFontSize=13,
        subtitleColor=LIGHT["soft"],
        subtitlePadding=7,
        aria=False,
    )
