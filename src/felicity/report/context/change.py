"""What happens as a context grows: accuracy against the baseline, over all items and by phenomenon."""

import polars as pl

from felicity.core.sweep import BASELINE
from felicity.report.context.growth import draw_growth, draw_margins, split_models, times_100
from felicity.report.context.kinds import name_kind, sort_kinds
from felicity.report.context.study import ContextPage
from felicity.report.extras import Extra
from felicity.report.legend import LOOKS
from felicity.report.wording import count, percent, signed


def build_change(study: ContextPage) -> Extra | None:
    """Accuracy with a context less accuracy without: a figure a model, the longest contexts as a table."""
    rows = sort_kinds(study.contexts("overall"))
    figures = [
        draw_growth(study, f"change_{file}", f"Change of accuracy by length: {model}", part, panel=None)
        for model, file, part in split_models(study, rows)
    ]
    if not figures:
        return None
    return Extra(
        name="change",
        title="Change of accuracy with context",
        lede="Accuracy in a context less accuracy of the same items without one, in percentage points, with "
        "95% intervals. Acceptable contexts are blue, unacceptable ones orange; matched ones have a solid "
        "line. The table gives the longest contexts.",
        figures=tuple(figures),
        columns=(
            "Model",
            "Context",
            study.unit.capitalize(),
            "Items",
            "Accuracy, %",
            "Change",
            "95% interval",
        ),
        rows=tuple(_longest(study, rows)),
        names=2,
    )


def build_phenomena(study: ContextPage) -> Extra | None:
    """The same for every phenomenon, as panels of one figure a model."""
    rows = sort_kinds(study.contexts("phenomenon"))
    if rows["name"].n_unique() < 2:
        return None
    figures = [
        draw_growth(
            study, f"phenomena_{file}", f"Change of accuracy by phenomenon: {model}", part, panel="name"
        )
        for model, file, part in split_models(study, rows)
    ]
    return Extra(
        name="phenomena",
        title="By phenomenon",
        lede="The same for every phenomenon, on the same scales.",
        figures=tuple(figures),
    )


def build_models(study: ContextPage) -> Extra | None:
    """Models beside each other: a panel a model, and a panel a kind of context."""
    rows = sort_kinds(study.contexts("overall"))
    if len(study.models) < 2 or rows.is_empty():
        return None
    figures = [draw_growth(study, "models", "Change of accuracy by model", rows, panel="model")]
    for start in range(0, len(study.models), len(LOOKS)):
        some = study.models[start : start + len(LOOKS)]
        part = rows.filter(pl.col("model").is_in(some))
        name = f"kinds_{start // len(LOOKS) + 1}" if len(study.models) > len(LOOKS) else "kinds"
        figures.append(
            draw_growth(
                study, name, "Change of accuracy by kind of context", part, panel="kind", series="model"
            )
        )
    return Extra(
        name="models",
        title="By model",
        lede="The models beside each other: a panel a model, then a panel a kind of context.",
        figures=tuple(figures),
    )


def build_ratio(study: ContextPage) -> Extra | None:
    """Accuracy against the baseline as a ratio, a panel a model."""
    rows = sort_kinds(study.contexts("overall")).drop_nulls("ratio")
    if rows.is_empty():
        return None
    several = len(study.models) > 1
    figure = draw_growth(
        study,
        "ratio",
        "Accuracy relative to the baseline",
        rows,
        panel="model" if several else None,
        value=("ratio", None, None),
        y_title="relative change (%)",
    )
    return Extra(
        name="ratio",
        title="Relative to the baseline",
        lede="Accuracy in a context divided by accuracy without, less one, in percent: a model that starts "
        "high can lose more points than it can gain, and a ratio shows that differently.",
        figures=(figure,),
    )


def build_margins(study: ContextPage) -> Extra | None:
    """How much less perplexed a model is by the acceptable sentence, by length."""
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
    return Extra(
        name="margins",
        title="Margins by length",
        lede="Perplexity of the acceptable sentence less that of the unacceptable one, averaged over items: "
        "below zero the model is less perplexed by the acceptable sentence.",
        figures=tuple(figures),
    )


def _longest(study: ContextPage, rows: pl.DataFrame) -> list[tuple[str, ...]]:
    table: list[tuple[str, ...]] = []
    for model in study.models:
        none = study.baselines("overall").filter(pl.col("model") == model)
        own = (
            rows.filter(pl.col("model") == model).sort("length").group_by("kind", maintain_order=True).last()
        )
        for row in [*none.iter_rows(named=True), *sort_kinds(own).iter_rows(named=True)]:
            base = row["kind"] == BASELINE
            change = () if base else (row["delta"], row["delta_low"], row["delta_high"])
            ends = " to ".join(signed(times_100(end), 1) for end in change[1:])
            table.append(
                (
                    model,
                    "no context" if base else name_kind(row["kind"]),
                    "0" if base else count(row["length"]),
                    count(row["n"]),
                    f"{percent(row['accuracy'])} ({percent(row['low'])}–{percent(row['high'])})",
                    "" if base else signed(times_100(row["delta"]), 1),
                    ends,
                )
            )
    return table
