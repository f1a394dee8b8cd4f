"""The published figures of Shivagunde et al. (2023) compared with their published predictions."""

from importlib.resources import files
from pathlib import Path

import polars as pl

from felicity.papers.replay.predictions import FIRST_PLACES, judge_model, read_frames, read_models

# A figure matches if it differs by less than one in its last digit: some are rounded, some truncated.
LAST_DIGIT = 0.1
DATASETS = ("NEG-136-SIMP", "ROLE-1500", "NEG-1500-SIMP-TEMP", "NEG-1500-SIMP-GEN", "ROLE-88")
# The published rows of GPT-3 and the files with its predictions. A file without a mark in its name is
# the one with instruction: for NEG-1500 it is the same file twice, for ROLE the published figures say so.
GPT3 = {
    "NEG-136-SIMP": {"gpt3": "gpt3_p", "gpt3-prompt": "gpt3_wp"},
    "ROLE-1500": {"gpt3": "gpt3_withprompt", "gpt3-prompt": "gpt3"},
    "NEG-1500-SIMP-TEMP": {"gpt3": "gpt3_withoutprompt", "gpt3-prompt": "gpt3_withprompt"},
    "NEG-1500-SIMP-GEN": {"gpt3": "gpt3_withoutp", "gpt3-prompt": "gpt3_withp"},
    "ROLE-88": {"gpt3": "gpt3_withprompt", "gpt3-prompt": "gpt3"},
}
VERDICTS = ("as published", "off by one", "not at all")


def read_published() -> pl.DataFrame:
    """Columns model, dataset, figure and published, in percent: tables 2 to 5 of the paper."""
    path = files("felicity.papers") / "published" / "shivagunde2023_published.tsv"
    return pl.read_csv(path.read_bytes(), separator="\t", schema_overrides={"published": pl.Float64})


def compare_cells(predictions: Path) -> pl.DataFrame:
    """Every published cell with the figures of three readings, and which of them matches.

    `as_published` uses the authors' indices into the list, `first_k` the first k entries unchanged (the
    empty string of GPT-2 and RoBERTa among them), `corrected` the first k words that are not empty.
    """
    found = pl.concat([_figures(predictions, dataset) for dataset in DATASETS])
    cells = read_published().join(found, on=["model", "dataset", "figure"], how="left", maintain_order="left")
    close = {
        name: (pl.col(name) - pl.col("published")).abs() < LAST_DIGIT for name in ("as_published", "first_k")
    }
    verdict = (
        pl.when(close["as_published"])
        .then(pl.lit(VERDICTS[0]))
        .when(close["first_k"])
        .then(pl.lit(VERDICTS[1]))
        .otherwise(pl.lit(VERDICTS[2]))
    )
    return cells.with_columns(verdict.alias("comes_out"))


def _figures(predictions: Path, dataset: str) -> pl.DataFrame:
    folder = predictions / dataset
    name = dataset.lower().replace("-", "_")
    frames = read_frames(name, folder)
    known = {file: model for model, file in GPT3[dataset].items()}
    role = name.startswith("role")
    targets = ["a", "b"] if role else ["affirmative"]
    change = ["a", "b"] if role else ["affirmative", "negative"]
    rows: list[dict[str, object]] = []
    for model in read_models(folder):
        if model.model.startswith("gpt3") and model.model not in known:
            continue
        # Files of another length are read line by line, as the authors did.
        fitted = frames if len(frames) >= len(model.words) else _lengthen(frames, len(model.words))
        readings = {
            reading: _percent(judge_model(fitted, model, what, targets=targets, change=change))
            for reading, what in (
                ("as_published", "published"),
                ("first_k", FIRST_PLACES),
                ("corrected", "corrected"),
            )
        }
        for figure in readings["as_published"]:
            rows.append(
                {"model": known.get(model.model, model.model), "dataset": dataset, "figure": figure}
                | {reading: values[figure] for reading, values in readings.items()}
            )
    return pl.DataFrame(rows)


def _lengthen(frames: pl.DataFrame, length: int) -> pl.DataFrame:
    extra = length - len(frames)
    nothing = [pl.lit("\0").alias(name) for name in ("target", "written")]
    more = frames.tail(extra).with_columns(pl.format("{}+", "item").alias("item"), *nothing)
    return pl.concat([frames, more])


def _percent(judged: pl.DataFrame) -> dict[str, float]:
    means = judged.group_by("rule", maintain_order=True).agg(100 * pl.col("passed").mean())
    return dict(means.iter_rows())


def explain_cell(cell: dict[str, object], cells: pl.DataFrame) -> str:
    """Why a published cell differs from the predictions under the authors' own reading."""
    model, dataset, figure = (str(cell[name]) for name in ("model", "dataset", "figure"))
    published, found = float(str(cell["published"])), float(str(cell["as_published"]))
    if cell["comes_out"] == VERDICTS[1]:
        places = (
            "place 1 is the empty string" if figure == "top1" else "one of the places is the empty string"
        )
        return f"off by one: the words were decoded together, so that {places}"
    if model.startswith("gpt3") and figure == "sensitivity":
        return "the program counts right answers as changed ones, and divides by them"
    if (model, dataset) == ("t5-3b", "NEG-1500-SIMP-GEN"):
        other = cells.filter(model=model, dataset="NEG-1500-SIMP-TEMP", figure=figure)["published"][0]
        same = ", whose published figure this is" if other == published else ""
        return f"the file contains predictions for NEG-1500-SIMP-TEMP{same}"
    if model.startswith("gpt2") and dataset == "NEG-136-SIMP":
        return "taken over from an earlier paper; the predictions are far from zero"
    digits, others = f"{published:.1f}", f"{found:.1f}"
    if sum(a != b for a, b in zip(digits, others, strict=False)) == 1 and len(digits) == len(others):
        return f"one digit away from {others}; perhaps a misprint"
    if sorted(digits) == sorted(others):
        return f"the digits of {others} in another order; perhaps a misprint"
    return "no reading of the published predictions gives it"
