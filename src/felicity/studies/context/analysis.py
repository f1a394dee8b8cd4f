"""All that a context study finds, from its judgements: one table each, as they are kept and shown."""

from dataclasses import dataclass, fields

import polars as pl

from felicity.core.sweep import FROM_KINDS, UNPERTURBED
from felicity.studies.context.curves import draw_curves
from felicity.studies.context.gains import rank_gains
from felicity.studies.context.likeness import compare_contexts, compare_perturbed
from felicity.studies.context.links import (
    baseline_points,
    correctness_points,
    correlate_points,
    matrix_points,
    perturbation_points,
)
from felicity.studies.context.matrix import build_matrix
from felicity.studies.context.planning import Planned
from felicity.studies.context.regions import draw_region_curves, list_critical
from felicity.studies.context.regressions import fit_regressions
from felicity.studies.context.tables import MATRIX, POINTS, REGION_CURVES

# The files that the tables are kept in.
FILES = {
    "curves": "estimates.csv",
    "terms": "regression.csv",
    "points": "points.csv",
    "links": "correlations.csv",
    "gains": "suites.csv",
    "matrix": "matrix.csv",
    "regions": "regions.csv",
}


@dataclass(frozen=True, kw_only=True)
class Findings:
    """The tables of studies/context/tables.py, of all models of a study."""

    curves: pl.DataFrame
    terms: pl.DataFrame
    points: pl.DataFrame
    links: pl.DataFrame
    gains: pl.DataFrame
    matrix: pl.DataFrame
    regions: pl.DataFrame

    def tables(self) -> dict[str, pl.DataFrame]:
        """Those that have rows, by name."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: table for name, table in found.items() if not table.is_empty()}


def analyse(
    planned: Planned,
    judgements: pl.DataFrame,
    regions: pl.DataFrame | None,
    *,
    perturbed: bool,
    parse: bool,
    seed: int,
) -> Findings:
    """Everything from judgements (STUDY_JUDGEMENTS) and region surprisals (STUDY_REGIONS) of all models."""
    curves = draw_curves(judgements, seed=seed)
    similarity = compare_contexts(planned, labels=parse)
    crossed = judgements["kind"].is_in(list(FROM_KINDS)).any()
    matrix = build_matrix(judgements, similarity) if crossed else pl.DataFrame(schema=MATRIX)
    points = [
        pl.DataFrame(schema=POINTS),
        baseline_points(curves),
        correctness_points(judgements, similarity),
        *([matrix_points(matrix)] if crossed else []),
        *([perturbation_points(curves, compare_perturbed(planned.contexts))] if perturbed else []),
    ]
    everything = pl.concat(points)
    main = judgements.filter(pl.col("perturbation") == UNPERTURBED)
    return Findings(
        curves=curves,
        terms=fit_regressions(judgements),
        points=everything,
        links=correlate_points(everything),
        gains=rank_gains(main, seed=seed),
        matrix=matrix,
        regions=pl.DataFrame(schema=REGION_CURVES)
        if regions is None
        else draw_region_curves(regions, list_critical(planned.items), seed=seed),
    )
