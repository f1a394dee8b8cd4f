"""Contexts whose sentences were changed without changing their structure: does the effect stay?"""

import polars as pl

from felicity.core.sweep import KINDS, UNPERTURBED
from felicity.report.context.growth import draw_growth, split_models, times_100
from felicity.report.context.kinds import name_kind, sort_kinds
from felicity.report.context.study import ContextPage
from felicity.report.extras import Extra
from felicity.report.wording import count, percent, signed, spaced


def build_perturbations(study: ContextPage) -> Extra | None:
    """A panel a kind of context, a line a perturbation; the longest contexts as a table."""
    chosen = (pl.col("level") == "overall") & pl.col("kind").is_in(list(KINDS))
    rows = sort_kinds(study.curves.filter(chosen))
    if rows["perturbation"].n_unique() < 2:
        return None
    named = rows.with_columns(
        pl.col("perturbation").replace({UNPERTURBED: "as they stand"}).str.replace_all("_", " ", literal=True)
    )
    # A kind that was never perturbed has nothing to compare.
    several = named.filter(pl.col("perturbation").n_unique().over("model", "kind") > 1)
    figures = [
        draw_growth(
            study,
            f"perturbations_{file}",
            f"Change of accuracy by perturbation: {model}",
            part,
            panel="kind",
            series="perturbation",
        )
        for model, file, part in split_models(study, several)
    ]
    return Extra(
        name="perturbations",
        title="Perturbed contexts",
        lede="The sentences of the context with something added to them, their structure kept, beside those "
        "same sentences as they stand. The table gives the longest contexts.",
        figures=tuple(figures),
        columns=(
            "Model",
            "Context",
            "Perturbation",
            study.unit.capitalize(),
            "Accuracy, %",
            "Change",
            "Interval",
        ),
        rows=tuple(_longest(several)),
        names=3,
    )


def _longest(rows: pl.DataFrame) -> list[tuple[str, ...]]:
    keys = ["model", "kind", "perturbation"]
    last = rows.sort("length", maintain_order=True).group_by(keys, maintain_order=True).last()
    return [
        (
            row["model"],
            name_kind(row["kind"]),
            spaced(row["perturbation"]),
            count(row["length"]),
            percent(row["accuracy"]),
            signed(times_100(row["delta"]), 1),
            " to ".join(signed(times_100(row[end]), 1) for end in ("delta_low", "delta_high")),
        )
        for row in sort_kinds(last.sort("model", maintain_order=True)).iter_rows(named=True)
    ]
