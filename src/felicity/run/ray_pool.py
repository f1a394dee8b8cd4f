"""A run spread over a Ray cluster: one engine a worker, everything scored kept by the driver.

What is to be scored is cut into shards of fixed size, each planned by itself, so that the numbers do not
depend on how many workers there are or on which of them died.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.engine import NOTHING_MORE, Engine, EngineInfo, Filler, Generator, More, Sampling
from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.policy import Policy
from felicity.engines.devices import Compute
from felicity.engines.families import open_engine
from felicity.engines.served.settings import is_served
from felicity.run.ray_cluster import count_places, join_cluster, share_out
from felicity.run.ray_crew import Crew

SHARD = 256
ALL = "ray"


@dataclass(frozen=True, kw_only=True)
class Workers:
    """How a run is spread.

    count: engines at work; None is one for each GPU of the cluster, or one a machine where it has none.
    address: of the cluster, as Ray takes it; empty is `$RAY_ADDRESS`, else one made on this machine.
    """

    count: int | None = None
    address: str = ""

    @classmethod
    def parse(cls, text: str, *, address: str = "") -> "Workers":
        """What `--workers` was given: `ray` or a number.

        >>> Workers.parse("2").count
        2

        Raises BadInput.
        """
        if text == ALL:
            return cls(address=address)
        if not text.isdecimal() or int(text) < 1:
            raise BadInput(f"--workers {text} is neither '{ALL}' nor a number above 0.")
        return cls(count=int(text), address=address)


def pool_engine(
    engine: Engine, spec: str, *, policy: Policy, compute: Compute, workers: Workers
) -> "PoolEngine":
    """An engine that scores as `engine` does, on the workers of a cluster.

    Raises NotPossible where Ray is not installed or the model is behind a server.
    """
    if is_served(spec):
        raise NotPossible(
            f"'{spec}' is behind a server, which takes many requests at once; use --concurrency instead of "
            "--workers."
        )
    if find_spec("ray") is None:
        raise NotPossible("--workers needs Ray; install it: pip install 'felicity[ray]'")
    # A worker has another working folder.
    place = Path(spec).expanduser()
    found = str(place.resolve()) if place.exists() else spec
    return PoolEngine(engine, partial(open_engine, found, policy=policy, compute=compute), workers)


class Worker:
    """One engine in a process of the cluster."""

    def __init__(self, open_again: Callable[[], Engine], key: str) -> None:
        self._open = lru_cache(open_again)
        self._key = key

    def hello(self) -> None:
        """Answer, once there is room for this worker and it has begun."""

    def score(self, shard: pl.DataFrame, done: list[str], more: More) -> tuple[str, Any]:
        """Frames of TOKENS and what the engine says of itself, or the sentence of a failure."""
        try:
            engine = self._open()
            if engine.info.key != self._key:
                return "failed", (
                    f"A worker of the cluster has other files, or another version of felicity, for "
                    f"'{engine.info.name}'; make them the same on every machine."
                )
            frames = list(engine.score(shard, done=done, more=more))
        except FelicityError as error:
            return "failed", str(error)
        return "scored", (frames, engine.info.notes)


class PoolEngine:
    """An Engine that hands shards to workers; all but scoring stays in this process.

    It can what its engine can, so that a dataset is judged by the same rule with workers as without.
    """

    def __init__(self, engine: Engine, open_again: Callable[[], Engine], workers: Workers) -> None:
        self._engine = engine
        self._open_again = open_again
        self._workers = workers
        self._notes: dict[str, Any] = {}

    @property
    def info(self) -> EngineInfo:
        """What the model is; once it has scored, also how the workers read it and how many there are."""
        told = self._engine.info
        return replace(told, notes=told.notes | self._notes)

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the tokenizer alone."""
        return self._engine.encode(prompts)

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS, from the engine of this process."""
        return self._filler().fill(frames, k=k)

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES, from the engine of this process."""
        return self._filler().score_candidates(frames, candidates)

    def generate(self, prompts: Sequence[str], *, sampling: Sampling) -> pl.DataFrame:
        """Rows of CONTINUATIONS, from the engine of this process."""
        if not isinstance(self._engine, Generator):
            raise NotPossible(f"'{self.info.name}' cannot write texts; choose another model.")
        return self._engine.generate(prompts, sampling=sampling)

    def _filler(self) -> Filler:
        if not isinstance(self._engine, Filler):
            raise NotPossible(f"'{self.info.name}' cannot fill a blank; choose another model.")
        return self._engine

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), more: More = NOTHING_MORE
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, a shard at a time; a shard whose worker dies is scored by its replacement.

        Raises FelicityError where workers die again and again, or one cannot do the work.
        """
        shards = [(shard, finished, more) for shard, finished in cut_shards(prompts, set(done))]
        if not shards:
            return
        with join_cluster(self._workers.address) as machines:
            count = min(self._workers.count or count_places(machines), len(shards))
            self._notes |= {"workers": count}
            crew = Crew(partial(self._start, share_out(machines, count)))
            for how, answer in crew.work(shards, count):
                if how == "failed":
                    raise FelicityError(answer)
                frames, notes = answer
                self._notes |= notes
                yield from frames

    def _start(self, share: dict[str, float]) -> Any:
        import ray

        remote: Any = ray.remote(**share)(Worker)
        return remote.remote(self._open_again, self._engine.info.key)


def cut_shards(prompts: pl.DataFrame, done: set[str]) -> Iterator[tuple[pl.DataFrame, list[str]]]:
    """Shards of fixed size, prompts that begin alike together, each with what is done of it.

    Those that are wholly done are left out; the others are cut as if nothing were.
    """
    alike = prompts.sort("context_text", "text", maintain_order=True, nulls_last=False)
    for shard in alike.iter_slices(SHARD):
        finished = [request for request in shard["request"] if request in done]
        if len(finished) < len(shard):
            yield shard, finished
