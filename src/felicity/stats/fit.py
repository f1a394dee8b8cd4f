"""One door to all regressions: the family and the formula say which model is meant."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import polars as pl
from polars.exceptions import NoDataError, PolarsError

from felicity.core.errors import BadInput, UnknownName
from felicity.stats.frames import Frame
from felicity.stats.mixed.binomial import fit_glmm
from felicity.stats.mixed.coding import Contrast
from felicity.stats.mixed.describe import describe_model
from felicity.stats.mixed.fitted import FittedModel
from felicity.stats.mixed.formula import parse_formula
from felicity.stats.mixed.linear import fit_lmm
from felicity.stats.regression import Regression, describe_regression, fit_ols

Family = Literal["gaussian", "binomial"]
FAMILIES = ("gaussian", "binomial")


def fit_model(
    formula: str,
    frame: Frame,
    *,
    family: Family = "gaussian",
    reml: bool = True,
    contrasts: Mapping[str, Contrast] | None = None,
    level: float = 0.95,
) -> FittedModel | Regression:
    """Fit what the formula says: a mixed model where it has random terms, else ordinary regression.

    Raises UnknownName for a family felicity has not, BadInput for data no model can be fitted to.
    """
    if family not in FAMILIES:
        raise UnknownName("family", str(family), FAMILIES)
    if not 0.0 < level < 1.0:
        raise BadInput(f"The level of the intervals is {level:g}; choose one between 0 and 1, such as 0.95.")
    if family == "binomial":
        return fit_glmm(formula, frame, contrasts=contrasts, level=level)
    if parse_formula(formula).random:
        return fit_lmm(formula, frame, reml=reml, contrasts=contrasts, level=level)
    return fit_ols(formula, frame, contrasts=contrasts, level=level)


def describe_fit(fit: FittedModel | Regression) -> str:
    """Any fit in plain words."""
    return describe_regression(fit) if isinstance(fit, Regression) else describe_model(fit)


def read_table(path: Path) -> pl.DataFrame:
    """A table from a .csv (also .csv.gz), .tsv or .parquet file.

    Empty fields and R's NA are missing values.

    Raises BadInput for another kind of file, and for one that cannot be read.
    """
    name = path.name.removesuffix(".gz")
    try:
        if name.endswith(".parquet"):
            return pl.read_parquet(path)
        if name.endswith((".csv", ".tsv")):
            separator = "\t" if name.endswith(".tsv") else ","
            return pl.read_csv(path, separator=separator, null_values=["NA"], infer_schema_length=None)
    except FileNotFoundError as error:
        raise BadInput(
            f"There is no file {path}; give a .csv, .tsv or .parquet table that exists."
        ) from error
    except NoDataError as error:
        raise BadInput(f"{path} is empty; give a table with a line of column names.") from error
    except (OSError, PolarsError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise BadInput(
            f"{path} cannot be read as a table ({reason}); save it as UTF-8 and try again."
        ) from error
    raise BadInput(f"'{path.name}' is no table; give a .csv, .tsv or .parquet file.")
