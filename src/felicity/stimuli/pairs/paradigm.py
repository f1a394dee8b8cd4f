"""Paradigms: the good structure, the bad one, and the slots in which they differ, read from TOML.

A file names its phenomenon and holds one table per paradigm. `good` and `bad` are structures, or lists of
structures of which one pair of alternatives is drawn for each item.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import read_text
from felicity.stimuli.grammar import Grammar, Node, Other, SourceLine, find_line, read_structure, with_words

PARADIGMS = "paradigms"
FILE_KEYS = ("phenomenon", "collection", "words")
KEYS = ("about", "source", "good", "bad", "differ", "unequal", "allow")


@dataclass(frozen=True)
class Frame:
    """One good structure and the bad one beside it."""

    good: tuple[Node, ...]
    bad: tuple[Node, ...]
    place: SourceLine


@dataclass(frozen=True, kw_only=True)
class Paradigm:
    """What is needed to draw the pairs of one suite.

    differ: the labels of the parts in which good and bad differ. unequal: why the two cannot be equally long,
    if they cannot; the words that can be matched still are. source: where the contrast is described.
    collection: what set of paradigms it belongs to. allow: the names of what the grammar avoids that this
    paradigm is about.
    """

    uid: str
    phenomenon: str
    about: str
    frames: tuple[Frame, ...]
    differ: frozenset[str]
    unequal: str | None
    place: SourceLine
    source: str = ""
    collection: str = ""
    allow: frozenset[str] = frozenset()


def read_builtin(grammar: Grammar, folder: Path) -> dict[str, Paradigm]:
    """The paradigms of a language's folder, by UID."""
    found: dict[str, Paradigm] = {}
    for path in sorted((folder / PARADIGMS).glob("*.toml")):
        found |= {paradigm.uid: paradigm for paradigm in read_paradigms(path, grammar)}
    return found


def read_paradigms(path: Path, grammar: Grammar) -> list[Paradigm]:
    """The paradigms of one file.

    Raises BadInput or UnknownName with the file and line.
    """
    text = read_text(path)
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: {error}.") from error
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    if not tables:
        raise BadInput(f"{path}: no paradigm in it; start one with a line [its_name].")
    for key in content:
        if key not in tables and key not in FILE_KEYS:
            raise UnknownName("key", key, FILE_KEYS, where=str(SourceLine(path.name, find_line(text, key))))
    phenomenon = content.get("phenomenon")
    vocabulary = with_words(grammar.vocabulary, _as_list(content.get("words", [])))
    grammar = replace(grammar, vocabulary=vocabulary)
    reader = _Reader(text, path, grammar)
    collection = str(content.get("collection", ""))
    found = [reader.read(uid, table, str(phenomenon or uid)) for uid, table in tables.items()]
    return [replace(paradigm, collection=collection) for paradigm in found]


@dataclass(frozen=True)
class _Reader:
    text: str
    path: Path
    grammar: Grammar

    def read(self, uid: str, table: Mapping[str, Any], phenomenon: str) -> Paradigm:
        start = find_line(self.text, f"[{uid}]")
        place = SourceLine(self.path.name, start)
        for key in table:
            if key not in KEYS:
                raise UnknownName("key", key, KEYS, where=str(self._place(start, key)))
        for key in ("good", "bad", "differ"):
            if not table.get(key):
                raise BadInput(f"{place}: paradigm '{uid}' has no '{key}'; add a line {key} = ...")
        goods, bads = _as_list(table["good"]), _as_list(table["bad"])
        if len(goods) != len(bads):
            raise BadInput(
                f"{self._place(start, 'bad')}: {len(goods)} good structures but {len(bads)} bad ones; "
                "give each good one its bad one."
            )
        differ = frozenset(_as_list(table["differ"]))
        frames = tuple(self._frame(*texts, start) for texts in zip(goods, bads, strict=True))
        labels = {node.label for frame in frames for node in (*frame.good, *frame.bad) if node.label}
        for label in differ - labels:
            raise UnknownName("part", label, labels, where=str(self._place(start, "differ")))
        for frame in frames:
            _check_differences(frame.good, frame.bad, differ, frame.place)
        allow = frozenset(_as_list(table.get("allow", [])))
        names = [one.name for one in self.grammar.avoid]
        for name in allow - set(names):
            raise UnknownName("pattern to avoid", name, names, where=str(self._place(start, "allow")))
        return Paradigm(
            uid=uid,
            phenomenon=phenomenon,
            about=str(table.get("about", "")),
            frames=frames,
            differ=differ,
            unequal=table.get("unequal"),
            place=place,
            source=str(table.get("source", "")),
            allow=allow,
        )

    def _frame(self, good: str, bad: str, start: int) -> Frame:
        good_place, bad_place = self._place(start, good), self._place(start, bad)
        parts = read_structure(good, self.grammar.vocabulary, good_place)
        others = read_structure(bad, self.grammar.vocabulary, bad_place)
        named = {node.label: node for node in parts if node.label}
        if len(named) != sum(node.label is not None for node in parts):
            raise BadInput(f"{good_place}: two parts have the same label; rename one.")
        for place, node in enumerate(parts):
            if node.repeats and node.name not in {one.label for one in parts[:place]}:
                raise UnknownName("earlier part", node.name, named, where=str(good_place))
            if node.repeats and node.features:
                raise BadInput(f"{good_place}: '@{node.name}' changes features; only the bad structure can.")
        for node in others:
            if node.repeats and node.name not in named:
                raise UnknownName("part", node.name, named, where=str(bad_place))
            if node.repeats and node.features and not self._is_word(named[node.name]):
                raise BadInput(
                    f"{bad_place}: '@{node.name}' changes the features of a phrase; only a word can change."
                )
            if node.repeats:
                self._check_features(node, named[node.name], bad_place)
        return Frame(parts, others, bad_place)

    def _check_features(self, node: Node, original: Node, place: SourceLine) -> None:
        known = self.grammar.vocabulary.categories.get(original.name, frozenset())
        for feature in node.features:
            if feature not in known:
                raise UnknownName(f"feature of {original.name}", feature, known, where=str(place))

    def _is_word(self, node: Node) -> bool:
        return node.is_category and node.name not in self.grammar.rules

    def _place(self, start: int, piece: str) -> SourceLine:
        rest = "\n".join(self.text.split("\n")[start - 1 :])
        return SourceLine(self.path.name, start - 1 + find_line(rest, piece))


def _check_differences(
    good: Sequence[Node], bad: Sequence[Node], differ: frozenset[str], place: SourceLine
) -> None:
    """What is outside the declared slots must be the same in both.

    Raises BadInput.
    """
    left, right = _outside(good, differ, "good"), _outside(bad, differ, "bad")
    if left != right:
        odd = next(
            (one for one in (*right, *left) if one not in left or one not in right), "the order of parts"
        )
        raise BadInput(
            f"{place}: good and bad differ in {odd}, which 'differ' does not name; name its label there, "
            "or repeat the part with @."
        )
    if not any(node.label in differ or (node.repeats and node.name in differ) for node in bad) and not any(
        node.label in differ for node in good
    ):
        raise BadInput(f"{place}: good and bad are the same; change the part named in 'differ'.")


def _outside(nodes: Iterable[Node], differ: frozenset[str], side: str) -> list[str]:
    """The parts that are not declared to differ; a phrase without a label is drawn anew, so it differs."""
    found = []
    for node in nodes:
        label = node.name if node.repeats else node.label
        if label in differ:
            continue
        changed = node.repeats and any(isinstance(term, Other) or term for term in node.features.values())
        if label:
            found.append(f"@{label}{'[changed]' if changed else ''}")
        else:
            found.append(f"'{node.name}'" + (f" of the {side} structure" if node.is_category else ""))
    return found


def _as_list(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]
