"""Registries of measures, datasets, engines and the like, which other packages can extend."""

from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from felicity.core.errors import FelicityError, UnknownName

T = TypeVar("T")


class BrokenPlugin(FelicityError):
    """An outside package whose entry point cannot be used; the message names the package."""


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from stable names to things; an unknown name suggests the nearest one.

    An outside package adds to the registry of measures, for example, through an entry point in the
    group `felicity.measure` whose name is the measure's. It is loaded when the name is first looked up,
    so a broken package harms nothing but its own names. `accept` checks or converts what it provides,
    and raises for what cannot be used.

    >>> shapes: Registry[int] = Registry("shape")
    >>> shapes.register("square", 4)
    >>> shapes["square"]
    4
    """

    def __init__(self, kind: str, *, accept: Callable[[Any], T] | None = None) -> None:
        self.kind = kind
        self._accept = accept
        self._things: dict[str, T] = {}
        self._found: dict[str, list[EntryPoint]] | None = None

    def register(self, name: str, thing: T) -> None:
        """Add `thing` under `name`.

        Raises ValueError if the name is taken, which is a bug and not a user's mistake.
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

    def load(self, name: str) -> T:
        """The thing of that name, as `registry[name]` gives it.

        Raises UnknownName, or BrokenPlugin if an outside package cannot provide it.
        """
        points = self.outside.get(name, [])
        if len(points) + (name in self._things) > 1:
            owners = ["felicity"] * (name in self._things) + [describe_package(point) for point in points]
            raise BrokenPlugin(
                f"The {self.kind} '{name}' comes from {' and from '.join(owners)}; uninstall all but one."
            )
        if name in self._things:
            return self._things[name]
        if not points:
            raise UnknownName(self.kind, name, list(self))
        return self._load(points[0])

    @property
    def outside(self) -> dict[str, list[EntryPoint]]:
        """The entry points that outside packages have for this registry, by name."""
        if self._found is None:
            self._found = {}
            for point in entry_points(group=f"felicity.{self.kind}"):
                self._found.setdefault(point.name, []).append(point)
        return self._found

    def _load(self, point: EntryPoint) -> T:
        try:
            thing = point.load()
            loaded: T = self._accept(thing) if self._accept else thing
        except Exception as error:  # an outside package may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise BrokenPlugin(
                f"The {self.kind} '{point.name}' cannot be loaded from {describe_package(point)} ({reason}); "
                "update or uninstall that package."
            ) from error
        self._things[point.name] = loaded
        del self.outside[point.name]
        return loaded

    def __getitem__(self, name: str) -> T:
        return self.load(name)

    def __contains__(self, name: object) -> bool:
        return name in self._things or name in self.outside

    def __iter__(self) -> Iterator[str]:
        return iter([*self._things, *(name for name in self.outside if name not in self._things)])

    def __len__(self) -> int:
        return len(list(iter(self)))


def describe_package(point: EntryPoint) -> str:
    """The package that an entry point belongs to, as a message names it."""
    if point.dist is None:
        return f"the package of '{point.value}'"
    return f"the package '{point.dist.name}' {point.dist.version}"
