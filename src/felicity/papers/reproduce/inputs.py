"""The input files of a paper: found, checked by sha256, and passed to computations."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import read_frame
from felicity.core.ids import hash_file

T = TypeVar("T")
SAME, MISSING, CHANGED = "same", "missing", "changed"


@dataclass(frozen=True)
class Input:
    """An input file: its path in the claims file, the one on this machine, and whether it is the same."""

    name: str
    path: Path | None
    expected: str
    found: str | None

    @property
    def state(self) -> str:
        """same, missing or changed."""
        if self.found is None:
            return MISSING
        return SAME if self.found == self.expected else CHANGED


def find_inputs(hashes: Mapping[str, str], folders: Sequence[Path]) -> dict[str, Input]:
    """Every input in the first folder that has it, with its sha256."""
    found = {}
    for name, expected in hashes.items():
        path = next((folder / name for folder in folders if (folder / name).is_file()), None)
        found[name] = Input(name, path, expected, hash_file(path) if path else None)
    return found


@dataclass
class Files:
    """What a computation may read: the inputs that its claim lists, each by its path in the claims file.

    `once` caches what several claims share, such as a parsed table or a fitted model.
    """

    known: Mapping[str, Input]
    allowed: frozenset[str] = frozenset()
    used: set[str] = field(default_factory=set)
    kept: dict[Any, tuple[Any, frozenset[str]]] = field(default_factory=dict)

    def path(self, name: str) -> Path:
        """The path of an input on this machine.

        Raises BadInput if the claim does not list it.
        """
        self._use(name)
        found = self.known[name].path
        if found is None:
            raise BadInput(f"The input {name} is missing.")
        return found

    def folder(self, name: str) -> Path:
        """The folder of all inputs below `name`."""
        below = [known for known in self.known if known.startswith(f"{name}/")]
        if not below:
            raise BadInput(f"No input is in {name}.")
        paths = [self.path(known) for known in below]
        return paths[0].parents[below[0].removeprefix(f"{name}/").count("/")]

    def table(self, name: str) -> pl.DataFrame:
        """A .csv (also gzipped), .tsv or .parquet input as a table."""
        return self.once(("table", name), lambda: read_frame(self.path(name)))

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """The value of `make`, computed once per `key`."""
        if key not in self.kept:
            before, self.used = self.used, set()
            try:
                value = make()
                self.kept[key] = (value, frozenset(self.used))
            finally:
                self.used |= before
        value, used = self.kept[key]
        for name in sorted(used):
            self._use(name)
        return value

    def _use(self, name: str) -> None:
        if name not in self.known:
            raise BadInput(f"{name} is not among the inputs of the claims file; list it with its sha256.")
        if name not in self.allowed:
            raise BadInput(f"the claim does not list the input {name}, which its computation reads.")
        self.used.add(name)
