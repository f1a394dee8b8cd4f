"""The surprisal of critical regions by length of context: those that a suite's predictions speak of."""

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.core.formulas import ALL_REGIONS, list_regions, parse_formula
from felicity.core.schemas import check_schema, conform
from felicity.core.sweep import UNPERTURBED
from felicity.studies.context.intervals import mark_clusters, reach_over_clusters, student_reach
from felicity.studies.context.tables import CRITICAL, REGION_CURVES, STUDY_REGIONS, order_kinds, order_seen

PLACE = ["model", "suite", "condition", "region", "name", "kind", "source", "length"]
WHOLE = "whole sentence"


def list_critical(items: pl.DataFrame) -> pl.DataFrame:
    """Rows of CRITICAL: which regions of which condition the predictions of each suite name.

    `place` is a region's number or name, or `*` for the sum of all.

    Raises BadInput for items without predictions.
    """
    if "predictions" not in items.columns:
        raise BadInput("The items have no predictions; critical regions are those that predictions name.")
    suites = (
        items.select("suite", "predictions").explode("predictions").drop_nulls().unique(maintain_order=True)
    )
    places = [
        (suite, place.condition, place.region)
        for suite, formula in suites.iter_rows()
        for place in list_regions(parse_formula(formula))
    ]
    return pl.DataFrame(places, schema=CRITICAL, orient="row").unique(maintain_order=True)


def draw_region_curves(
    regions: pl.DataFrame, critical: pl.DataFrame, *, perturbation: str = UNPERTURBED, seed: int = 0
) -> pl.DataFrame:
    """Rows of REGION_CURVES: mean surprisal of each critical region, kind and length of context.

    `regions` is the table STUDY_REGIONS, the surprisals of every region in and out of context. Draws of an
    item are averaged first. Intervals are over items, or over the contexts that they share.

    Raises BadInput where a column is missing.
    """
    check_schema(regions, STUDY_REGIONS, "regions in context")
    kept = regions.filter((pl.col("perturbation") == perturbation) | (pl.col("kind") == "none"))
    chosen = _choose(kept, critical)
    units = chosen.group_by(*PLACE, "item", maintain_order=True).agg(
        pl.col("surprisal_bits").mean(), pl.col("series").min()
    )
    marked = mark_clusters(units, PLACE)
    cells = (
        marked.group_by("cell", *PLACE)
        .agg(
            pl.len().alias("n"),
            pl.col("surprisal_bits").mean(),
            pl.col("surprisal_bits").std().fill_null(0.0).alias("sd"),
        )
        .sort("cell")
    )
    over_items = student_reach(cells["sd"].to_numpy(), cells["n"].to_numpy().astype(np.float64))
    half = np.maximum(reach_over_clusters(marked, "surprisal_bits", cells.height, seed=seed), over_items)
    mean = cells["surprisal_bits"].to_numpy()
    curves = cells.with_columns(
        pl.Series("low", np.maximum(mean - half, 0.0), nan_to_null=True),
        pl.Series("high", mean + half, nan_to_null=True),
    )
    order = [*(order_seen(curves, name) for name in PLACE[:4]), order_kinds(), "source", "length"]
    return conform(curves.sort(order, maintain_order=True), REGION_CURVES)


def _choose(regions: pl.DataFrame, critical: pl.DataFrame) -> pl.DataFrame:
    """The rows of critical regions, and a row for the whole sentence where a prediction sums all regions."""
    single = critical.filter(pl.col("place") != ALL_REGIONS)
    by_number = regions.join(
        single, left_on=["suite", "condition", "region"], right_on=["suite", "condition", "place"], how="semi"
    )
    by_name = regions.join(
        single, left_on=["suite", "condition", "name"], right_on=["suite", "condition", "place"], how="semi"
    )
    key = [name for name in PLACE if name not in ("region", "name")]
    whole = (
        regions.join(critical.filter(place=ALL_REGIONS), on=["suite", "condition"], how="semi")
        .group_by(*key, "item", "series", maintain_order=True)
        .agg(pl.col("surprisal_bits").sum())
        .with_columns(pl.lit(ALL_REGIONS).alias("region"), pl.lit(WHOLE).alias("name"))
    )
    columns = [*PLACE, "item", "series", "surprisal_bits"]
    found = pl.concat([by_number.select(columns), by_name.select(columns)]).unique(maintain_order=True)
    return pl.concat([found, whole.select(columns)])
