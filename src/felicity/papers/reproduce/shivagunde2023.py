"""Larger probes (Shivagunde et al. 2023): the published predictions, in three readings, and their tests.

Readings: `as_published` takes the authors' own places in the list of predictions, `first_k` the first k
places as they stand (the empty string of GPT-2 and RoBERTa among them), `corrected` the first k words.
"""

import polars as pl

from felicity.papers.replay import GPT3, Predictions, compare_cells, judge_model, read_frames, read_models
from felicity.papers.reproduce.computations import COMPUTATIONS, MODEL_COMPUTATIONS, pick
from felicity.papers.reproduce.inputs import Files
from felicity.run import Model, evaluate
from felicity.stats import Pairs, mcnemar_p, pair_answers, power_of_pairs

PREDICTIONS = "shivagunde2023/predictions"


@COMPUTATIONS.add("shivagunde2023.cell")
def cell(files: Files, *, model: str, dataset: str, figure: str, reading: str = "as_published") -> float:
    """Top-1, 5, 10 or 20 accuracy, or sensitivity, in per cent, of one model on one dataset."""

    def compare_all() -> pl.DataFrame:
        files.folder("shivagunde2023/data")
        return compare_cells(files.folder(PREDICTIONS))

    cells = files.once("cells", compare_all)
    return pick(cells.filter(model=model, dataset=dataset, figure=figure), reading)


@COMPUTATIONS.add("shivagunde2023.pairs")
def count_pairs(files: Files, *, dataset: str) -> float:
    """Pairs of sentences in a dataset."""
    files.folder("shivagunde2023/data")
    frames = read_frames(dataset.lower().replace("-", "_"), files.folder(PREDICTIONS) / dataset)
    return float(frames["item"].n_unique())


def _pairs(files: Files, dataset: str, first: str, second: str, figure: str, reading: str) -> Pairs:
    """Which items two models answer right, under one reading of their predictions."""

    def read_all() -> tuple[pl.DataFrame, dict[str, Predictions]]:
        files.folder("shivagunde2023/data")
        folder = files.folder(PREDICTIONS) / dataset
        names = {file: model for model, file in GPT3[dataset].items()}
        models = {names.get(model.model, model.model): model for model in read_models(folder)}
        return read_frames(dataset.lower().replace("-", "_"), folder), models

    frames, models = files.once(("predictions", dataset), read_all)
    role = dataset.startswith("ROLE")
    targets, change = (["a", "b"], ["a", "b"]) if role else (["affirmative"], ["affirmative", "negative"])
    judged = {
        name: judge_model(frames, models[name], reading, targets=targets, change=change)
        for name in (first, second)
    }
    answers = [
        judged[name].filter(rule=figure).with_columns(pl.int_range(pl.len()).alias("place"))
        for name in (first, second)
    ]
    return pair_answers(*answers, on="place")


@COMPUTATIONS.add("shivagunde2023.power")
def power(
    files: Files, *, dataset: str, first: str, second: str, figure: str = "top5", reading: str = "corrected"
) -> float:
    """Exact power of McNemar's test on the dataset if the truth were as the two models' answers have it."""
    return power_of_pairs(_pairs(files, dataset, first, second, figure, reading), test="exact").power


@COMPUTATIONS.add("shivagunde2023.permutation")
def permutation(
    files: Files, *, dataset: str, first: str, second: str, figure: str = "top5", reading: str = "corrected"
) -> float:
    """Exact two-sided p that two models are interchangeable on each item; with right or wrong, McNemar's."""
    return mcnemar_p(*_pairs(files, dataset, first, second, figure, reading).discordant)


@MODEL_COMPUTATIONS.add("shivagunde2023.cell")
def run_cell(files: Files, model: Model, *, dataset: str, figure: str) -> float:
    """The same cell with the model's own predictions: words decoded one by one, empty strings dropped."""
    name = dataset.lower().replace("-", "_")
    run = files.once(("cloze", model.spec, name), lambda: evaluate(name, model, rule="cloze"))
    return 100 * pick(run.accuracy("prediction").filter(name=figure), "accuracy")
