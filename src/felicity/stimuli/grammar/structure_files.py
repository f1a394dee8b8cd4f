"""What files of paradigms and files of designs have in common: tables of structures over one grammar.

A file names its phenomenon, may allow words that the lexicon does not have, and holds one table per paradigm
or design. Everything that is wrong is refused with the file and the line.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from felicity.core.documents import read_document
from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import read_text
from felicity.stimuli.grammar.notation import Node, SourceLine, with_words
from felicity.stimuli.grammar.rules import Grammar, find_line


@dataclass(frozen=True)
class StructureFile:
    """A file that was read: its tables, its other fields, and the grammar with the words that it adds."""

    path: Path
    text: str
    tables: Mapping[str, Mapping[str, Any]]
    fields: Mapping[str, Any]
    grammar: Grammar

    def phenomenon(self, name: str) -> str:
        """The phenomenon of a table: that of the file, or its own name."""
        return str(self.fields.get("phenomenon") or name)

    def place(self, piece: str, start: int = 1) -> SourceLine:
        """The line on which a piece of the file stands, from a line on."""
        rest = "\n".join(self.text.split("\n")[start - 1 :])
        return SourceLine(self.path.name, start - 1 + find_line(rest, piece))

    def check_table(
        self, kind: str, name: str, *, keys: Collection[str], needed: Sequence[str]
    ) -> SourceLine:
        """Where a table starts, if it has what it needs and nothing else.

        Raises BadInput or UnknownName.
        """
        start, table = self.place(f"[{name}]"), self.tables[name]
        for key in table:
            if key not in keys:
                raise UnknownName("key", key, keys, where=str(self.place(key, start.line)))
        for key in needed:
            if not table.get(key):
                raise BadInput(f"{start}: {kind} '{name}' has no '{key}'; add a line {key} = ...")
        return start

    def check_allowed(self, name: str, start: SourceLine) -> frozenset[str]:
        """What a table allows of what the grammar avoids.

        Raises UnknownName for what the grammar does not avoid.
        """
        allowed = frozenset(as_list(self.tables[name].get("allow", [])))
        known = [one.name for one in self.grammar.avoid]
        for one in sorted(allowed - set(known)):
            raise UnknownName("pattern to avoid", one, known, where=str(self.place("allow", start.line)))
        return allowed

    def check_change(self, node: Node, original: Node, place: SourceLine) -> None:
        """A part that is repeated with other features must be a word that has them.

        Raises BadInput or UnknownName.
        """
        if node.features and (not original.is_category or original.name in self.grammar.rules):
            raise BadInput(
                f"{place}: '@{node.name}' changes the features of a phrase; only a word can change."
            )
        known = self.grammar.vocabulary.categories.get(original.name, frozenset())
        for feature in node.features:
            if feature not in known:
                raise UnknownName(f"feature of {original.name}", feature, known, where=str(place))


def read_structure_file(path: Path, grammar: Grammar, *, kind: str, fields: Collection[str]) -> StructureFile:
    """A file of tables; kind: what its tables are. fields: what it may have besides tables.

    Raises BadInput or UnknownName with the file and line.
    """
    text = read_text(path)
    content = read_document(path).content
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    if not tables:
        raise BadInput(f"{path}: no {kind} in it; start one with a line [its_name].")
    others = {name: value for name, value in content.items() if name not in tables}
    for key in others:
        if key not in fields:
            raise UnknownName("key", key, fields, where=str(SourceLine(path.name, find_line(text, key))))
    vocabulary = with_words(grammar.vocabulary, as_list(others.get("words", [])))
    return StructureFile(path, text, tables, others, replace(grammar, vocabulary=vocabulary))


def list_structure_files(folder: Path) -> list[Path]:
    """The files of a folder, in order; none if there is no such folder."""
    return sorted(folder.glob("*.toml"))


def as_list(value: Any) -> list[str]:
    """A text or a list of them, as a list."""
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]
