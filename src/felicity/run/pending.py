"""What a run has still to score, kept beside its tables so that work broken off goes on the same way."""

import polars as pl

from felicity.core.files import replacing
from felicity.run.folder import RunFolder
from felicity.run.model import Model
from felicity.run.scoring import find_missing

NAME = "pending"


def fix_pending(lm: Model, folder: RunFolder, prompts: pl.DataFrame, *, step: str = "") -> pl.DataFrame:
    """What this run, or a step of it, has to score, fixed at its beginning.

    Batches are planned over this list, so a run that is taken up again makes the same batches, and the
    very same numbers, as one that was never broken off.
    """
    missing = find_missing(lm.store, prompts)
    path = folder.path / f"{NAME}{step}.parquet"
    if path.exists():
        begun = folder.read_file(path)
        missing = pl.concat([begun, missing.join(begun, on="request", how="anti")])
    with replacing(path) as part:
        missing.write_parquet(part)
    return missing


def forget_pending(folder: RunFolder) -> None:
    """All is scored: remove the lists."""
    for path in folder.path.glob(f"{NAME}*.parquet"):
        path.unlink()
