"""A template read from a few lines of TOML, and the items made from it.

name = "neg"
[slots.other]
other_than = "category"
[conditions.affirmative]
frame = "{A member} is {a category}"
[conditions.negative]
of = "affirmative"
negate = true
replace = { category = "other" }
"""

import csv
import io
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.documents import read_document, read_packaged_toml
from felicity.core.errors import BadInput, UnknownName
from felicity.core.files import read_text
from felicity.stimuli.items import CLOZE_ITEMS
from felicity.stimuli.templates.categories import Member
from felicity.stimuli.templates.frames import fill_frame, list_slots, negate, replace_slots, swap
from felicity.stimuli.templates.hypernyms import Taxonomy, stands_bare
from felicity.stimuli.templates.noun_forms import list_wider

TYPES = ("noun", "word")
DRAWS = ("random", "balanced")
MEMBER, CATEGORY = "member", "category"


@dataclass(frozen=True, kw_only=True)
class Slot:
    """What may stand in a slot.

    type: a noun takes articles and numbers, a word stands as it is. values: the words. other_than: drawn
    from the words of that slot, but another one. draw: `random`, or `balanced` so that all are met
    equally often.
    """

    type: str = "noun"
    values: tuple[str, ...] = ()
    other_than: str = ""
    draw: str = "random"


@dataclass(frozen=True, kw_only=True)
class Template:
    """Frames by condition, and the slots they have."""

    name: str
    phenomenon: str
    frames: Mapping[str, str]
    slots: Mapping[str, Slot] = field(default_factory=dict)


@dataclass(frozen=True)
class Built:
    """The items of a template, and what was left out, each with its reason."""

    items: pl.DataFrame
    left_out: list[str]


def list_templates() -> list[str]:
    """The names of the built-in templates."""
    folder = files("felicity.stimuli.templates") / "builtin"
    return sorted(path.name.removesuffix(".toml") for path in folder.iterdir() if path.name.endswith(".toml"))


def read_template(name: str) -> Template:
    """A built-in template by its name, or one from a TOML file.

    Raises UnknownName, or BadInput if the file says something that no template has.
    """
    if name in list_templates():
        content = read_packaged_toml("felicity.stimuli.templates", f"builtin/{name}.toml")
    elif name.endswith(".toml"):
        content = read_document(Path(name)).content
    else:
        raise UnknownName("template", name, list_templates(), hint="or name a .toml file")
    return parse_template(content, where=name)


def parse_template(given: Mapping[str, Any], *, where: str) -> Template:
    """A template from its fields.

    Raises BadInput naming the field that is missing or unknown.
    """
    _check_fields(given, ("name", "phenomenon", "slots", "conditions"), where)
    if not given.get("conditions"):
        raise BadInput(f"{where} has no conditions; write [conditions.NAME] with a frame.")
    slots: dict[str, Slot] = {}
    for name, spec in given.get("slots", {}).items():
        _check_fields(spec, ("type", "values", "other_than", "draw"), f"{where}, slot {name}")
        slots[name] = replace(
            Slot(**{key: spec[key] for key in spec if key != "values"}), values=tuple(spec.get("values", ()))
        )
        for kind, known in (("type", TYPES), ("draw", DRAWS)):
            if getattr(slots[name], kind) not in known:
                raise UnknownName(f"{kind} of a slot", getattr(slots[name], kind), known, where=where)
    frames: dict[str, str] = {}
    for name, spec in given["conditions"].items():
        frames[name] = _build_frame(name, spec, frames, where)
    chosen = str(given.get("name", Path(where).stem))
    return Template(name=chosen, phenomenon=str(given.get("phenomenon", chosen)), frames=frames, slots=slots)


def _build_frame(name: str, spec: Mapping[str, Any], earlier: Mapping[str, str], where: str) -> str:
    """A frame as it is written, or made out of an earlier one by operations."""
    _check_fields(spec, ("frame", "of", "negate", "swap", "replace"), f"{where}, condition {name}")
    if "frame" in spec:
        return str(spec["frame"])
    if spec.get("of") not in earlier:
        raise BadInput(f"{where}: condition '{name}' needs a frame, or `of` with a condition above it.")
    frame = earlier[spec["of"]]
    if spec.get("negate"):
        frame = negate(frame)
    if "swap" in spec:
        frame = swap(frame, *spec["swap"])
    return replace_slots(frame, spec["replace"]) if "replace" in spec else frame


def _check_fields(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for name in given:
        if name not in known:
            raise UnknownName("field", name, known, where=where)


def read_slot_words(path: Path) -> list[dict[str, str]]:
    """A table of words, one column per slot; words of one row stay together.

    Raises BadInput if a cell is empty.
    """
    table = csv.DictReader(
        io.StringIO(read_text(path), newline=""), delimiter="\t" if path.suffix == ".tsv" else ","
    )
    rows = []
    for number, row in enumerate(table, start=2):
        for name, cell in row.items():
            if name is None or not isinstance(cell, str) or not cell.strip():
                raise BadInput(f"{path}, line {number}: the cell of '{name}' is empty or too much.")
        rows.append({name.strip(): " ".join(cell.split()) for name, cell in row.items()})
    return rows


def build_from_template(
    template: Template,
    *,
    members: Sequence[Member] = (),
    rows: Sequence[Mapping[str, str]] = (),
    n: int | None = None,
    seed: int = 0,
    taxonomy: Taxonomy | None = None,
) -> Built:
    """Every combination of words in the template's frames, or a balanced sample of `n` items.

    `members` fill the slots member and category, `rows` the slots of their columns; slots with values of
    their own are crossed with them. With a `taxonomy`, no category is denied that the member belongs to. Rows
    whose target would be several words are left out. A balanced sample takes equally many items of each
    target of the first condition, as far as there are any.

    Raises BadInput if a slot is filled by nothing.
    """
    draws, left_out = _combine(template, members, rows)
    rng = random.Random(seed)
    nouns = frozenset(_names(template, draws)) - {
        name for name, slot in template.slots.items() if slot.type == "word"
    }
    targets = {condition: list_slots(frame)[-1] for condition, frame in template.frames.items()}
    first = next(iter(targets.values()))
    if n is not None:
        draws = _balance(draws, first, n, rng)
    draws = _draw_others(template, draws, members, rng, taxonomy)
    found: list[tuple[str, ...]] = []
    number = 0
    for draw in draws:
        wide = [slot for slot in targets.values() if " " in draw.get(slot, "")]
        if wide:
            left_out.append(f"'{draw[wide[0]]}' is several words, and a target is one")
            continue
        number += 1
        bare = {MEMBER} if stands_bare(draw.get(MEMBER, ""), draw.get(CATEGORY, ""), taxonomy) else set()
        for condition, frame in template.frames.items():
            sentence = fill_frame(frame, draw, nouns=nouns, bare=bare)
            before, _, target = sentence.rpartition(" ")
            labels = (f"{template.name}/{number}", template.name, template.phenomenon, condition)
            found.append((*labels, target, before, sentence))
    return Built(pl.DataFrame(found, schema=CLOZE_ITEMS, orient="row"), left_out)


def _names(template: Template, draws: Sequence[Mapping[str, str]]) -> list[str]:
    return [*(draws[0] if draws else ()), *template.slots]


def _combine(
    template: Template, members: Sequence[Member], rows: Sequence[Mapping[str, str]]
) -> tuple[list[dict[str, str]], list[str]]:
    """Rows of words, one per slot, before what is drawn at random."""
    needed = {slot for frame in template.frames.values() for slot in list_slots(frame)}
    base: list[dict[str, str]] = [dict(row) for row in rows] or [{}]
    left_out: list[str] = []
    if {MEMBER, CATEGORY} & needed:
        if not members:
            raise BadInput(
                f"The template '{template.name}' needs categories; pass --categories or --wordnet."
            )
        unique = dict.fromkeys(members)
        left_out += [f"'{word}' occurs twice under '{category}'" for word, category in _twice(members)]
        base = [row | {MEMBER: one.word, CATEGORY: one.category} for row in base for one in unique]
    crossed = {name: slot.values for name, slot in template.slots.items() if slot.values}
    base = [
        row | dict(zip(crossed, words, strict=True)) for row in base for words in product(*crossed.values())
    ]
    drawn = {name for name, slot in template.slots.items() if slot.other_than}
    missing = needed - drawn - set(base[0])
    if missing:
        raise BadInput(f"Nothing fills the slot '{min(missing)}' of the template '{template.name}'.")
    return base, left_out


def _twice(members: Sequence[Member]) -> list[tuple[str, str]]:
    return [(one.word, one.category) for one, times in Counter(members).items() if times > 1]


def _balance(draws: list[dict[str, str]], slot: str, n: int, rng: random.Random) -> list[dict[str, str]]:
    """`n` draws with their values of one slot as even as they can be, in the order they had.

    Raises BadInput if there are fewer.
    """
    if n < 1 or n > len(draws):
        raise BadInput(
            f"{n} items are requested, but only {len(draws)} can be made; ask for fewer or add words."
        )
    places: dict[str, list[int]] = {}
    for place, draw in enumerate(draws):
        places.setdefault(draw[slot], []).append(place)
    for values in places.values():
        rng.shuffle(values)
    order = sorted(places)
    rng.shuffle(order)
    chosen: list[int] = []
    while len(chosen) < n:
        for value in order:
            if places[value] and len(chosen) < n:
                chosen.append(places[value].pop())
    return [draws[place] for place in sorted(chosen)]


def _draw_others(
    template: Template,
    draws: list[dict[str, str]],
    members: Sequence[Member],
    rng: random.Random,
    taxonomy: Taxonomy | None,
) -> list[dict[str, str]]:
    """Fill the slots that are drawn from the words of another slot, but differ from it.

    A category under which the member is listed too is never drawn: a tomato is a fruit in one line of the
    table and a vegetable in another, so "A tomato is not a vegetable" would not be true. Neither is one
    that the category is within, or that WordNet puts above the member: "A dove is not an animal".
    """
    homes: dict[str, set[str]] = {}
    for member in members:
        homes.setdefault(member.word.lower(), set()).add(member.category)
    for name, slot in template.slots.items():
        if not slot.other_than:
            continue
        if draws and slot.other_than not in draws[0]:
            raise BadInput(f"The slot '{name}' is drawn from '{slot.other_than}', which nothing fills.")
        pool = sorted({draw[slot.other_than] for draw in draws} | {one.category for one in members})
        pool = [word for word in pool if " " not in word]
        used: Counter[str] = Counter()
        for draw in draws:
            own = {draw[slot.other_than]} | homes.get(draw.get(MEMBER, "").lower(), set())
            own |= {wider for category in own for wider in list_wider(category)}
            subject = draw.get(MEMBER, "")
            others = [
                word
                for word in pool
                if word not in own and not (taxonomy and taxonomy.is_kind_of(subject, word))
            ]
            if not others:
                raise BadInput(
                    f"There is no other word than '{draw[slot.other_than]}' for the slot '{name}'."
                )
            if slot.draw == "balanced":
                least = min(used[word] for word in others)
                others = [word for word in others if used[word] == least]
            draw[name] = rng.choice(others)
            used[draw[name]] += 1
    return draws
