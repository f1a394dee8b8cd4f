"""The lexicon: tables of words that people can read and edit, as feature structures.

A folder holds one table per category and `layout.toml`, which says for each category what file it is in,
which columns are word forms (and what features a form has) and which are features of the whole word. A
cell holds one value or several joined by `|`; an empty cell of a feature is the value `none`.
"""

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from felicity.core.documents import read_document
from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import read_text
from felicity.stimuli.grammar import Alternation, Atoms, Drawing, Notation, Realization

LANGUAGES = Path(__file__).parents[1] / "languages"
ENGLISH = LANGUAGES / "english"
LAYOUT = "layout.toml"
NONE = "none"


@dataclass(frozen=True, eq=False)
class WordForm:
    """One form of one word, with everything that is true of it."""

    category: str
    lexeme: str
    text: str
    features: Mapping[str, Atoms]
    line: int

    def admits(self, constraint: Mapping[str, Atoms]) -> bool:
        """Whether the form unifies with a constraint."""
        return all(self.features[name] & atoms for name, atoms in constraint.items())


@dataclass(frozen=True)
class Lexicon:
    """All forms by category; `matching` is how a place in a structure finds the words that fit it.

    language: the code of the language, as word frequencies are listed under.
    """

    readings: Mapping[str, tuple[WordForm, ...]]
    vocabulary: Notation
    language: str = ""
    _found: dict[Any, list[WordForm]] = field(default_factory=dict, repr=False)
    _paradigms: dict[tuple[str, str], list[WordForm]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for category, readings in self.readings.items():
            for reading in readings:
                self._paradigms.setdefault((category, reading.lexeme), []).append(reading)

    def matching(self, category: str, constraint: Mapping[str, Atoms]) -> list[WordForm]:
        """The forms of a category that unify with a constraint."""
        key = (category, frozenset(constraint.items()))
        if key not in self._found:
            self._found[key] = [one for one in self.readings[category] if one.admits(constraint)]
        return self._found[key]

    def other_form(self, reading: WordForm, changes: Mapping[str, Atoms]) -> WordForm | None:
        """The form of the same word that has the changed features and agrees in all others."""
        wanted = {**reading.features, **changes}
        forms = self._paradigms[reading.category, reading.lexeme]
        return next((form for form in forms if form.admits(wanted)), None)

    @property
    def function_words(self) -> frozenset[str]:
        """All words that structures may use but those of the open classes."""
        drawing, realization = self.vocabulary.drawing, self.vocabulary.realization
        content = {
            one.text for category in drawing.open & set(self.readings) for one in self.readings[category]
        }
        return self.vocabulary.words - content | {one.form for one in realization.alternations}

    def count(self, category: str) -> int:
        """How many words a category has."""
        return len({reading.lexeme for reading in self.readings[category]})


def read_lexicon(folder: Path = ENGLISH) -> Lexicon:
    """The words of a folder.

    Raises BadInput or UnknownName naming the file and the line.
    """
    layout = dict(read_document(folder / LAYOUT).content)
    groups = {name: frozenset(atoms) for name, atoms in layout.pop("groups", {}).items()}
    shared = layout.pop("shared", [])
    small = layout.pop("words", [])
    language = str(layout.pop("language", ""))
    realization = _read_realization(layout.pop("realization", {}), folder / LAYOUT)
    drawing = _read_drawing(layout.pop("drawing", {}), layout, folder / LAYOUT)
    readings = {
        category: tuple(_read_category(folder, category, table, groups)) for category, table in layout.items()
    }
    vocabulary = _describe(readings, shared, groups, small)
    return Lexicon(readings, replace(vocabulary, realization=realization, drawing=drawing), language)


def _read_realization(table: Mapping[str, Any], path: Path) -> Realization:
    alternations = []
    for one in table.get("alternations", ()):
        try:
            pattern = re.compile(one["before"], re.IGNORECASE)
            alternations.append(Alternation(one["word"], one["form"], pattern))
        except KeyError as error:
            raise BadInput(
                f"{path}: an alternation needs word, form and before; {error} is missing."
            ) from error
        except re.error as error:
            raise BadInput(f"{path}: the pattern '{one['before']}' cannot be read: {error}.") from error
    return Realization(
        clitics=tuple(table.get("clitics", ())),
        contractions=dict(table.get("contractions", {})),
        alternations=tuple(alternations),
    )


def _read_drawing(table: Mapping[str, Any], categories: Mapping[str, Any], path: Path) -> Drawing:
    order = tuple(frozenset(names) for names in table.get("order", ()))
    drawing = Drawing(
        open=frozenset(table.get("open", ())),
        order=order,
        changed=frozenset(table.get("changed", ())),
        even=tuple(table.get("even", ())),
    )
    for name in sorted(drawing.open.union(drawing.changed, *order)):
        if name not in categories:
            raise UnknownName("category", name, categories, where=str(path))
    return drawing


def _read_category(
    folder: Path, category: str, table: Mapping[str, Any], groups: Mapping[str, Atoms]
) -> list[WordForm]:
    path = folder / str(table["file"])
    rows = list(csv.reader(read_text(path).splitlines(), delimiter="\t"))
    header = rows[0]
    for column in (*(form[0] for form in table["forms"]), *table["features"].values()):
        if column not in header:
            raise UnknownName("column", column, header, where=str(path))
    found: list[WordForm] = []
    seen: dict[str, int] = {}
    for line, cells in enumerate(rows[1:], 2):
        if not cells or cells[0].startswith("#"):
            continue
        if len(cells) != len(header):
            raise BadInput(f"{path.name}, line {line}: {len(cells)} cells, not {len(header)}; one tab each.")
        row = dict(zip(header, cells, strict=True))
        lexeme = "/".join(row[column] for column in table.get("key", header[:1]))
        if lexeme in seen:
            raise BadInput(f"{path.name}, line {line}: '{lexeme}' is already on line {seen[lexeme]}.")
        seen[lexeme] = line
        own = {name: _atoms(row[column], groups) for name, column in table["features"].items()}
        for column, written in table["forms"]:
            if row[column]:
                features = own | {
                    name: _atoms(value, groups) for name, value in (part.split("=") for part in written)
                }
                found.append(WordForm(category, lexeme, row[column], features, line))
    return found


def _atoms(cell: str, groups: Mapping[str, Atoms]) -> Atoms:
    atoms: set[str] = set()
    for atom in (cell or NONE).split("|"):
        atoms |= groups.get(atom, {atom})
    return frozenset(atoms)


def _describe(
    readings: Mapping[str, Sequence[WordForm]],
    shared: Sequence[Sequence[str]],
    groups: Mapping[str, Atoms],
    small: Sequence[str],
) -> Notation:
    """The features of each category and the values of each feature, as the tables have them."""
    domains: dict[str, set[str]] = {}
    for found in readings.values():
        for reading in found:
            for name, atoms in reading.features.items():
                domains.setdefault(name, set()).update(atoms)
    for names in shared:
        union = {atom for name in names for atom in domains.get(name, ())}
        for name in names:
            domains[name] = set(union)
    return Notation(
        categories={
            category: frozenset(name for reading in found for name in reading.features)
            for category, found in readings.items()
        },
        domains={name: frozenset(atoms) for name, atoms in domains.items()},
        groups=groups,
        words=frozenset(small)
        | {word for found in readings.values() for one in found for word in one.text.split()},
    )
