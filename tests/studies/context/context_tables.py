"""Tables of a study of contexts, built from a seed: plausible shapes, invented numbers."""

from collections.abc import Sequence

import numpy as np
import polars as pl

from felicity.core.sweep import KINDS
from felicity.studies.context.report.context_tables import ContextTables
from felicity.studies.context.sweep_tables import CORRELATIONS

PULL = dict(zip(KINDS, (0.11, -0.25, 0.02, -0.06, -0.004), strict=True))
LENGTHS = tuple(range(100, 1000, 100))
BASE = 0.78
CURVE_COLUMNS = (
    *("model", "level", "name", "kind", "source", "perturbation", "length", "n", "suites"),
    *("accuracy", "low", "high", "delta", "delta_low", "delta_high", "ratio", "ties", "unstable"),
    *("tokens", "ppl_margin", "ppl_low", "ppl_high", "drawn"),
)


def build_estimates(
    models: Sequence[str],
    names: Sequence[tuple[str, str]],
    *,
    perturbations: Sequence[str] = ("none",),
    lengths: Sequence[int] = LENGTHS,
    seed: int = 0,
) -> pl.DataFrame:
    """A baseline and a curve of every kind for each (level, name)."""
    rng = np.random.default_rng(seed)
    rows = []
    for model in models:
        for level, name in names:
            base = BASE if level == "overall" else float(np.clip(rng.normal(BASE, 0.12), 0.2, 0.99))
            rows.append(_row(model, level, name, "none", "none", 0, base, 0.0, rng))
            for kind, pull in PULL.items():
                own = pull * rng.uniform(0.5, 1.5)
                for perturbation in perturbations:
                    for length in lengths:
                        delta = own * np.log1p(length / 60) / np.log1p(15) + rng.normal(0, 0.006)
                        delta = float(np.clip(delta, -base, 1 - base))
                        rows.append(_row(model, level, name, kind, perturbation, length, base, delta, rng))
    return pl.DataFrame(rows, schema=CURVE_COLUMNS, orient="row", infer_schema_length=None)


def _row(
    model: str,
    level: str,
    name: str,
    kind: str,
    perturbation: str,
    length: int,
    base: float,
    delta: float,
    rng: np.random.Generator,
) -> tuple[object, ...]:
    half = 0.0 if length == 0 else 0.015 + 0.00001 * length
    accuracy, ppl = base + delta, -40.0 / (1 + length / 150) - 80 * delta + float(rng.normal(0, 0.4))
    return (
        *(model, level, name, kind, None, perturbation, length, 3350, 67),
        *(accuracy, accuracy - 0.02, accuracy + 0.02, delta, delta - half, delta + half, accuracy / base - 1),
        *(3, 12, length + 4.5, ppl, ppl - 3, ppl + 3, "suites"),
    )


def build_regressions(models: Sequence[str]) -> pl.DataFrame:
    """Both regressions of each model; the numbers are invented, the terms are those of the study."""
    factors = ("Intercept", "log(length)", "matched", "acceptable")
    crossed = ("log(length):matched", "log(length):acceptable", "matched:acceptable")
    rows = []
    for model in models:
        for place, term in enumerate((*factors, *crossed, "log(length):matched:acceptable")):
            estimate = 0.31 - 0.11 * place
            rows.append((model, "context", term, estimate, 0.042, estimate / 0.042, 0.0004 * 4**place))
        rows.append((model, "unrelated", "log(length)", -0.004, 0.011, -0.36, 0.716))
    columns = ("model", "analysis", "term", "estimate", "se", "z", "p")
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(
        low=pl.col("estimate") - 1.96 * pl.col("se"),
        high=pl.col("estimate") + 1.96 * pl.col("se"),
        n=pl.lit(120600),
        groups=pl.lit("phenomenon 12 (SD 0.61)"),
        formula=pl.lit("accuracy ~ log(length) * matched * acceptable + (1 | phenomenon)"),
        note=pl.lit(""),
    )


def build_correlations(
    models: Sequence[str], suites: Sequence[str], seed: int = 1
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Points of three correlations and their coefficients."""
    rng = np.random.default_rng(seed)
    points, found = [], []
    for model in models:
        for kind, pull in PULL.items():
            base = np.clip(rng.normal(BASE, 0.12, len(suites)), 0.1, 1.0)
            after = np.clip(base + pull + rng.normal(0, 0.05, len(suites)), 0.0, 1.0)
            points += [
                (model, "baseline and longest context", kind, *row)
                for row in zip(suites, base, after, strict=True)
            ]
        for kind in list(KINDS)[:2]:
            alike = rng.uniform(0.3, 0.95, 7)
            moved = (0.1 if kind == "matched_acceptable" else -0.25) * alike
            names = (
                "adverb_before",
                "adverb_after",
                "long_adverbial",
                "clause_before",
                "quotation",
                "all",
                "nonsense",
            )
            points += [
                (model, "perturbation similarity and change", kind, *row)
                for row in zip(names, alike, moved, strict=True)
            ]
        for one in suites:
            for two in suites:
                f1 = float(rng.beta(2, 6))
                points.append(
                    (
                        model,
                        "token F1 and change",
                        "from_acceptable",
                        f"{one} > {two}",
                        f1,
                        0.3 * f1 - 0.08 + float(rng.normal(0, 0.05)),
                    )
                )
    table = pl.DataFrame(points, schema=("model", "variables", "kind", "name", "x", "y"), orient="row")
    for (model, variables, kind), part in table.group_by("model", "variables", "kind", maintain_order=True):
        r = part.select(pl.corr("x", "y")).item()
        ends = (r - 0.1, min(1.0, r + 0.1))
        found.append((model, variables, kind, "pearson", part.height, r, *ends, 0.00001, 0.0001, None, ""))
    return table, pl.DataFrame(found, schema=CORRELATIONS, orient="row")


def build_matrix(models: Sequence[str], suites: Sequence[str], seed: int = 2) -> pl.DataFrame:
    """Every suite in contexts of every suite; the diagonal, a suite in itself, moves most."""
    rng = np.random.default_rng(seed)
    rows = []
    for model in models:
        for kind, sign in (("from_acceptable", 1), ("from_unacceptable", -1)):
            for one, suite in enumerate(suites):
                for two, source in enumerate(suites):
                    near = float(np.exp(-(((one - two) / 3) ** 2)))
                    delta = sign * 0.3 * near + float(rng.normal(0, 0.04))
                    rows.append(
                        (model, kind, source, suite, 10, 50, delta, 0.1 + 0.5 * near, 0.3 + 0.4 * near)
                    )
    columns = ("model", "kind", "source", "suite", "length", "n", "delta", "token_f1", "dependency_f1")
    return pl.DataFrame(rows, schema=columns, orient="row")


def build_suite_changes(models: Sequence[str], suites: Sequence[str], seed: int = 3) -> pl.DataFrame:
    """A mean and its spread for each suite and kind."""
    rng = np.random.default_rng(seed)
    rows = [
        (model, kind, suite, float(rng.normal(pull, 0.06)), float(rng.uniform(0.005, 0.04)))
        for model in models
        for kind, pull in PULL.items()
        for suite in suites
    ]
    changes = pl.DataFrame(rows, schema=("model", "kind", "suite", "mean", "sd"), orient="row")
    return changes.with_columns(low=pl.col("mean") - 0.1, high=pl.col("mean") + 0.1, n=pl.lit(20))


def build_regions(models: Sequence[str], suites: Sequence[str], seed: int = 4) -> pl.DataFrame:
    """Four conditions of each suite, one critical region, baseline and two kinds."""
    rng = np.random.default_rng(seed)
    rows = []
    for model in models:
        for suite in suites:
            for place, condition in enumerate(
                ("match_sing", "mismatch_sing", "match_plural", "mismatch_plural")
            ):
                start = 6.0 + 2.5 * (place % 2) + float(rng.normal(0, 0.4))
                cells = [("none", 0)] + [(kind, length) for kind in list(KINDS)[:4] for length in LENGTHS]
                for kind, length in cells:
                    bits = start - 0.002 * length * (1 if "un" not in kind else -0.4)
                    row = (model, suite, condition, "5", "matrix_verb", kind, length, 19)
                    rows.append((*row, bits, bits - 0.5, bits + 0.5))
    columns = (
        "model",
        "suite",
        "condition",
        "region",
        "name",
        "kind",
        "length",
        "n",
        "surprisal_bits",
        "low",
        "high",
    )
    return pl.DataFrame(rows, schema=columns, orient="row")


def build_study(
    models: Sequence[str] = ("smollm2",),
    *,
    phenomena: Sequence[str],
    suites: Sequence[str],
    perturbations: Sequence[str] = ("none", "adverb_before", "quotation", "all"),
) -> ContextTables:
    """A study with every table it can have."""
    names = [("overall", "all"), *(("phenomenon", name) for name in phenomena)]
    points, correlations = build_correlations(models, suites)
    return ContextTables(
        dataset="blimp",
        tables={
            "estimates": build_estimates(models, names, perturbations=perturbations),
            "regressions": build_regressions(models),
            "points": points,
            "correlations": correlations,
            "suite_changes": build_suite_changes(models, suites),
            "matrix": build_matrix(models, suites),
            "regions": build_regions(models, ("number_orc", "reflexive_prep_fem", "npz_obj")),
        },
        facts=(
            ("Dataset", "blimp: 67 suites, 50 items of each"),
            ("Models", ", ".join(models)),
            ("Lengths", "100 to 900 tokens of smollm2"),
            ("Contexts", "own, one draw an item, seed 0"),
        ),
    )
