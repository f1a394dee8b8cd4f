"""Reading times and N400: regressions on published surprisals, by the recipes of `felicity reading`.

Wilcox et al. (2023), de Varda et al. (2023), Kuribayashi et al. (2024), Michaelov and Bergen (2022), and the
reading scores of the BabyLM evaluation (2025).
"""

import gzip
import json
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.papers.reproduce.computations import COMPUTATIONS
from felicity.papers.reproduce.inputs import Files
from felicity.stats import (
    RECIPES,
    add_lags,
    apply_recipe,
    build_additive,
    compare_in_sample,
    cut_folds,
    f_test_term,
    fit_lmm,
    fit_ols,
    held_out_densities,
    prepare_babylm,
    prepare_rows,
)

# R's names for missing and infinite numbers: a word without frequency has neither.
R_MISSING = ["NA", "Inf"]
LANGUAGES = ("du", "en", "fi", "ge", "gr", "he", "it", "ko", "sp", "tr", "ru")
EYE_TRACKING = ("RTfirstfix", "RTfirstpass", "RTgopast", "RTrightbound")
SELF_PACED = "self_paced_reading_time"
OUTLIER_SDS = 3
# One model has another name in de Varda's table of results than in the table of words.
DEVARDA_NAMES = {"s_GPTNeo_large": "s_GPTNeo_2.7B"}


def _wilcox(files: Files, language: str, model: str) -> pl.DataFrame:
    """The words of one language with a model's surprisals, those without a frequency left out."""

    def read() -> pl.DataFrame:
        path = files.path(f"wilcox2023/{language}.csv.gz")
        table = pl.read_csv(path, null_values=R_MISSING, infer_schema_length=None)
        names = {"trialid": "text", "ia": "word", "freq": "frequency", "len": "length", "surp": "surprisal"}
        names |= {
            f"{back}{short}": f"{long}_{lag}"
            for back, lag in (("prev_", 1), ("prev2_", 2))
            for short, long in (
                ("freq", "frequency"),
                ("len", "length"),
                ("surp", "surprisal"),
                ("ent", "entropy"),
            )
        }
        return table.rename(names | {"ent": "entropy"}).drop_nulls()

    table = files.once(("wilcox2023", language), read)
    frequent = pl.all_horizontal(pl.col(r"^frequency.*$") > 0)
    return table.filter(frequent & (pl.col("model") == model))


@COMPUTATIONS.add("wilcox2023.delta")
def wilcox_delta(files: Files, *, language: str, model: str, measure: str = "gaze_rt") -> float:
    """Held-out delta log-likelihood per word: ten contiguous folds, variance of the training fit."""
    return apply_recipe(_wilcox(files, language, model), measure, RECIPES["wilcox2023"], draws=2).per_word


@COMPUTATIONS.add("wilcox2023.slope")
def wilcox_slope(files: Files, *, model: str, measure: str = "gaze_rt") -> float:
    """Mean slope of surprisal in ms per SD over languages and folds, every predictor z-scored by language."""
    baseline = [f"{name}{lag}" for lag in ("", "_1", "_2") for name in ("frequency", "length")]
    predictors = [
        *baseline,
        *(f"{name}{lag}" for lag in ("", "_1", "_2") for name in ("surprisal", "entropy")),
    ]
    slopes = []
    for language in LANGUAGES:
        words = _wilcox(files, language, model)
        scaled = words.with_columns(
            (pl.col(name) - pl.col(name).mean()) / pl.col(name).std() for name in predictors
        )
        folds = cut_folds(words.height, 10, "width")
        for fold in range(10):
            fit = fit_ols(f"{measure} ~ {' + '.join(predictors)}", scaled.filter(pl.Series(folds != fold)))
            slopes.append(fit.fixed.filter(term="surprisal")["estimate"].item())
    return float(np.mean(slopes))


@COMPUTATIONS.add("wilcox2023.gam")
def wilcox_gam(files: Files, *, language: str, model: str, measure: str = "gaze_rt") -> float:
    """Held-out delta log-likelihood of additive models, linear and smooth pooled, beyond 3 SD left out."""
    words = _wilcox(files, language, model)
    folds = cut_folds(words.height, 10, "width")
    controls = f"{measure} ~ te(frequency, length) + te(frequency_1, length_1)"

    def densities(added: str) -> Any:
        return held_out_densities(build_additive(f"{controls}{added}", words), folds)

    without = densities("")
    linear = densities(" + surprisal + surprisal_1") - without
    smooth = densities(" + s(surprisal, k = 6) + s(surprisal_1, k = 6)") - without
    both = np.concatenate([linear, smooth])
    kept = both[np.abs(both - both.mean()) < OUTLIER_SDS * both.std(ddof=1)]
    return float(kept.mean())


def _devarda(files: Files, predictor: str) -> pl.DataFrame:
    table = files.table("devarda2023/all_measures.csv.gz")
    names = {"sent_id": "text", "context_length": "position", "Subtlex_log10": "frequency"}
    named = DEVARDA_NAMES.get(predictor, predictor)
    return table.rename(names).with_columns(pl.col(named).alias("surprisal"), sentence=pl.lit(1))


@COMPUTATIONS.add("devarda2023.linear")
def devarda_linear(files: Files, *, measure: str, predictor: str, figure: str) -> float:
    """In-sample delta log-likelihood (D_llik) or AIC (D_AIC), or slope (b) and t of one predictor."""

    def fit() -> dict[str, float]:
        recipe = RECIPES["devarda2023"]
        outcome = apply_recipe(_devarda(files, predictor), measure, recipe)
        term = fit_ols(recipe.formulas(measure)[1], outcome.rows).fixed.filter(term="surprisal")
        found = outcome.in_sample
        return {
            "D_llik": found.delta,
            "D_AIC": found.delta_aic,
            "llik": found.log_likelihood,
            "llik_baseline": found.log_likelihood_baseline,
            "b": term["estimate"].item(),
            "t": term["statistic"].item(),
            "n": float(found.n),
        }

    return files.once(("devarda2023", measure, predictor), fit)[figure]


@COMPUTATIONS.add("devarda2023.crossval")
def devarda_crossval(files: Files, *, measure: str, predictor: str, figure: str = "D_ll_cv") -> float:
    """Held-out delta log-likelihood, mean over 5 folds of the fold's sum, or its standard error (ll_sd)."""

    def measure_folds() -> Any:
        recipe = RECIPES["devarda2023"]
        rows, _ = prepare_rows(_devarda(files, predictor), measure, recipe)
        folds = cut_folds(rows.height, 5, "even")
        small, large = (
            held_out_densities(build_additive(formula, rows), folds, variance="test")
            for formula in recipe.formulas(measure)
        )
        return np.bincount(folds, large - small)

    sums = files.once(("devarda2023 folds", measure, predictor), measure_folds)
    return float(sums.mean() if figure == "D_ll_cv" else sums.std() / np.sqrt(len(sums)))


def _kuribayashi(files: Files, model: str, order: str, *, moved: bool) -> pl.DataFrame:
    """The words of Natural Stories with a model's surprisals.

    order: of the texts from which the surprisals of the words before are taken, `string` ("1", "10", "2") as
    in the published script, or `number`. moved: every time moved to the next word, where it belongs.
    """
    table = files.table("kuribayashi2024_ns/data/NS/all.txt.annotation.filtered.averaged_rt.csv.gz")
    with gzip.open(files.path(f"kuribayashi2024_ns/results/NS/{model}/surprisal.json.gz"), "rt") as file:
        listed: dict[str, list[list[float]]] = json.load(file)
    sentences = [(int(text), values) for text in sorted(listed, key=int) for values in listed[text]]
    words = table.rename(
        {"article": "text", "log_gmean_freq": "frequency"}
        | {f"length_prev_{lag}": f"length_{lag}" for lag in (1, 2)}
        | {f"log_gmean_freq_prev_{lag}": f"frequency_{lag}" for lag in (1, 2)}
    ).with_columns(
        surprisal=pl.Series([value for _, values in sentences for value in values]),
        sentence=pl.Series([place for place, (_, values) in enumerate(sentences) for _ in values]),
        sentence_first=pl.Series([at == 0 for _, values in sentences for at in range(len(values))]),
        sentence_last=pl.col("is_first") | pl.col("is_last"),
    )
    lagged = add_lags(words, ["surprisal"], 2, within=["sentence"]).select(
        "text", "surprisal_1", "surprisal_2"
    )
    if order == "string":
        lagged = lagged.sort(pl.col("text").cast(pl.String), maintain_order=True)
    words = words.with_columns(lagged.drop("text").fill_null(words["surprisal"].mean()).get_columns())
    return words.with_columns(pl.col("time").shift(1).over("text")) if moved else words


@COMPUTATIONS.add("kuribayashi2024.delta")
def kuribayashi_delta(
    files: Files, *, model: str, order: str = "number", moved: bool = False, critical: str = "word"
) -> float:
    """In-sample delta log-likelihood per word; critical `all`: three surprisals over none."""
    recipe = RECIPES["kuribayashi2024"]
    if critical == "all":
        recipe = replace(recipe, lags=(0, 1, 2), controlled=())
    return apply_recipe(_kuribayashi(files, model, order, moved=moved), "time", recipe).per_word


MICHAELOV = {
    "ito_2016": ("ito_2016.tsv", "SentenceFrame", None, ("semantically_related", "unrelated")),
    "delong_2019": ("delong_2019.tsv.gz", "Frame", "TargetWord", ("sem", "unrel")),
    "metusalem_2012": (
        "metusalem_2012.tsv",
        "ContextFrameNum",
        "TargetWord",
        ("Event-Related", "Event-Unrelated"),
    ),
}


@COMPUTATIONS.add("michaelov2022.anova")
def michaelov_anova(files: Files, *, study: str, model: str, figure: str = "F", target: bool = True) -> float:
    """Satterthwaite F of surprisal on condition, related against unrelated, or its DenDF or p.

    target: a random intercept of the target word beside that of the sentence frame.
    """

    def fit() -> dict[str, float]:
        table = _michaelov(files, study, model)
        random = "(1 | frame) + (1 | target)" if target else "(1 | frame)"
        return f_test_term(fit_lmm(f"surprisal ~ condition + {random}", table), table, "condition")

    row = files.once(("michaelov2022", study, model, target), fit)
    return float(row[{"F": "f", "DenDF": "df_residual", "p": "p"}[figure]])


def _michaelov(files: Files, study: str, model: str) -> pl.DataFrame:
    name, frame, word, conditions = MICHAELOV[study]
    stimuli = pl.read_csv(
        files.path(f"michaelov2022_collateral/stimuli/{name}"), separator="\t", quote_char=None
    )
    below = f"michaelov2022_collateral/surprisal/{study}.surprisal.{model}."
    found = next((known for known in files.known if known.startswith(below)), None)
    if found is None:
        raise BadInput(f"There is no file of surprisals {below}*; name another model.")
    scored = pl.read_csv(files.path(found), separator="\t", quote_char=None)
    return pl.DataFrame(
        {
            "frame": stimuli[frame],
            "condition": stimuli["Condition"],
            "target": (stimuli[word] if word else scored["TargetWords"]).cast(pl.String).str.strip_chars(),
            "surprisal": scored["Surprisal"],
        }
    ).filter(pl.col("condition").is_in(conditions))


def _babylm(files: Files, model: str) -> pl.DataFrame:
    """The words of the BabyLM reading task with the stored surprisals of a model, or de Varda's of GPT-2."""
    table = files.table("babylm2025/reading/reading_data.csv.gz")
    names = {
        "sent_id": "text",
        "context_length": "position",
        "Subtlex_log10": "frequency",
        "prev_length": "length_1",
    }
    table = table.rename(names).with_columns(sentence=pl.lit(1))
    if model == "gpt2":
        scores = files.table("devarda2023/all_measures.csv.gz").select("sent_id", "context_length", "s_GPT2")
        joined = table.join(
            scores.rename({"sent_id": "text", "context_length": "position", "s_GPT2": "surprisal"}),
            on=["text", "position"],
            how="left",
            maintain_order="left",
        )
        before = scores.select(
            pl.col("sent_id").alias("text"),
            pl.col("context_length") + 1,
            pl.col("s_GPT2").alias("surprisal_1"),
        ).rename({"context_length": "position"})
        return joined.join(before, on=["text", "position"], how="left", maintain_order="left")
    with gzip.open(files.path(f"babylm2025/results/{model}/reading/prediction.jsonl.gz"), "rt") as file:
        lines = [json.loads(line) for line in file]
    return table.with_columns(
        surprisal=pl.Series([line["Logprob"] for line in lines]),
        surprisal_1=pl.Series([line["Prev_Logprob"] for line in lines]),
    )


@COMPUTATIONS.add("babylm2025.regression")
def babylm_regression(
    files: Files,
    *,
    model: str,
    measure: str,
    figure: str = "share",
    spillover: bool = False,
    exclude: bool = False,
    none_missing: bool = True,
) -> float:
    """One regression: share in per cent, slope, t, R2, its change, or the change of AIC.

    spillover: length and surprisal of the word before, and all ten products, in the baseline. none_missing:
    the word "None" before another counts as missing, as pandas reads it.
    """

    def fit() -> dict[str, float]:
        rows, baseline = prepare_babylm(
            _babylm(files, model), measure, spillover=spillover, exclude=exclude, none_missing=none_missing
        )
        found = compare_in_sample(rows, baseline, f"{baseline} + surprisal")
        term = fit_ols(f"{baseline} + surprisal", rows).fixed.filter(term="surprisal")
        return {
            "share": 100 * found.r2_share,
            "slope": term["estimate"].item(),
            "t": term["statistic"].item(),
            "r2": found.r2,
            "r2_change": found.r2 - found.r2_baseline,
            "aic_change": found.delta_aic,
            "n": float(found.n),
        }

    key = ("babylm2025", model, measure, spillover, exclude, none_missing)
    return files.once(key, fit)[figure]


@COMPUTATIONS.add("babylm2025.score")
def babylm_score(files: Files, *, model: str, task: str, exclude: bool = False) -> float:
    """The reading score: mean share over four eye-tracking measures, or that of self-paced reading."""
    if task == "self_paced":
        return babylm_regression(files, model=model, measure=SELF_PACED, spillover=True, exclude=exclude)
    shares = [babylm_regression(files, model=model, measure=name, exclude=exclude) for name in EYE_TRACKING]
    return float(np.mean(shares))
