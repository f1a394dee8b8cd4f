"""Verdicts into a run folder: judgements, the tables their rule adds, and estimates of all of them."""

import polars as pl

from felicity.core.errors import NotPossible
from felicity.run.folder import EXTRAS, RunFolder
from felicity.run.rules import Verdicts
from felicity.stats.proportions import estimate_accuracy


def write_verdicts(folder: RunFolder, verdicts: Verdicts, *, seed: int) -> None:
    """Write what was judged, and remove what another rule may have left here.

    Raises NotPossible where nothing was judged.
    """
    if verdicts.judgements.is_empty():
        raise NotPossible(
            "None of these items can be judged: nothing is predicted of them, or all are rated alike; take "
            "more suites."
        )
    folder.write("judgements", verdicts.judgements)
    tables = dict(verdicts.tables)
    if verdicts.predictions is not None:
        tables["predictions"] = verdicts.predictions
    for name in EXTRAS:
        if name in tables:
            folder.write(name, tables[name])
        else:
            folder.file(name).unlink(missing_ok=True)
    folder.write("estimates", estimate_verdicts(verdicts, seed=seed))


def estimate_verdicts(verdicts: Verdicts, *, seed: int) -> pl.DataFrame:
    """Accuracy overall, by phenomenon, by suite, and of every single prediction."""
    estimates = estimate_accuracy(verdicts.judgements, seed=seed)
    if verdicts.predictions is None:
        return estimates
    by_rule = verdicts.predictions.with_columns(pl.col("rule").alias("phenomenon"))
    single = estimate_accuracy(by_rule, seed=seed).filter(pl.col("level") == "phenomenon")
    return pl.concat([estimates, single.with_columns(pl.lit("prediction").alias("level"))])
