"""The room's own word lists: names, insertions, syllables, words that do grammatical work."""

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

FOLDER = "words"


@cache
def read_words(name: str) -> tuple[str, ...]:
    """The words of a list, in its order; lines that begin with # are remarks."""
    lines = (line for line in _read(f"{name}.txt").splitlines() if not line.startswith("#"))
    return tuple(word for line in lines for word in line.split())


@cache
def read_toml(name: str) -> dict[str, Any]:
    """A list with parts, as its TOML says."""
    return tomllib.loads(_read(f"{name}.toml"))


@cache
def read_pairs(name: str) -> dict[str, str]:
    """A table of two columns with a header, as a mapping from the first to the second."""
    rows = (line.partition("\t") for line in _read(f"{name}.tsv").splitlines()[1:])
    return {first: second for first, _, second in rows}


def _read(name: str) -> str:
    return files("felicity.design").joinpath(FOLDER, name).read_text(encoding="utf-8")
