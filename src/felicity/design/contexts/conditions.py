"""Which conditions of a suite are acceptable, so that contexts can be drawn from either side.

For pairs, the contrast says so. Suites with formulas do not; for the 23 SyntaxGym suites used by
Sinha et al. 2023 a table does, and users can provide a table of the same form for others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import ConfigDict, Field

from felicity.core.contrasts import PAIR, Contrast
from felicity.core.documents import read_document
from felicity.core.errors import BadInput
from felicity.core.schemas import TEXT, Schema

SIDES: Schema = {"suite": TEXT, "condition": TEXT, "acceptable": pl.Boolean()}
UNKNOWN = "no table says which of its conditions are acceptable"
Names = Annotated[tuple[str, ...], Field(min_length=1)]
BOTH_SIDES = "a condition is the better one in one contrast and the worse one in another"


@dataclass(frozen=True, kw_only=True)
class SuiteSides:
    """The acceptable and unacceptable conditions of some suites; the note explains a debatable choice."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    names: Names
    acceptable: Names
    unacceptable: Names
    note: str = ""


@dataclass(frozen=True)
class SidesFile:
    """A file of such tables, `[[suites]]`."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    suites: tuple[SuiteSides, ...] = ()


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
    items: pl.DataFrame, *, contrasts: Sequence[Contrast] = (), rules: Sequence[SuiteSides] = ()
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
        names = set(conditions)
        sides = _from_user_rules(suite, names, rules) or _by_contrast(names, set(phenomena), contrasts)
        sides = sides or _built_in(suite, names)
        if sides is None:
            left_out[suite] = UNKNOWN
        elif set(sides.acceptable) & set(sides.unacceptable):
            left_out[suite] = BOTH_SIDES
        else:
            rows += [(suite, condition, True) for condition in sides.acceptable]
            rows += [(suite, condition, False) for condition in sides.unacceptable]
            if sides.note:
                noted.setdefault(sides.note, []).append(suite)
    notes = [f"In {_listed(suites)} {note}." for note, suites in noted.items()]
    return Sides(
        table=pl.DataFrame(rows, schema=SIDES, orient="row"),
        left_out=left_out,
        notes=(*notes, *_describe_left_out(left_out)),
    )


def read_rules(path: Path) -> tuple[SuiteSides, ...]:
    """The rules in a TOML file: tables `[[suites]]` with names, acceptable, unacceptable, note.

    Raises BadInput naming the line.
    """
    document = read_document(path)
    rules = document.build(SidesFile).suites
    if not rules:
        raise BadInput(
            f"{path} has no [[suites]]; write one for each set of suites with the same conditions."
        )
    for number, rule in enumerate(rules):
        for name in rule.acceptable:
            if name in rule.unacceptable:
                document.fail(("suites", number), f"has '{name}' on both sides; keep it on one")
    return rules


@cache
def _table() -> tuple[SuiteSides, ...]:
    return read_rules(Path(__file__).with_name("conditions.toml"))


def _from_user_rules(suite: str, names: set[str], rules: Sequence[SuiteSides]) -> SuiteSides | None:
    for rule in rules:
        if suite in rule.names:
            for condition in (*rule.acceptable, *rule.unacceptable):
                if condition not in names:
                    raise BadInput(
                        f"Suite '{suite}' has no condition '{condition}'; it has {', '.join(sorted(names))}."
                    )
            return rule
    return None


def _by_contrast(names: set[str], phenomena: set[str], contrasts: Sequence[Contrast]) -> SuiteSides | None:
    meant = [one for one in contrasts or (PAIR,) if one.phenomenon is None or one.phenomenon in phenomena]
    meant = [one for one in meant if {one.better, *one.worse} <= names]
    if not meant:
        return None
    return SuiteSides(
        names=(),
        acceptable=tuple(sorted({one.better for one in meant})),
        unacceptable=tuple(sorted({condition for one in meant for condition in one.worse})),
    )


def _built_in(suite: str, names: set[str]) -> SuiteSides | None:
    rules = [rule for rule in _table() if suite in rule.names]
    return next((rule for rule in rules if {*rule.acceptable, *rule.unacceptable} <= names), None)


def _describe_left_out(left_out: dict[str, str]) -> list[str]:
    reasons = sorted(set(left_out.values()))
    named = {reason: [suite for suite in left_out if left_out[suite] == reason] for reason in reasons}
    return [f"Left out: {_listed(suites)}; {reason}." for reason, suites in named.items()]


def _listed(names: Iterable[str]) -> str:
    *rest, last = names
    return f"{', '.join(rest)} and {last}" if rest else last
