"""What a model puts into every frame, and how likely it finds the targets: the one call of the pipeline."""

import json
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import parse_parquet, read_bytes, replacing
from felicity.core.ids import hash_file
from felicity.core.progress import Progress
from felicity.core.schemas import PROMPTS
from felicity.run import Model, evaluate
from felicity.studies.cloze.plan import ClozeSet, find_file

BLANK = "___."
ANSWERED, NOTE = "answers.parquet", "answers.json"
FRAMES_AT_ONCE = 256
ANSWERS = {
    "item": pl.String(),
    "condition": pl.String(),
    "frame": pl.String(),
    "target": pl.String(),
    "contrast": pl.String(),
    "predictions": pl.List(pl.String()),
    "rank": pl.Int64(),
    "logprob": pl.Float64(),
    "contrast_logprob": pl.Float64(),
    "n_tokens": pl.Int64(),
}


def answer_frames(
    lm: Model, data: ClozeSet, folder: Path, *, progress: Progress | None = None
) -> pl.DataFrame:
    """Rows of ANSWERS: the likeliest words for each frame, the target's rank among them, and the
    log-probability of the target and of its contrast, in nats.

    A word that the model's vocabulary lacks has no log-probability; n_tokens is how many tokens the target
    has, since a target of several can never be the likeliest token. Kept in `folder`, and read from
    there when the model and the frames are the same.
    """
    path, note = folder / ANSWERED, folder / NOTE
    told = {"model": lm.info.key, "frames": data.key, "contrasts": data.contrasts, "targets": [*data.targets]}
    kept = _read_note(note)
    # Earlier notes do not say whose targets the run was judged by.
    same = kept is not None and {"targets": told["targets"]} | kept == told | {"digest": kept.get("digest")}
    if kept and same and _is_unchanged(path, kept):
        return parse_parquet(read_bytes(path), path)
    source = find_file(data.name)
    rule = None if Path(source).suffix else "cloze"
    run = evaluate(
        source,
        lm,
        rule=rule,
        affirmative=data.affirmative,
        out=folder,
        sample=data.sample,
        seed=data.seed,
        progress=progress,
        overwrite=None,
    )
    filled = run["fillers"].with_columns(pl.concat_str("suite", "item", separator="/").alias("item"))
    rows = data.items.join(
        filled.select("item", "condition", "frame", "predictions", "rank"),
        on=["item", "condition"],
        how="left",
        maintain_order="left",
    )
    contrasts = score_words(lm, rows, "contrast").select(contrast_logprob="logprob")
    answers = pl.concat([rows, score_words(lm, rows, "target"), contrasts], how="horizontal")
    answers = answers.select(pl.col(name).cast(dtype) for name, dtype in ANSWERS.items())
    with replacing(path) as part:
        answers.write_parquet(part)
    with replacing(note) as part:
        part.write_text(json.dumps(told | {"digest": hash_file(path)}), encoding="utf-8")
    return answers


def _read_note(note: Path) -> dict[str, Any] | None:
    """What answers were kept for; None if that cannot be read."""
    try:
        kept = json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return kept if isinstance(kept, dict) else None


def _is_unchanged(path: Path, kept: dict[str, Any]) -> bool:
    """Whether answers are those that were kept."""
    return path.exists() and kept.get("digest") == hash_file(path)


def read_answers(data: ClozeSet, folder: Path) -> pl.DataFrame:
    """The answers kept in a folder, without the model.

    Raises BadInput if there are none, or they are answers to other frames.
    """
    path, kept = folder / ANSWERED, _read_note(folder / NOTE)
    if not path.exists() or kept is None:
        raise BadInput(f"{folder} has no answers; run `felicity cloze` with the same options again.")
    if kept.get("frames") != data.key or kept.get("contrasts", data.contrasts) != data.contrasts:
        raise BadInput(f"{folder} has answers to other frames than those of {data.name}; run it again.")
    return parse_parquet(read_bytes(path), path)


def score_words(lm: Model, rows: pl.DataFrame, column: str) -> pl.DataFrame:
    """Columns logprob and n_tokens: the word of `column` in the blank of each row's frame, where known."""
    words = rows[column].to_list()
    spelt = find_spelt(lm, rows["context_text"].to_list(), words)
    places = [place for place, known in enumerate(spelt) if known]
    values: list[float | None] = [None] * len(words)
    sizes: list[int | None] = [None] * len(words)
    frames = [f"{context} {BLANK}" for context in rows["context_text"]]
    for begin in range(0, len(places), FRAMES_AT_ONCE):
        part = places[begin : begin + FRAMES_AT_ONCE]
        scored = lm.score_candidates([frames[place] for place in part], [[words[place]] for place in part])
        for place, row in zip(part, scored.iter_rows(named=True), strict=True):
            values[place], sizes[place] = row["logprob"], len(row["tokens"])
    return pl.DataFrame(
        {"logprob": values, "n_tokens": sizes}, schema={"logprob": pl.Float64, "n_tokens": pl.Int64}
    )


def find_spelt(lm: Model, contexts: list[str], words: list[str | None]) -> list[bool]:
    """Whether the model's vocabulary has all of each word; a missing word is not spelt."""
    places = [place for place, word in enumerate(words) if word]
    table = {
        "request": [str(place) for place in places],
        "context_text": [contexts[place] for place in places],
        "text": [words[place] for place in places],
    }
    spelt = [False] * len(words)
    if not places:
        return spelt
    encoded = lm.engine.encode(pl.DataFrame(table, schema=PROMPTS))
    for request, unknown in encoded.select("request", "n_unknown").iter_rows():
        # A server without a local tokenizer does not say; it reports what it cannot spell when it is asked.
        spelt[int(request)] = not unknown
    return spelt
