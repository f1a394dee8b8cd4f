"""The surprisal of the critical regions as the context grows."""

from functools import partial

import polars as pl

from felicity.report.band_chart import Step, chart_bands
from felicity.report.context.kinds import file_names, name_kind, sort_kinds
from felicity.report.context.study import ContextPage
from felicity.report.extras import Extra
from felicity.report.figures import Figure
from felicity.report.wording import spaced

MOST_FIGURES = 60


def build_regions(study: ContextPage) -> Extra | None:
    """A figure a suite and model, a panel a kind of context and region, a line a condition."""
    regions = sort_kinds(study.table("regions")).drop_nulls("surprisal_bits")
    if regions.is_empty():
        return None
    parts = list(
        regions.sort("model", "suite", maintain_order=True).group_by("model", "suite", maintain_order=True)
    )
    models = file_names(study.models)
    suites = file_names(regions["suite"].unique(maintain_order=True))
    several = len(study.models) > 1
    figures = []
    for (model, suite), part in parts[:MOST_FIGURES]:
        name = f"regions_{suites[str(suite)]}" + (f"_{models[str(model)]}" if several else "")
        title = f"Critical regions of {spaced(str(suite))}: {model}"
        figures.append(_figure(study, name, title, part))
    left = len(parts) - len(figures)
    return Extra(
        name="regions",
        title="Surprisal of the critical regions",
        lede="The mean surprisal, in bits, of the regions that a suite's predictions speak of, by length and "
        "kind of context; one line a condition."
        + (f" {left} more are in the study's tables." if left else ""),
        figures=tuple(figures),
    )


def _figure(study: ContextPage, name: str, title: str, rows: pl.DataFrame) -> Figure:
    base = rows.filter(pl.col("kind") == "none")
    grown = rows.filter(pl.col("kind") != "none")
    several = rows["region"].n_unique() > 1
    kinds = grown["kind"].unique(maintain_order=True).to_list() or ["none"]
    steps = []
    for kind in kinds:
        for row in [*base.iter_rows(named=True), *grown.filter(pl.col("kind") == kind).iter_rows(named=True)]:
            panel = name_kind(kind) if kind != "none" else "no context"
            where = f"{panel} · {spaced(row['name'])}" if several else panel
            steps.append(
                Step(
                    where,
                    spaced(row["condition"]),
                    row["length"],
                    row["surprisal_bits"],
                    row["low"],
                    row["high"],
                )
            )
    return Figure(
        name=name,
        title=title,
        subtitle=study.dataset,
        label=f"{title}: mean surprisal by length, a panel a kind of context, a line a condition.",
        chart=partial(
            chart_bands,
            steps,
            x_title=study.across,
            y_title="surprisal (bits)",
            level=None,
            signed=False,
        ),
    )
