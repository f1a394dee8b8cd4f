"""What surprisal adds for one measure: delta log-likelihood, slopes, the curve, and the check of alignment.

All models, and both ways to sum a word's tokens, are fitted to identical rows: a word without a value under
one of them is left out for all.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from felicity.core.errors import BadInput
from felicity.measures import CORRECTED, PLAIN
from felicity.stats import (
    RECIPES,
    Gain,
    Recipe,
    Scheme,
    build_additive,
    check_alignment,
    compare_in_sample,
    complete_rows,
    correlate_shifts,
    estimate_slopes,
    explain_rows,
    fit_additive,
    measure_gain,
    prepare_rows,
)
from felicity.studies.reading.settings import ReadingSettings

SENTENCE = ("text", "sentence")
SURPRISAL = "surprisal"
GIVEN = "given"
OTHER_LACKS = "another model has no surprisal"
BASELINE, WITH_SURPRISAL, LINEAR = "baseline", "baseline and surprisal", "linear surprisal"
SMOOTH_BASIS = 6
TEXT, NUMBER, COUNT = pl.String(), pl.Float64(), pl.Int64()
FIT = {
    "measure": TEXT,
    "model": TEXT,
    "predictor": TEXT,
    "over": TEXT,
    "words": TEXT,
    "lead": pl.Boolean(),
    "n": COUNT,
    "sentences": COUNT,
    "delta_ll": NUMBER,
    "se": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "p": NUMBER,
    "held_out": pl.Boolean(),
    "in_sample": NUMBER,
    "delta_aic": NUMBER,
    "variance_share": NUMBER,
}
SLOPES = {
    "measure": TEXT,
    "model": TEXT,
    "words": TEXT,
    "lead": pl.Boolean(),
    "lag": COUNT,
    "slope": NUMBER,
    "se": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "p": NUMBER,
    "unit": TEXT,
}
CURVES = {
    "measure": TEXT,
    "model": TEXT,
    "x": NUMBER,
    "y": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "edf": NUMBER,
}
SHIFTS = {"measure": TEXT, "model": TEXT, "shift": COUNT, "r": NUMBER, "n": COUNT}
RESIDUALS = {
    "row": COUNT,
    "measure": TEXT,
    "model": TEXT,
    "left_out": TEXT,
    "residual": NUMBER,
}
LEFT_OUT = {"measure": TEXT, "rule": TEXT, "rows": COUNT, "left": COUNT}


@dataclass
class MeasureFit:
    """Everything that was found for one measure: tables as rows, and by model the rows and the gain.

    gains: of the leading surprisal, if rows are held out, and both: by how the tokens of a word are summed;
    by_model: the words used, with every predictor. residuals: of every word, why it is left out, or what the
    regression with surprisal does not predict.
    """

    measure: str
    recipe: Recipe
    rows: pl.DataFrame
    fit: list[dict[str, object]] = field(default_factory=list)
    slopes: list[dict[str, object]] = field(default_factory=list)
    curves: list[pl.DataFrame] = field(default_factory=list)
    alignment: list[pl.DataFrame] = field(default_factory=list)
    residuals: list[pl.DataFrame] = field(default_factory=list)
    excluded: list[dict[str, object]] = field(default_factory=list)
    gains: dict[str, Gain] = field(default_factory=dict)
    both: dict[str, dict[str, Gain]] = field(default_factory=dict)
    by_model: dict[str, pl.DataFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def build_recipe(settings: ReadingSettings) -> Recipe:
    """The recipe of a preset with what the settings change."""
    recipe = RECIPES.get(settings.preset, RECIPES["default"])
    changed: dict[str, object] = {}
    if settings.lags is not None:
        changed["lags"] = tuple(range(settings.lags + 1))
        changed["controlled"] = ()
    if settings.control_lags is not None:
        changed["control_lags"] = settings.control_lags
    if settings.controls:
        changed["controls"] = tuple(dict.fromkeys([*recipe.controls, *settings.controls]))
    if settings.exclude:
        changed["exclude"] = tuple(dict.fromkeys([*recipe.exclude, *settings.exclude]))
    if settings.folds is not None:
        changed["scheme"] = replace(recipe.scheme or Scheme(), folds=settings.folds)
    return replace(recipe, **changed)  # type: ignore[arg-type]


def fit_measure(
    measure: str, words: pl.DataFrame, scored: pl.DataFrame, settings: ReadingSettings, *, time: bool
) -> MeasureFit:
    """Fit one measure with every model on identical rows.

    words: in reading order, with the measure; scored: rows of SCORED.

    Raises BadInput if no word is left, or nothing varies.
    """
    recipe = build_recipe(settings)
    frames = {name: _beside(words, scored, name) for name in scored["model"].unique(maintain_order=True)}
    prepared = {name: prepare_rows(frame, measure, recipe) for name, frame in frames.items()}
    kept = None
    for rows, _ in prepared.values():
        kept = rows.select("row") if kept is None else kept.join(rows.select("row"), on="row", how="semi")
    if kept is None or kept.is_empty():
        raise BadInput(f"No word has '{measure}' and a surprisal of every model.")
    first = next(iter(prepared.values()))
    used = first[0].join(kept, on="row", how="semi", maintain_order="left")
    found = MeasureFit(measure, _drop_constant(recipe, used), used)
    constant = [name for name in recipe.controls if name not in found.recipe.controls]
    if constant:
        found.notes.append(f"{measure}: {', '.join(constant)} does not vary and is not in the baseline.")
    found.excluded = _list_excluded(measure, words, first[1], first[0].height, kept.height)
    for name, (rows, _) in prepared.items():
        own = rows.join(kept, on="row", how="semi", maintain_order="left")
        found.by_model[name] = own
        _fit_model(found, name, own, frames[name], settings, time=time)
        found.residuals.append(_list_residuals(found, name, own, frames[name], recipe))
    return found


def _list_residuals(
    found: MeasureFit, model: str, rows: pl.DataFrame, frame: pl.DataFrame, recipe: Recipe
) -> pl.DataFrame:
    """Rows of RESIDUALS, one per word under one model."""
    fit = fit_additive(build_additive(found.recipe.formulas(found.measure)[1], rows))
    left = rows.select("row").with_columns(residual=fit.data.y - fit.predict(slice(None)))
    reasons = explain_rows(frame, found.measure, recipe)
    every = frame.select("row").with_columns(reasons).join(left, on="row", how="left", maintain_order="left")
    used_elsewhere = pl.col("left_out").is_null() & pl.col("residual").is_null()
    return every.select(
        "row",
        measure=pl.lit(found.measure),
        model=pl.lit(model),
        left_out=pl.when(used_elsewhere).then(pl.lit(OTHER_LACKS)).otherwise("left_out"),
        residual="residual",
    )


def _beside(words: pl.DataFrame, scored: pl.DataFrame, model: str) -> pl.DataFrame:
    """The words with the surprisals of one model."""
    own = scored.filter(pl.col("model") == model).rename(
        {PLAIN: "surprisal_plain", CORRECTED: "surprisal_corrected"}
    )
    clash = [name for name in own.columns if name in words.columns and name != "row"]
    return words.drop(clash).join(own, on="row", how="left", maintain_order="left")


def _drop_constant(recipe: Recipe, rows: pl.DataFrame) -> Recipe:
    """The recipe without controls that are the same for every word that is used."""
    controls = tuple(name for name in recipe.controls if rows[name].n_unique() > 1)
    return replace(recipe, controls=controls, lagged=tuple(n for n in recipe.lagged if n in controls))


def _list_excluded(
    measure: str, words: pl.DataFrame, listed: pl.DataFrame, single: int, common: int
) -> list[dict[str, object]]:
    """What each rule left out, in order, down to the rows that are used."""
    rows, left = [], words.height
    for row in listed.to_dicts():
        left -= row["rows"]
        rows.append({"measure": measure, "rule": row["rule"], "rows": row["rows"], "left": left})
    if common < single:
        rows.append({"measure": measure, "rule": OTHER_LACKS, "rows": single - common, "left": common})
    return rows


def _fit_model(
    found: MeasureFit,
    model: str,
    rows: pl.DataFrame,
    frame: pl.DataFrame,
    settings: ReadingSettings,
    *,
    time: bool,
) -> None:
    """Add what one model's surprisal gives."""
    measure, recipe = found.measure, found.recipe
    baseline, target = recipe.formulas(measure)
    ways = _list_ways(rows, frame, found)
    for words, lead, own in ways:
        named: dict[str, object] = {"measure": measure, "model": model, "words": words, "lead": lead}
        gain = _compare(own, baseline, target, recipe, settings)
        found.fit.append(named | {"predictor": SURPRISAL, "over": BASELINE} | gain[0])
        slopes = estimate_slopes(
            own, target, recipe.critical, cluster=SENTENCE, draws=settings.draws, seed=settings.seed
        )
        unit = "ms per bit" if time else "units per bit"
        for lag, row in zip(recipe.lags, slopes.to_dicts(), strict=True):
            found.slopes.append(named | row | {"slope": row["estimate"], "lag": lag, "unit": unit})
        if gain[1] is not None:
            found.both.setdefault(model, {})[words] = gain[1]
            if lead:
                found.gains[model] = gain[1]
    lead_words = next(words for words, lead, _ in ways if lead)
    named = {"measure": measure, "model": model, "words": lead_words, "lead": True}
    for name in ("entropy", "entropy_reduction", *settings.predictors):
        if name in rows.columns and rows[name].null_count() < rows.height:
            complete, _ = complete_rows(rows, [f"{target} + {name}"])
            if complete[name].n_unique() > 1:
                # Without a value for final words, punctuation may be the same everywhere.
                _, smaller = _drop_constant(recipe, complete).formulas(measure)
                gain = _compare(complete, smaller, f"{smaller} + {name}", recipe, settings)
                found.fit.append(named | {"predictor": name, "over": WITH_SURPRISAL} | gain[0])
    _add_curve(found, model, rows, target, settings, named)
    _check_places(found, model, frame)


def _list_ways(
    rows: pl.DataFrame, frame: pl.DataFrame, found: MeasureFit
) -> list[tuple[str, bool, pl.DataFrame]]:
    """The rows with each way to sum tokens as `surprisal`: its name, whether it leads, the rows."""
    if rows["surprisal_plain"].null_count() == rows.height:
        return [(GIVEN, True, rows)]
    lead = CORRECTED if rows["surprisal"].equals(rows["surprisal_corrected"]) else PLAIN
    ways = [(lead, True, rows)]
    other = PLAIN if lead == CORRECTED else CORRECTED
    if frame[f"surprisal_{other}"].null_count() < frame.height:
        moved = frame.with_columns(pl.col(f"surprisal_{other}").alias(SURPRISAL))
        again, _ = prepare_rows(moved, found.measure, found.recipe)
        ways.append(
            (other, False, again.join(rows.select("row"), on="row", how="semi", maintain_order="left"))
        )
    return ways


def _compare(
    rows: pl.DataFrame, baseline: str, target: str, recipe: Recipe, settings: ReadingSettings
) -> tuple[dict[str, object], Gain | None]:
    """The figures of one comparison, and its gain if the recipe holds rows out."""
    inside = compare_in_sample(rows, baseline, target)
    row: dict[str, object] = {
        "n": rows.height,
        "sentences": rows.select(SENTENCE).n_unique(),
        "delta_ll": inside.per_row,
        "held_out": recipe.scheme is not None,
        "in_sample": inside.per_row,
        "delta_aic": inside.delta_aic,
        "variance_share": 100 * inside.r2_share,
    }
    if recipe.scheme is None:
        return row, None
    gain = measure_gain(
        rows,
        baseline,
        target,
        scheme=recipe.scheme,
        cluster=SENTENCE,
        draws=settings.draws,
        seed=settings.seed,
    )
    return row | gain.row(), gain


def _add_curve(
    found: MeasureFit,
    model: str,
    rows: pl.DataFrame,
    target: str,
    settings: ReadingSettings,
    named: Mapping[str, object],
) -> None:
    """The smooth of surprisal, and what it adds to a straight line; said where there is too little data."""
    terms = target.split(" ~ ")[1].split(" + ")
    others = [term for term in terms if term != SURPRISAL]
    smooth = f"{found.measure} ~ {' + '.join([*others, f's({SURPRISAL}, k = {SMOOTH_BASIS})'])}"
    try:
        gain = _compare(rows, target, smooth, found.recipe, settings)
        curve = fit_additive(build_additive(smooth, rows)).curve(SURPRISAL)
    except BadInput as error:
        found.notes.append(f"No curve of {found.measure} for {model}: {error}")
        return
    found.fit.append({**named, "predictor": "smooth surprisal", "over": LINEAR} | gain[0])
    found.curves.append(
        curve.select(pl.lit(found.measure).alias("measure"), pl.lit(model).alias("model"), *curve.columns)
    )


def _check_places(found: MeasureFit, model: str, frame: pl.DataFrame) -> None:
    """Where the measure correlates with surprisal: at its own word, or elsewhere."""
    shifts = correlate_shifts(frame, found.measure, SURPRISAL, within=["text"])
    found.alignment.append(
        shifts.select(measure=pl.lit(found.measure), model=pl.lit(model), shift="shift", r="r", n="n")
    )
    warning = check_alignment(shifts)
    if warning:
        found.notes.append(f"Alignment of {found.measure} ({model}): {warning}")


def describe_recipe(recipe: Recipe) -> str:
    """How rows are predicted and held out, in words."""
    how = "fitted and compared on the same rows" if recipe.scheme is None else recipe.scheme.describe()
    baseline = ", ".join(recipe.baseline) or "the mean alone"
    return f"{recipe.describe_lags()[0].upper()}{recipe.describe_lags()[1:]}. Baseline: {baseline}. {how}."
