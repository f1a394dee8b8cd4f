"""A histogram of margins: how far apart the members of a pair are."""

import math
from collections.abc import Callable
from typing import Any

import polars as pl

from felicity.report.charts.canvas import LIGHT, Canvas, Spec, finish, plot
from felicity.report.wording import counted

# From the axis outwards; the colour is a role of the theme.
OUTCOMES = ((0.5, "tie", "tie"), (1.0, "right", "good"), (0.0, "wrong", "bad"))
BINS = 56


def bin_margins(judgements: pl.DataFrame, *, bins: int = BINS) -> tuple[float, pl.DataFrame]:
    """Counts of margins in bins of a round width, with zero as an edge: bin, passed, count.

    Also returns the width. Margins that are not finite are left out.
    """
    margins = judgements.filter(pl.col("margin").is_finite())
    largest, smallest = margins["margin"].max(), margins["margin"].min()
    width = _round_width(max(float(largest or 0), 0.0), min(float(smallest or 0), 0.0), bins=bins)  # type: ignore[arg-type]
    counts = (
        margins.with_columns(bin=(pl.col("margin") / width).floor().cast(pl.Int64))
        .group_by("bin", "passed")
        .agg(count=pl.len())
        .sort("bin", "passed")
    )
    return width, counts


def chart_margins(
    judgements: pl.DataFrame,
    *,
    canvas: Canvas,
    unit: str,
    verdicts: tuple[str, str] = ("judged right", "judged wrong"),
    link: Callable[[float, float], str] | None = None,
    title: str = "",
    subtitle: str = "",
) -> Spec:
    """Bars right of zero are items that passed, left of it those that did not; `verdicts` are their names.

    link: where a bar leads, from the ends of its bin.
    """
    import altair as alt

    width_of_bin, counts = bin_margins(judgements, bins=BINS // 2 if canvas.narrow else BINS)
    records = _stack(counts, width_of_bin)
    left, right, height = (44, 12, 190) if canvas.narrow else (64, 24, 280)
    width = canvas.width - left - right
    x = alt.X(
        "from:Q",
        scale=alt.Scale(domain=_domain(records, width_of_bin), nice=False, zero=False),
        axis=alt.Axis(
            title=f"margin ({unit})" if unit else "margin", grid=False, tickCount=5 if canvas.narrow else 10
        ),
    )
    y = alt.Y("base:Q", axis=alt.Axis(title=None, values=_ticks(records), format=",d"))
    colour = alt.Color(
        "outcome:N",
        legend=None,
        scale=alt.Scale(
            domain=[name for _, name, _ in OUTCOMES], range=[LIGHT[role] for _, _, role in OUTCOMES]
        ),
    )
    bars = (
        plot(records)
        .mark_bar(stroke=LIGHT["paper"], strokeWidth=0.8, aria=False)
        .encode(x=x, x2=alt.X2("to:Q"), y=y, y2=alt.Y2("top:Q"), color=colour)
    )
    if link:
        for record in records:
            record["link"] = link(record["from"], record["to"])
        bars = bars.encode(href=alt.Href("link:N"))
    zero = plot([{"from": 0}]).mark_rule(color=LIGHT["ink"], strokeWidth=1.25, aria=False)
    return finish(
        alt.layer(bars, zero.encode(x=x), *_legend(counts, width, verdicts)).properties(
            width=width, height=height
        ),
        margins={"left": left, "right": right, "top": 34, "bottom": 52},
        title=title,
        subtitle=subtitle,
    )


def _legend(counts: pl.DataFrame, width: float, verdicts: tuple[str, str]) -> list[Any]:
    import altair as alt

    totals = dict(counts.group_by("passed").agg(pl.col("count").sum()).iter_rows())
    places = {"wrong": (0.0, "left"), "tie": (width / 2, "center"), "right": (width, "right")}
    texts = []
    for passed, outcome, role in OUTCOMES:
        number = totals.get(passed, 0)
        if outcome == "tie" and not number:
            continue
        at, align = places[outcome]
        verdict = verdicts[0] if outcome == "right" else verdicts[1]
        word = counted(number, "tie") if outcome == "tie" else f"{number:,} {verdict}"
        mark = plot([{"word": word}]).mark_text(
            x=at, y=-18, align=align, fontSize=13, fontWeight="bold", color=LIGHT[role], aria=False
        )
        texts.append(mark.encode(text=alt.Text("word:N")))
    return texts


def _stack(counts: pl.DataFrame, width: float) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = []
    filled: dict[int, int] = {}
    for passed, outcome, _ in OUTCOMES:
        for row in counts.filter(pl.col("passed") == passed).iter_rows(named=True):
            place, base = row["bin"], filled.get(row["bin"], 0)
            filled[place] = base + row["count"]
            edges = {"from": place * width, "to": (place + 1) * width}
            records.append({**edges, "outcome": outcome, "base": base, "top": filled[place]})
    return records


def _ticks(records: list[dict[str, Any]]) -> list[int]:
    highest = max((record["top"] for record in records), default=1)
    step = max(1, round(_round_width(highest, 0.0, bins=5)))
    return list(range(0, highest + 1, step))


def _domain(records: list[dict[str, Any]], width: float) -> list[float]:
    """From the first bar to the last, always including zero."""
    edges = [edge for record in records for edge in (record["from"], record["to"])]
    return [min([*edges, -width]), max([*edges, width])]


def _round_width(largest: float, smallest: float, *, bins: int) -> float:
    span = largest - smallest
    if span <= 0:
        return 1.0
    rough = span / bins
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
