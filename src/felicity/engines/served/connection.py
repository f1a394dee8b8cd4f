"""A server as the engine uses it: many prompts at once, refusals in one sentence."""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import TypeVar

from felicity.core.errors import NotPossible
from felicity.engines.served.client import Client, Refused, explain
from felicity.engines.served.pace import Pace
from felicity.engines.served.settings import Serving, read_key
from felicity.engines.served.streaming import ask_all, stream

J = TypeVar("J")
R = TypeVar("R")
Work = Callable[[Client, J], Awaitable[R]]


@dataclass(frozen=True)
class Connection:
    """Where a model is served, and the pace at which it is asked."""

    url: str
    model: str
    serving: Serving
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        if find_spec("httpx") is None:
            raise NotPossible("Served models need httpx; install it: pip install 'felicity[api]'")
        pace = Pace(
            requests_per_minute=self.serving.requests_per_minute,
            tokens_per_minute=self.serving.tokens_per_minute,
        )
        object.__setattr__(self, "pace", pace)

    def but(self, *, model: str | None = None, patience: float | None = None) -> "Connection":
        """The same server asked for another model or less patiently."""
        serving = self.serving if patience is None else replace(self.serving, patience=patience)
        return Connection(self.url, self.model if model is None else model, serving)

    def connect(self) -> Client:
        """A client, to be made inside its loop; only here is the key read."""
        return Client(self.url, serving=self.serving, key=read_key(), pace=self.pace)

    def stream(self, jobs: Sequence[J], work: Work[J, R]) -> Iterator[tuple[J, R]]:
        """Each job with its result, as they come."""
        try:
            yield from stream(self.connect, jobs, work, width=self.serving.concurrency)
        except Refused as refused:
            raise explain(refused, url=self.url, model=self.model) from refused

    def ask_all(self, jobs: Sequence[J], work: Work[J, R], *, width: int | None = None) -> list[R]:
        """All results, in the order of the jobs."""
        try:
            return ask_all(self.connect, jobs, work, width=width or self.serving.concurrency)
        except Refused as refused:
            raise explain(refused, url=self.url, model=self.model) from refused
