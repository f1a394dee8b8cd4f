"""Steps of the pipeline that need a model: pending prompts, float32 judgements, fillers of blanks."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.files import replacing
from felicity.core.schemas import CLOZE
from felicity.engines.runtime import WIDE
from felicity.run.folder import RunFolder
from felicity.run.model import Model
from felicity.run.precision import EXACT, Noise, Rescored, measure_spreads, rescore_doubtful
from felicity.run.rules import JudgingInput, Rule
from felicity.run.scoring import find_missing, read_mixed

# The blank, and the full stop after it that bidirectional models see.
FRAME = pl.format("{} ___.", "context_text").alias("frame")
K = 20
NAME = "pending"
# Items that are measured in float64 at most; others that are as close count as unstable.
MOST_CLOSE = 500


def rescore_close_calls(
    lm: Model,
    folder: RunFolder,
    prompts: pl.DataFrame,
    case: JudgingInput,
    rule: Rule,
    *,
    seed: int,
) -> tuple[Rescored, Noise]:
    """Score again in float32 what half precision cannot decide, round by round."""
    requests = case.requests
    fine = lm.in_float32.info.noise

    def requests_of(chosen: pl.Series) -> pl.DataFrame:
        return requests.filter(pl.col("item").is_in(chosen.implode()))

    def score_exactly(chosen: pl.Series, turn: int) -> None:
        part = prompts.join(requests_of(chosen), on="request", how="semi")
        lm.in_float32.score_all(fix_pending(lm.in_float32, folder, part, step=f"-{EXACT}-{turn}"))

    def judge(exact_items: pl.Series, *, noise: float) -> pl.DataFrame:
        each = Noise(rough=noise, fine=fine, exact=frozenset(requests_of(exact_items)["request"]))
        read = partial(read_mixed, lm.read, prompts, lm.in_float32.read, each.exact)
        here = replace(case, noise=each)
        scores = pl.concat(list(rule.score(here, read())))
        return rule.judge(here, scores, read).judgements

    tokens = lm.read(prompts)
    spreads = measure_spreads(requests, prompts, tokens, cancel=lm.info.kind == "left-to-right")
    rescored = rescore_doubtful(spreads, judge, score_exactly, least=fine, seed=seed)
    exact = frozenset(requests_of(rescored.exact_items)["request"])
    each = dict(requests.join(rescored.noise, on="item").select("request", "noise").iter_rows())
    return rescored, Noise(rough=max(each.values(), default=fine), fine=fine, exact=exact, each=each)


def measure_close_calls(
    lm: Model, folder: RunFolder, prompts: pl.DataFrame, case: JudgingInput, rule: Rule
) -> tuple[Noise, dict[str, Any]]:
    """The possible error of every sentence in float32, and what the manifest says about it.

    Items whose verdict an error of `lm.possible_error` per sentence could turn are scored again in float64,
    the closest first, which gives the error of their sentences. If such an error is almost as large as was
    assumed possible, a larger one is assumed, and more items are measured.
    """
    bound, each = lm.possible_error, dict[str, float]()
    while True:
        noise = Noise(rough=bound, each=each)
        doubtful = _find_close(lm, prompts, replace(case, noise=noise), rule)
        close = doubtful.head(MOST_CLOSE)
        waiting = case.requests.filter(
            pl.col("item").is_in(close.implode()) & ~pl.col("request").is_in(list(each))
        )
        part = prompts.join(waiting, on="request", how="semi", maintain_order="left")
        if part.is_empty() or lm.in_float64 is None:
            break
        lm.in_float64.score_all(fix_pending(lm.in_float64, folder, part, step=f"-{WIDE}-{len(each)}"))
        errors = lm.measure_errors(part)
        each |= errors
        bound = max(bound, 4 * max(errors.values()))
        if len(doubtful) > MOST_CLOSE:
            break
    record = {"possible": bound, "measured": len(each), "largest": max(each.values(), default=None)}
    return Noise(rough=bound, each=each), record


def _find_close(lm: Model, prompts: pl.DataFrame, case: JudgingInput, rule: Rule) -> pl.Series:
    """Items whose verdict noise may turn, the closest first; those that are exactly tied cannot turn."""
    if rule.graded:
        return pl.Series("item", [], dtype=pl.String)
    read = partial(lm.read, prompts)
    scores = pl.concat(list(rule.score(case, read())))
    judged = rule.judge(case, scores, read)
    every = judged.judgements if judged.predictions is None else judged.predictions
    close = every.filter(~pl.col("stable") & (pl.col("margin") != 0)).sort(pl.col("margin").abs())
    return close["item"].unique(maintain_order=True)


def find_frames(items: pl.DataFrame) -> list[str]:
    """The frames of a dataset's stimuli, equal ones once."""
    return items.select(FRAME).to_series().unique(maintain_order=True).to_list()


def read_cloze(lm: Model, items: pl.DataFrame, *, k: int = K) -> pl.DataFrame:
    """Rows of CLOZE: the k most probable words for every stimulus's frame, and the target's rank among them.

    The stimulus is the frame (`context_text`) and its target (`text`). All frames must be filled already.
    """
    framed = items.with_columns(FRAME)
    frames = find_frames(items)
    filled = lm.read_fillers(frames, k=k)
    words = (
        filled.sort("rank")
        .group_by("frame", maintain_order=True)
        .agg(pl.col("filler").alias("predictions"), pl.col("dropped").max())
    )
    whole = framed.join(words, on="frame", how="left", maintain_order="left").rename({"text": "target"})
    rank = pl.struct("predictions", "target").map_elements(
        lambda row: (
            row["predictions"].index(row["target"]) + 1 if row["target"] in row["predictions"] else None
        ),
        return_dtype=pl.Int64,
    )
    return whole.with_columns(rank.alias("rank")).select(
        pl.col(name).cast(dtype) for name, dtype in CLOZE.items()
    )


def fix_pending(lm: Model, folder: RunFolder, prompts: pl.DataFrame, *, step: str = "") -> pl.DataFrame:
    """The prompts that this run, or a step of it, has to score, fixed at its start.

    Batches are planned over this list, so a resumed run makes the same batches, and gives exactly the
    same numbers, as an uninterrupted one.
    """
    missing = find_missing(lm.store, prompts)
    path = folder.path / f"{NAME}{step}.parquet"
    begun = _read_begun(path, prompts)
    if begun is not None:
        missing = pl.concat([begun, missing.join(begun, on="request", how="anti")])
    with replacing(path) as part:
        missing.write_parquet(part)
    return missing


def _read_begun(path: Path, prompts: pl.DataFrame) -> pl.DataFrame | None:
    """The list of the run that stopped; a damaged one is ignored, which changes no more than rounding."""
    if not path.exists():
        return None
    try:
        begun = pl.read_parquet(path.absolute(), glob=False)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        return None
    return begun if begun.schema == prompts.schema else None


def forget_pending(folder: RunFolder) -> None:
    """Remove the lists when everything is scored."""
    for path in folder.path.glob(f"{NAME}*.parquet"):
        # Another process may do the same work in the same folder.
        path.unlink(missing_ok=True)
