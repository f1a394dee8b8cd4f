"""The analysis of a context study: from judgements to the tables that are written and reported."""

import numpy as np
import polars as pl

from felicity.core.contrasts import Headline
from felicity.core.errors import BadInput
from felicity.core.formulas import ALL_REGIONS, list_regions, parse_prediction
from felicity.core.schemas import check_schema, conform
from felicity.core.sweep import FROM_KINDS, UNPERTURBED
from felicity.design import bag_f1, count_words, measure_similarity
from felicity.run import StudyFolder
from felicity.studies.context.context_correlations import (
    baseline_points,
    build_matrix,
    correctness_points,
    correlate_points,
    matrix_points,
    perturbation_points,
)
from felicity.studies.context.context_curves import draw_curves, rank_suite_changes
from felicity.studies.context.intervals import half_width, mark_clusters
from felicity.studies.context.regressions import fit_regressions
from felicity.studies.context.sweep_tables import (
    CRITICAL,
    MATRIX,
    PERTURBATION_SIMILARITY,
    POINTS,
    REGION_CURVES,
    SIMILARITY,
    STUDY_REGIONS,
    order_kinds,
    order_seen,
)

PLACE = ["model", "suite", "condition", "region", "name", "kind", "source", "length"]
WHOLE = "whole sentence"


def list_critical(items: pl.DataFrame) -> pl.DataFrame:
    """Rows of CRITICAL: the regions and conditions that the predictions of each suite mention.

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
        for place in list_regions(parse_prediction(formula))
    ]
    return pl.DataFrame(places, schema=CRITICAL, orient="row").unique(maintain_order=True)


def draw_region_curves(
    regions: pl.DataFrame, critical: pl.DataFrame, *, perturbation: str = UNPERTURBED
) -> pl.DataFrame:
    """Rows of REGION_CURVES: mean surprisal of each critical region, kind and length of context.

    `regions` is the table STUDY_REGIONS, the surprisals of every region with and without context. Draws of an
    item are averaged first. Intervals are over items, or over the contexts that they share.

    Raises BadInput if a column is missing.
    """
    check_schema(regions, STUDY_REGIONS, "regions in context")
    kept = regions.filter((pl.col("perturbation") == perturbation) | (pl.col("kind") == "none"))
    chosen = _choose(kept, critical)
    units = chosen.group_by(*PLACE, "item", maintain_order=True).agg(
        pl.col("surprisal_bits").mean(), pl.col("series").min()
    )
    marked = mark_clusters(units, PLACE)
    cells = (
        marked.group_by("cell", *PLACE, maintain_order=True)
        .agg(pl.len().alias("n"), pl.col("surprisal_bits").mean())
        .sort("cell")
    )
    half = half_width(marked, "surprisal_bits", cells.height)
    mean = cells["surprisal_bits"].to_numpy()
    curves = cells.with_columns(
        pl.Series("low", np.maximum(mean - half, 0.0), nan_to_null=True),
        pl.Series("high", mean + half, nan_to_null=True),
    )
    order = [*(order_seen(curves, name) for name in PLACE[:4]), order_kinds(), "source", "length"]
    return conform(curves.sort(order, maintain_order=True), REGION_CURVES)


def _choose(regions: pl.DataFrame, critical: pl.DataFrame) -> pl.DataFrame:
    """The rows of critical regions, and a row for the whole sentence if a prediction sums all regions."""
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


def compare_contexts(
    items: pl.DataFrame, contexts: pl.DataFrame, requests: pl.DataFrame, sides: pl.DataFrame, *, labels: bool
) -> pl.DataFrame:
    """Rows of SIMILARITY: each item's acceptable sentence and the longest context of every series.

    The mean over the context's sentences, so that it does not decrease with length. Of several acceptable
    conditions the first is used. labels: compare dependency labels too.

    Raises NotPossible if labels are requested and no parser is installed.
    """
    good = sides.filter(pl.col("acceptable")).select("suite", "condition")
    tests = (
        items.join(good, on=["suite", "condition"], how="semi", maintain_order="left")
        .unique("item", keep="first", maintain_order=True)
        .select("item", "condition")
    )
    longest = requests.filter(
        pl.col("context").is_not_null(),
        pl.col("perturbation") == UNPERTURBED,
        pl.col("length") == pl.col("length").max().over("series"),
    )
    pairs = longest.join(tests, on=["item", "condition"], how="semi", maintain_order="left")
    pairs = pairs.select("item", "context", "text").unique(["item", "context"], maintain_order=True)
    known = contexts.select("context", "sentences").unique("context", maintain_order=True)
    used = known.join(pairs, on="context", how="semi", maintain_order="left")
    found = measure_similarity(pairs, used, by="sentence", labels=labels)
    if not labels:
        found = found.with_columns(pl.lit(None, dtype=pl.Float64).alias("dependency_f1"))
    return found.select(pl.col(name).cast(dtype) for name, dtype in SIMILARITY.items())


def compare_perturbed(contexts: pl.DataFrame) -> pl.DataFrame:
    """Rows of PERTURBATION_SIMILARITY: token F1 of perturbed context sentences and their originals."""
    whole = ["suite", "group", "kind", "source", "draw"]
    longest = contexts.filter(pl.col("length") == pl.col("length").max().over("series"))
    single = longest.with_columns(pl.int_ranges(pl.col("sentences").list.len()).alias("place")).explode(
        "sentences", "origins", "place"
    )
    bare = single.filter(pl.col("perturbation") == UNPERTURBED).select(
        *whole, "place", "origins", pl.col("sentences").alias("original")
    )
    both = single.join(bare, on=[*whole, "place", "origins"], nulls_equal=True, maintain_order="left").select(
        "kind", "perturbation", "sentences", "original"
    )
    pairs = both.select("sentences", "original").unique(maintain_order=True)
    bags = count_words([*pairs["sentences"], *pairs["original"]])
    alike = [bag_f1(one, other) for one, other in zip(bags[: len(pairs)], bags[len(pairs) :], strict=True)]
    scored = both.join(
        pairs.with_columns(pl.Series("token_f1", alike, dtype=pl.Float64)), on=["sentences", "original"]
    )
    means = scored.group_by("kind", "perturbation", maintain_order=True).agg(pl.col("token_f1").mean())
    return means.select(pl.col(name).cast(dtype) for name, dtype in PERTURBATION_SIMILARITY.items())


def analyse(folder: StudyFolder) -> dict[str, pl.DataFrame]:
    """Every table of the study that has rows, from the judgements of all models."""
    settings, headline = folder.record["settings"], Headline.read(folder.facts["score"])
    judgements, regions = _read_judged(folder, "judgements"), _read_judged(folder, "regions")
    items, contexts = folder.read("items"), folder.read("contexts")
    estimates = draw_curves(judgements)
    similarity = compare_contexts(
        items, contexts, folder.read("requests"), folder.read("sides"), labels=settings["parse"]
    )
    crossed = judgements["kind"].is_in(list(FROM_KINDS)).any()
    matrix = build_matrix(judgements, similarity) if crossed else pl.DataFrame(schema=MATRIX)
    perturbed = bool(folder.facts["design"]["perturbations"])
    points = pl.concat(
        [
            pl.DataFrame(schema=POINTS),
            baseline_points(estimates),
            correctness_points(judgements, similarity),
            *([matrix_points(matrix)] if crossed else []),
            *([perturbation_points(estimates, compare_perturbed(contexts))] if perturbed else []),
        ]
    )
    suites = dict(judgements.select("item", "suite").unique().iter_rows())
    tables = {
        "estimates": estimates,
        "regressions": fit_regressions(judgements, formula=settings["formula"], score=headline.noun),
        "points": points,
        "correlations": correlate_points(points, suites),
        "suite_changes": rank_suite_changes(judgements.filter(pl.col("perturbation") == UNPERTURBED)),
        "matrix": matrix,
        "regions": pl.DataFrame(schema=REGION_CURVES)
        if regions.is_empty()
        else draw_region_curves(regions, list_critical(items)),
    }
    return {name: table for name, table in tables.items() if table.height}


def _read_judged(folder: StudyFolder, name: str) -> pl.DataFrame:
    """A table of all models' runs, with the column `model`; empty if no run has it."""
    runs = {model: folder.run(model) for model in folder.models}
    tables = [
        run.read_file(run.file(name)).with_columns(pl.lit(model).alias("model"))
        for model, run in runs.items()
        if run.file(name).exists()
    ]
    return pl.concat(tables) if tables else pl.DataFrame()
