"""Fill the score cache: only missing prompts and frames, batch by batch."""

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import polars as pl

from felicity.core.engine import (
    NO_EXTRAS,
    Engine,
    EngineInfo,
    Filler,
    Generator,
    Sampling,
    TokenExtras,
    refuse_changed,
)
from felicity.core.progress import Progress, loading, no_progress
from felicity.run.store import DamagedRows, ScoreStore, continuation_keys, frame_keys, prompt_keys

SCORING, FILLING, CONTINUING = "Scoring", "Filling blanks", "Continuing texts"
READ_ROWS = 20_000
BATCH_FRAMES = 128
# Prompts per unit of work: an interruption loses no more than one.
BATCH_PROMPTS = 256


@dataclass(frozen=True)
class BoundedEngine:
    """An engine whose tokens always have the log-probability of a word boundary."""

    engine: Engine

    @property
    def info(self) -> EngineInfo:
        """What the model is and its settings."""
        return self.engine.info

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt."""
        return self.engine.encode(prompts)

    def refuse_changed(self) -> None:
        """Check that the engine still computes with the model of its key."""
        refuse_changed(self.engine)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), extras: TokenExtras = NO_EXTRAS
    ) -> Iterator[pl.DataFrame]:
        """Rows of BOUNDED_TOKENS, one frame per finished batch."""
        return self.engine.score(prompts, done=done, extras=replace(extras, boundary=True))


def find_missing(store: ScoreStore, prompts: pl.DataFrame) -> pl.DataFrame:
    """The prompts without a score, equal ones once."""
    keys = prompt_keys(prompts)
    stored = store.has(list(dict.fromkeys(keys)))
    fresh: list[int] = []
    for place, key in enumerate(keys):
        if key not in stored:
            stored.add(key)
            fresh.append(place)
    return prompts[fresh]


def score_missing(
    engine: Engine,
    store: ScoreStore,
    pending: pl.DataFrame,
    *,
    step: str = SCORING,
    progress: Progress = no_progress,
) -> int:
    """Score what is not in the cache, saving each batch before the next; returns the number scored."""
    key_of = dict(zip(pending["request"].to_list(), prompt_keys(pending), strict=True))
    stored = store.has(list(key_of.values()))
    done = {request for request, key in key_of.items() if key in stored}
    finished, total = len(done), len(pending)
    progress(step, finished, total)
    if finished == total:
        return 0
    progress(loading(engine.info.name), finished, total)
    scored = 0
    for tokens in engine.score(pending, done=done):
        requests = tokens["request"].to_list()
        refuse_changed(engine)
        store.add([key_of[request] for request in requests], tokens)
        scored += len(requests)
        finished += sum(request not in done for request in requests)
        progress(step, finished, total)
    return scored


def fill_missing(
    engine: Filler, store: ScoreStore, frames: Sequence[str], *, k: int, progress: Progress = no_progress
) -> int:
    """Fill what is not in the cache, saving each batch before the next; returns how many frames were filled.

    Batches are planned over all frames, so that resumed work gives exactly the words of uninterrupted work.
    """
    keys = frame_keys(frames, k=k)
    stored = store.has_fillers(keys)
    finished, filled = sum(key in stored for key in keys), 0
    progress(FILLING, finished, len(frames))
    for begin in range(0, len(frames), BATCH_FRAMES):
        part, part_keys = frames[begin : begin + BATCH_FRAMES], keys[begin : begin + BATCH_FRAMES]
        fresh = sum(key not in stored for key in part_keys)
        if not fresh:
            continue
        fillers = engine.fill(part, k=k)
        refuse_changed(engine)
        store.add_fillers(part_keys, part, fillers)
        filled += len(part)
        finished += fresh
        progress(FILLING, finished, len(frames))
    return filled


def continue_missing(
    engine: Generator,
    store: ScoreStore,
    prompts: Sequence[str],
    *,
    sampling: Sampling,
    progress: Progress = no_progress,
) -> pl.DataFrame:
    """Rows of CONTINUATIONS; what is not in the cache is generated, each batch saved before the next."""
    unique = list(dict.fromkeys(prompts))
    keys = continuation_keys(unique, sampling)
    stored = store.has_continuations(keys)
    fresh = [(key, prompt) for key, prompt in zip(keys, unique, strict=True) if key not in stored]
    finished = len(unique) - len(fresh)
    progress(CONTINUING, finished, len(unique))
    for begin in range(0, len(fresh), BATCH_PROMPTS):
        part = fresh[begin : begin + BATCH_PROMPTS]
        texts = [prompt for _, prompt in part]
        written = engine.generate(texts, sampling=sampling)
        refuse_changed(engine)
        store.add_continuations([key for key, _ in part], texts, written)
        finished += len(part)
        progress(CONTINUING, finished, len(unique))
    asked = continuation_keys(prompts, sampling)
    try:
        return store.read_continuations(asked, prompts)
    except DamagedRows as damage:
        _tell_damage(store, damage)
        store.remove(damage.keys)
        return continue_missing(engine, store, prompts, sampling=sampling, progress=progress)


def read_tokens(engine: Engine, store: ScoreStore, prompts: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Rows of TOKENS for every prompt, in order, some thousands at a time.

    Stored rows that are damaged are scored again, with a warning on standard error.
    """
    for part in prompts.iter_slices(READ_ROWS):
        keys = prompt_keys(part)
        try:
            yield store.read(part["request"].to_list(), keys)
        except DamagedRows as damage:
            _tell_damage(store, damage)
            store.remove(damage.keys)
            score_missing(engine, store, find_missing(store, part))
            yield store.read(part["request"].to_list(), keys)


def read_fillers(engine: Filler, store: ScoreStore, frames: Sequence[str], *, k: int) -> pl.DataFrame:
    """Rows of FILLERS for frames that were filled; damaged rows are filled again."""
    keys = frame_keys(frames, k=k)
    try:
        return store.read_fillers(keys, frames)
    except DamagedRows as damage:
        _tell_damage(store, damage)
        store.remove(damage.keys)
        fill_missing(engine, store, frames, k=k)
        return store.read_fillers(keys, frames)


def _tell_damage(store: ScoreStore, damage: DamagedRows) -> None:
    if not store.told_damage:
        store.told_damage = True
        sys.stderr.write(
            f"The score cache {store.path} has damaged rows; they are scored again (here "
            f"{len(damage.keys)}).\n"
        )


Read = Callable[[pl.DataFrame], Iterator[pl.DataFrame]]


def read_mixed(
    read: Read, prompts: pl.DataFrame, read_exact: Read, exact: frozenset[str]
) -> Iterator[pl.DataFrame]:
    """Tokens of every prompt, in order, with the requests in `exact` read by the other function."""
    for part in prompts.iter_slices(READ_ROWS):
        chosen = part["request"].is_in(list(exact))
        frames = [
            source(rows)
            for source, rows in ((read, part.filter(~chosen)), (read_exact, part.filter(chosen)))
            if len(rows)
        ]
        tokens = pl.concat([frame for frames_of in frames for frame in frames_of])
        yield part.select("request").join(tokens, on="request", how="left", maintain_order="left")
