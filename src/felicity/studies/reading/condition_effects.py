"""Effects of conditions: surprisal between conditions, and effects by item beside those of people.

Surprisal is compared as Michaelov and Bergen (2022) do: surprisal ~ condition + random intercepts of items
and of words, F with Satterthwaite's degrees of freedom, two conditions at a time. Effects by item are the
difference between the hard and the easy sentence of an item, in bits; fillers of one's own turn bits into
milliseconds (Huang et al. 2024).
"""

from itertools import combinations

import polars as pl

from felicity.core.errors import BadInput
from felicity.run import StudyFolder
from felicity.stats import (
    RECIPES,
    Recipe,
    add_lags,
    adjust_bh,
    correlate,
    f_test_term,
    fit_lmm,
    fit_reading_times,
)
from felicity.studies.reading.reading_plan import FILLERS
from felicity.studies.reading.settings import ReadingSettings
from felicity.studies.reading.word_surprisal import score_words
from felicity.studies.reading.word_table import KEYS

TEXT, NUMBER, COUNT = pl.String(), pl.Float64(), pl.Int64()
CONDITIONS = {
    "response": TEXT,
    "model": TEXT,
    "first": TEXT,
    "second": TEXT,
    "difference": NUMBER,
    "f": NUMBER,
    "df": NUMBER,
    "df_residual": NUMBER,
    "p": NUMBER,
    "p_bh": NUMBER,
    "items": COUNT,
    "n": COUNT,
    "formula": TEXT,
}
ITEM_EFFECTS = {
    "effect": TEXT,
    "item": TEXT,
    "place": COUNT,
    "model": TEXT,
    "bits": NUMBER,
    "observed_ms": NUMBER,
    "predicted_ms": NUMBER,
}
EFFECTS = {
    "effect": TEXT,
    "place": COUNT,
    "model": TEXT,
    "items": COUNT,
    "bits": NUMBER,
    "observed_ms": NUMBER,
    "predicted_ms": NUMBER,
    "r": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
}
CONVERSION = {"model": TEXT, "lag": COUNT, "slope": NUMBER, "low": NUMBER, "high": NUMBER, "trials": COUNT}
# The critical word and the two after it; a word is predicted with the surprisal of itself and three before.
PLACES = (0, 1, 2)
CONVERSION_LAGS = 3
FEWEST_ITEMS = 4


def compare_conditions(
    words: pl.DataFrame, scored: pl.DataFrame, settings: ReadingSettings, measures: list[str]
) -> tuple[pl.DataFrame, list[str]]:
    """Rows of CONDITIONS: surprisal of every model, and every measure, between two conditions; notes.

    Raises BadInput if there are fewer than two conditions, or no critical word.
    """
    column = str(settings.condition)
    critical = words
    if settings.critical is not None:
        marked = pl.col(settings.critical).cast(pl.String).str.to_lowercase().is_in(["1", "true", "1.0"])
        critical = words.filter(marked.fill_null(False))
        if critical.is_empty():
            raise BadInput(f"No word is marked in '{settings.critical}'; write 1 at the critical words.")
    critical = critical.drop_nulls([column, settings.item])
    levels = critical[column].cast(pl.String).unique(maintain_order=True).to_list()
    if len(levels) < 2:
        raise BadInput(f"'{column}' has one condition at the critical words; there is nothing to compare.")
    base = critical.select(
        "row",
        pl.col(column).cast(pl.String).alias("condition"),
        pl.col(settings.item).cast(pl.String).alias("item"),
        pl.col("word").str.strip_chars().alias("target"),
        *measures,
    )
    rows: list[dict[str, object]] = []
    notes: list[str] = []
    for model in scored["model"].unique(maintain_order=True):
        own = scored.filter(pl.col("model") == model).select("row", "surprisal")
        rows += _test_pairs(base.join(own, on="row"), "surprisal", str(model), levels, notes)
    for measure in measures:
        rows += _test_pairs(base, measure, "people", levels, notes)
    schema = {name: dtype for name, dtype in CONDITIONS.items() if name != "p_bh"}
    table = pl.DataFrame(rows, schema=schema)
    adjusted = list(adjust_bh(table["p"].to_numpy())) if table.height else list[float]()
    return table.with_columns(pl.Series("p_bh", adjusted, dtype=pl.Float64)).select(*CONDITIONS), notes


def _test_pairs(
    table: pl.DataFrame, response: str, model: str, levels: list[str], notes: list[str]
) -> list[dict[str, object]]:
    """Every two conditions compared for one response."""
    found = []
    for first, second in combinations(levels, 2):
        part = table.filter(pl.col("condition").is_in([first, second])).drop_nulls(response)
        means = dict(part.group_by("condition").agg(pl.col(response).mean()).iter_rows())
        if len(means) < 2:
            continue
        grouped = [name for name in ("item", "target") if 1 < part[name].n_unique() < part.height]
        random = " + ".join(f"(1 | {name})" for name in grouped)
        formula = f"{response} ~ condition + {random}"
        try:
            if not grouped:
                raise BadInput("neither items nor words occur twice.")
            test = f_test_term(fit_lmm(formula, part), part, "condition")
        except BadInput as error:
            notes.append(f"{response} of {model} cannot be compared between {first} and {second}: {error}")
            continue
        found.append(
            {"response": response, "model": model, "first": first, "second": second, "formula": formula}
            | {"difference": means[first] - means[second], "items": part["item"].n_unique()}
            | {"n": part.height}
            | test
        )
    return found


def measure_effects(
    folder: StudyFolder, words: pl.DataFrame, scored: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Effects by item in bits, beside those observed and, with fillers, predicted in ms; and over items."""
    observed = folder.read("observed")
    placed = words.select("row", "text", "item", "effect", "side", "roi")
    conversion = convert_fillers(folder) if FILLERS in folder.facts["sets"] else None
    parts = []
    for model in scored["model"].unique(maintain_order=True):
        own = placed.join(scored.filter(pl.col("model") == model), on="row", maintain_order="left")
        own = add_lags(own, ["surprisal"], CONVERSION_LAGS, within=["text"])
        value = pl.lit(None, dtype=pl.Float64)
        if conversion is not None:
            slopes = dict(conversion.filter(model=model).select("lag", "slope").iter_rows())
        # Surprisals that were given have none for the fillers, so there are no slopes to convert them with.
        if conversion is not None and slopes:
            value = pl.sum_horizontal(
                slopes[lag] * pl.col("surprisal" if lag == 0 else f"surprisal_{lag}") for lag in slopes
            )
        own = own.with_columns(value.alias("ms")).filter(pl.col("roi").is_in(PLACES))
        sides = [
            own.filter(pl.col("side") == side).select("effect", "item", "roi", "surprisal", "ms")
            for side in ("hard", "easy")
        ]
        both = sides[0].join(sides[1], on=["effect", "item", "roi"], suffix="_easy")
        parts.append(
            both.join(observed, on=["effect", "item", "roi"], how="left", suffix="_observed").select(
                "effect",
                "item",
                pl.col("roi").alias("place"),
                pl.lit(model).alias("model"),
                (pl.col("surprisal") - pl.col("surprisal_easy")).alias("bits"),
                pl.col("ms_observed").alias("observed_ms"),
                (pl.col("ms") - pl.col("ms_easy")).alias("predicted_ms"),
            )
        )
    single = pl.concat(parts).sort("effect", "place", "model", "item", maintain_order=True)
    tables = {"item_effects": single.cast(ITEM_EFFECTS), "effects": _average(single)}  # type: ignore[arg-type]
    return tables | ({"conversion": conversion} if conversion is not None else {})


def _average(single: pl.DataFrame) -> pl.DataFrame:
    """Means over items, and how effects, predicted in ms or else in bits, go with those observed."""
    rows = []
    value = "bits" if single["predicted_ms"].null_count() == single.height else "predicted_ms"
    for (effect, place, model), part in single.group_by("effect", "place", "model", maintain_order=True):
        seen = part.drop_nulls([value, "observed_ms"])
        row: dict[str, object] = {"effect": effect, "place": place, "model": model, "items": seen.height}
        row |= {name: part[name].mean() for name in ("bits", "observed_ms", "predicted_ms")}
        if seen.height >= FEWEST_ITEMS and seen[value].n_unique() > 1 and seen["observed_ms"].n_unique() > 1:
            found = correlate(seen[value], seen["observed_ms"]).row(0, named=True)
            row |= {"r": found["r"], "low": found["low"], "high": found["high"]}
        rows.append(row)
    return pl.DataFrame(rows, schema=EFFECTS)


def convert_fillers(folder: StudyFolder) -> pl.DataFrame:
    """Milliseconds per bit of the word and of three before it, from the user's own fillers, by model.

    A mixed model of single times with length, frequency and their product of all four words, position, slopes
    of surprisal by reader, and intercepts by reader and word.
    """
    words, trials = folder.read("filler_words"), folder.read("filler_trials")
    measure = next(name for name in trials.columns if name not in (*KEYS, "reader"))
    terms = RECIPES["default"].lagged
    boundary = folder.record["settings"]["boundary"]
    rows = []
    for model in folder.facts["scored"]:
        scored = score_words(folder.run(model, FILLERS), words, boundary)
        beside = words.drop(measure, strict=False).join(scored, on="row", maintain_order="left")
        beside = add_lags(beside, ["surprisal", *terms], CONVERSION_LAGS, within=("text", "sentence"))
        recipe = Recipe(name="fillers", title="", control_lags=CONVERSION_LAGS, lags=(0, 1, 2, 3))
        products = [
            ":".join(name if lag == 0 else f"{name}_{lag}" for name in terms)
            for lag in range(CONVERSION_LAGS + 1)
        ]
        controls = [*recipe.baseline, *products, "position"]
        joined = trials.drop_nulls(measure).join(beside, on=list(KEYS))
        complete = joined.drop_nulls([*recipe.baseline, *recipe.critical]).with_columns(item=pl.col("row"))
        fitted = fit_reading_times(complete, measure, controls, recipe.critical)
        slopes = {row["term"]: row for row in fitted.slopes.to_dicts()}
        for lag, term in zip(recipe.lags, recipe.critical, strict=True):
            row = slopes[term]
            rows.append((model, lag, row["estimate"], row["low"], row["high"], complete.height))
    return pl.DataFrame(rows, schema=CONVERSION, orient="row")
