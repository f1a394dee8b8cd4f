"""Sections on suites: the effect of each suite as context for each other, and the largest changes."""

from functools import partial

import polars as pl

from felicity.report import Figure, Linked, Section, count, format_interval, percent, points, spaced
from felicity.report.charts import Cell, chart_matrix
from felicity.studies.context.report.context_tables import ContextTables, sort_kinds
from felicity.studies.context.report.figures import split_models

MOST_EACH = 5
OVERLAPS = {"token_f1": "Token F1", "dependency_f1": "Dependency-label F1"}


def build_matrices(study: ContextTables) -> Section | None:
    """Change of accuracy of every suite in contexts of every suite, and the similarity of the two."""
    matrix = study.table("matrix")
    figures = []
    for model, file, part in split_models(study, matrix):
        for (kind,), own in part.group_by("kind", maintain_order=True):
            title = f"Change of {study.headline.noun}, {study.name_kind(str(kind))}: {model}"
            figures.append(_matrix(study, f"matrix_{kind}_{file}", title, own, "delta"))
    for (kind,), part in matrix.group_by("kind", maintain_order=True):
        # Similarity does not depend on the model: one figure is enough for all with the same contexts.
        first = part.filter(pl.col("model") == part["model"][0])
        for column, title in OVERLAPS.items():
            if first[column].drop_nulls().len():
                full = f"{title} of context and test sentence, {study.name_kind(str(kind))}"
                figures.append(_matrix(study, f"matrix_{column}_{kind}", full, first, column))
    if not figures:
        return None
    return Section(
        name="matrices",
        title="Suite by suite",
        lede="A row is the suite that is judged, a column the suite that the sentences of the context come "
        "from. Blue is a rise, orange a fall; a blank cell was not measured.",
        figures=tuple(figures),
    )


def build_suite_changes(study: ContextTables) -> Section | None:
    """The suites whose accuracy rises and falls most in each kind of context."""
    changes = sort_kinds(study.table("suite_changes")).drop_nulls("mean")
    if changes.is_empty():
        return None
    rows = []
    for (model, kind), part in changes.group_by("model", "kind", maintain_order=True):
        highest = (
            part.filter(pl.col("mean") > 0).sort("mean", "suite", descending=[True, False]).head(MOST_EACH)
        )
        lowest = part.filter(pl.col("mean") < 0).sort("mean", "suite").head(MOST_EACH)
        for word, chosen in (("rises", highest), ("falls", lowest)):
            rows += [
                (
                    str(model),
                    study.name_kind(str(kind)),
                    word,
                    spaced(row["suite"]),
                    Linked(points(row["mean"]), study.link(row)),
                    percent(row["sd"]),
                    format_interval(row["low"], row["high"], points),
                    count(row["n"]),
                )
                for row in chosen.iter_rows(named=True)
            ]
    return Section(
        name="suite_changes",
        title="Suites that rise and fall most",
        lede=f"At most {MOST_EACH} of each: the mean change of {study.headline.noun} over all lengths, in "
        "points, and its standard deviation over lengths (of the population), with a 95% interval over the "
        "items of the suite, or the contexts that they share. These are the largest changes observed: among "
        "many suites some rise and fall by chance, and the interval of one does not allow for that choice.",
        columns=(
            "Model",
            "Context",
            "Change",
            "Suite",
            "Mean change",
            "SD over lengths",
            "95% interval",
            "Items",
        ),
        rows=tuple(rows),
        names=4,
    )


def _matrix(study: ContextTables, name: str, title: str, rows: pl.DataFrame, column: str) -> Figure:
    change = column == "delta"
    kept = rows.drop_nulls(column)
    # The same contexts at several lengths: the longest one represents the pair.
    if "length" in kept.columns:
        kept = kept.sort("length", maintain_order=True).unique(
            ["suite", "source"], keep="last", maintain_order=True
        )
    order = {suite: place for place, suite in enumerate(rows["suite"].unique(maintain_order=True))}
    cells = [
        Cell(
            spaced(row["suite"]),
            spaced(row["source"]),
            (100 if change else 1) * row[column],
            study.link(row) if change else "",
        )
        for row in sorted(kept.iter_rows(named=True), key=lambda row: order[row["suite"]])
    ]
    links = {
        spaced(suite): study.address(str(rows["model"][0]), suite=suite, kind=str(rows["kind"][0]))
        for suite in order
    }
    return Figure(
        name=name,
        title=title,
        subtitle=study.dataset,
        label=f"{title}: a cell for each of {len(cells)} pairs; the numbers are in the study's tables.",
        chart=partial(
            chart_matrix,
            cells,
            row_title="judged",
            column_title="context from",
            unit="points" if change else "F1",
            diverging=change,
            links=links if change else None,
        ),
    )
