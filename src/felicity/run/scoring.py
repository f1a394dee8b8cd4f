"""Prompts and frames into the store: only what is missing, batch by batch, from where it stopped."""

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from felicity.core.engine import Engine, Filler
from felicity.run.store import ScoreStore, frame_keys, prompt_keys

# Called with how many texts are scored, or frames filled, of how many.
Progress = Callable[[int, int], None]
READ_ROWS = 20_000
BATCH_FRAMES = 128


def find_missing(store: ScoreStore, prompts: pl.DataFrame) -> pl.DataFrame:
    """The prompts without a score, equal ones once."""
    keys = prompt_keys(prompts)
    known = store.has(list(dict.fromkeys(keys)))
    fresh: list[int] = []
    for place, key in enumerate(keys):
        if key not in known:
            known.add(key)
            fresh.append(place)
    return prompts[fresh]


def score_missing(
    engine: Engine, store: ScoreStore, pending: pl.DataFrame, *, progress: Progress | None = None
) -> int:
    """Score what is not in the store, each batch kept before the next begins; how many texts were scored."""
    key_of = dict(zip(pending["request"].to_list(), prompt_keys(pending), strict=True))
    known = store.has(list(key_of.values()))
    done = {request for request, key in key_of.items() if key in known}
    finished, total = len(done), len(pending)
    if progress:
        progress(finished, total)
    if finished == total:
        return 0
    scored = 0
    for tokens in engine.score(pending, done=done):
        requests = tokens["request"].to_list()
        store.add([key_of[request] for request in requests], tokens)
        scored += len(requests)
        finished += sum(request not in done for request in requests)
        if progress:
            progress(finished, total)
    return scored


def fill_missing(
    engine: Filler, store: ScoreStore, frames: Sequence[str], *, k: int, progress: Progress | None = None
) -> int:
    """Fill what is not in the store, each batch kept before the next begins; how many frames were filled.

    Batches are cut over all frames, so that work taken up again gives the very words of unbroken work.
    """
    keys = frame_keys(frames, k=k)
    known = store.has_fillers(keys)
    finished, filled = sum(key in known for key in keys), 0
    if progress:
        progress(finished, len(frames))
    for begin in range(0, len(frames), BATCH_FRAMES):
        part, part_keys = frames[begin : begin + BATCH_FRAMES], keys[begin : begin + BATCH_FRAMES]
        fresh = sum(key not in known for key in part_keys)
        if not fresh:
            continue
        store.add_fillers(part_keys, part, engine.fill(part, k=k))
        filled += len(part)
        finished += fresh
        if progress:
            progress(finished, len(frames))
    return filled


def share_progress(progress: Progress | None, *, before: int = 0, after: int = 0) -> Progress | None:
    """What a step tells, as part of a whole that had so much before it and has so much after it."""
    if progress is None:
        return None
    return lambda done, total: progress(before + done, before + total + after)


def read_tokens(store: ScoreStore, prompts: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Rows of TOKENS for every prompt, in order, some thousands at a time."""
    for part in prompts.iter_slices(READ_ROWS):
        yield store.read(part["request"].to_list(), prompt_keys(part))


def read_mixed(
    store: ScoreStore, prompts: pl.DataFrame, exact_store: ScoreStore, exact: frozenset[str]
) -> Iterator[pl.DataFrame]:
    """As read_tokens, those of the requests in `exact` from the other store."""
    for part in prompts.iter_slices(READ_ROWS):
        chosen = part["request"].is_in(list(exact))
        frames = [
            read_tokens(source, rows)
            for source, rows in ((store, part.filter(~chosen)), (exact_store, part.filter(chosen)))
            if len(rows)
        ]
        found = pl.concat([frame for frames_of in frames for frame in frames_of])
        yield part.select("request").join(found, on="request", how="left", maintain_order="left")
