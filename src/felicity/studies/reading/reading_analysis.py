"""The tables of a study of reading, from the stored tokens, words and times."""

from itertools import combinations
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.settings import check_settings
from felicity.data import Reading, average_trials
from felicity.measures import CORRECTED, PLAIN
from felicity.run import StudyFolder
from felicity.stats import (
    Gain,
    adjust_holm,
    bootstrap_mean,
    cluster_codes,
    correlate,
    permute_differences,
    sum_by_cluster,
)
from felicity.studies.reading.condition_effects import compare_conditions, measure_effects
from felicity.studies.reading.predictive_fit import (
    CURVES,
    FIT,
    LEFT_OUT,
    RESIDUALS,
    SENTENCE,
    SHIFTS,
    SLOPES,
    SURPRISAL,
    MeasureFit,
    describe_recipe,
    fit_measure,
)
from felicity.studies.reading.settings import ReadingSettings
from felicity.studies.reading.trial_models import MIXED, fit_trials
from felicity.studies.reading.word_surprisal import read_surprisals

SHORTEST, LONGEST = 100.0, 3000.0
TEXT, NUMBER, COUNT = pl.String(), pl.Float64(), pl.Int64()
COMPARISONS = {
    "measure": TEXT,
    "first": TEXT,
    "second": TEXT,
    "n": COUNT,
    "difference": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "p": NUMBER,
    "p_holm": NUMBER,
}
CORRECTION = {
    "measure": TEXT,
    "model": TEXT,
    "n": COUNT,
    CORRECTED: NUMBER,
    PLAIN: NUMBER,
    "difference": NUMBER,
    "low": NUMBER,
    "high": NUMBER,
    "p": NUMBER,
    "p_holm": NUMBER,
}
QUALITY = {
    "measure": TEXT,
    "model": TEXT,
    "words": COUNT,
    "bits_per_word": NUMBER,
    "perplexity": NUMBER,
    "delta_ll": NUMBER,
    "r": NUMBER,
}
NOT_JOINED = {"text": TEXT, "sentence": TEXT, "position": COUNT, "word": TEXT, "model": TEXT, "reason": TEXT}
FEWEST_MODELS = 4


def analyse(folder: StudyFolder) -> dict[str, pl.DataFrame]:
    """Every table: words, residuals, fit, slopes, curves, alignment, exclusions, comparisons, effects."""
    settings: ReadingSettings = check_settings(ReadingSettings, folder.record["settings"])
    reading = _read_times(folder, settings)
    words, notes = reading.words, list(reading.notes)
    scored = read_surprisals(folder, words)
    tables = {"words": _list_words(words, scored), "not_joined": _list_lost(words, scored)}
    found: list[MeasureFit] = []
    for measure in reading.measures:
        time = measure in folder.facts["times"]
        try:
            found.append(fit_measure(measure, words, scored, settings, time=time))
        except BadInput as error:
            if len(reading.measures) == 1:
                raise
            notes.append(f"{measure} is left out: {error}")
    if reading.measures and not found:
        raise BadInput(f"None of {', '.join(reading.measures)} can be predicted: {notes[-1]}")
    tables |= _collect(found, scored, settings)
    tables["residuals"] = _list_residuals(words, found)
    notes += [note for one in found for note in one.notes]
    if reading.trials is not None and settings.mixed:
        tables["mixed"], said = _fit_mixed(found, reading.trials, scored)
        notes += said
    if settings.condition is not None:
        tables["conditions"], said = compare_conditions(words, scored, settings, list(reading.measures))
        notes += said
    if "observed" in folder.record["kept"]:
        tables |= measure_effects(folder, words, scored)
    if found:
        notes += [
            f"Recipe {found[0].recipe.name}: {describe_recipe(found[0].recipe)}",
            *found[0].recipe.doubts,
        ]
    tables["notes"] = pl.DataFrame({"note": list(dict.fromkeys(notes))}, schema={"note": pl.String})
    return tables


def _read_times(folder: StudyFolder, settings: ReadingSettings) -> Reading:
    """The words with means of the single times that count; skipped words as the settings say."""
    kept = folder.record["kept"]
    reading = Reading(
        name=folder.facts["corpus"],
        words=folder.read("corpus"),
        sentences=pl.DataFrame(),
        measures=tuple(folder.facts["measures"]),
        trials=folder.read("trials") if "trials" in kept else None,
    )
    own = settings.preset == "default"
    zero = settings.skipped == "zero" or (settings.skipped == "auto" and not own)
    if reading.trials is not None:
        shortest = settings.shortest if settings.shortest is not None else SHORTEST if own else 0.0
        longest = settings.longest if settings.longest is not None else LONGEST if own else float("inf")
        return average_trials(reading, shortest=shortest, longest=longest, skipped=zero)
    if zero:
        return reading
    words, notes = reading.words, []
    for name in reading.times:
        none = int((words[name] == 0).sum())
        if none:
            words = words.with_columns(pl.when(pl.col(name) != 0).then(name).alias(name))
            notes.append(f"{none:,} words with a mean {name} of 0 ms are left out.")
    return Reading(
        name=reading.name,
        words=words,
        sentences=reading.sentences,
        measures=reading.measures,
        notes=tuple(notes),
    )


def _list_words(words: pl.DataFrame, scored: pl.DataFrame) -> pl.DataFrame:
    """One row per word and model, with both sums of its tokens."""
    own = scored.rename({PLAIN: "surprisal_plain", CORRECTED: "surprisal_corrected"})
    clash = [name for name in own.columns if name in words.columns and name != "row"]
    return words.drop(clash).join(own, on="row", maintain_order="left_right").drop("row")


def _list_lost(words: pl.DataFrame, scored: pl.DataFrame) -> pl.DataFrame:
    """Every word without a surprisal, and why."""
    absent = scored.filter(pl.col("surprisal").is_null()).select("row", "model")
    reason = (
        pl.when(pl.col("start").is_null())
        .then(pl.lit("not in the sentence"))
        .otherwise(pl.lit("no surprisal was given or could be computed"))
    )
    placed = words.select("row", "text", "sentence", "position", "word", "start")
    joined = absent.join(placed, on="row", maintain_order="left").with_columns(reason.alias("reason"))
    return joined.select(pl.col(name).cast(dtype) for name, dtype in NOT_JOINED.items())


def _list_residuals(words: pl.DataFrame, found: list[MeasureFit]) -> pl.DataFrame:
    """Every word under every measure and model: why it is left out, or what is not predicted of it."""
    parts = [part.cast(RESIDUALS) for one in found for part in one.residuals]  # type: ignore[arg-type]
    whole = pl.concat([pl.DataFrame(schema=RESIDUALS), *parts])
    placed = words.select("row", "text", "sentence", "position")
    return placed.join(whole, on="row", maintain_order="right").drop("row")


def _collect(
    found: list[MeasureFit], scored: pl.DataFrame, settings: ReadingSettings
) -> dict[str, pl.DataFrame]:
    """The tables of all measures."""

    def frame(rows: list[dict[str, Any]], schema: dict[str, pl.DataType]) -> pl.DataFrame:
        return pl.DataFrame([{name: row.get(name) for name in schema} for row in rows], schema=schema)

    def join(parts: list[pl.DataFrame], schema: dict[str, pl.DataType]) -> pl.DataFrame:
        return pl.concat([pl.DataFrame(schema=schema), *(part.cast(schema) for part in parts)])  # type: ignore[arg-type]

    fit = frame([row for one in found for row in one.fit], FIT)
    return {
        "fit": _adjust(fit, ["predictor", "lead"]),
        "slopes": frame([row for one in found for row in one.slopes], SLOPES),
        "curves": join([part for one in found for part in one.curves], CURVES),
        "alignment": join([part for one in found for part in one.alignment], SHIFTS),
        "excluded": frame([row for one in found for row in one.excluded], LEFT_OUT),
        "comparisons": _compare_models(found, settings),
        "correction": _compare_corrections(found, settings),
        "quality": _measure_quality(fit, scored),
    }


def _adjust(table: pl.DataFrame, family: list[str]) -> pl.DataFrame:
    """Holm's p within families of tests; null where there is no test."""
    parts = []
    for _, part in table.with_row_index("_place").group_by(family, maintain_order=True):
        tested = part["p"].is_not_null()
        adjusted = list(adjust_holm(part.filter(tested)["p"].to_numpy())) if tested.any() else list[float]()
        holm = pl.Series("p_holm", adjusted, dtype=pl.Float64)
        parts.append(part.filter(tested).select("_place").with_columns(holm))
    if not parts:
        return table.with_columns(p_holm=pl.lit(None, dtype=pl.Float64))
    both = table.with_row_index("_place").join(
        pl.concat(parts), on="_place", how="left", maintain_order="left"
    )
    return both.drop("_place")


def _compare_models(found: list[MeasureFit], settings: ReadingSettings) -> pl.DataFrame:
    """Every two models on the same words of a measure, by flipping signs of whole sentences."""
    rows = [
        {"measure": one.measure, "first": first, "second": second}
        | _test_difference(one, one.gains[first], one.gains[second], settings)
        for one in found
        for first, second in combinations(one.gains, 2)
    ]
    schema = {name: dtype for name, dtype in COMPARISONS.items() if name != "p_holm"}
    return _adjust(pl.DataFrame(rows, schema=schema), ["measure"]).select(*COMPARISONS)


def _compare_corrections(found: list[MeasureFit], settings: ReadingSettings) -> pl.DataFrame:
    """Words corrected for trailing white space against plain sums, of every model on the same words."""
    rows = []
    for one in found:
        for model, ways in one.both.items():
            if CORRECTED in ways and PLAIN in ways:
                deltas = {name: ways[name].delta for name in (CORRECTED, PLAIN)}
                tested = _test_difference(one, ways[CORRECTED], ways[PLAIN], settings)
                rows.append({"measure": one.measure, "model": model, **deltas, **tested})
    schema = {name: dtype for name, dtype in CORRECTION.items() if name != "p_holm"}
    table = pl.DataFrame(rows, schema=schema).with_columns(family=pl.lit(0))
    return _adjust(table, ["family"]).select(*CORRECTION)


def _test_difference(
    one: MeasureFit, first: Gain, second: Gain, settings: ReadingSettings
) -> dict[str, float]:
    """What two gains on the same words differ by: n, difference, low, high and p, over sentences."""
    codes = cluster_codes(one.rows, SENTENCE)
    apart = first.per_row - second.per_row
    interval = bootstrap_mean(apart, clusters=codes, draws=settings.draws, seed=settings.seed)
    test = permute_differences(sum_by_cluster(apart, codes), n=len(apart), seed=settings.seed)
    ends = {"difference": interval.estimate, "low": interval.low, "high": interval.high}
    return {"n": len(apart), "p": test.p} | ends


def _measure_quality(fit: pl.DataFrame, scored: pl.DataFrame) -> pl.DataFrame:
    """Bits per word of every model on the words that all have, beside what each adds; r from four models."""
    models = scored["model"].unique(maintain_order=True).to_list()
    whole = scored.group_by("row").agg(pl.col("surprisal").is_not_null().sum().alias("n"))
    common = scored.join(whole.filter(pl.col("n") == len(models)), on="row", how="semi")
    bits = common.group_by("model", maintain_order=True).agg(
        pl.len().cast(pl.Int64).alias("words"), pl.col("surprisal").mean().alias("bits_per_word")
    )
    lead = fit.filter(pl.col("lead") & (pl.col("predictor") == SURPRISAL)).select(
        "measure", "model", "delta_ll"
    )
    table = lead.join(bits, on="model", maintain_order="left").with_columns(
        perplexity=pl.lit(2.0).pow(pl.col("bits_per_word"))
    )
    rows = []
    for _, part in table.group_by("measure", maintain_order=True):
        varied = part["bits_per_word"].n_unique() > 1 and part["delta_ll"].n_unique() > 1
        r = None
        if part.height >= FEWEST_MODELS and varied:
            r = correlate(part["bits_per_word"], part["delta_ll"])["r"].item()
        rows.append(part.with_columns(r=pl.lit(r, dtype=pl.Float64)))
    empty = pl.DataFrame(schema=QUALITY)
    return pl.concat([empty, *(part.select(*QUALITY) for part in rows)])


def _fit_mixed(
    found: list[MeasureFit], trials: pl.DataFrame, scored: pl.DataFrame
) -> tuple[pl.DataFrame, list[str]]:
    """Mixed models of every measure with single times, by every model."""
    rows: list[dict[str, object]] = []
    notes: list[str] = []
    for one in found:
        for model in scored["model"].unique(maintain_order=True):
            more, said = fit_trials(one, one.by_model[str(model)], trials, str(model))
            rows += more
            notes += said
    return pl.DataFrame([{name: row[name] for name in MIXED} for row in rows], schema=MIXED), notes
