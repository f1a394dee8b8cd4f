"""What contexts are asked for, and which items share one."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.ids import fingerprint
from felicity.core.schemas import TEXT, Schema
from felicity.core.sweep import FROM_KINDS, KINDS, UNPERTURBED

UNITS = ("tokens", "sentences")
GROUPS: Schema = {"suite": TEXT, "item": TEXT, "group": TEXT}


@dataclass(frozen=True, kw_only=True)
class ContextPlan:
    """The contexts of a study; the same plan gives the same contexts.

    lengths: what contexts grow to, in `unit`, rising; 0 is the baseline, which every study has. draws:
    contexts of each kind for each item, or group. contexts_per_suite: None gives each item contexts of
    its own; a number deals the items of a suite into that many groups, each before contexts they share.
    from_suites: the suites that contexts of the `from` kinds are drawn from, one at a time.
    """

    kinds: tuple[str, ...] = tuple(KINDS)
    lengths: tuple[int, ...]
    unit: str = "tokens"
    draws: int = 1
    contexts_per_suite: int | None = None
    from_suites: tuple[str, ...] = ()
    perturb: str = UNPERTURBED
    seed: int = 0

    def __post_init__(self) -> None:
        known = KINDS | FROM_KINDS
        for kind in self.kinds:
            if kind not in known:
                raise UnknownName("kind of context", kind, known)
        if self.unit not in UNITS:
            raise UnknownName("unit of length", self.unit, UNITS)
        rising = all(low < high for low, high in zip(self.lengths, self.lengths[1:], strict=False))
        asks_from = bool(set(self.kinds) & set(FROM_KINDS))
        for wrong, sentence in (
            (not self.kinds, "No kind of context is asked for; name at least one."),
            (len(set(self.kinds)) < len(self.kinds), "A kind of context is asked for twice; name each once."),
            (not self.lengths or not rising or self.lengths[0] < 0, self._about_lengths()),
            (self.draws < 1, f"{self.draws} draws give no context; ask for at least 1."),
            (
                self.contexts_per_suite is not None and self.contexts_per_suite < 1,
                f"{self.contexts_per_suite} contexts per suite are too few; ask for at least 1.",
            ),
            (asks_from and not self.from_suites, "Contexts from one suite need the suite's name."),
            (
                bool(self.from_suites) and not asks_from,
                f"The suites to draw from are named, but no kind draws from them: {', '.join(FROM_KINDS)}.",
            ),
        ):
            if wrong:
                raise BadInput(sentence)

    def _about_lengths(self) -> str:
        listed = ", ".join(map(str, self.lengths)) or "empty"
        return f"The lengths are {listed}; they must rise from 0 or more, each standing once."

    @property
    def grown(self) -> tuple[int, ...]:
        """The lengths above the baseline."""
        return tuple(length for length in self.lengths if length > 0)


def assign_groups(items: pl.DataFrame, plan: ContextPlan) -> pl.DataFrame:
    """A row of GROUPS for each item: the items of a group stand behind the same contexts.

    Without contexts_per_suite the group is the item itself. With it, the items of a suite are shuffled by
    the seed and dealt out in turn, so that groups differ by one item at most.
    """
    names = items.select("suite", "item").unique().sort("suite", "item")
    if plan.contexts_per_suite is None:
        return names.with_columns(pl.col("item").alias("group"))
    dealt: list[pl.DataFrame] = []
    for (suite,), part in names.group_by("suite", maintain_order=True):
        order = make_rng(plan.seed, suite, "groups").permutation(len(part))
        groups = np.argsort(order) % plan.contexts_per_suite + 1
        dealt.append(part.with_columns(pl.Series("group", [str(group) for group in groups])))
    return pl.concat(dealt) if dealt else pl.DataFrame(schema=GROUPS)


def make_rng(*what: object) -> np.random.Generator:
    """A generator that depends on what it is for, and on nothing else that is drawn."""
    return np.random.default_rng(int(fingerprint(list(what)), 16))
