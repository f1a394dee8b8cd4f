"""BLiMP (Warstadt et al. 2020), wherever it can be had."""

from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput, FelicityError
from felicity.core.files import cache_folder, data_folder, replacing_folder
from felicity.core.schemas import conform
from felicity.data.pairs import ITEM_SCHEMA
from felicity.data.tables import Table, read_table

HUB_NAME = "nyu-mll/blimp"
SUITES = 67
# The files write 13 terms for the paper's 12 phenomena.
PHENOMENA = {"s-selection": "argument_structure"}
FIELDS = ("sentence_good", "sentence_bad", "UID", "linguistics_term", "pairID")


def read_blimp() -> pl.DataFrame:
    """Items of all 67 paradigms; suite is the UID, phenomenon one of 12.

    Raises FelicityError where BLiMP is neither in `$FELICITY_DATA`, nor in the cache, nor to be fetched.
    """
    paths = find_blimp()
    if len(paths) != SUITES:
        raise BadInput(f"{paths[0].parent} holds {len(paths)} files of BLiMP, not {SUITES}; fetch it again.")
    return pl.concat([_read_suite(path) for path in paths])


def find_blimp() -> list[Path]:
    """The files of BLiMP, fetched into the cache where nothing else has them."""
    folders = [folder for folder in (data_folder(), cache_folder() / "datasets") if folder is not None]
    for folder in folders:
        paths = _files(folder / "blimp")
        if paths:
            return paths
    fetch_blimp(cache_folder() / "datasets" / "blimp")
    return _files(cache_folder() / "datasets" / "blimp")


def fetch_blimp(target: Path) -> None:
    """Fetch BLiMP from its hub into `target`, whole or not at all.

    Raises FelicityError where the hub cannot be reached.
    """
    from huggingface_hub import snapshot_download

    with replacing_folder(target) as part:
        try:
            snapshot_download(
                HUB_NAME, repo_type="dataset", local_dir=part, allow_patterns=["*/train-*.parquet"]
            )
        except Exception as error:  # the hub client raises many kinds
            raise FelicityError(
                "BLiMP is neither in $FELICITY_DATA/blimp nor in the cache, and its hub cannot be reached; "
                "set FELICITY_DATA to a folder that holds blimp/, or try again with a network."
            ) from error
        if not _files(part):
            raise FelicityError(
                f"The hub's {HUB_NAME} holds no files felicity reads; use a copy in $FELICITY_DATA."
            )


def _files(folder: Path) -> list[Path]:
    found = [*folder.glob("data/*.jsonl"), *folder.glob("data/*.jsonl.gz"), *folder.glob("*/train-*.parquet")]
    return sorted(found)


def _read_suite(path: Path) -> pl.DataFrame:
    table = read_table(path)
    missing = [field for field in FIELDS[:2] if field not in table.columns]
    if missing:
        raise BadInput(f"{path} has no field '{missing[0]}'; it is not a file of BLiMP.")
    uid = path.parent.name if path.suffix == ".parquet" else path.name.split(".")[0]
    return _items(table, uid)


def _items(table: Table, uid: str) -> pl.DataFrame:
    numbers = [str(row.get("pairID", number)) for number, row in enumerate(table.rows)]
    terms = [str(row.get("linguistics_term", uid)) for row in table.rows]
    shared = {
        "item": [f"{uid}/{number}" for number in numbers],
        "suite": [uid] * len(numbers),
        "phenomenon": [PHENOMENA.get(term, term) for term in terms],
        "line": table.lines,
    }
    sides = [
        pl.DataFrame(
            shared
            | {
                "condition": [condition] * len(numbers),
                "text": table.column(f"sentence_{condition}", option=condition),
            }
        )
        for condition in ("good", "bad")
    ]
    return conform(pl.concat(sides), ITEM_SCHEMA)
