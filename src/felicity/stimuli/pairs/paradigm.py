"""Paradigms: the good structure, the bad one, and the slots in which they differ, read from TOML.

A file names its phenomenon and holds one table per paradigm. `good` and `bad` are structures, or lists of
structures of which one pair of alternatives is drawn for each item.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from felicity.core.errors import BadInput, UnknownName
from felicity.stimuli.grammar import (
    Grammar,
    Node,
    Other,
    SourceLine,
    StructureFile,
    as_list,
    list_structure_files,
    read_structure,
    read_structure_file,
)

PARADIGMS = "paradigms"
FILE_KEYS = ("phenomenon", "collection", "words")
KEYS = ("about", "source", "good", "bad", "differ", "unequal", "allow")
NEEDED = ("good", "bad", "differ")


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
    files = list_structure_files(folder / PARADIGMS)
    return {paradigm.uid: paradigm for path in files for paradigm in read_paradigms(path, grammar)}


def read_paradigms(path: Path, grammar: Grammar) -> list[Paradigm]:
    """The paradigms of one file.

    Raises BadInput or UnknownName with the file and line.
    """
    file = read_structure_file(path, grammar, kind="paradigm", fields=FILE_KEYS)
    return [_read_paradigm(file, uid) for uid in file.tables]


def _read_paradigm(file: StructureFile, uid: str) -> Paradigm:
    place, table = file.check_table("paradigm", uid, keys=KEYS, needed=NEEDED), file.tables[uid]
    goods, bads = as_list(table["good"]), as_list(table["bad"])
    if len(goods) != len(bads):
        raise BadInput(
            f"{file.place('bad', place.line)}: {len(goods)} good structures but {len(bads)} bad ones; "
            "give each good one its bad one."
        )
    differ = frozenset(as_list(table["differ"]))
    frames = tuple(_read_frame(file, *texts, place.line) for texts in zip(goods, bads, strict=True))
    labels = {node.label for frame in frames for node in (*frame.good, *frame.bad) if node.label}
    for label in differ - labels:
        raise UnknownName("part", label, labels, where=str(file.place("differ", place.line)))
    for frame in frames:
        _check_differences(frame.good, frame.bad, differ, frame.place)
    return Paradigm(
        uid=uid,
        phenomenon=file.phenomenon(uid),
        about=str(table.get("about", "")),
        frames=frames,
        differ=differ,
        unequal=table.get("unequal"),
        place=place,
        source=str(table.get("source", "")),
        collection=str(file.fields.get("collection", "")),
        allow=file.check_allowed(uid, place),
    )


def _read_frame(file: StructureFile, good: str, bad: str, start: int) -> Frame:
    good_place, bad_place = file.place(good, start), file.place(bad, start)
    parts = read_structure(good, file.grammar.vocabulary, good_place)
    others = read_structure(bad, file.grammar.vocabulary, bad_place)
    named = {node.label: node for node in parts if node.label}
    if len(named) != sum(node.label is not None for node in parts):
        raise BadInput(f"{good_place}: two parts have the same label; rename one.")
    for place, node in enumerate(parts):
        if node.repeats and node.name not in {one.label for one in parts[:place]}:
            raise UnknownName("earlier part", node.name, named, where=str(good_place))
        if node.repeats and node.features:
            raise BadInput(f"{good_place}: '@{node.name}' changes features; only the bad structure can.")
    for node in others:
        if not node.repeats:
            continue
        if node.name not in named:
            raise UnknownName("part", node.name, named, where=str(bad_place))
        file.check_change(node, named[node.name], bad_place)
    return Frame(parts, others, bad_place)


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
