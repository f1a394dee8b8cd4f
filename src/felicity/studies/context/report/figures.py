"""Line figures over the length of a context, by kind, starting at the baseline."""

from collections.abc import Mapping, Sequence
from functools import partial

import polars as pl

from felicity.report import Figure, spaced
from felicity.report.charts import LineStyle, SeriesPoint, chart_bands
from felicity.studies.context.report.context_tables import ContextTables, file_names


def draw_growth(
    study: ContextTables,
    name: str,
    title: str,
    rows: pl.DataFrame,
    *,
    panel: str | None,
    series: str = "kind",
    value: tuple[str, str | None, str | None] = ("delta", "delta_low", "delta_high"),
    y_title: str = "",
    styles: Mapping[str, LineStyle] | None = None,
) -> Figure:
    """A figure of curves that all start at zero, without context."""
    middle, low, high = value
    kept = rows.drop_nulls(middle)
    steps: list[SeriesPoint] = []
    for row in kept.iter_rows(named=True):
        where = _name(study, panel, row), _name(study, series, row)
        steps.append(
            SeriesPoint(
                *where,
                row["length"],
                100 * row[middle],
                times_100(row[low] if low else None),
                times_100(row[high] if high else None),
                study.link(row),
            )
        )
    if not study.baselines("overall").is_empty():
        starts = dict.fromkeys((step.panel, step.series) for step in steps)
        steps = [*(SeriesPoint(*where, 0, 0.0, 0.0, 0.0) for where in starts), *steps]
    names = list(dict.fromkeys(step.series for step in steps))
    return Figure(
        name=name,
        title=title,
        subtitle=study.dataset,
        label=f"{title}, for {', '.join(names)}; the numbers are in the tables of this page.",
        chart=partial(
            chart_bands,
            steps,
            x_title=study.across,
            y_title=y_title or f"change of {study.headline.noun} (points)",
            styles=styles or (study.styles if series == "kind" else None),
        ),
    )


def _name(study: ContextTables, column: str | None, row: Mapping[str, str]) -> str:
    if column is None:
        return ""
    return (
        study.name_kind(row[column])
        if column == "kind"
        else row[column]
        if column == "model"
        else spaced(row[column])
    )


def times_100(value: float | None) -> float | None:
    """A share in percent or points; None stays None."""
    return None if value is None else 100 * value


def draw_margins(
    study: ContextTables, name: str, title: str, rows: pl.DataFrame, start: pl.DataFrame
) -> Figure:
    """A figure of perplexity margins; `start` are the rows without a context, where every curve starts."""
    return Figure(
        name=name,
        title=title,
        subtitle=study.dataset,
        label=f"{title}: {study.side('acceptable')} minus {study.side('unacceptable')} sentence, by kind of "
        "context.",
        chart=partial(
            chart_bands,
            _margin_steps(study, rows, start),
            x_title=study.across,
            y_title="perplexity margin",
            styles=study.styles,
        ),
    )


def split_models(study: ContextTables, rows: pl.DataFrame) -> list[tuple[str, str, pl.DataFrame]]:
    """Each model with a file name and its rows; a model without rows is left out."""
    files = file_names(study.models)
    parts = [(model, files[model], rows.filter(pl.col("model") == model)) for model in study.models]
    return [part for part in parts if not part[2].is_empty()]


def _margin_steps(study: ContextTables, rows: pl.DataFrame, start: pl.DataFrame) -> Sequence[SeriesPoint]:
    kinds = rows["kind"].unique(maintain_order=True).to_list()
    first = [(kind, row) for kind in kinds for row in start.iter_rows(named=True)]
    rest = [(row["kind"], row) for row in rows.iter_rows(named=True)]
    return [
        SeriesPoint(
            "",
            study.name_kind(kind),
            row["length"],
            row["ppl_margin"],
            row["ppl_low"],
            row["ppl_high"],
            study.link(row),
        )
        for kind, row in [*first, *rest]
    ]
