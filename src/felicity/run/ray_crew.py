"""Shards handed to workers of a Ray cluster, and to fresh ones where workers die."""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from felicity.core.errors import FelicityError

# Times that work is tried again whose worker died, before the run stops.
RETRIES = 4
# A cluster that grows by itself takes minutes to start a machine.
ANSWER_SECONDS = 600.0
SAID_CHARACTERS = 200
KEPT = "what was scored is kept, and the same command goes on from there"
# In place of a shard's number: a worker that is asked whether it is there.
GREETING = -1


@dataclass
class Crew:
    """Workers and what each is doing.

    start: gives a new worker, which may wait for room; `hello` and `score` can be asked of it.
    seconds: how long none may answer before the run stops.
    """

    start: Callable[[], Any]
    seconds: float = ANSWER_SECONDS
    _under_way: dict[Any, tuple[Any, int]] = field(default_factory=dict)
    _deaths: Counter[int] = field(default_factory=Counter)

    def work(self, shards: Sequence[tuple[Any, ...]], count: int) -> Iterator[Any]:
        """What `score` answers to each shard, in the order in which they are done.

        A worker gets a shard once it has answered, so one that finds no room holds nothing up.

        Raises FelicityError where none answers, work kills its workers, or a worker meets an error.
        """
        waiting = deque(range(len(shards)))
        for _ in range(count):
            self._greet()
        done = 0
        while done < len(shards):
            worker, number, answer = self._next()
            if worker is None:
                if number != GREETING:
                    waiting.appendleft(number)
                self._greet()
                continue
            if waiting:
                following = waiting.popleft()
                self._under_way[worker.score.remote(*shards[following])] = (worker, following)
            if number != GREETING:
                done += 1
                yield answer

    def _greet(self) -> None:
        worker = self.start()
        self._under_way[worker.hello.remote()] = (worker, GREETING)

    def _next(self) -> tuple[Any, int, Any]:
        """A worker that has answered, to what, and its answer; no worker where it died over it."""
        import ray

        busy = any(number != GREETING for _, number in self._under_way.values())
        ready, _ = ray.wait(list(self._under_way), timeout=None if busy else self.seconds)
        if not ready:
            raise FelicityError(
                f"No worker of the cluster answered within {self.seconds:g} s; see with `ray status` whether "
                f"it has room for them, or start fewer with --workers; {KEPT}."
            )
        worker, number = self._under_way.pop(ready[0])
        try:
            answer = ray.get(ready[0])
        except ray.exceptions.RayTaskError as error:
            raise FelicityError(
                f"A worker met an error ({_shorten(error.cause)}); run without --workers to see where; "
                f"{KEPT}."
            ) from error
        except ray.exceptions.RayError as error:
            self._deaths[number] += 1
            if self._deaths[number] > RETRIES:
                raise FelicityError(
                    f"A worker died {RETRIES + 1} times at the same work ({_shorten(error)}); give workers "
                    f"more memory or start fewer; {KEPT}."
                ) from error
            # One that only could not be reached would keep its place.
            ray.kill(worker)
            return None, number, None
        self._deaths.pop(number, None)
        return worker, number, answer


def _shorten(error: Any) -> str:
    lines = str(error).strip().splitlines()
    kind = "" if type(error).__module__.startswith("ray") else f"{type(error).__name__}: "
    return f"{kind}{lines[0] if lines else ''}"[:SAID_CHARACTERS]
