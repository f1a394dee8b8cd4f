"""Which conditions of a suite are acceptable, so that contexts can be drawn from either side.

For pairs, the contrast says so. Suites with formulas do not; for the 23 SyntaxGym suites used by
Sinha et al. 2023 a table does, and users can provide a table of the same form for others.
"""

import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.contrasts import PAIR, Contrast
from felicity.core.errors import BadInput
from felicity.core.files import read_text
from felicity.core.schemas import TEXT, Schema

SIDES: Schema = {"suite": TEXT, "condition": TEXT, "acceptable": pl.Boolean()}
UNKNOWN = "no table says which of its conditions are acceptable"
BOTH_SIDES = "a condition is the better one in one contrast and the worse one in another"


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The acceptable and unacceptable conditions of some suites; the note explains a debatable choice."""

    names: tuple[str, ...]
    acceptable: tuple[str, ...]
    unacceptable: tuple[str, ...]
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Sides:
    """The sides of the conditions of all suites.

    table: a row of SIDES for each condition on a side. left_out: suites without known sides, with the
    reason. notes: remarks for the reader of the study.
    """

    table: pl.DataFrame
    left_out: dict[str, str]
    notes: tuple[str, ...]

    @property
    def suites(self) -> list[str]:
        """The suites that contexts can be drawn from, sorted."""
        return sorted(set(self.table["suite"].to_list()))


def find_sides(
    items: pl.DataFrame, *, contrasts: Sequence[Contrast] = (), rules: Sequence[Rule] = ()
) -> Sides:
    """The acceptable and unacceptable conditions of every suite of `items`.

    The user's rules take precedence over the dataset's contrasts, these over `good` and `bad`, and these over
    the table of SyntaxGym's suites. A suite without known sides is left out and noted.

    Raises BadInput if a user's rule names a condition that its suite does not have.
    """
    rows: list[tuple[str, str, bool]] = []
    left_out: dict[str, str] = {}
    noted: dict[str, list[str]] = {}
    about = items.group_by("suite").agg(pl.col("condition", "phenomenon").unique()).sort("suite")
    for suite, conditions, phenomena in about.iter_rows():
        known = set(conditions)
        found = _from_user_rules(suite, known, rules) or _by_contrast(known, set(phenomena), contrasts)
        found = found or _built_in(suite, known)
        if found is None:
            left_out[suite] = UNKNOWN
        elif set(found.acceptable) & set(found.unacceptable):
            left_out[suite] = BOTH_SIDES
        else:
            rows += [(suite, condition, True) for condition in found.acceptable]
            rows += [(suite, condition, False) for condition in found.unacceptable]
            if found.note:
                noted.setdefault(found.note, []).append(suite)
    notes = [f"In {_listed(suites)} {note}." for note, suites in noted.items()]
    return Sides(
        table=pl.DataFrame(rows, schema=SIDES, orient="row"),
        left_out=left_out,
        notes=(*notes, *_describe_left_out(left_out)),
    )


def read_rules(path: Path) -> tuple[Rule, ...]:
    """The rules in a TOML file: tables `[[suites]]` with names, acceptable, unacceptable, note.

    Raises BadInput naming the error.
    """
    try:
        return _parse(read_text(path), str(path))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path} is not a TOML file: {error}.") from error


@cache
def _table() -> tuple[Rule, ...]:
    name = "conditions.toml"
    return _parse(files(__package__).joinpath(name).read_text(encoding="utf-8"), name)


def _parse(text: str, where: str) -> tuple[Rule, ...]:
    entries = tomllib.loads(text).get("suites", [])
    if not isinstance(entries, list) or not entries:
        raise BadInput(
            f"{where} has no [[suites]]; write one for each set of suites with the same conditions."
        )
    return tuple(_rule(entry, where) for entry in entries)


def _rule(entry: Any, where: str) -> Rule:
    lists = {}
    for field in ("names", "acceptable", "unacceptable"):
        values = entry.get(field) if isinstance(entry, dict) else None
        if not isinstance(values, list) or not values or not all(isinstance(value, str) for value in values):
            raise BadInput(f"{where}: '{field}' of a [[suites]] must be a non-empty list of names.")
        lists[field] = tuple(values)
    twice = set(lists["acceptable"]) & set(lists["unacceptable"])
    if twice:
        raise BadInput(f"{where}: '{min(twice)}' is on both sides; keep it on one.")
    return Rule(note=str(entry.get("note", "")), **lists)


def _from_user_rules(suite: str, known: set[str], rules: Sequence[Rule]) -> Rule | None:
    for rule in rules:
        if suite in rule.names:
            for condition in (*rule.acceptable, *rule.unacceptable):
                if condition not in known:
                    raise BadInput(
                        f"Suite '{suite}' has no condition '{condition}'; it has {', '.join(sorted(known))}."
                    )
            return rule
    return None


def _by_contrast(known: set[str], phenomena: set[str], contrasts: Sequence[Contrast]) -> Rule | None:
    meant = [one for one in contrasts or (PAIR,) if one.phenomenon is None or one.phenomenon in phenomena]
    meant = [one for one in meant if {one.better, *one.worse} <= known]
    if not meant:
        return None
    return Rule(
        names=(),
        acceptable=tuple(sorted({one.better for one in meant})),
        unacceptable=tuple(sorted({condition for one in meant for condition in one.worse})),
    )


def _built_in(suite: str, known: set[str]) -> Rule | None:
    rules = [rule for rule in _table() if suite in rule.names]
    return next((rule for rule in rules if {*rule.acceptable, *rule.unacceptable} <= known), None)


def _describe_left_out(left_out: dict[str, str]) -> list[str]:
    reasons = sorted(set(left_out.values()))
    named = {reason: [suite for suite in left_out if left_out[suite] == reason] for reason in reasons}
    return [f"Left out: {_listed(suites)}; {reason}." for reason, suites in named.items()]


def _listed(names: Iterable[str]) -> str:
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last
