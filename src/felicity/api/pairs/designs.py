"""Make the items of factorial designs from a grammar, and write them as suites and as tables."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from felicity.api.pairs.making import ALL, ENDINGS, open_counters, write_pairs
from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import disk_errors, replacing
from felicity.stimuli.designs import (
    DESIGNS,
    Design,
    DesignGenerator,
    DesignItems,
    read_design_file,
    read_designs,
)
from felicity.stimuli.pairs import CountTokens, read_language

SUITE = ".json"
TABLE = ".csv"


def list_designs(language: str = "english") -> list[Design]:
    """The designs of a language."""
    found = read_language(language)
    return list(read_designs(found.grammar, found.folder).values())


def make_designs(
    names: Sequence[str],
    n: int = 24,
    *,
    tokenizers: Sequence[str] = ("smollm2",),
    seed: int = 0,
    language: str = "english",
    counters: Mapping[str, CountTokens] | None = None,
) -> list[DesignItems]:
    """The items of designs: names of built-in ones, `all`, or .toml files of your own.

    n: items per design. counters: token counters that are open already, by name. Raises BadInput or
    UnknownName for an unknown design or an error in a file.
    """
    spoken = read_language(language)
    known = read_designs(spoken.grammar, spoken.folder)
    chosen: dict[str, Design] = {}
    for name in names:
        if name == ALL:
            chosen |= known
        elif name.endswith(".toml"):
            chosen |= {design.name: design for design in read_design_file(Path(name), spoken.grammar)}
        elif name in known:
            chosen[name] = known[name]
        else:
            raise UnknownName("design", name, known, hint="`felicity stimuli design --list` lists them")
    if not chosen:
        raise BadInput(f"{spoken.folder.name} has no design; put one into {DESIGNS}/, or name a .toml file.")
    counting = counters if counters is not None else open_counters(tokenizers)
    generator = DesignGenerator(spoken.lexicon, spoken.grammar, counting)
    return [generator.make(design, n, seed=seed) for design in chosen.values()]


def check_designs_path(path: Path, count: int | None = None) -> None:
    """Refuse a path that `write_designs` could not write; count: how many designs there are, once known.

    Raises BadInput.
    """
    if path.suffix and path.suffix not in (SUITE, *ENDINGS):
        raise BadInput(
            f"Cannot write {path}: name a folder, or a file that ends in {', '.join((SUITE, *ENDINGS))}."
        )
    if path.suffix and count is not None and count != 1:
        raise BadInput(f"{path} would hold {count} designs; name a folder, which gets two files for each.")


def write_designs(made: Sequence[DesignItems], path: Path) -> list[Path]:
    """Write one design by the ending of the path, or any number into a folder: NAME.json and NAME.csv each.

    Raises BadInput for another ending, or several designs for one file.
    """
    check_designs_path(path, len(made))
    if path.suffix:
        return [_write(made[0], path)]
    with disk_errors(path):
        path.mkdir(parents=True, exist_ok=True)
    return [_write(one, path / f"{one.design.name}{ending}") for one in made for ending in (SUITE, TABLE)]


def _write(made: DesignItems, path: Path) -> Path:
    if path.suffix != SUITE:
        return write_pairs(made.as_table(), path)
    with replacing(path) as part:
        part.write_text(json.dumps(made.as_suite(), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path
