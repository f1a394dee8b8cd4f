"""Draw the words of one pair, so that both sentences have the same number of tokens.

The words that contribute differently to the two sentences are drawn from buckets: all words that fit a
slot are sorted by what they add to the good sentence less what they add to the bad one, a vector with one
count per tokenizer. The last such slot is drawn from the bucket that makes the sum zero.
"""

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from felicity.stimuli.grammar import Atoms, Bindings, Features, Grammar, Leaf
from felicity.stimuli.lexicon import Lexicon, WordForm
from felicity.stimuli.pairs.drafts import BAD_ONLY, Draft, WordSlot
from felicity.stimuli.pairs.signatures import Signature, Signatures, add, subtract

Frequency = Callable[[str], float]
ROUNDS = 30
BALANCE = 3
STEM = 4


@dataclass(frozen=True)
class Failure:
    """Why no word could be drawn for a slot: `length` when words fit but none of the length needed."""

    slot: str
    category: str
    constraint: Mapping[str, Atoms]
    length: bool

    def __str__(self) -> str:
        features = ", ".join(
            f"{name}={'|'.join(sorted(atoms))}" for name, atoms in sorted(self.constraint.items())
        )
        what = f"{self.category}[{features}] for '{self.slot.split('/')[0].removesuffix(BAD_ONLY)}'"
        if self.length:
            return f"no {what} makes both sentences equally long under all tokenizers"
        return f"no word of the lexicon fits {what}"


@dataclass
class DrawnPair:
    """A pair with its words: the sentences as words between spaces, the words by slot, and the variables."""

    good: list[str]
    bad: list[str]
    chosen: dict[str, WordForm]
    draft: Draft
    bindings: Bindings


@dataclass
class Drawer:
    """Draws words; what it has used so far counts against a word, so that all are used about equally."""

    lexicon: Lexicon
    grammar: Grammar
    signatures: Signatures
    frequency: Frequency | None = None
    band: float = 0.5
    used: Counter[tuple[str, str]] = field(default_factory=Counter)
    _buckets: dict[object, dict[Signature, list[WordForm]]] = field(default_factory=dict)

    def draw(
        self, draft: Draft, rng: random.Random, *, matched: bool, equal: bool = True
    ) -> DrawnPair | Failure:
        """Words for all slots. matched: by length (and frequency); equal: literal words count as well."""
        first = next((place for place, slot in enumerate(draft.slots) if slot.differs), len(draft.slots))
        bindings = draft.bindings.copy()
        chosen: dict[str, WordForm] = {}
        for slot in draft.slots[:first]:
            failure = self._fill(slot, bindings, chosen, rng)
            if failure:
                return failure
        return self._draw_rest(
            draft, draft.slots[first:], bindings, chosen, rng, matched=matched, equal=equal
        )

    def redraw(self, drawn: DrawnPair, rng: random.Random) -> DrawnPair | Failure:
        """The same pair with its differing words drawn again, whatever their length."""
        bindings = drawn.draft.bindings.copy()
        chosen: dict[str, WordForm] = {}
        differing = [slot for slot in drawn.draft.slots if slot.differs]
        for slot in drawn.draft.slots:
            if not slot.differs:
                self._take(slot, drawn.chosen[slot.name], bindings, chosen)
        return self._draw_rest(drawn.draft, differing, bindings, chosen, rng, matched=False, equal=False)

    def _draw_rest(
        self,
        draft: Draft,
        slots: list[WordSlot],
        bindings: Bindings,
        chosen: dict[str, WordForm],
        rng: random.Random,
        *,
        matched: bool,
        equal: bool,
    ) -> DrawnPair | Failure:
        balance = self._literals(draft) if matched and equal else self.signatures.zero
        last = next((slot.name for slot in reversed(slots) if slot.differs), None)
        failure: Failure | None = None
        for _ in range(ROUNDS):
            tried, now, total = bindings.copy(), dict(chosen), balance
            failure = None
            for slot in slots:
                if not slot.differs:
                    failure = self._fill(slot, tried, now, rng)
                else:
                    need = subtract(self.signatures.zero, total) if matched and slot.name == last else None
                    failure = self._fill(slot, tried, now, rng, need=need, matched=matched)
                    if failure is None:
                        total = add(total, self._difference(slot, now[slot.name], tried))
                if failure:
                    break
            if failure is None:
                return self._words(draft, tried, now)
            if failure.slot == slots[0].name:
                break  # nothing was drawn before it, so that drawing again cannot help
        return failure or Failure("", "", {}, length=False)

    def _fill(
        self,
        slot: WordSlot,
        bindings: Bindings,
        chosen: dict[str, WordForm],
        rng: random.Random,
        *,
        need: Signature | None = None,
        matched: bool = False,
    ) -> Failure | None:
        constraint = self._constraint(slot.features, bindings)
        none_fits = True
        if not slot.differs:
            readings = self.lexicon.matching(slot.category, constraint)
        else:
            buckets = self._sort(slot, constraint, bindings)
            none_fits = not buckets
            readings = buckets.get(need, []) if need is not None else [r for b in buckets.values() for r in b]
            if matched and self.frequency:
                readings = self._of_like_frequency(slot, readings, chosen)
        content = [one for one in chosen.values() if one.category in self._open]
        taken = {(one.category, one.text) for one in content}
        taken |= {(one.category, one.lexeme) for one in content}
        readings = [
            r for r in readings if (r.category, r.lexeme) not in taken and (r.category, r.text) not in taken
        ]
        if not readings:
            return Failure(slot.name, slot.category, constraint, length=need is not None and not none_fits)
        few = [rng.choice(readings) for _ in range(BALANCE)]
        reading = min(few, key=lambda one: (self._echoes(one, content), self.used[one.category, one.lexeme]))
        self._take(slot, reading, bindings, chosen)
        return None

    def _take(
        self, slot: WordSlot, reading: WordForm, bindings: Bindings, chosen: dict[str, WordForm]
    ) -> None:
        chosen[slot.name] = reading
        for name, term in slot.features.items():
            bindings.unify(term, reading.features[name], self.grammar.vocabulary.domains[name])

    def _constraint(self, features: Features, bindings: Bindings) -> dict[str, Atoms]:
        domains = self.grammar.vocabulary.domains
        return {name: bindings.resolve(term, domains[name]) for name, term in features.items()}

    def _sort(
        self, slot: WordSlot, constraint: Mapping[str, Atoms], bindings: Bindings
    ) -> dict[Signature, list[WordForm]]:
        """The readings that fit a slot, by what they add to the good sentence less the bad one."""
        uses = tuple(
            (use.start, frozenset(self._constraint(use.changes, bindings).items())) for use in slot.bad
        )
        key = (slot.category, frozenset(constraint.items()), tuple(use.start for use in slot.good), uses)
        if key not in self._buckets:
            buckets: dict[Signature, list[WordForm]] = {}
            for reading in self.lexicon.matching(slot.category, constraint):
                if self._changes_visibly(slot, reading, bindings):
                    buckets.setdefault(self._difference(slot, reading, bindings), []).append(reading)
            self._buckets[key] = buckets
        return self._buckets[key]

    def _changes_visibly(self, slot: WordSlot, reading: WordForm, bindings: Bindings) -> bool:
        for use in slot.bad:
            if use.changes:
                other = self.lexicon.other_form(reading, self._constraint(use.changes, bindings))
                if other is None or other.text == reading.text:
                    return False
        return True

    def _difference(self, slot: WordSlot, reading: WordForm, bindings: Bindings) -> Signature:
        total = self.signatures.zero
        for use in slot.good:
            total = add(total, self.signatures.of(reading.text, start=use.start))
        for use in slot.bad:
            form = self._form(reading, use.changes, bindings)
            total = subtract(total, self.signatures.of(form.text, start=use.start))
        return total

    def _form(self, reading: WordForm, changes: Features, bindings: Bindings) -> WordForm:
        if not changes:
            return reading
        return self.lexicon.other_form(reading, self._constraint(changes, bindings)) or reading

    def _literals(self, draft: Draft) -> Signature:
        """What the words that are given add to the good sentence less the bad one."""
        total = self.signatures.zero
        for place, leaf in enumerate(draft.good):
            if leaf.word:
                total = add(total, self.signatures.of(leaf.word, start=place == 0))
        for place, (leaf, _) in enumerate(draft.bad):
            if leaf.word:
                total = subtract(total, self.signatures.of(leaf.word, start=place == 0))
        return total

    def _of_like_frequency(
        self, slot: WordSlot, readings: list[WordForm], chosen: Mapping[str, WordForm]
    ) -> list[WordForm]:
        """Of the words for the bad sentence alone, those about as frequent as the good one's."""
        if slot.good or self.frequency is None:
            return readings
        partner = next(
            (
                reading
                for name, reading in chosen.items()
                if BAD_ONLY not in name
                and name.split("/")[0] == slot.label
                and reading.category == slot.category
            ),
            None,
        )
        if partner is None or slot.category not in self._open:
            return readings
        aim = self.frequency(partner.text)
        return [reading for reading in readings if abs(self.frequency(reading.text) - aim) <= self.band]

    def _words(self, draft: Draft, bindings: Bindings, chosen: dict[str, WordForm]) -> DrawnPair:
        good = [leaf.word or chosen[leaf.slot].text for leaf in draft.good]
        bad = [
            leaf.word or self._form(chosen[leaf.slot], changes, bindings).text for leaf, changes in draft.bad
        ]
        realization = self.grammar.vocabulary.realization
        return DrawnPair(realization.join(good), realization.join(bad), chosen, draft, bindings)

    def write(self, leaf: Leaf, changes: Features, drawn: DrawnPair) -> str:
        """The word of a leaf as it was drawn, with the features that change."""
        return leaf.word or self._form(drawn.chosen[leaf.slot], changes, drawn.bindings).text

    def count_use(self, drawn: DrawnPair) -> None:
        """Remember which words were used."""
        self.used.update((reading.category, reading.lexeme) for reading in drawn.chosen.values())

    @property
    def _open(self) -> frozenset[str]:
        return self.grammar.vocabulary.drawing.open

    def _echoes(self, reading: WordForm, content: Sequence[WordForm]) -> bool:
        """Whether a word begins as one that the pair has already (analyze an analysis, a patient patient)."""
        stem = reading.text[:STEM].lower()
        return reading.category in self._open and any(one.text[:STEM].lower() == stem for one in content)
