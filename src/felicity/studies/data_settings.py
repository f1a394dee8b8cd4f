"""Settings that studies of a dataset share: which dataset, which columns of a file, how large a sample."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from felicity.core.settings import Data, argument, option

if TYPE_CHECKING:
    import polars as pl

    from felicity.data import Columns, Dataset

PANEL = "Columns and parts of the data"


@dataclass(frozen=True, kw_only=True)
class ColumnSettings:
    """A dataset, and which columns or which part of it a study reads."""

    dataset: Data = argument("A dataset's name, or a file.", metavar="DATASET")
    source: Path | None = option(
        None, "A folder with your own copy of the dataset.", flag="--from", metavar="DIR", panel=PANEL
    )
    good: str = option("good", "Column of acceptable sentences, in a file.", panel=PANEL)
    bad: str = option("bad", "Column of unacceptable sentences, in a file.", panel=PANEL)
    suite: str | None = option(
        None, "In a file: column of suites. In a dataset: only this suite.", panel=PANEL
    )
    phenomenon: str | None = option(
        None, "In a file: column of phenomena. In a dataset: only this phenomenon.", panel=PANEL
    )
    factors: tuple[str, ...] = option(
        (),
        "In a file: a column that names the condition, with others; repeatable.",
        flag="--factor",
        panel=PANEL,
    )

    language: str | None = option(
        None, "Only this language, by tag (de), code (deu) or name (German).", panel=PANEL
    )

    @property
    def columns(self) -> "Columns":
        """The columns of a file."""
        from felicity.data import Columns

        return Columns(
            good=self.good,
            bad=self.bad,
            suite=self.suite,
            phenomenon=self.phenomenon,
            factors=self.factors,
            language=self.language,
        )

    def read_whole(self, dataset: Data | None = None, *, rule: str | None = None) -> "Dataset":
        """The dataset, or another one with the same columns.

        Raises BadInput or UnknownName if it cannot be read.
        """
        from felicity.data import read_dataset, take_frame

        given = self.dataset if dataset is None else dataset
        if isinstance(given, str | Path):
            return read_dataset(str(given), self.columns, rule=rule, folder=self.source)
        return take_frame(given, self.columns)


@dataclass(frozen=True, kw_only=True)
class DataSettings(ColumnSettings):
    """A dataset and the part of it that a study uses."""

    sample: int | None = option(None, "Use only this many items per suite.", least=1)
    seed: int = option(0, "Seed of everything that is drawn.", least=0)

    def read(self, dataset: Data | None = None, *, rule: str | None = None) -> "tuple[Dataset, pl.DataFrame]":
        """The dataset, or another one with the same columns, and its items, sampled.

        Raises BadInput or UnknownName if it cannot be read.
        """
        from felicity.data import sample_items

        data = self.read_whole(dataset, rule=rule)
        return data, sample_items(data.items, self.sample, seed=self.seed)


def name_data(data: Data) -> str:
    """How pages and folders call a dataset: a file by its name.

    >>> name_data("data/my_pairs.csv"), name_data("blimp")
    ('my_pairs.csv', 'blimp')
    """
    return Path(data).name if isinstance(data, str | Path) else "a frame"
