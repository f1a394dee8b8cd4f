"""Many requests at once from plain code: answers as they come, everything ended when the reader stops."""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from felicity.engines.served.client import Client

J = TypeVar("J")
R = TypeVar("R")

# The main thread must wake up to hear an interrupt on systems whose locks do not.
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
    """Each job with its result, in the order in which they are done, `width` of them under way.

    The loop runs in a thread of its own, so this also works where a loop is running already, as in a
    notebook. An error, an interrupt or a reader who stops cancels what is under way.
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


def ask_all(
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

    found = {job[0]: result for job, result in stream(connect, numbered, numbered_work, width=width)}
    return [found[place] for place in range(len(numbered))]


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
    except Exception as single:  # noqa: BLE001 - handed to the reader's thread, which raises it
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
