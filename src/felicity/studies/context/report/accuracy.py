"""Sections on accuracy, margins, perturbations and critical regions by length of context."""

from functools import partial

import polars as pl

from felicity.core.sweep import BASELINE, KINDS, UNPERTURBED
from felicity.report import (
    Figure,
    Linked,
    Section,
    count,
    decimal,
    format_interval,
    percent,
    percent_interval,
    points,
    spaced,
)
from felicity.report.charts import LINE_STYLES, SeriesPoint, chart_bands
from felicity.studies.context.report.context_tables import ContextTables, file_names, sort_kinds
from felicity.studies.context.report.figures import draw_growth, draw_margins, split_models

MOST_FIGURES = 60


def draw_change(study: ContextTables) -> list[Figure]:
    """Accuracy with a context minus accuracy without, a figure per model."""
    rows = sort_kinds(study.contexts("overall"))
    title = f"Change of {study.headline.noun} by length"
    return [
        draw_growth(study, f"change_{file}", f"{title}: {model}", part, panel=None)
        for model, file, part in split_models(study, rows)
    ]


def draw_models(study: ContextTables) -> Figure:
    """The same with one panel per model."""
    rows = sort_kinds(study.contexts("overall"))
    return draw_growth(study, "models", f"Change of {study.headline.noun} by model", rows, panel="model")


def build_change(study: ContextTables) -> Section | None:
    """A figure per model, and the longest contexts as a table."""
    score = study.headline
    rows = sort_kinds(study.contexts("overall"))
    if rows.is_empty():
        return None
    return Section(
        name="change",
        title=f"Change of {score.noun} with context",
        lede=f"{score.name} in a context minus {score.noun} of the same items without one, in percentage "
        f"points, with 95% intervals. Contexts of {study.side('acceptable')} sentences are blue, of "
        f"{study.side('unacceptable')} ones orange; matched ones have a solid line. The table gives the "
        "longest contexts.",
        figures=tuple(draw_change(study)),
        columns=(
            "Model",
            "Context",
            study.unit.capitalize(),
            "Items",
            f"{score.name}, %",
            "Change",
            "95% interval",
        ),
        rows=tuple(_list_longest(study, rows)),
        names=2,
    )


def build_phenomena(study: ContextTables) -> Section | None:
    """The same for every phenomenon, as panels of one figure per model."""
    score = study.headline
    rows = sort_kinds(study.contexts("phenomenon"))
    if rows["name"].n_unique() < 2:
        return None
    figures = [
        draw_growth(
            study,
            f"phenomena_{file}",
            f"Change of {score.noun} by phenomenon: {model}",
            part,
            panel="name",
        )
        for model, file, part in split_models(study, rows)
    ]
    return Section(
        name="phenomena",
        title="By phenomenon",
        lede="The same for every phenomenon, on the same scales.",
        figures=tuple(figures),
    )


def build_models(study: ContextTables) -> Section | None:
    """Models side by side, one panel per kind of context; the main figure has one panel per model."""
    score = study.headline
    rows = sort_kinds(study.contexts("overall"))
    if len(study.models) < 2 or rows.is_empty():
        return None
    figures = []
    for start in range(0, len(study.models), len(LINE_STYLES)):
        some = study.models[start : start + len(LINE_STYLES)]
        part = rows.filter(pl.col("model").is_in(some))
        name = f"kinds_{start // len(LINE_STYLES) + 1}" if len(study.models) > len(LINE_STYLES) else "kinds"
        figures.append(
            draw_growth(
                study,
                name,
                f"Change of {score.noun} by kind of context",
                part,
                panel="kind",
                series="model",
            )
        )
    return Section(
        name="models",
        title="By model",
        lede="The models side by side: one panel per kind of context.",
        figures=tuple(figures),
    )


def build_ratio(study: ContextTables) -> Section | None:
    """Accuracy relative to the baseline, one panel per model."""
    score = study.headline
    rows = sort_kinds(study.contexts("overall")).drop_nulls("ratio")
    if rows.is_empty():
        return None
    several = len(study.models) > 1
    figure = draw_growth(
        study,
        "ratio",
        f"{score.name} relative to the baseline",
        rows,
        panel="model" if several else None,
        value=("ratio", None, None),
        y_title="relative change (%)",
    )
    return Section(
        name="ratio",
        title="Relative to the baseline",
        lede=f"{score.name} in a context divided by {score.noun} without, minus one, in percent: "
        "a model that starts high can lose more points than it can gain, and a ratio shows that differently.",
        figures=(figure,),
    )


def build_margins(study: ContextTables) -> Section | None:
    """The difference in perplexity between the acceptable and the unacceptable sentence, by length."""
    rows = sort_kinds(study.contexts("overall")).drop_nulls("ppl_margin")
    starts = study.baselines("overall").drop_nulls("ppl_margin")
    figures = [
        draw_margins(
            study,
            f"margins_{file}",
            f"Perplexity margin by length: {model}",
            part,
            starts.filter(pl.col("model") == model),
        )
        for model, file, part in split_models(study, rows)
    ]
    if not figures:
        return None
    return Section(
        name="margins",
        title="Margins by length",
        lede=f"Perplexity of the {study.side('acceptable')} sentence minus that of the "
        f"{study.side('unacceptable')} one, averaged over items: below zero the {study.side('acceptable')} "
        "sentence has the lower perplexity.",
        figures=tuple(figures),
    )


def find_longest(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of one model at the longest length of each kind and source."""
    return rows.sort("length", maintain_order=True).group_by("kind", "source", maintain_order=True).last()


def _list_longest(study: ContextTables, rows: pl.DataFrame) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = []
    for model in study.models:
        none = study.baselines("overall").filter(pl.col("model") == model)
        own = find_longest(rows.filter(pl.col("model") == model))
        for row in [*none.iter_rows(named=True), *sort_kinds(own).iter_rows(named=True)]:
            base = row["kind"] == BASELINE
            ends = "" if base else format_interval(row["delta_low"], row["delta_high"], points)
            table.append(
                (
                    model,
                    "no context" if base else study.name_kind(row["kind"]),
                    "0" if base else count(row["length"]),
                    Linked(count(row["n"]), study.link(row)),
                    Linked(percent_interval(row["accuracy"], row["low"], row["high"]), study.link(row)),
                    "" if base else points(row["delta"]),
                    ends,
                )
            )
    return table


def build_numbers(study: ContextTables) -> Section:
    """The numbers behind the curves, for every model, kind, source, perturbation and length."""
    rows = study.estimates.filter(pl.col("level") == "overall")
    return Section(
        name="numbers",
        title="Numbers",
        lede="The numbers behind the curves over all items. A tie counts one half; “within noise” are "
        "judgements whose margin is no larger than the possible rounding error.",
        columns=(
            *("Model", "Context", "Length", "Tokens", "Items", "Suites", f"{study.headline.name}, %"),
            *(
                "95% interval",
                "Change",
                "Interval of change",
                "Perplexity margin",
                "Ties",
                "Within noise",
            ),
        ),
        rows=tuple(_list_numbers(study, rows)),
        names=2,
        folded=True,
    )


def _list_numbers(study: ContextTables, rows: pl.DataFrame) -> list[tuple[str, ...]]:
    return [
        (
            row["model"],
            _context(study, row["kind"], row["source"], row["perturbation"]),
            count(row["length"]),
            decimal(row["tokens"], 0),
            Linked(count(row["n"]), study.link(row)),
            count(row["suites"]),
            Linked(percent(row["accuracy"]), study.link(row)),
            format_interval(row["low"], row["high"], percent),
            points(row["delta"]),
            format_interval(row["delta_low"], row["delta_high"], points),
            decimal(row["ppl_margin"], 1),
            count(row["ties"]),
            count(row["unstable"]),
        )
        for row in rows.iter_rows(named=True)
    ]


def _context(study: ContextTables, kind: str, source: str | None, perturbation: str | None) -> str:
    if kind == BASELINE:
        return "no context"
    plain = perturbation in (None, UNPERTURBED)
    return study.name_kind(kind, source) + ("" if plain else f", {spaced(perturbation)}")


def build_perturbations(study: ContextTables) -> Section | None:
    """One panel per kind of context, one line per perturbation; the longest contexts as a table."""
    score = study.headline
    chosen = (pl.col("level") == "overall") & pl.col("kind").is_in(list(KINDS))
    rows = sort_kinds(study.estimates.filter(chosen))
    if rows["perturbation"].n_unique() < 2:
        return None
    named = rows.with_columns(
        pl.col("perturbation").replace({UNPERTURBED: "unperturbed"}).str.replace_all("_", " ", literal=True)
    )
    # A kind without perturbations has nothing to compare.
    several = named.filter(pl.col("perturbation").n_unique().over("model", "kind") > 1)
    figures = [
        draw_growth(
            study,
            f"perturbations_{file}",
            f"Change of {score.noun} by perturbation: {model}",
            part,
            panel="kind",
            series="perturbation",
        )
        for model, file, part in split_models(study, several)
    ]
    return Section(
        name="perturbations",
        title="Perturbed contexts",
        lede="The perturbed sentences of the context, their structure kept, compared with the same "
        "sentences unperturbed. The table gives the longest contexts.",
        figures=tuple(figures),
        columns=(
            "Model",
            "Context",
            "Perturbation",
            study.unit.capitalize(),
            f"{score.name}, %",
            "Change",
            "Interval",
        ),
        rows=tuple(_longest(study, several)),
        names=3,
    )


def _longest(study: ContextTables, rows: pl.DataFrame) -> list[tuple[str, ...]]:
    keys = ["model", "kind", "perturbation"]
    last = rows.sort("length", maintain_order=True).group_by(keys, maintain_order=True).last()
    return [
        (
            row["model"],
            study.name_kind(row["kind"]),
            spaced(row["perturbation"]),
            count(row["length"]),
            percent(row["accuracy"]),
            points(row["delta"]),
            format_interval(row["delta_low"], row["delta_high"], points),
        )
        for row in sort_kinds(last.sort("model", maintain_order=True)).iter_rows(named=True)
    ]


def build_regions(study: ContextTables) -> Section | None:
    """One figure per suite and model, one panel per kind of context and region, one line per condition."""
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
    return Section(
        name="regions",
        title="Surprisal of the critical regions",
        lede="The mean surprisal, in bits, of the regions that a suite's predictions mention, by length and "
        "kind of context; one line per condition."
        + (f" {left} more are in the study's tables." if left else ""),
        figures=tuple(figures),
    )


def _figure(study: ContextTables, name: str, title: str, rows: pl.DataFrame) -> Figure:
    base = rows.filter(pl.col("kind") == "none")
    grown = rows.filter(pl.col("kind") != "none")
    several = rows["region"].n_unique() > 1
    kinds = grown["kind"].unique(maintain_order=True).to_list() or ["none"]
    steps = []
    for kind in kinds:
        for row in [*base.iter_rows(named=True), *grown.filter(pl.col("kind") == kind).iter_rows(named=True)]:
            panel = study.name_kind(kind) if kind != "none" else "no context"
            where = f"{panel} · {spaced(row['name'])}" if several else panel
            steps.append(
                SeriesPoint(
                    where,
                    spaced(row["condition"]),
                    row["length"],
                    row["surprisal_bits"],
                    row["low"],
                    row["high"],
                    study.link({**row, "kind": kind if row["length"] else "none"}),
                )
            )
    return Figure(
        name=name,
        title=title,
        subtitle=study.dataset,
        label=f"{title}: mean surprisal by length, one panel per kind of context, one line per condition.",
        chart=partial(
            chart_bands,
            steps,
            x_title=study.across,
            y_title="surprisal (bits)",
            level=None,
            signed=False,
        ),
    )
