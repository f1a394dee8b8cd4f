"""Designs: the structures of all conditions, their regions, and what is predicted, read from TOML.

A file names its phenomenon and holds one table per design. The conditions are the cells of the factors, named
by their levels (`match_singular`). Each is a structure with bars between regions. The first condition draws
its parts; the others repeat them (`@label`, `@label[num=pl]`) or add parts of their own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from felicity.core.errors import BadInput, UnknownName
from felicity.core.formulas import ALL_REGIONS, list_regions, parse_prediction
from felicity.core.regions import BAR
from felicity.stimuli.grammar import (
    MARKS,
    Grammar,
    Node,
    SourceLine,
    StructureFile,
    list_structure_files,
    read_structure,
    read_structure_file,
)

DESIGNS = "designs"
FILE_KEYS = ("phenomenon", "words")
KEYS = ("about", "source", "factors", "regions", "equal", "predictions", "conditions", "allow")
NEEDED = ("factors", "regions", "predictions", "conditions")
LEVELS = "_"

Regions = tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Design:
    """What is needed to draw the items of one design.

    factors: the levels of each factor. conditions: alternative structures by name of the condition; one
    alternative is drawn for each item, the same in all conditions. equal: regions that have the same number
    of tokens in all conditions. allow: what the grammar avoids but this design is about.
    """

    name: str
    phenomenon: str
    about: str
    source: str
    factors: Mapping[str, tuple[str, ...]]
    regions: tuple[str, ...]
    equal: tuple[str, ...]
    predictions: tuple[str, ...]
    conditions: Mapping[str, tuple[Regions, ...]]
    allow: frozenset[str]
    place: SourceLine

    @property
    def alternatives(self) -> int:
        """How many structures each condition has."""
        return len(next(iter(self.conditions.values())))

    def levels(self, condition: str) -> dict[str, str]:
        """The level of every factor in a condition."""
        return dict(zip(self.factors, condition.split(LEVELS), strict=True))


def read_designs(grammar: Grammar, folder: Path) -> dict[str, Design]:
    """The designs of a language's folder, by name."""
    files = list_structure_files(folder / DESIGNS)
    return {design.name: design for path in files for design in read_design_file(path, grammar)}


def read_design_file(path: Path, grammar: Grammar) -> list[Design]:
    """The designs of one file.

    Raises BadInput or UnknownName with the file and line.
    """
    file = read_structure_file(path, grammar, kind="design", fields=FILE_KEYS)
    return [_read_design(file, name) for name in file.tables]


def _read_design(file: StructureFile, name: str) -> Design:
    place, table = file.check_table("design", name, keys=KEYS, needed=NEEDED), file.tables[name]
    factors = {str(factor): tuple(levels) for factor, levels in table["factors"].items()}
    regions = tuple(table["regions"])
    conditions = _read_conditions(file, name, table["conditions"], factors, regions, place)
    equal = tuple(table.get("equal", ()))
    for region in equal:
        if region not in regions:
            raise UnknownName("region", region, regions, where=str(place))
    for prediction in table["predictions"]:
        _check_prediction(prediction, regions, conditions, place)
    return Design(
        name=name,
        phenomenon=file.phenomenon(name),
        about=str(table.get("about", "")),
        source=str(table.get("source", "")),
        factors=factors,
        regions=regions,
        equal=equal,
        predictions=tuple(table["predictions"]),
        conditions=conditions,
        allow=file.check_allowed(name, place),
        place=place,
    )


def _read_conditions(
    file: StructureFile,
    name: str,
    written: Mapping[str, str | Sequence[str]],
    factors: Mapping[str, tuple[str, ...]],
    regions: tuple[str, ...],
    place: SourceLine,
) -> dict[str, tuple[Regions, ...]]:
    cells = [LEVELS.join(levels) for levels in product(*factors.values())]
    for condition in written:
        if condition not in cells:
            raise UnknownName("condition", condition, cells, where=str(place))
    for cell in cells:
        if cell not in written:
            raise BadInput(f"{place}: design '{name}' has no condition '{cell}'; add {cell} = ...")
    lists = {key: [value] if isinstance(value, str) else list(value) for key, value in written.items()}
    if len({len(one) for one in lists.values()}) > 1:
        raise BadInput(f"{place}: give every condition of '{name}' as many structures as the others.")
    columns = [
        _read_alternative(file, [(key, one[number]) for key, one in lists.items()], regions)
        for number in range(len(next(iter(lists.values()))))
    ]
    return {key: tuple(column[key] for column in columns) for key in lists}


def _read_alternative(
    file: StructureFile, structures: Sequence[tuple[str, str]], regions: tuple[str, ...]
) -> dict[str, Regions]:
    """One structure of every condition; what is repeated must have been named before."""
    named: dict[str, Node] = {}
    read: dict[str, Regions] = {}
    for condition, structure in structures:
        place = file.place(structure)
        pieces = structure.split(f" {BAR}")
        if len(pieces) != len(regions):
            raise BadInput(
                f"{place}: condition '{condition}' has {len(pieces)} regions where there should be "
                f"{len(regions)}: {', '.join(regions)}."
            )
        read[condition] = tuple(read_structure(piece, file.grammar.vocabulary, place) for piece in pieces)
        for region in read[condition]:
            _check_start(region, file, place)
            for node in region:
                _check_node(node, named, file, place)
    return read


def _check_start(region: Sequence[Node], file: StructureFile, place: SourceLine) -> None:
    if region and region[0].name in (*MARKS, *file.grammar.vocabulary.realization.clitics):
        raise BadInput(
            f"{place}: a region starts with '{region[0].name}', which belongs to the word before it; "
            "put it at the end of the region before."
        )


def _check_node(node: Node, named: dict[str, Node], file: StructureFile, place: SourceLine) -> None:
    if not node.repeats:
        if node.label in named:
            raise BadInput(f"{place}: two parts are called '{node.label}'; repeat it with @, or rename one.")
        if node.label:
            named[node.label] = node
        return
    if node.name not in named:
        raise UnknownName("earlier part", node.name, named, where=str(place))
    file.check_change(node, named[node.name], place)


def _check_prediction(
    formula: str, regions: Sequence[str], conditions: Mapping[str, object], place: SourceLine
) -> None:
    """A formula names regions and conditions of the design.

    Raises BadInput or UnknownName with the file and line.
    """
    for region in list_regions(parse_prediction(formula)):
        if region.condition not in conditions:
            raise UnknownName("condition", region.condition, conditions, where=str(place))
        if region.region not in (*regions, ALL_REGIONS):
            raise UnknownName("region", region.region, regions, where=str(place))
