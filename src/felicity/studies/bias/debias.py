"""Accuracy on a biased set and on its debiased counterpart, side by side (Ueda et al. 2024).

Each suite of the biased set is split by token length (A=U, A>U, A<U); beside the splits stands the accuracy
on the debiased suite of the same name. Where both sets have the same items, as a set and its unmatched twin
have, the two accuracies are compared as by `felicity compare`; over suites, by Wilcoxon's signed ranks.
"""

from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.stats import compare_pairs, estimate_judged, pair_answers, signed_rank
from felicity.studies.bias.lengths import BIASED, DEBIASED, SPLITS

# The row of all suites together.
EVERYTHING = "all"


def compare_sets(biased: pl.DataFrame, fair: pl.DataFrame, *, model: str) -> pl.DataFrame:
    """The rows of one model, from the judgements of both sets with the split of each item.

    Raises BadInput if the two sets have no suite in common.
    """
    suites = [s for s in biased["suite"].unique(maintain_order=True) if s in set(fair["suite"].unique())]
    if not suites:
        raise BadInput("The two sets have no suite in common; --debias needs suites of the same names.")
    rows: list[dict[str, Any]] = []
    for measure in biased["measure"].unique(maintain_order=True):
        left, right = (
            side.filter((pl.col("measure") == measure) & pl.col("suite").is_in(suites))
            for side in (biased, fair)
        )
        own = [_row(left.filter(suite=s), right.filter(suite=s), model, measure, s) for s in suites]
        whole = _row(left, right, model, measure, EVERYTHING)
        pairs = [(row["debiased"], row["biased"]) for row in own]
        # Where no suite differs there is nothing to test.
        if len(suites) > 1 and any(fair_share != share for fair_share, share in pairs):
            whole["p_suites"] = float(signed_rank(*map(list, zip(*pairs, strict=True)))["p"][0])
        rows += [whole, *own]
    return pl.DataFrame(rows, infer_schema_length=None)


def _row(left: pl.DataFrame, right: pl.DataFrame, model: str, measure: str, suite: str) -> dict[str, Any]:
    row: dict[str, Any] = {"model": model, "measure": measure, "suite": suite}
    parts = {split: left.filter(split=split) for split in SPLITS} | {BIASED: left, DEBIASED: right}
    for name, part in parts.items():
        found = estimate_judged(part) if part.height else dict.fromkeys(("accuracy", "low", "high"))
        row |= {f"n {name}": part.height, name: found["accuracy"]}
        row |= {f"{name} {end}": found[end] for end in ("low", "high")}
    row["unequal in debiased"] = right.filter(pl.col("split") != SPLITS[0]).height
    row["p"] = _paired_p(left, right)
    row["p_suites"] = None
    return row


def _paired_p(left: pl.DataFrame, right: pl.DataFrame) -> float | None:
    """p of `felicity compare` over the items that both sets have; None unless they have the same ones."""
    if set(left["item"]) != set(right["item"]) or not left["item"].is_unique().all():
        return None
    return float(compare_pairs(pair_answers(left, right, cluster="suite")).p[0])
