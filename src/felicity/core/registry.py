"""Named things that outside packages may add to: measures, datasets, engines."""

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from felicity.core.errors import UnknownName

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from stable names to things; an unknown name suggests the near one.

    An outside package adds to the registry of measures, for one, through an entry point in the
    group `felicity.measure` whose name is the measure's and whose object is the function.

    >>> shapes: Registry[int] = Registry("shape")
    >>> shapes.register("square", 4)
    >>> shapes["square"]
    4
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._things: dict[str, T] = {}
        self._discovered = False

    def register(self, name: str, thing: T) -> None:
        """Add `thing` under `name`.

        Raises ValueError where the name is taken: that is a mistake in code, not of a user.
        """
        if name in self._things:
            raise ValueError(f"{self.kind} '{name}' is registered twice")
        self._things[name] = thing

    def add(self, name: str) -> Callable[[T], T]:
        """Register the decorated thing under `name`."""

        def register(thing: T) -> T:
            self.register(name, thing)
            return thing

        return register

    def __getitem__(self, name: str) -> T:
        self._discover()
        if name not in self._things:
            raise UnknownName(self.kind, name, self._things)
        return self._things[name]

    def __contains__(self, name: object) -> bool:
        self._discover()
        return name in self._things

    def __iter__(self) -> Iterator[str]:
        self._discover()
        return iter(self._things)

    def __len__(self) -> int:
        self._discover()
        return len(self._things)

    def _discover(self) -> None:
        if self._discovered:
            return
        self._discovered = True
        for point in entry_points(group=f"felicity.{self.kind}"):
            if point.name not in self._things:
                self.register(point.name, point.load())
