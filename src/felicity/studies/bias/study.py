"""The study of token-length bias: lengths from tokenizers, accuracies from scores, tables and a page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.contrasts import ACCURACY, Headline
from felicity.core.policy import describe_policies
from felicity.core.progress import Progress
from felicity.core.schemas import conform
from felicity.data import Columns, read_dataset, sample_items
from felicity.engines import has_weights, open_counter
from felicity.measures import read_unigram
from felicity.run import (
    Model,
    RunFolder,
    carry_out,
    name_folder,
    open_model,
    plan_run,
    read_study,
    refuse_namesakes,
    write_sheets,
    write_study,
)
from felicity.studies.bias.analysis import (
    CURVE_TABLE,
    SPLIT_TABLE,
    draw_curves,
    measure_lengths,
    split_suites,
)
from felicity.studies.bias.report import write_bias_page

KIND = "bias"


@dataclass(frozen=True, kw_only=True)
class BiasStudy:
    """Splits and curves; `models` says for each whether it was scored or only its tokenizer was used.

    judged: the judgements of the models that were scored, with `model` and the `split` of each pair.
    headline: what the share is called, in the dataset's words. policies: how the models were scored.
    """

    dataset: str
    models: dict[str, str]
    splits: pl.DataFrame
    curves: pl.DataFrame
    judged: pl.DataFrame
    headline: Headline = ACCURACY
    policies: str = ""


def study_bias(
    dataset: str,
    specs: Sequence[str],
    folder: Path,
    *,
    measures: Sequence[str] = ("lp",),
    unigram: Path | None = None,
    unseen: float = 0.05,
    columns: Columns | None = None,
    source: Path | None = None,
    sample: int | None = None,
    seed: int = 0,
    score: bool = True,
    open_one: Callable[[str], Model] = open_model,
    progress: Progress | None = None,
) -> BiasStudy:
    """Split a pair dataset by token length under each model, with accuracies if the model can score.

    The run of each model is kept under `folder`/models. `score=False` uses the tokenizer only, even if
    there are weights. `open_one` opens a model that is scored, with the user's options.

    Raises BadInput if the dataset is not one of pairs, or two models have the same name.
    """
    names = {spec: Path(spec).name if Path(spec).is_dir() else spec for spec in specs}
    refuse_namesakes([names[spec] for spec in specs])
    data = read_dataset(dataset, columns, folder=source)
    items = sample_items(data.items, sample, seed=seed)
    counts = read_unigram(unigram) if unigram else None
    splits, curves, verdicts = [], [], []
    scored: dict[str, Any] = {}
    models: dict[str, str] = {}
    for spec, name in names.items():
        lengths = measure_lengths(items, open_counter(spec))
        judged = None
        if score and has_weights(spec):
            lm = open_one(spec)
            options = {"sample": sample, "unigram": str(unigram) if unigram else None}
            plan = plan_run(
                data,
                items,
                lm,
                measures=measures,
                counts=counts,
                unseen=unseen,
                seed=seed,
                options=options,
            )
            place = RunFolder(folder / "models" / name_folder(name))
            carry_out(lm, plan, place, progress=progress)
            scored[name] = place.read_manifest()["model"]
            judged = place.read("judgements").filter(pl.col("measure").is_in(plan.measures))
        models[name] = "tokenizer only" if judged is None else "scored"
        splits.append(split_suites(lengths, name, judgements=judged))
        if judged is not None:
            curves.append(draw_curves(lengths, name, judged))
            known = judged.join(lengths.select("item", "split"), on="item", maintain_order="left")
            verdicts.append(known.with_columns(pl.lit(name).alias("model")))
    return BiasStudy(
        dataset=dataset,
        models=models,
        splits=pl.concat(splits),
        curves=pl.concat(curves) if curves else pl.DataFrame(schema=CURVE_TABLE),
        judged=pl.concat(verdicts) if verdicts else pl.DataFrame(),
        headline=Headline.read(data.score),
        policies=describe_policies(scored) if scored else "",
    )


def write_bias(study: BiasStudy, folder: Path) -> list[Path]:
    """Write splits.csv, curves.csv and report.html with its figure; returns their paths."""
    written = write_sheets(folder, {"splits": study.splits, "curves": study.curves})
    names = [path.name for path in written]
    words = {"score": study.headline.as_dict(), "policies": study.policies}
    write_study(folder, KIND, files=names, dataset=study.dataset, models=study.models, **words)
    page = write_bias_page(
        study.dataset, study.splits, study.curves, folder, headline=study.headline, policies=study.policies
    )
    return [*written, page]


def report_bias(folder: Path, *, check: bool = True) -> Path:
    """Write the page again from the tables in the folder; returns its path."""
    study = read_study(folder, check=check)
    splits, curves = (
        conform(study[name], schema) for name, schema in (("splits", SPLIT_TABLE), ("curves", CURVE_TABLE))
    )
    return write_bias_page(
        study.record["dataset"],
        splits,
        curves,
        folder,
        headline=Headline.read(study.record.get("score", {})),
        policies=study.record.get("policies", ""),
    )
