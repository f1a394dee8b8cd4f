"""A draft of one pair: the places for words in the good and the bad sentence, before any word is drawn."""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field

from felicity.stimuli.grammar import Bindings, Drawing, Features, Grammar, Leaf, Node
from felicity.stimuli.pairs.paradigm import Frame

BAD_ONLY = "~"


@dataclass(frozen=True)
class Use:
    """One occurrence of a slot's word: whether it opens the sentence, and what features change."""

    start: bool
    changes: Features = field(default_factory=dict)


@dataclass
class WordSlot:
    """A place for one word of the lexicon, with where it occurs in the good and in the bad sentence."""

    name: str
    category: str
    features: Features
    good: list[Use] = field(default_factory=list)
    bad: list[Use] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The part that the slot belongs to."""
        return self.name.split("/")[0].removesuffix(BAD_ONLY)

    @property
    def differs(self) -> bool:
        """Whether the word does not contribute the same to both sentences."""
        return [use.start for use in self.good] != [use.start for use in self.bad] or any(
            use.changes for use in self.bad
        )


@dataclass
class Draft:
    """The leaves of both sentences, the slots to fill in the order of drawing, and the variables."""

    good: list[Leaf]
    bad: list[tuple[Leaf, Features]]
    slots: list[WordSlot]
    bindings: Bindings


def draft_pair(frame: Frame, grammar: Grammar, rng: random.Random) -> Draft | None:
    """Expand both structures; None when the rules that were drawn do not unify."""
    bindings = Bindings()
    if not draw_even((node.features for node in frame.good), bindings, grammar, rng):
        return None
    parts: dict[str, list[Leaf]] = {}
    good: list[Leaf] = []
    for place, node in enumerate(frame.good):
        name = node.label or f"#{place}"
        leaves = parts[node.name] if node.repeats else grammar.expand(node, name, bindings, rng)
        if leaves is None:
            return None
        parts[name] = leaves
        good += leaves
    bad: list[tuple[Leaf, Features]] = []
    for place, node in enumerate(frame.bad):
        found = parts[node.name] if node.repeats else _expand_bad(node, place, grammar, bindings, rng)
        if found is None:
            return None
        bad += [(leaf, node.features if node.repeats else {}) for leaf in found]
    slots = collect_slots(good, bad, grammar.vocabulary.drawing)
    if not draw_even((slot.features for slot in slots), bindings, grammar, rng):
        return None
    return Draft(good, bad, slots, bindings)


def _expand_bad(
    node: Node, place: int, grammar: Grammar, bindings: Bindings, rng: random.Random
) -> list[Leaf] | None:
    name = f"{node.label or f'#{place}'}{BAD_ONLY}"
    return grammar.expand(node, name, bindings, rng)


def collect_slots(good: list[Leaf], bad: list[tuple[Leaf, Features]], drawing: Drawing) -> list[WordSlot]:
    """The places for words of both sentences, in the order of drawing."""
    slots: dict[str, WordSlot] = {}
    for place, leaf in enumerate(good):
        if leaf.category:
            slots.setdefault(leaf.slot, WordSlot(leaf.slot, leaf.category, leaf.features)).good.append(
                Use(place == 0)
            )
    for place, (leaf, changes) in enumerate(bad):
        if leaf.category:
            slot = slots.setdefault(leaf.slot, WordSlot(leaf.slot, leaf.category, leaf.features))
            slot.bad.append(Use(place == 0, changes))
    return sorted(slots.values(), key=lambda slot: _when(slot, drawing))


def _when(slot: WordSlot, drawing: Drawing) -> tuple[bool, int]:
    """What stands in the bad sentence alone comes last; a noun that changes its own form, first of all."""
    changes = slot.category in drawing.changed and any(use.changes for use in slot.bad)
    return (not slot.good, -1 if changes else drawing.rank(slot.category))


def draw_even(
    structures: Iterable[Features], bindings: Bindings, grammar: Grammar, rng: random.Random
) -> bool:
    """Draw values that are to be equally frequent whatever the lexicon holds; False on a contradiction."""
    for features in structures:
        for name in grammar.vocabulary.drawing.even:
            if name in features:
                domain = grammar.vocabulary.domains[name]
                left = sorted(bindings.resolve(features[name], domain))
                if not left:
                    return False
                if len(left) > 1 and not bindings.unify(
                    features[name], frozenset({rng.choice(left)}), domain
                ):
                    return False
    return True
