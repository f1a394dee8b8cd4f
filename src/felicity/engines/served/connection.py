"""A server as the engine uses it: many concurrent requests, refusals in one sentence."""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TypeVar

from felicity.core.errors import NotPossible
from felicity.engines.served.client import Client, RateLimiter, RequestRefused, explain
from felicity.engines.served.settings import Serving, read_key

J = TypeVar("J")
R = TypeVar("R")


# The main thread must wake up to notice an interrupt on systems whose locks are not interruptible.
WAKE_SECONDS = 0.5


@dataclass(frozen=True)
class _End:
    error: BaseException | None


def stream(
    connect: Callable[[], Client],
    jobs: Sequence[J],
    work: Callable[[Client, J], Awaitable[R]],
    *,
    width: int,
) -> Iterator[tuple[J, R]]:
    """Each job with its result, in order of completion, `width` of them in progress.

    The loop runs in its own thread, so this also works if a loop is running already, as in a notebook. An
    error, an interrupt or a caller who stops iterating cancels what is in progress.
    """
    results: queue.SimpleQueue[tuple[J, R] | _End] = queue.SimpleQueue()
    loop = asyncio.new_event_loop()
    task = loop.create_task(_drive(connect, jobs, work, width, results))
    thread = threading.Thread(target=_run, args=(loop, task, results), daemon=True)
    thread.start()
    try:
        while True:
            try:
                result = results.get(timeout=WAKE_SECONDS)
            except queue.Empty:
                continue
            if not isinstance(result, _End):
                yield result
                continue
            if result.error is not None:
                raise result.error
            return
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        loop.close()


def collect(
    connect: Callable[[], Client],
    jobs: Sequence[J],
    work: Callable[[Client, J], Awaitable[R]],
    *,
    width: int,
) -> list[R]:
    """All results, in the order of the jobs."""
    numbered = list(enumerate(jobs))

    async def numbered_work(client: Client, job: tuple[int, J]) -> R:
        return await work(client, job[1])

    results = {job[0]: result for job, result in stream(connect, numbered, numbered_work, width=width)}
    return [results[place] for place in range(len(numbered))]


def _run(
    loop: asyncio.AbstractEventLoop, task: "asyncio.Task[None]", results: "queue.SimpleQueue[object]"
) -> None:
    error: BaseException | None = None
    try:
        loop.run_until_complete(task)
    except asyncio.CancelledError:
        pass
    except BaseExceptionGroup as group:
        error = group.exceptions[0]
    except Exception as single:  # noqa: BLE001 - passed to the caller's thread, which raises it
        error = single
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        results.put(_End(error))


async def _drive(
    connect: Callable[[], Client],
    jobs: Sequence[J],
    work: Callable[[Client, J], Awaitable[R]],
    width: int,
    results: "queue.SimpleQueue[tuple[J, R] | _End]",
) -> None:
    async with connect() as client:
        waiting = iter(jobs)

        async def take() -> None:
            for job in waiting:
                results.put((job, await work(client, job)))

        async with asyncio.TaskGroup() as group:
            for _ in range(min(width, len(jobs))):
                group.create_task(take())


Work = Callable[[Client, J], Awaitable[R]]


@dataclass(frozen=True)
class Connection:
    """The address of a served model, and its rate limit."""

    url: str
    model: str
    serving: Serving
    rate_limiter: RateLimiter = field(init=False)

    def __post_init__(self) -> None:
        if find_spec("httpx") is None:
            raise NotPossible("Served models need httpx; install it: pip install 'felicity[api]'")
        rate_limiter = RateLimiter(
            requests_per_minute=self.serving.requests_per_minute,
            tokens_per_minute=self.serving.tokens_per_minute,
        )
        object.__setattr__(self, "rate_limiter", rate_limiter)

    def replace(self, *, model: str | None = None, patience: float | None = None) -> "Connection":
        """The same server with another model or less patience."""
        serving = self.serving if patience is None else replace(self.serving, patience=patience)
        return Connection(self.url, self.model if model is None else model, serving)

    def connect(self) -> Client:
        """A client, to be created inside its loop; the key is read only here."""
        return Client(self.url, serving=self.serving, key=read_key(), rate_limiter=self.rate_limiter)

    def stream(self, jobs: Sequence[J], work: Work[J, R]) -> Iterator[tuple[J, R]]:
        """Each job with its result, in order of completion."""
        try:
            yield from stream(self.connect, jobs, work, width=self.serving.concurrency)
        except RequestRefused as refused:
            raise explain(refused, url=self.url, model=self.model) from refused

    def collect(self, jobs: Sequence[J], work: Work[J, R], *, width: int | None = None) -> list[R]:
        """All results, in the order of the jobs."""
        try:
            return collect(self.connect, jobs, work, width=width or self.serving.concurrency)
        except RequestRefused as refused:
            raise explain(refused, url=self.url, model=self.model) from refused
