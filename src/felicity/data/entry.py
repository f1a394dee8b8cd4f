"""Catalogue entries: one declarative file per dataset, read once and checked."""

import tomllib
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from felicity.core.contrasts import Contrast, Headline
from felicity.core.documents import read_packaged_folder
from felicity.core.errors import UnknownName
from felicity.core.registry import Registry
from felicity.data.languages import ALL_LANGUAGES, choose_languages, find_language, match_languages


@dataclass(frozen=True, kw_only=True)
class StimulusTemplate:
    """How a stimulus is built from a row: templates over its fields."""

    condition: str
    text: str
    context: str = ""


@dataclass(frozen=True, kw_only=True)
class Method:
    """One way to read a dataset's rows and to judge them.

    rule: the name of the judging rule. where: fields that must have these values; other rows are left
    out and counted. keep: further columns of the items, as templates. cross: each frame of an item is
    also scored with the target of its partner. targets: the conditions whose target a cloze rule looks
    for; change: the two conditions between which the most probable word may change. score: what the number
    and the sentences are called, by the fields of Headline; the name of one of the entry's `scores`, or its
    own; what it leaves out is that of the rule. boundary: how the tokens of a region are summed
    (`auto`, `corrected` or `plain`), where the authors did it otherwise than felicity. measures: the
    authors' own first, others beside it; none means the rule's.
    """

    rule: str
    meaning: str = ""
    item: str = "{item}"
    suite: str = ""
    phenomenon: str = ""
    stimuli: tuple[StimulusTemplate, ...] = ()
    where: dict[str, Any] = field(default_factory=dict)
    keep: dict[str, str] = field(default_factory=dict)
    contrasts: tuple[Contrast, ...] = ()
    cross: bool = False
    targets: tuple[str, ...] = ()
    change: tuple[str, ...] = ()
    score: dict[str, Any] = field(default_factory=dict)
    boundary: str = "auto"
    measures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """The files of one language of a dataset, and the digest of their published version."""

    files: tuple[str, ...]
    sha256: str = ""


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One dataset: its source, licence, format, and how it is judged.

    files: paths below `folder`; a copy may be gzipped. sha256: digest of the known published version
    (`digest_files`), empty if none could be computed. fetch: the web folder with the files, or an address
    with `{file}` for the path of each below `folder`; archive: a zip file with them, below `inside`.
    columns: names for files without a header. beside: the folder of an entry that another package provides,
    which may hold the files themselves. language: its BCP 47 tag, empty if not stated; of a dataset in
    several languages, `parts` has the files of each instead, and `further` says where a language that is not
    listed is found, with `{code}` for its ISO 639-3 code. people: the file with what people answered, and the
    name of its reader. options: what the reader of the files needs to know.
    """

    name: str
    title: str
    licence: str
    home: str
    version: str
    citation: str
    format: str
    folder: str
    methods: dict[str, Method]
    files: tuple[str, ...] = ()
    language: str = ""
    parts: dict[str, Part] = field(default_factory=dict)
    further: str = ""
    people: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    fetch: str = ""
    archive: str = ""
    inside: str = ""
    sha256: str = ""
    columns: tuple[str, ...] = ()
    maps: dict[str, dict[str, str]] = field(default_factory=dict)
    quirks: tuple[str, ...] = ()
    beside: Path | None = None

    def method(self, name: str | None, *, without: Collection[str] = ()) -> tuple[str, Method]:
        """The method with that name, or the authors' default, which comes first.

        Methods whose rule is in `without` are skipped, unless named.

        Raises UnknownName.
        """
        possible = [method for method, spec in self.methods.items() if spec.rule not in without]
        chosen = name or (possible or list(self.methods))[0]
        if chosen not in self.methods:
            raise UnknownName(f"rule for '{self.name}'", chosen, self.methods)
        return chosen, self.methods[chosen]

    @property
    def languages(self) -> tuple[str, ...]:
        """The tags of its languages."""
        return tuple(self.parts) or ((self.language,) if self.language else ())

    def narrow(self, asked: str | None) -> "list[Entry]":
        """One entry per language that is asked for, each with the files of that language alone.

        Raises BadInput if the dataset has several languages and none is asked for, or lacks the one asked.
        """
        if not self.parts:
            if asked is not None and self.languages:
                choose_languages(self.name, self.languages, asked)
            return [self]
        if self.further and asked not in (None, ALL_LANGUAGES) and not match_languages(asked, self.languages):
            language = find_language(asked)
            files = (self.further.format(code=language.code),)
            return [replace(self, language=language.tag, files=files, sha256="")]
        return [
            replace(self, language=tag, files=self.parts[tag].files, sha256=self.parts[tag].sha256)
            for tag in choose_languages(self.name, self.languages, asked)
        ]


@cache
def load_entries() -> Registry[Entry]:
    """The catalogue: every entry by name, with those of outside packages."""
    entries: Registry[Entry] = Registry("dataset", accept=read_entry)
    for fields in read_packaged_folder("felicity.data", "entries"):
        entry = build_entry(fields)
        entries.register(entry.name, entry)
    return entries


def read_entry(path: object) -> Entry:
    """The entry in a .toml file, which is what an outside package provides.

    Raises TypeError, ValueError, KeyError or OSError if it is not such a file.
    """
    if not isinstance(path, Path):
        raise TypeError(f"a dataset is the Path of its .toml entry, not {type(path).__name__}")
    entry = build_entry(tomllib.loads(path.read_text(encoding="utf-8")))
    return replace(entry, beside=path.parent)


def build_entry(fields: dict[str, Any]) -> Entry:
    """An entry from its file's fields."""
    given = dict(fields)
    scores = given.pop("scores", {})
    methods = {name: _method(spec, scores) for name, spec in given.pop("methods").items()}
    for name in ("files", "columns", "quirks"):
        given[name] = tuple(given.get(name, ()))
    given["parts"] = {
        tag: Part(tuple(part["files"]), part.get("sha256", ""))
        for tag, part in given.get("parts", {}).items()
    }
    return Entry(methods=methods, **given)


def _method(spec: dict[str, Any], scores: dict[str, dict[str, Any]]) -> Method:
    given = dict(spec)
    score = given.get("score", {})
    given["score"] = scores[score] if isinstance(score, str) else score
    Headline.read(given["score"])
    given["stimuli"] = tuple(StimulusTemplate(**stimulus) for stimulus in given.get("stimuli", ()))
    for name in ("targets", "change", "measures"):
        given[name] = tuple(given.get(name, ()))
    given["contrasts"] = tuple(
        Contrast(**(contrast | {"worse": tuple(contrast["worse"])}))
        for contrast in given.get("contrasts", ())
    )
    return Method(**given)
