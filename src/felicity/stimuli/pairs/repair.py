"""Repair pairs of unequal length: keep the equal ones, propose words of the lexicon for the others.

Two sentences with the same number of words that differ in one word can be repaired when the lexicon knows
both words. Where they are forms of one word (annoy, annoys), another word takes its place in both
sentences; otherwise the bad sentence alone gets another word of the same kind.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from felicity.stimuli.grammar import Atoms
from felicity.stimuli.lexicon import Lexicon, WordForm
from felicity.stimuli.pairs.drawing import Frequency
from felicity.stimuli.pairs.signatures import Signatures

KEPT, PROPOSED, DROPPED = "kept", "proposed", "dropped"
MARKS = ".,?!;:"
# What a replacement must share with the word it replaces, if the words of the language have it.
ALIKE = {
    "N": ("num", "case", "gender", "sem", "irregular", "count", "rel", "plural", "weak"),
    "V": ("form", "num", "frame", "subj", "obj", "agent", "perf"),
    "Adj": ("num", "case", "gender", "decl", "sem", "kind"),
    "Name": ("gender",),
    "Adv": ("kind",),
}
# Features in which the forms of one word differ.
INFLECTION = ("form", "num", "case", "decl")
# A verb in both sentences must take whatever the old one takes, since its subject and object stay.
TAKEN = ("subj", "obj")


@dataclass(frozen=True)
class Repair:
    """What became of a pair: the sentences, what was done, and why."""

    good: str
    bad: str
    status: str
    reason: str


@dataclass(frozen=True)
class Repairer:
    """Looks for replacements; a word is used once before it is used again."""

    lexicon: Lexicon
    signatures: Signatures
    frequency: Frequency | None = None
    band: float = 1.0

    def repair(self, pairs: Sequence[tuple[str, str]]) -> list[Repair]:
        """One answer per pair, in order."""
        used: dict[str, int] = {}
        taken = {text for pair in pairs for text in pair}
        return [self._repair(good, bad, used, taken) for good, bad in pairs]

    def _repair(self, good: str, bad: str, used: dict[str, int], taken: set[str]) -> Repair:
        lengths = self.signatures.count([good, bad])
        if lengths[0] == lengths[1]:
            return Repair(good, bad, KEPT, "equally long already")
        left, right = good.split(), bad.split()
        places = [place for place, words in enumerate(zip(left, right, strict=False)) if words[0] != words[1]]
        if len(left) != len(right) or len(places) != 1:
            return Repair(good, bad, DROPPED, "the sentences differ in more than one word")
        place = places[0]
        if place == 0:
            return Repair(good, bad, DROPPED, "the sentences differ in their first word")
        for new_good, new_bad in self._options(left[place], right[place], used):
            fixed = (_put(left, place, new_good), _put(right, place, new_bad))
            counted = self.signatures.count(list(fixed))
            if counted[0] == counted[1] and fixed[0] != fixed[1] and fixed[1] not in taken:
                taken |= set(fixed)
                used[new_bad] = used.get(new_bad, 0) + 1
                change = f"{_bare(right[place])} -> {new_bad}"
                if new_good != _bare(left[place]):
                    change += f", {_bare(left[place])} -> {new_good}"
                return Repair(*fixed, PROPOSED, change)
        if not self._readings(_bare(right[place])):
            return Repair(good, bad, DROPPED, f"'{_bare(right[place])}' is not in the lexicon")
        return Repair(good, bad, DROPPED, f"no word like '{_bare(right[place])}' is of the right length")

    def _options(self, good: str, bad: str, used: dict[str, int]) -> list[tuple[str, str]]:
        """Words for the good and the bad sentence, those used least and most alike in frequency first."""
        good, bad = _bare(good), _bare(bad)
        options: list[tuple[str, str]] = []
        for reading in self._readings(bad):
            forms = [one for one in self._readings(good) if one.lexeme == reading.lexeme]
            for other in self._alike(reading):
                if forms and not self._takes_all(other, reading):
                    continue
                if not forms:
                    options.append((good, other.text))
                    continue
                form = self.lexicon.other_form(other, {n: forms[0].features[n] for n in _inflection(reading)})
                if form is not None and form.text != other.text:
                    options.append((form.text, other.text))
        near = [pair for pair in dict.fromkeys(options) if self._distance(bad, pair[1]) <= self.band]
        return sorted(near, key=lambda pair: (used.get(pair[1], 0), self._distance(bad, pair[1])))

    def _takes_all(self, other: WordForm, old: WordForm) -> bool:
        """Whether a word takes what the old one takes in any of its uses: nobody says which use it was."""
        return all(
            self._taken(old, name) <= self._taken(other, name) for name in TAKEN if name in old.features
        )

    def _taken(self, reading: WordForm, name: str) -> Atoms:
        uses = [one for one in self.lexicon.readings[reading.category] if one.text == reading.text]
        return frozenset().union(*(one.features[name] for one in uses))

    def _readings(self, word: str) -> list[WordForm]:
        return [one for category in ALIKE for one in self.lexicon.readings[category] if one.text == word]

    def _alike(self, reading: WordForm) -> Iterable[WordForm]:
        constraint = {
            name: reading.features[name] for name in ALIKE[reading.category] if name in reading.features
        }
        return (
            one for one in self.lexicon.matching(reading.category, constraint) if one.text != reading.text
        )

    def _distance(self, word: str, other: str) -> float:
        return abs(self.frequency(word) - self.frequency(other)) if self.frequency else 0.0


def tabulate_repairs(names: Sequence[str], repairs: Sequence[Repair]) -> pl.DataFrame:
    """The sheet to review: one row per pair, with an empty column for the decision."""
    return pl.DataFrame(
        {
            "item": list(names),
            "status": [one.status for one in repairs],
            "good": [one.good for one in repairs],
            "bad": [one.bad for one in repairs],
            "reason": [one.reason for one in repairs],
            "decision": [""] * len(repairs),
        }
    )


def _inflection(reading: WordForm) -> tuple[str, ...]:
    return tuple(name for name in INFLECTION if name in reading.features)


def _bare(word: str) -> str:
    return word.strip(MARKS)


def _put(words: Sequence[str], place: int, word: str) -> str:
    old = words[place]
    changed = old.replace(_bare(old), word)
    return " ".join([*words[:place], changed, *words[place + 1 :]])
