"""Make the items of a design: every item in every condition, with the same words wherever it repeats them."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.regions import BAR
from felicity.stimuli.designs.design import Design, Regions
from felicity.stimuli.grammar import Bindings, Features, Grammar, Leaf
from felicity.stimuli.lexicon import Lexicon
from felicity.stimuli.pairs import CountTokens, Draft, Drawer, Failure, Signatures, collect_slots, draw_even

# A design gives up when this many drafts in a row gave nothing new.
PATIENCE = 1000

Conditions = dict[str, list[str]]
Laid = dict[str, list[list[tuple[Leaf, Features]]]]


@dataclass(frozen=True)
class DesignItems:
    """The items of a design: for every condition the texts of its regions."""

    design: Design
    items: tuple[Conditions, ...]

    def as_suite(self) -> dict[str, Any]:
        """The document of a suite with regions and predictions, as `felicity run` reads it."""
        return {
            "name": self.design.name,
            "phenomenon": self.design.phenomenon,
            "regions": list(self.design.regions),
            "predictions": list(self.design.predictions),
            "items": list(self.items),
        }

    def as_table(self) -> pl.DataFrame:
        """One sentence per row with bars between regions and a column for each factor."""
        rows = [
            {"suite": self.design.name, "item": str(number), "condition": condition}
            | self.design.levels(condition)
            | {"text": f" {BAR} ".join(texts)}
            for number, item in enumerate(self.items, 1)
            for condition, texts in item.items()
        ]
        return pl.DataFrame(rows)


@dataclass
class DesignGenerator:
    """Makes items from a lexicon and a grammar; counters: what counts tokens, by name."""

    lexicon: Lexicon
    grammar: Grammar
    counters: Mapping[str, CountTokens]
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.signatures = Signatures(self.counters)

    def make(self, design: Design, n: int, *, seed: int) -> DesignItems:
        """n items of a design, fewer if its words do not make as many.

        Raises BadInput with the file and line if not one item can be made.
        """
        rng = random.Random(f"{seed}/{design.name}")
        drawer = Drawer(self.lexicon, self.grammar, self.signatures)
        items: list[Conditions] = []
        since = 0
        failure: Failure | None = None
        while len(items) < n and since < PATIENCE:
            since += 1
            drawn = self._draw(design, drawer, rng)
            if isinstance(drawn, Failure):
                failure = drawn
            elif drawn is not None and self._is_kept(design, drawn):
                items.append(drawn)
                since = 0
        if not items:
            why = failure or "no item has regions of equal length, or its features contradict each other"
            raise BadInput(f"{design.place}: no item of '{design.name}' can be made: {why}.")
        return DesignItems(design, tuple(items))

    def _draw(self, design: Design, drawer: Drawer, rng: random.Random) -> Conditions | Failure | None:
        alternative = rng.randrange(design.alternatives)
        structures = {name: one[alternative] for name, one in design.conditions.items()}
        bindings = Bindings()
        laid = self._expand(structures, bindings, rng)
        if laid is None:
            return None
        first, *others = ([leaf for region in regions for leaf in region] for regions in laid.values())
        base, rest = [leaf for leaf, _ in first], [leaf for one in others for leaf in one]
        slots = collect_slots(base, rest, self.grammar.vocabulary.drawing)
        if not draw_even((slot.features for slot in slots), bindings, self.grammar, rng):
            return None
        drawn = drawer.draw(Draft(base, rest, slots, bindings), rng, matched=False)
        if isinstance(drawn, Failure):
            return drawn
        drawer.count_use(drawn)
        realization = self.grammar.vocabulary.realization
        return {
            name: [
                " ".join(words)
                for words in realization.join_regions(
                    [[drawer.write(leaf, changes, drawn) for leaf, changes in region] for region in regions]
                )
            ]
            for name, regions in laid.items()
        }

    def _expand(
        self, structures: Mapping[str, Regions], bindings: Bindings, rng: random.Random
    ) -> Laid | None:
        """The leaves of all conditions; None when the rules that were drawn do not unify."""
        nodes = [node for regions in structures.values() for region in regions for node in region]
        if not draw_even((node.features for node in nodes if not node.repeats), bindings, self.grammar, rng):
            return None
        parts: dict[str, list[Leaf]] = {}
        laid: Laid = {}
        for name, regions in structures.items():
            laid[name] = []
            for number, region in enumerate(regions):
                here: list[tuple[Leaf, Features]] = []
                for place, node in enumerate(region):
                    if node.repeats:
                        here += [(leaf, node.features) for leaf in parts[node.name]]
                        continue
                    slot = node.label or f"#{name}.{number}.{place}"
                    leaves = self.grammar.expand(node, slot, bindings, rng)
                    if leaves is None:
                        return None
                    parts[slot] = leaves
                    here += [(leaf, {}) for leaf in leaves]
                laid[name].append(here)
        return laid

    def _is_kept(self, design: Design, item: Conditions) -> bool:
        """Whether all sentences are new, none is to be avoided, and regions are as long as they should be."""
        texts = [" ".join(filter(None, regions)) for regions in item.values()]
        if len(set(texts)) < len(texts) or self.seen & set(texts):
            return False
        if any(self.grammar.find_avoided(text, design.allow) for text in texts):
            return False
        if not all(
            self._is_equal([regions[place] for regions in item.values()]) for place in _places(design)
        ):
            return False
        self.seen |= set(texts)
        return True

    def _is_equal(self, texts: Sequence[str]) -> bool:
        counts = [self.signatures.of(text, start=False) for text in texts if text]
        return len(set(counts)) <= 1


def _places(design: Design) -> list[int]:
    return [place for place, name in enumerate(design.regions) if name in design.equal]
