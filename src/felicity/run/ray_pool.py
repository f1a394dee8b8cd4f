"""A run distributed over a Ray cluster: one engine per worker, all scores collected by the driver.

The prompts are split into shards of fixed size, each planned separately, so that the numbers do not
depend on how many workers there are or on which of them died.
"""

import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Any

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
from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.policy import Policy
from felicity.engines import open_engine
from felicity.engines.runtime import Compute
from felicity.engines.served import is_served

LOCAL = "local"
# Environment variables that a worker needs to find the same files and compute the same way.
PASSED_ON = ("FELICITY_CACHE", "FELICITY_DATA", "HF_HOME", "HF_HUB_OFFLINE", "ONEDNN_MAX_CPU_ISA")
# Shards are small; Ray would take a third of the memory for them.
OBJECT_STORE = 200_000_000
# The smallest fraction of a CPU or GPU that Ray counts.
PARTS = 10_000

Machines = list[dict[str, float]]
# How often work is retried after its worker died, before the run stops.
RETRIES = 4
# An autoscaling cluster takes minutes to start a machine.
ANSWER_SECONDS = 600.0
SAID_CHARACTERS = 200
RESUME_HINT = "finished scores are saved, and the same command resumes from there"
# Instead of a shard's number: a check that the worker has started.
STARTING = -1
SHARD = 256
ALL = "ray"


@contextmanager
def join_cluster(address: str) -> Iterator[Machines]:
    """The CPUs and GPUs of the cluster's machines; a cluster joined here is left at the end.

    Raises FelicityError if there is no cluster at the address.
    """
    import ray

    joined = not ray.is_initialized()
    if joined:
        _join(address or os.environ.get("RAY_ADDRESS") or LOCAL)
    try:
        yield [node["Resources"] for node in ray.nodes() if node["Alive"] and node["Resources"].get("CPU")]
    finally:
        if joined:
            ray.shutdown()


def _join(address: str) -> None:
    import ray

    # Ray sends usage statistics unless this is switched off.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    passed_on = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    options: dict[str, Any] = {"runtime_env": {"env_vars": passed_on}, "log_to_driver": False}
    if address == LOCAL:
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE}
    try:
        ray.init(address=address, logging_level=logging.ERROR, **options)
    except (OSError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise FelicityError(
            f"There is no Ray cluster at '{address}' ({reason}); check --ray-address or RAY_ADDRESS, or "
            "omit them to use this machine."
        ) from error


def count_workers(machines: Machines) -> int:
    """The number of workers that fit on a cluster: one per GPU, else one per machine with all its cores.

    >>> count_workers([{"CPU": 8.0}, {"CPU": 8.0}])
    2
    """
    return max(1, int(sum(machine.get("GPU", 0) for machine in machines)) or len(machines))


def divide_resources(machines: Machines, count: int) -> dict[str, float]:
    """The resources of each of this many workers, so that all of them fit.

    >>> divide_resources([{"CPU": 8.0}, {"CPU": 4.0}], 2)
    {'num_cpus': 4.0}
    >>> divide_resources([{"CPU": 8.0, "GPU": 2.0}], 3)
    {'num_cpus': 1.0, 'num_gpus': 0.5}
    """
    cores = [machine["CPU"] for machine in machines]
    cards = sum(int(machine.get("GPU", 0)) for machine in machines)
    sharing = ceil(count / cards) if cards else 0
    each = int(min([1 if cards else sum(cores) // count, *cores]))
    while each and _count_fitting(machines, each, sharing) < count:
        each -= 1
    # Ray counts in ten-thousandths, and the shares of one GPU must not round up to more than 1.
    return {"num_cpus": float(each)} | ({"num_gpus": PARTS // sharing / PARTS} if cards else {})


def _count_fitting(machines: Machines, cores: int, sharing: int) -> int:
    """The number of workers that fit, each with this many cores, and `sharing` of them per GPU, if any."""
    rooms = [int(machine["CPU"] // cores) for machine in machines]
    cards = [int(machine.get("GPU", 0)) for machine in machines]
    return sum(
        min(room, card * sharing) if sharing else room for room, card in zip(rooms, cards, strict=True)
    )


@dataclass
class WorkerPool:
    """The pool of workers and their current tasks.

    start: returns a new worker with the methods `hello` and `score`, which may wait for resources.
    seconds: how long to wait for any answer before the run stops.
    """

    start: Callable[[], Any]
    seconds: float = ANSWER_SECONDS
    _under_way: dict[Any, tuple[Any, int]] = field(default_factory=dict)
    _deaths: Counter[int] = field(default_factory=Counter)

    def work(self, shards: Sequence[tuple[Any, ...]], count: int) -> Iterator[Any]:
        """The result of `score` for each shard, in order of completion.

        A worker gets a shard only after it has answered, so one that waits for resources blocks nothing.

        Raises FelicityError if none answers, work kills its workers, or a worker meets an error.
        """
        waiting = deque(range(len(shards)))
        for _ in range(count):
            self._await_start()
        done = 0
        while done < len(shards):
            worker, number, answer = self._next()
            if worker is None:
                if number != STARTING:
                    waiting.appendleft(number)
                self._await_start()
                continue
            if waiting:
                following = waiting.popleft()
                self._under_way[worker.score.remote(*shards[following])] = (worker, following)
            if number != STARTING:
                done += 1
                yield answer

    def _await_start(self) -> None:
        worker = self.start()
        self._under_way[worker.hello.remote()] = (worker, STARTING)

    def _next(self) -> tuple[Any, int, Any]:
        """A worker that has answered, its task, and its answer; no worker if it died."""
        import ray

        busy = any(number != STARTING for _, number in self._under_way.values())
        ready, _ = ray.wait(list(self._under_way), timeout=None if busy else self.seconds)
        if not ready:
            raise FelicityError(
                f"No worker of the cluster answered within {self.seconds:g} s; check with `ray status` "
                f"whether it has enough resources, or start fewer with --workers; {RESUME_HINT}."
            )
        worker, number = self._under_way.pop(ready[0])
        try:
            answer = ray.get(ready[0])
        except ray.exceptions.RayTaskError as error:
            raise FelicityError(
                f"A worker met an error ({_shorten(error.cause)}); run without --workers to see where; "
                f"{RESUME_HINT}."
            ) from error
        except ray.exceptions.RayError as error:
            self._deaths[number] += 1
            if self._deaths[number] > RETRIES:
                raise FelicityError(
                    f"A worker died {RETRIES + 1} times at the same work ({_shorten(error)}); give workers "
                    f"more memory or start fewer; {RESUME_HINT}."
                ) from error
            # A worker that was only unreachable would keep its resources.
            ray.kill(worker)
            return None, number, None
        self._deaths.pop(number, None)
        return worker, number, answer


def _shorten(error: Any) -> str:
    lines = str(error).strip().splitlines()
    kind = "" if type(error).__module__.startswith("ray") else f"{type(error).__name__}: "
    return f"{kind}{lines[0] if lines else ''}"[:SAID_CHARACTERS]


@dataclass(frozen=True, kw_only=True)
class Workers:
    """How a run is distributed.

    count: number of workers; None is one per GPU of the cluster, or one per machine if it has none.
    address: of the cluster, as for Ray; empty is `$RAY_ADDRESS`, else a new cluster on this machine.
    """

    count: int | None = None
    address: str = ""

    @classmethod
    def parse(cls, text: str, *, address: str = "") -> "Workers":
        """The value of `--workers`: `ray` or a number.

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

    Raises NotPossible if Ray is not installed or the model is a served one.
    """
    if is_served(spec):
        raise NotPossible(
            f"'{spec}' is a served model, which takes many requests at once; use --concurrency instead of "
            "--workers."
        )
    if find_spec("ray") is None:
        raise NotPossible("--workers needs Ray; install it: pip install 'felicity[ray]'")
    # A worker has another working directory.
    path = Path(spec).expanduser()
    model = str(path.resolve()) if path.exists() else spec
    return PoolEngine(engine, partial(open_engine, model, policy=policy, compute=compute), workers)


class Worker:
    """One engine in a process of the cluster."""

    def __init__(self, open_again: Callable[[], Engine], key: str) -> None:
        self._open = lru_cache(open_again)
        self._key = key

    def hello(self) -> None:
        """Return once this worker has started."""

    def score(self, shard: pl.DataFrame, done: list[str], extras: TokenExtras) -> tuple[str, Any]:
        """Frames of TOKENS and the engine's info, or an error message."""
        try:
            engine = self._open()
            if engine.info.key != self._key:
                return "failed", (
                    f"A worker of the cluster has other files, or another version of felicity, for "
                    f"'{engine.info.name}'; make them the same on every machine."
                )
            frames = list(engine.score(shard, done=done, extras=extras))
            refuse_changed(engine)
        except FelicityError as error:
            return "failed", str(error)
        return "scored", (frames, engine.info.notes)


class PoolEngine:
    """An engine that scores on workers; everything else stays in this process.

    It has the abilities of its engine, so that a dataset is judged by the same rule with workers as without.
    """

    def __init__(self, engine: Engine, open_again: Callable[[], Engine], workers: Workers) -> None:
        self._engine = engine
        self._open_again = open_again
        self._workers = workers
        self._notes: dict[str, Any] = {}

    @property
    def info(self) -> EngineInfo:
        """What the model is; once it has scored, also the workers' scheduler and number."""
        info = self._engine.info
        return replace(info, notes=info.notes | self._notes)

    def refuse_changed(self) -> None:
        """Check the engine of this process; workers check their own.

        Raises FelicityError.
        """
        refuse_changed(self._engine)

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
            raise NotPossible(f"'{self.info.name}' cannot continue texts; choose another model.")
        return self._engine.generate(prompts, sampling=sampling)

    def _filler(self) -> Filler:
        if not isinstance(self._engine, Filler):
            raise NotPossible(f"'{self.info.name}' cannot fill a blank; choose another model.")
        return self._engine

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), extras: TokenExtras = NO_EXTRAS
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS, one shard at a time; a shard whose worker dies is scored by its replacement.

        Raises FelicityError if workers die repeatedly, or one fails.
        """
        shards = [(shard, finished, extras) for shard, finished in split_shards(prompts, set(done))]
        if not shards:
            return
        with join_cluster(self._workers.address) as machines:
            count = min(self._workers.count or count_workers(machines), len(shards))
            self._notes |= {"workers": count}
            pool = WorkerPool(partial(self._start, divide_resources(machines, count)))
            for how, answer in pool.work(shards, count):
                if how == "failed":
                    raise FelicityError(answer)
                frames, notes = answer
                self._notes |= notes
                yield from frames

    def _start(self, share: dict[str, float]) -> Any:
        import ray

        remote: Any = ray.remote(**share)(Worker)
        return remote.remote(self._open_again, self._engine.info.key)


def split_shards(prompts: pl.DataFrame, done: set[str]) -> Iterator[tuple[pl.DataFrame, list[str]]]:
    """Shards of fixed size, prompts with a common beginning together, each with its finished requests.

    Wholly finished shards are left out; the others are the same as if nothing were finished.
    """
    alike = prompts.sort("context_text", "text", maintain_order=True, nulls_last=False)
    for shard in alike.iter_slices(SHARD):
        finished = [request for request in shard["request"] if request in done]
        if len(finished) < len(shard):
            yield shard, finished
