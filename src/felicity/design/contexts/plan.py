"""Which contexts a study requests, and which items share one."""

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

    lengths: of the contexts, in `unit`, ascending; 0 is the baseline, which every study has. draws: contexts
    of each kind for each item or group. contexts_per_suite: None gives each item its own contexts; a number
    divides the items of a suite into that many groups that share contexts. from_suites: the suites that
    contexts of the `from` kinds are drawn from, one at a time.
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
        kinds = KINDS | FROM_KINDS
        for kind in self.kinds:
            if kind not in kinds:
                raise UnknownName("kind of context", kind, kinds)
        if self.unit not in UNITS:
            raise UnknownName("unit of length", self.unit, UNITS)
        rising = all(low < high for low, high in zip(self.lengths, self.lengths[1:], strict=False))
        asks_from = bool(set(self.kinds) & set(FROM_KINDS))
        for wrong, sentence in (
            (not self.kinds, "No kind of context is requested; name at least one."),
            (len(set(self.kinds)) < len(self.kinds), "A kind of context is requested twice; name each once."),
            (not self.lengths or not rising or self.lengths[0] < 0, self._about_lengths()),
            (self.draws < 1, f"{self.draws} draws give no context; request at least 1."),
            (
                self.contexts_per_suite is not None and self.contexts_per_suite < 1,
                f"{self.contexts_per_suite} contexts per suite are too few; request at least 1.",
            ),
            (asks_from and not self.from_suites, "Contexts from one suite need its name."),
            (
                bool(self.from_suites) and not asks_from,
                f"Suites to draw from are named, but no kind that uses them: {', '.join(FROM_KINDS)}.",
            ),
        ):
            if wrong:
                raise BadInput(sentence)

    def _about_lengths(self) -> str:
        listed = ", ".join(map(str, self.lengths)) or "empty"
        return f"The lengths are {listed}; they must be 0 or more and strictly ascending."

    @property
    def grown(self) -> tuple[int, ...]:
        """The lengths above the baseline."""
        return tuple(length for length in self.lengths if length > 0)


def assign_groups(items: pl.DataFrame, plan: ContextPlan) -> pl.DataFrame:
    """A row of GROUPS for each item: the items of a group share their contexts.

    Without contexts_per_suite the group is the item itself. With it, the items of a suite are shuffled with
    the seed and assigned in turn, so that group sizes differ by at most one.
    """
    names = items.select("suite", "item").unique().sort("suite", "item")
    if plan.contexts_per_suite is None:
        return names.with_columns(pl.col("item").alias("group"))
    assigned: list[pl.DataFrame] = []
    for (suite,), part in names.group_by("suite", maintain_order=True):
        order = make_rng(plan.seed, suite, "groups").permutation(len(part))
        groups = np.argsort(order) % plan.contexts_per_suite + 1
        assigned.append(part.with_columns(pl.Series("group", [str(group) for group in groups])))
    return pl.concat(assigned) if assigned else pl.DataFrame(schema=GROUPS)


def make_rng(*what: object) -> np.random.Generator:
    """A generator that depends only on its purpose, not on what else is sampled."""
    return np.random.default_rng(int(fingerprint(list(what)), 16))
