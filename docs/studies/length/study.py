"""The study of token length: which half of BLiMP decides, and the tables beside this file.

    python docs/studies/length/study.py draw
    felicity bias blimp_tuning.csv --measure lp --measure word_pmi --prior-contexts 128 -o runs/tuning
    python docs/studies/length/study.py choose runs/tuning
    python docs/studies/length/study.py equal runs/tuning
    felicity bias crows_pairs --measure lp --measure word_pmi -o runs/crows_pairs
    python docs/studies/length/study.py gather crows_pairs=runs/crows_pairs
    python docs/studies/length/study.py weigh crows_pairs=runs/crows_pairs

`draw` writes the files of pairs and rated sentences into the current folder, every other step its tables into
the folder of this file. `choose`, `equal` and `weigh` read scores from the cache, so that they also take a
run that was stopped: they use the neutral contexts in which every word has been scored.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from felicity.data import read_dataset, sample_items
from felicity.design import build_prompts
from felicity.measures import WordPriors, score_measures
from felicity.run import RunFolder, StudyFolder, find_missing, open_model, read_run
from felicity.run.priors import plan_priors
from felicity.stats import compare_correlations, correlate, fit_lmm, fit_ols, fit_slopes

FOLDER = Path(__file__).parent
SEED = 27
# Pairs of each paradigm.
SIZES = {"tuning": 30, "held_out": 100}
# Pairs of each paradigm in other languages, and sentences whose good member is a neutral context.
OTHERS = {"turblimp": 20, "rublimp": 8}
NEUTRAL = 400
RATED = 500
SPLITS = ("A=U", "A>U", "A<U")
MOST_CONTEXTS, CONTEXTS = 128, (8, 16, 32, 64)
WEIGHTS = (0.0, 0.25, 0.375, 0.5, 0.75)
QUADRATIC = 2.0
PLAIN = ("lp", "mean_lp", "pen_lp", "slln_lp")
POWERS = {"geometric": 1e-4, "arithmetic": 1.0, "power 1.5": 1.5, "quadratic": QUADRATIC, "power 4": 4.0}


def draw() -> None:
    """Write the files that are scored."""
    draw_halves()
    for name, size in OTHERS.items():
        draw_language(name, size)
    draw_rated()


def draw_halves() -> None:
    """BLiMP in two halves: of every two neighbouring paradigms, one at random decides about the choices."""
    items = sample_items(read_dataset("blimp").items, max(SIZES.values()), seed=0)
    names = items.select("phenomenon", "suite").unique().sort("phenomenon", "suite")["suite"].to_list()
    rng = np.random.default_rng(SEED)
    halves: dict[str, list[str]] = {half: [] for half in SIZES}
    for first in range(0, len(names), 2):
        decides = int(rng.integers(2))
        for place, name in enumerate(names[first : first + 2]):
            halves["tuning" if place == decides else "held_out"].append(name)
    for half, suites in halves.items():
        pairs = pair_up(items.filter(pl.col("suite").is_in(suites)))
        first = pl.int_range(pl.len()).over("suite") < SIZES[half]
        pairs.filter(first).drop("item").write_csv(f"blimp_{half}.csv")


def pair_up(items: pl.DataFrame) -> pl.DataFrame:
    """One row per pair: item, good, bad, suite, phenomenon."""
    good = items.filter(condition="good").select("item", pl.col("text").alias("good"), "suite", "phenomenon")
    bad = items.filter(condition="bad").select("item", pl.col("text").alias("bad"))
    return good.join(bad, on="item", maintain_order="left").select(
        "item", "good", "bad", "suite", "phenomenon"
    )


def draw_language(name: str, size: int) -> None:
    """Pairs of a set in another language, and acceptable sentences of other pairs as neutral contexts."""
    items = read_dataset(name).items
    drawn = sample_items(items, size, seed=0)
    pair_up(drawn).drop("item").write_csv(f"{name}.csv")
    rest = items.filter(pl.col("condition") == "good", ~pl.col("item").is_in(drawn["item"].implode()))
    chosen = rest["text"].unique(maintain_order=True).sample(NEUTRAL, seed=SEED)
    Path(f"{name}.txt").write_text("\n".join(chosen) + "\n", encoding="utf-8")


def draw_rated() -> None:
    """Rated sentences: those of Lau et al. (2020) without context, and some of MegaAcceptability."""
    lau = read_dataset("lau2020").items
    if "context_text" in lau.columns:
        lau = lau.filter(pl.col("context_text").is_null())
    lau.select("text", "rating").write_csv("lau2020.csv")
    mega = read_dataset("mega_acceptability").items.select("text", "rating").drop_nulls()
    mega.sample(RATED, seed=SEED).write_csv("mega_acceptability.csv")


@dataclass(frozen=True)
class Scored:
    """The pairs of a study as SmolLM2 scored them: LP and log-priors of every sentence, and lengths."""

    items: pl.DataFrame
    requests: pl.DataFrame
    tokens: pl.DataFrame
    lengths: pl.DataFrame
    priors: WordPriors

    @classmethod
    def read(cls, folder: str) -> "Scored":
        run = RunFolder(next(Path(folder).glob("models/*")))
        requests, contexts = run.read("requests"), run.read("contexts")
        lm = open_model(run.path.name).in_float32
        plan = plan_priors(
            lm, requests, contexts, path=None, size=MOST_CONTEXTS, seed=0, power=QUADRATIC, cancel=True
        )
        missing = set(find_missing(lm.bounded.store, plan.prompts)["request"])
        whole = [
            context
            for place, context in enumerate(plan.contexts)
            if all(words[place].request not in missing for words in plan.placed)
        ]
        return cls(
            items=run.read("items"),
            requests=requests,
            tokens=pl.concat(list(lm.read(build_prompts(requests, contexts)))),
            lengths=pl.read_parquet(Path(folder) / "lengths.parquet").select("item", "difference", "split"),
            priors=replace(plan, contexts=whole).read(lm.bounded),
        )

    def judge(
        self, *, contexts: int | None = None, power: float = QUADRATIC, weight: float = 1.0
    ) -> pl.DataFrame:
        """One row per pair: item, suite, phenomenon, measure, passed, margin, difference, split."""
        logs = self.priors.logprobs[:, :contexts]
        priors = replace(self.priors, logprobs=logs, power=power, weight=weight)
        values = self.tokens["logprob"].list.sum().to_numpy() - priors.sum_priors(self.tokens)
        return self.compare(values)

    def judge_by(self, measure: str) -> pl.DataFrame:
        """The same by a measure that needs no priors."""
        noise = np.zeros(len(self.tokens))
        scores = score_measures(self.tokens, [measure], noise=noise).scores
        places = self.tokens.select("request").join(scores, on="request", maintain_order="left")
        return self.compare(places["value"].to_numpy())

    def compare(self, values: np.ndarray) -> pl.DataFrame:
        """Answers by one value per sentence, in the order of the tokens."""
        scored = self.requests.select("request", "item", "condition").join(
            pl.DataFrame({"request": self.tokens["request"], "value": values}), on="request"
        )
        wide = scored.pivot("condition", index="item", values="value")
        labels = self.items.select("item", "suite", "phenomenon").unique(maintain_order=True)
        margin = pl.col("good") - pl.col("bad")
        right = pl.when(margin == 0).then(0.5).otherwise((margin > 0).cast(pl.Float64))
        return (
            wide.with_columns(pl.lit("value").alias("measure"), right.alias("passed"), margin.alias("margin"))
            .join(labels, on="item", maintain_order="left")
            .join(self.lengths, on="item", maintain_order="left")
        )


def choose(folder: str) -> None:
    """Slope and accuracies for every number of contexts, mean and weight: choices.csv."""
    scored = Scored.read(folder)
    most = scored.priors.logprobs.shape[1]
    rows = [
        {"contexts": contexts, "mean": mean, "weight": 1.0}
        | describe(scored.judge(contexts=contexts, power=power))
        for contexts in (*(size for size in CONTEXTS if size < most), most)
        for mean, power in POWERS.items()
    ]
    rows += [
        {"contexts": most, "mean": "quadratic", "weight": weight} | describe(scored.judge(weight=weight))
        for weight in WEIGHTS
    ]
    pl.DataFrame(rows).write_csv(FOLDER / "choices.csv", float_precision=4)


def weigh(*named: str) -> None:
    """Slope and accuracies by measure, and by the weight of the priors: smollm2.csv."""
    rows: list[dict[str, object]] = []
    for name, folder in (one.split("=", 1) for one in named):
        scored = Scored.read(folder)
        judged = {(measure, None): scored.judge_by(measure) for measure in PLAIN}
        judged |= {("word_pmi", weight): scored.judge(weight=weight) for weight in (*WEIGHTS[1:], 1.0)}
        contexts = scored.priors.logprobs.shape[1]
        rows += [
            {"data": name, "contexts": contexts, "measure": measure, "weight": weight} | describe(own)
            for (measure, weight), own in judged.items()
        ]
    pl.DataFrame(rows, infer_schema_length=None).write_csv(FOLDER / "smollm2.csv", float_precision=4)


def describe(own: pl.DataFrame) -> dict[str, object]:
    """Slope with interval, and n and accuracy in each split."""
    found = fit_slopes(own).row(0, named=True)
    cells: dict[str, object] = {name: found[name] for name in ("slope", "low", "high", "p")}
    for split in SPLITS:
        part = own.filter(split=split)["passed"]
        cells |= {f"n {split}": len(part), split: part.mean()}
    return cells | {"accuracy": own["passed"].mean()}


def gather(*named: str) -> None:
    """Slopes and splits of several studies in one table each: slopes.csv, slope_tests.csv, splits.csv."""
    studies = [one.split("=", 1) for one in named]
    for table in ("slopes", "slope_tests", "splits"):
        parts = []
        for name, folder in studies:
            part = pl.read_csv(Path(folder) / f"{table}.csv", infer_schema_length=None)
            if table == "splits":
                part = part.filter(suite="all")
            parts.append(part.select(pl.lit(name).alias("data"), pl.all()))
        pl.concat(parts, how="vertical_relaxed").write_csv(FOLDER / f"{table}.csv", float_precision=4)


def margins(*named: str) -> None:
    """How the margin itself changes with the difference in length, in nats per token: margins.csv."""
    rows = []
    for name, folder in (one.split("=", 1) for one in named):
        study = StudyFolder.open(Path(folder))
        for model in study.facts["scored"]:
            lengths = study.read("lengths").filter(model=model, set="biased").select("item", "difference")
            judged = study.run(model, "biased" if study.facts["debias"] else "").read("judgements")
            for measure in ("lp", "word_pmi"):
                own = (
                    judged.filter(measure=measure)
                    .join(lengths, on="item")
                    .with_columns(pl.col("difference").cast(pl.Float64))
                )
                random = " + (1 + difference | suite)" if own["suite"].n_unique() > 1 else ""
                fit = (fit_lmm if random else fit_ols)(f"margin ~ difference{random}", own)
                found = fit.fixed.filter(term="difference").row(0, named=True)
                row = {"data": name, "model": model, "measure": measure, "n": len(own)}
                rows.append(row | {key: found[key] for key in ("estimate", "low", "high", "p")})
    pl.DataFrame(rows).write_csv(FOLDER / "margins.csv", float_precision=4)


def equal(folder: str) -> None:
    """Pairs of equal length by paradigm: LP, word_pmi and the priors alone, as equal.csv."""
    scored = Scored.read(folder)
    own = scored.judge().select("item", "suite", "phenomenon", "passed", "margin", "difference")
    lp = scored.judge(weight=0.0).select("item", "passed", "margin")
    wide = (
        own.rename({"passed": "passed_word_pmi", "margin": "margin_word_pmi"})
        .join(lp.rename({"passed": "passed_lp", "margin": "margin_lp"}), on="item", maintain_order="left")
        .filter(difference=0)
    )
    # What LP has and word_pmi has not: the difference of the sentences' log-priors.
    cue = pl.col("margin_lp") - pl.col("margin_word_pmi")
    wide = wide.with_columns(
        cue.alias("cue"),
        pl.when(cue.abs() < 1e-9).then(0.5).otherwise(cue > 0).cast(pl.Float64).alias("prior"),
    )
    table = (
        wide.group_by("phenomenon", "suite", maintain_order=True)
        .agg(
            pl.len().alias("n"),
            pl.col("passed_lp").mean().alias("lp"),
            pl.col("passed_word_pmi").mean().alias("word_pmi"),
            pl.col("prior").mean(),
            pl.col("cue").mean().alias("mean_cue"),
        )
        .with_columns((pl.col("word_pmi") - pl.col("lp")).alias("change"))
        .sort("change")
    )
    table.write_csv(FOLDER / "equal.csv", float_precision=4)
    lost = (pl.col("passed_lp") == 1) & (pl.col("passed_word_pmi") == 0)
    gained = (pl.col("passed_lp") == 0) & (pl.col("passed_word_pmi") == 1)
    rho = correlate(table["prior"], table["change"], method="spearman").row(0, named=True)
    summary = wide.select(
        pl.len().alias("n"),
        pl.col("passed_lp").mean().alias("lp"),
        pl.col("passed_word_pmi").mean().alias("word_pmi"),
        pl.col("prior").mean(),
        lost.sum().alias("lost"),
        gained.sum().alias("gained"),
        *(pl.lit(rho[name]).alias(f"rho_{name}") for name in ("r", "low", "high", "p")),
    )
    summary.write_csv(FOLDER / "equal_summary.csv", float_precision=4)


def ratings(*named: str) -> None:
    """How measures go with people's mean ratings, and whether word_pmi differs from each: ratings.csv."""
    rows = []
    for name, folder in (one.split("=", 1) for one in named):
        run = read_run(Path(folder))
        rated = run["items"].select("item", "text", "rating").unique("item", maintain_order=True)
        scores = run["scores"].join(run["requests"].select("request", "item"), on="request")
        words = rated.select("item", pl.col("text").str.split(" ").list.len().alias("words"))
        values: Mapping[str, pl.DataFrame] = {
            str(measure): rated.join(part.select("item", "value"), on="item", maintain_order="left")
            for (measure,), part in scores.group_by("measure", maintain_order=True)
        }
        mean = values["word_pmi"].join(words, on="item", maintain_order="left")
        values = {**values, "word_pmi / words": mean.with_columns(pl.col("value") / pl.col("words"))}
        for measure, part in values.items():
            found = correlate(part["rating"], part["value"]).row(0, named=True)
            row = {"data": name, "model": run.manifest["model"]["name"], "measure": measure}
            row |= {key: found[key] for key in ("n", "r", "low", "high")}
            if measure != "word_pmi / words":
                test = compare_correlations(
                    part["rating"], values["word_pmi / words"]["value"], part["value"]
                ).row(0, named=True)
                row["p"] = test["p"]
            rows.append(row)
    pl.DataFrame(rows).write_csv(FOLDER / "ratings.csv", float_precision=4)


STEPS = {
    "draw": draw,
    "choose": choose,
    "weigh": weigh,
    "gather": gather,
    "margins": margins,
    "equal": equal,
    "ratings": ratings,
}

if __name__ == "__main__":
    step, *given = sys.argv[1:]
    STEPS[step](*given)
