"""The schemas of a context study: the input and output tables of its analysis.

Accuracies are between 0 and 1; delta is accuracy with a context minus accuracy of the same items without.
"""

import polars as pl

from felicity.core.schemas import REGIONS, TEXT, Schema
from felicity.core.sweep import FACTORS, FROM_KINDS, KINDS, SWEEP_JUDGEMENTS

COUNT = pl.Int64()
NUMBER = pl.Float64()
KIND_ORDER = {name: place for place, name in enumerate(("none", *KINDS, *FROM_KINDS))}

# Input: judgements of one measure, of any number of models.
STUDY_JUDGEMENTS: Schema = {**SWEEP_JUDGEMENTS, "model": TEXT}
STUDY_REGIONS: Schema = {**REGIONS, **FACTORS, "model": TEXT}
# Input: the similarity of an item's test sentence and a context; dependency_f1 may be null.
SIMILARITY: Schema = {"item": TEXT, "context": TEXT, "token_f1": NUMBER, "dependency_f1": NUMBER}
# Input: the mean similarity of perturbed context sentences and their originals.
PERTURBATION_SIMILARITY: Schema = {"kind": TEXT, "perturbation": TEXT, "token_f1": NUMBER}

# Kind `none` at length 0 is the baseline. `drawn` are the units that the interval treats as independent:
# suites, contexts (if items share them) or items. `ratio` is accuracy / baseline - 1.
ESTIMATES: Schema = {
    "model": TEXT,
    "level": TEXT,
    "name": TEXT,
    "kind": TEXT,
    "source": TEXT,
    "perturbation": TEXT,
    "length": COUNT,
    "n": COUNT,
    "suites": COUNT,
    "accuracy": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "delta": NUMBER,
    "delta_low": NUMBER,
    "delta_high": NUMBER,
    "ratio": NUMBER,
    "ties": COUNT,
    "unstable": COUNT,
    "tokens": NUMBER,
    "ppl_margin": NUMBER,
    "ppl_low": NUMBER,
    "ppl_high": NUMBER,
    "drawn": TEXT,
}

# One row per fixed effect, in log-odds. A model that could not be fitted has one row without a term, with a
# note.
REGRESSIONS: Schema = {
    "model": TEXT,
    "analysis": TEXT,
    "formula": TEXT,
    "term": TEXT,
    "estimate": NUMBER,
    "se": NUMBER,
    "z": NUMBER,
    "p": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "n": COUNT,
    "groups": TEXT,
    "note": TEXT,
}

# What is correlated, one row per point; `variables` says what x and y are, `name` is a suite,
# `source > suite`, a perturbation or an item.
POINTS: Schema = {"model": TEXT, "variables": TEXT, "kind": TEXT, "name": TEXT, "x": NUMBER, "y": NUMBER}

# A correlation that could not be computed has a null r and a note. `suites` is the number of suites that
# interval and p are over, null if points are independent; p_holm is adjusted over all correlations.
CORRELATIONS: Schema = {
    "model": TEXT,
    "variables": TEXT,
    "kind": TEXT,
    "method": TEXT,
    "n": COUNT,
    "r": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "p": NUMBER,
    "p_holm": NUMBER,
    "suites": COUNT,
    "note": TEXT,
}

# Mean and population SD are of the suite's deltas over lengths; the interval is of that mean, over items.
SUITE_CHANGES: Schema = {
    "model": TEXT,
    "kind": TEXT,
    "suite": TEXT,
    "phenomenon": TEXT,
    "n": COUNT,
    "lengths": COUNT,
    "mean": NUMBER,
    "sd": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
}

MATRIX: Schema = {
    "model": TEXT,
    "kind": TEXT,
    "source": TEXT,
    "suite": TEXT,
    "length": COUNT,
    "n": COUNT,
    "delta": NUMBER,
    "token_f1": NUMBER,
    "dependency_f1": NUMBER,
}

CRITICAL: Schema = {"suite": TEXT, "condition": TEXT, "place": TEXT}

REGION_CURVES: Schema = {
    "model": TEXT,
    "suite": TEXT,
    "condition": TEXT,
    "region": TEXT,
    "name": TEXT,
    "kind": TEXT,
    "source": TEXT,
    "length": COUNT,
    "n": COUNT,
    "surprisal_bits": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
}


def order_seen(frame: pl.DataFrame, column: str) -> pl.Expr:
    """The rank of a row's value in order of first occurrence."""
    seen = frame[column].unique(maintain_order=True).to_list()
    return pl.col(column).replace_strict({value: i for i, value in enumerate(seen)}, return_dtype=pl.Int64)


def order_kinds() -> pl.Expr:
    """The rank of a row's kind, the baseline first."""
    return pl.col("kind").replace_strict(KIND_ORDER, default=len(KIND_ORDER), return_dtype=pl.Int64)
