"""Mixed models of single readers' times, by reader and by word, for every measure and model."""

import polars as pl

from felicity.core.errors import BadInput
from felicity.stats import SIMPLIFICATION, fit_reading_times
from felicity.studies.reading.predictive_fit import MeasureFit
from felicity.studies.reading.word_table import KEYS

TEXT, NUMBER, COUNT = pl.String(), pl.Float64(), pl.Int64()
MIXED = {
    "measure": TEXT,
    "model": TEXT,
    "lag": COUNT,
    "slope": NUMBER,
    "se": NUMBER,
    "df": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "p": NUMBER,
    "trials": COUNT,
    "readers": COUNT,
    "items": COUNT,
    "delta_ll": NUMBER,
    "chisq": NUMBER,
    "chisq_df": COUNT,
    "chisq_p": NUMBER,
    "formula": TEXT,
    "left_out": TEXT,
}
FEWEST_READERS = 2


def fit_trials(
    found: MeasureFit, rows: pl.DataFrame, trials: pl.DataFrame, model: str
) -> tuple[list[dict[str, object]], list[str]]:
    """Rows of MIXED for one measure and model, and what a reader must know.

    rows: the words that are used, with every predictor. trials: their single times.
    """
    measure = found.measure
    if measure not in trials.columns:
        return [], []
    own = trials.select(*KEYS, "reader", measure).drop_nulls(measure)
    joined = own.join(rows.drop(measure), on=list(KEYS)).with_columns(pl.col("row").alias("item"))
    readers, items = joined["reader"].n_unique(), joined["item"].n_unique()
    if readers < FEWEST_READERS:
        return [], [f"No mixed model of {measure}: only {readers} reader has times of these words."]
    recipe = found.recipe
    try:
        fitted = fit_reading_times(joined, measure, recipe.baseline, recipe.critical)
    except BadInput as error:
        return [], [f"No mixed model of {measure} with {model}: {error}"]
    shared: dict[str, object] = {
        "measure": measure,
        "model": model,
        "trials": joined.height,
        "readers": readers,
        "items": items,
        "delta_ll": fitted.per_row,
        "chisq": fitted.chisq,
        "chisq_df": fitted.df,
        "chisq_p": fitted.p,
        "formula": str(fitted.target.formula),
        "left_out": ", ".join(fitted.dropped),
    }
    slopes = {row["term"]: row for row in fitted.slopes.to_dicts()}
    listed = []
    for lag, term in zip(recipe.lags, recipe.critical, strict=True):
        row = slopes[term]
        figures = {name: row[name] for name in ("se", "df", "low", "high", "p")}
        listed.append(shared | figures | {"slope": row["estimate"], "lag": lag})
    return listed, [SIMPLIFICATION] if fitted.dropped else []
