"""The predictions of a benchmark in the form that BabyLM's collation takes."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import replacing
from felicity.run import RunFolder, StudyFolder
from felicity.studies.benchmark.scores import read_words
from felicity.studies.benchmark.tasks import READING, UNSPACED

BABYLM = "babylm"


def write_predictions(path: str | Path, target: str | Path, *, check: bool = True) -> list[Path]:
    """Write the predictions of a BabyLM benchmark as JSON: one file, or one per model beside `target`.

    By task and suite, the sentence chosen for every item, in their order; equal scores choose the first, the
    right one, as the pipeline does. Words of the reading task are those without the space before them.

    Raises BadInput if the folder is not such a benchmark, or has only a sample of the items.
    """
    folder = StudyFolder.open(Path(path), check=check)
    if folder.kind != "benchmark" or not folder.facts["benchmark"].startswith(BABYLM):
        raise BadInput(f"{path} is not a BabyLM benchmark; make one with `felicity run babylm`.")
    if folder.record["settings"].get("sample") is not None:
        raise BadInput(f"{path} has a sample of the items; the collation takes all: run without --sample.")
    place, written = Path(target), []
    for model in folder.models:
        content = collect_predictions(folder, model)
        file = place if len(folder.models) == 1 else place.with_name(f"{place.stem}-{model}{place.suffix}")
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as part:
            part.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
        written.append(file)
    return written


def collect_predictions(folder: StudyFolder, model: str) -> dict[str, Any]:
    """By task, then by suite: a list of predictions, each with its id."""
    found: dict[str, Any] = {}
    for task in folder.facts["tasks"]:
        if task["score"] in READING:
            run = folder.run(model, f"{task['dataset']}_{UNSPACED}")
            found["reading"] = {"reading": {"predictions": _list_words(run)}}
        else:
            run = folder.run(model, task["dataset"])
            found[task["name"]] = _list_choices(run, probable=task["score"] == "correlation")
    return found


def _list_words(run: RunFolder) -> list[dict[str, Any]]:
    words = read_words(run).select("surprisal", "surprisal_1").iter_rows()
    return [{"id": place, "pred": one, "prev_pred": before} for place, (one, before) in enumerate(words)]


def _list_choices(run: RunFolder, *, probable: bool) -> dict[str, Any]:
    """The chosen sentence of every item by suite; `probable` adds P of the first of two sentences."""
    scores = run.read("scores")
    scores = scores.filter(pl.col("measure") == scores["measure"][0]).select("request", "value")
    requests = run.read("requests").select("request", "item", "condition").join(scores, on="request")
    items = run.read("items").select("item", "suite", "condition", "text")
    scored = items.join(requests, on=["item", "condition"], maintain_order="left")
    first = pl.col("value").exp() / pl.col("value").exp().sum()
    # Log-probabilities are shifted by the largest, which leaves their ratio as it is.
    shifted = scored.with_columns(value=pl.col("value") - pl.col("value").max().over("item"))
    chosen = shifted.group_by("item", "suite", maintain_order=True).agg(
        pred=pl.col("text").get(pl.col("value").arg_max()), prob=first.first()
    )
    found: dict[str, Any] = {}
    for (suite,), part in chosen.group_by("suite", maintain_order=True):
        found[str(suite)] = {
            "predictions": [
                {"id": f"{suite}_{place}", "pred": pred} | ({"prob": prob} if probable else {})
                for place, (pred, prob) in enumerate(part.select("pred", "prob").iter_rows())
            ]
        }
    return found
