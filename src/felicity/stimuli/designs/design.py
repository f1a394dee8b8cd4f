"""Designs: the structures of all conditions, their regions, and what is predicted, read from TOML.

A file names its phenomenon and holds one table per design. The conditions are the cells of the factors, named
by their levels (`match_singular`). Each is a structure with bars between regions. The first condition draws
its parts; the others repeat them (`@label`, `@label[num=pl]`) or add parts of their own.
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import read_text
from felicity.core.formulas import ALL_REGIONS, list_regions, parse_prediction
from felicity.core.regions import BAR
from felicity.stimuli.grammar import MARKS, Grammar, Node, SourceLine, find_line, read_structure, with_words

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
    found: dict[str, Design] = {}
    for path in sorted((folder / DESIGNS).glob("*.toml")):
        found |= {design.name: design for design in read_design_file(path, grammar)}
    return found


def read_design_file(path: Path, grammar: Grammar) -> list[Design]:
    """The designs of one file.

    Raises BadInput or UnknownName with the file and line.
    """
    text = read_text(path)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: {error}.") from error
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    if not tables:
        raise BadInput(f"{path}: no design in it; start one with a line [its_name].")
    for key in content:
        if key not in tables and key not in FILE_KEYS:
            raise UnknownName("key", key, FILE_KEYS, where=str(SourceLine(path.name, find_line(text, key))))
    words = [str(word) for word in content.get("words", [])]
    grammar = replace(grammar, vocabulary=with_words(grammar.vocabulary, words))
    reader = _Reader(text, path, grammar)
    return [reader.read(name, table, str(content.get("phenomenon", name))) for name, table in tables.items()]


@dataclass(frozen=True)
class _Reader:
    text: str
    path: Path
    grammar: Grammar

    def read(self, name: str, table: Mapping[str, Any], phenomenon: str) -> Design:
        place = SourceLine(self.path.name, find_line(self.text, f"[{name}]"))
        for key in table:
            if key not in KEYS:
                raise UnknownName("key", key, KEYS, where=str(place))
        for key in NEEDED:
            if not table.get(key):
                raise BadInput(f"{place}: design '{name}' has no '{key}'; add a line {key} = ...")
        factors = {str(factor): tuple(levels) for factor, levels in table["factors"].items()}
        regions = tuple(table["regions"])
        conditions = self._conditions(name, table["conditions"], factors, regions, place)
        equal = tuple(table.get("equal", ()))
        for region in equal:
            if region not in regions:
                raise UnknownName("region", region, regions, where=str(place))
        for prediction in table["predictions"]:
            _check_prediction(prediction, regions, conditions, place)
        allow = frozenset(table.get("allow", ()))
        names = {one.name for one in self.grammar.avoid}
        for one in sorted(allow - names):
            raise UnknownName("name under [[avoid]]", one, names, where=str(place))
        return Design(
            name=name,
            phenomenon=phenomenon,
            about=str(table.get("about", "")),
            source=str(table.get("source", "")),
            factors=factors,
            regions=regions,
            equal=equal,
            predictions=tuple(table["predictions"]),
            conditions=conditions,
            allow=allow,
            place=place,
        )

    def _conditions(
        self,
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
            self._alternative([(key, one[number]) for key, one in lists.items()], regions)
            for number in range(len(next(iter(lists.values()))))
        ]
        return {key: tuple(column[key] for column in columns) for key in lists}

    def _alternative(
        self, structures: Sequence[tuple[str, str]], regions: tuple[str, ...]
    ) -> dict[str, Regions]:
        """One structure of every condition; what is repeated must have been named before."""
        named: dict[str, Node] = {}
        read: dict[str, Regions] = {}
        for condition, structure in structures:
            place = SourceLine(self.path.name, find_line(self.text, structure))
            pieces = structure.split(f" {BAR}")
            if len(pieces) != len(regions):
                raise BadInput(
                    f"{place}: condition '{condition}' has {len(pieces)} regions where there should be "
                    f"{len(regions)}: {', '.join(regions)}."
                )
            read[condition] = tuple(read_structure(piece, self.grammar.vocabulary, place) for piece in pieces)
            for region in read[condition]:
                self._check_start(region, place)
                for node in region:
                    self._check_node(node, named, place)
        return read

    def _check_start(self, region: Sequence[Node], place: SourceLine) -> None:
        if region and region[0].name in (*MARKS, *self.grammar.vocabulary.realization.clitics):
            raise BadInput(
                f"{place}: a region starts with '{region[0].name}', which belongs to the word before it; "
                "put it at the end of the region before."
            )

    def _check_node(self, node: Node, named: dict[str, Node], place: SourceLine) -> None:
        if not node.repeats:
            if node.label in named:
                raise BadInput(
                    f"{place}: two parts are called '{node.label}'; repeat it with @, or rename one."
                )
            if node.label:
                named[node.label] = node
            return
        if node.name not in named:
            raise UnknownName("earlier part", node.name, named, where=str(place))
        original = named[node.name]
        if node.features and (not original.is_category or original.name in self.grammar.rules):
            raise BadInput(
                f"{place}: '@{node.name}' changes the features of a phrase; only a word can change."
            )
        known = self.grammar.vocabulary.categories.get(original.name, frozenset())
        for feature in node.features:
            if feature not in known:
                raise UnknownName(f"feature of {original.name}", feature, known, where=str(place))


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
