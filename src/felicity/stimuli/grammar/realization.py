"""Words into a sentence: clitics, contractions and alternations, spacing, the capital at the start.

What a language needs of this is in the table `[realization]` of its `layout.toml`.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

MARKS = (".", "?", "!", ",", ";", ":")


@dataclass(frozen=True)
class Alternation:
    """A word that has another form before certain words, as English *an* for *a* before a vowel."""

    word: str
    form: str
    before: re.Pattern[str]


@dataclass(frozen=True, kw_only=True)
class Realization:
    """How the words of a language are joined.

    clitics: what attaches to the word before it. contractions: two words that become one (`will n't`, `in
    dem`). alternations: words whose form depends on the next word.
    """

    clitics: tuple[str, ...] = ()
    contractions: Mapping[str, str] = field(default_factory=dict)
    alternations: tuple[Alternation, ...] = ()

    def join(self, words: Sequence[str]) -> list[str]:
        """Words as they stand between spaces: forms chosen, clitics and marks attached, first capitalized.

        >>> english = Realization(clitics=("'s", "n't"), contractions={"will n't": "won't"})
        >>> english.join(["will", "n't", "the", "actor", "'s", "friend", "sing", "?"])
        ["Won't", 'the', "actor's", 'friend', 'sing?']
        """
        return self.join_regions([words])[0]

    def join_regions(self, regions: Sequence[Sequence[str]]) -> list[list[str]]:
        """The same for a sentence in regions.

        >>> an = Alternation("a", "an", re.compile("[aeiou]"))
        >>> Realization(alternations=(an,)).join_regions([["she", "saw", "a"], ["owl", "."]])
        [['She', 'saw', 'an'], ['owl.']]
        """
        words = [word for region in regions for word in region]
        joined: list[list[str]] = []
        place = 0
        last: list[str] | None = None
        for region in regions:
            here: list[str] = []
            joined.append(here)
            for word in region:
                contracted = self.contractions.get(f"{last[-1]} {word}") if last else None
                if last and contracted:
                    last[-1] = contracted
                elif last and (word in self.clitics or word in MARKS):
                    last[-1] += word
                else:
                    here.append(self._choose(word, words[place + 1 : place + 2]))
                    last = here
                place += 1
        first = next((region for region in joined if region), None)
        if first:
            first[0] = first[0][:1].upper() + first[0][1:]
        return joined

    def _choose(self, word: str, following: Sequence[str]) -> str:
        return next(
            (
                one.form
                for one in self.alternations
                if one.word == word and following and one.before.match(following[0])
            ),
            word,
        )

    def realize(self, words: Sequence[str]) -> str:
        """The sentence that the words make.

        >>> Realization(clitics=("'s",)).realize(["it", "'s", "the", "answer", "."])
        "It's the answer."
        """
        return " ".join(self.join(words))
