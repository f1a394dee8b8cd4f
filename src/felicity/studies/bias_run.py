"""The study of token-length bias: lengths from tokenizers, accuracies from scores, tables and a page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import replacing
from felicity.data.catalogue import read_dataset
from felicity.data.pairs import Columns
from felicity.data.sample import sample_items
from felicity.report.bias_page import write_bias_page
from felicity.run.evaluate import evaluate
from felicity.run.model import open_model
from felicity.run.scoring import Progress
from felicity.studies.bias import CURVE_TABLE, draw_curves, measure_lengths, split_suites
from felicity.studies.tokenizers import has_weights, open_counter


@dataclass(frozen=True, kw_only=True)
class BiasStudy:
    """Splits and curves; `models` says of each whether it was scored or only its tokenizer was used."""

    dataset: str
    models: dict[str, str]
    splits: pl.DataFrame
    curves: pl.DataFrame


def study_bias(
    dataset: str,
    specs: Sequence[str],
    *,
    measures: Sequence[str] = ("lp",),
    columns: Columns | None = None,
    folder: Path | None = None,
    sample: int | None = None,
    seed: int = 0,
    score: bool = True,
    progress: Callable[[str], Progress | None] | None = None,
) -> BiasStudy:
    """Split a pair dataset by token length under each model, with accuracies where the model can score.

    `score=False` leaves the weights alone even where they are there.

    Raises BadInput where the dataset is not one of pairs, or a model is named twice.
    """
    if len(set(specs)) != len(specs):
        raise BadInput("A model is named twice; name each once.")
    data = read_dataset(dataset, columns, folder=folder)
    items = sample_items(data.items, sample, seed=seed)
    splits, curves = [], []
    models: dict[str, str] = {}
    for spec in specs:
        lengths = measure_lengths(items, open_counter(spec))
        name = Path(spec).name if Path(spec).is_dir() else spec
        if name in models:
            raise BadInput(f"Two models go by the name '{name}'; rename one of the folders.")
        judged = None
        if score and has_weights(spec):
            judged = evaluate(
                dataset,
                open_model(spec),
                measures=measures,
                columns=columns,
                source=folder,
                sample=sample,
                seed=seed,
                progress=progress(name) if progress else None,
            )["judgements"]
        models[name] = "tokenizer only" if judged is None else "scored"
        splits.append(split_suites(lengths, name, judgements=judged, seed=seed))
        if judged is not None:
            curves.append(draw_curves(lengths, name, judged))
    return BiasStudy(
        dataset=dataset,
        models=models,
        splits=pl.concat(splits),
        curves=pl.concat(curves) if curves else pl.DataFrame(schema=CURVE_TABLE),
    )


def write_bias(study: BiasStudy, folder: Path) -> list[Path]:
    """Write splits.csv, curves.csv and report.html with its figure; gives their paths."""
    written = []
    for name, table in (("splits", study.splits), ("curves", study.curves)):
        path = folder / f"{name}.csv"
        with replacing(path) as part:
            table.write_csv(part)
        written.append(path)
    return [*written, write_bias_page(study.dataset, study.splits, study.curves, folder)]
