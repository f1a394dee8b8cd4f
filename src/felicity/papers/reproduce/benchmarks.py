"""Figures of BLiMP, SyntaxGym and CrowS-Pairs, and of the papers that measure tokens or contexts on them."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from felicity.core.files import read_text
from felicity.data import read_dataset
from felicity.engines import open_counter
from felicity.papers.replay import Replayed, leave_out, replay_file
from felicity.papers.reproduce.computations import COMPUTATIONS, MODEL_COMPUTATIONS, pick
from felicity.papers.reproduce.inputs import Files
from felicity.run import Model, evaluate
from felicity.studies import study_function
from felicity.studies.bias import EVERYTHING, count_nontrivial, measure_lengths, split_suites

# Suites of SyntaxGym that the averages of Hu et al. (2020) leave out.
NOT_AVERAGED = ("fgd-embed3", "fgd-embed4", "nn-nv-rpl")
# The files of each vocabulary, under the names that a tokenizer expects.
VOCABULARIES = {
    "gpt2": {"gpt2-encoder.json.gz": "encoder.json.gz", "gpt2-vocab.bpe.gz": "vocab.bpe.gz"},
    "bert_cased": {"bert-base-cased-vocab.txt.gz": "vocab.txt.gz"},
    "bert_uncased": {"bert-base-uncased-vocab.txt.gz": "vocab.txt.gz"},
}
BLIMP_PEOPLE = "human"


def _items(files: Files, dataset: str) -> pl.DataFrame:
    folder = files.folder(dataset)
    return files.once(("items", dataset), lambda: read_dataset(dataset, folder=folder).items)


def _replayed(files: Files, name: str, without: Sequence[str] = ()) -> pl.DataFrame:
    """Estimates of a published file of results."""

    def replay() -> pl.DataFrame:
        replayed: Replayed = replay_file(files.path(name))
        return leave_out(replayed, without).estimate()

    return files.once(("replayed", name, tuple(without)), replay)


@COMPUTATIONS.add("dataset.count")
def count_items(files: Files, *, dataset: str, distinct: str = "item", suite: str | None = None) -> float:
    """Distinct items, suites or phenomena of a dataset, or items of one suite."""
    items = _items(files, dataset)
    return float((items if suite is None else items.filter(suite=suite))[distinct].n_unique())


@COMPUTATIONS.add("dataset.known_suites")
def count_known_suites(files: Files, *, dataset: str, suites: list[str]) -> float:
    """How many of these suites are in the dataset."""
    return float(len(set(suites) & set(_items(files, dataset)["suite"])))


@COMPUTATIONS.add("blimp.accuracy")
def blimp_accuracy(files: Files, *, model: str, phenomenon: str) -> float:
    """Mean accuracy over paradigms, in per cent, of a model or of people; phenomenon `overall` for all 67."""
    if model == BLIMP_PEOPLE:
        estimates = _replayed(files, "blimp/human_validation_summary.csv").filter(measure="individual")
    else:
        estimates = _replayed(files, "blimp/models_summary.jsonl").filter(measure=model)
    suites = estimates.filter(level="suite").select(pl.col("name").alias("suite"), "accuracy")
    homes = _items(files, "blimp").select("suite", "phenomenon").unique()
    joined = suites.join(homes, on="suite")
    if phenomenon != "overall":
        joined = joined.filter(phenomenon=phenomenon)
    return 100 * float(joined["accuracy"].to_numpy().mean())


@COMPUTATIONS.add("blimp.majority")
def blimp_majority(files: Files) -> float:
    """Per cent of the validated pairs on which most people agree with the label."""
    estimates = _replayed(files, "blimp/human_validation_summary.csv")
    return 100 * pick(estimates.filter(level="overall", measure="majority"), "accuracy")


@COMPUTATIONS.add("syntaxgym.score")
def syntaxgym_score(files: Files, *, model: str) -> float:
    """Mean accuracy over 31 suites from the published answers of a model."""
    files.folder("syntaxgym/json")
    name = f"syntaxgym/sg_results/syntaxgym_results_{model}.csv.gz"
    return pick(_replayed(files, name, NOT_AVERAGED).filter(level="macro"), "accuracy")


@COMPUTATIONS.add("syntaxgym.suite")
def syntaxgym_suite(files: Files, *, suite: str) -> float:
    """Items of a suite that pass, from the published region surprisals of distilgpt2."""
    files.folder("syntaxgym/json")
    row = _replayed(files, "syntaxgym/distilgpt2_reference.json").filter(level="suite", name=suite)
    return round(pick(row, "accuracy") * pick(row, "n"), 6)


def _lengths(files: Files, dataset: str, vocabulary: str) -> pl.DataFrame:
    def measure() -> pl.DataFrame:
        with tempfile.TemporaryDirectory() as folder:
            for source, name in VOCABULARIES[vocabulary].items():
                Path(folder, name).symlink_to(files.path(f"tokenizers/{source}").resolve())
            count = open_counter(folder)
            return split_suites(measure_lengths(_items(files, dataset), count), vocabulary)

    return files.once(("lengths", dataset, vocabulary), measure)


@COMPUTATIONS.add("ueda2024.split")
def length_split(files: Files, *, dataset: str, vocabulary: str, split: str, suites: str = "all") -> float:
    """Pairs in a split by token length (A=U, A>U, A<U), over all suites or those with unequal pairs."""
    splits = _lengths(files, dataset, vocabulary)
    if suites == "nontrivial":
        return pick(count_nontrivial(splits).filter(split=split), "n")
    return pick(splits.filter(suite=EVERYTHING, split=split), "n")


@COMPUTATIONS.add("ueda2024.nontrivial")
def count_uneven_suites(files: Files, *, dataset: str, vocabulary: str) -> float:
    """Suites in which some pair has sentences of unequal token length."""
    return float(count_nontrivial(_lengths(files, dataset, vocabulary))["suites"][0])


@COMPUTATIONS.add("ueda2024.suites_as_listed")
def suites_as_listed(files: Files, *, vocabulary: str) -> float:
    """Suites of BLiMP whose three counts equal those of the list of splits."""
    splits = _lengths(files, "blimp", vocabulary).filter(pl.col("suite") != EVERYTHING)
    wide = splits.pivot(on="split", index="suite", values="n")
    listed = files.table("ueda2024/blimp_token_length_splits.tsv")
    joined = wide.join(listed, left_on="suite", right_on="uid")
    same = pl.lit(value=True)
    for split, name in (("A=U", "eq"), ("A>U", "gt"), ("A<U", "lt")):
        same = same & (pl.col(split) == pl.col(f"{vocabulary}_{name}"))
    return float(joined.filter(same).height)


@COMPUTATIONS.add("sinha2023.tokens")
def count_tokens(files: Files, *, file: str) -> float:
    """Tokens of a text whose tokens are separated by spaces."""
    return float(len(read_text(files.path(file)).split()))


@MODEL_COMPUTATIONS.add("dataset.accuracy")
def run_accuracy(
    files: Files,
    model: Model,
    *,
    dataset: str,
    rule: str | None = None,
    level: str = "overall",
    without: Sequence[str] = (),
    scale: float = 100,
) -> float:
    """Accuracy of a model on a dataset; level `macro` is the mean over suites, without those left out."""
    run = files.once(("run", model.spec, dataset, rule), lambda: evaluate(dataset, model, rule=rule))
    if level != "macro":
        return scale * pick(run.accuracy(level), "accuracy")
    suites = run.accuracy("suite").filter(~pl.col("name").is_in(list(without)))
    return scale * float(suites["accuracy"].to_numpy().mean())


@MODEL_COMPUTATIONS.add("syntaxgym.suite")
def run_suite(files: Files, model: Model, *, suite: str) -> float:
    """Items of a suite that a model passes."""
    run = files.once(("run", model.spec, "syntaxgym", None), lambda: evaluate("syntaxgym", model))
    row = run.accuracy("suite").filter(name=suite)
    return round(pick(row, "accuracy") * pick(row, "n"), 6)


@MODEL_COMPUTATIONS.add("sinha2023.change")
def run_change(
    files: Files, model: Model, *, dataset: str, kind: str, length: int, sample: int, seed: int = 0
) -> float:
    """Change of accuracy, in points, in contexts of one kind and length, on a sample of each suite."""
    kinds = ("matched_acceptable", "matched_unacceptable", "unrelated")

    def study() -> pl.DataFrame:
        context = study_function("context")
        done = context(dataset, models=model, lengths=(0, length), kinds=kinds, sample=sample, seed=seed)
        return done["estimates"]

    curves = files.once(("contexts", model.spec, dataset, length, sample, seed), study)
    return 100 * pick(curves.filter(level="overall", kind=kind, length=length), "delta")
