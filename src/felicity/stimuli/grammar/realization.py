"""Words into a sentence: clitics and contractions, the article by sound, spacing, the capital at the start.

What a language needs of this is in the table `[realization]` of its `layout.toml`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from felicity.core.articles import choose_article

MARKS = (".", "?", "!", ",", ";", ":")


@dataclass(frozen=True, kw_only=True)
class Realization:
    """How the words of a language are joined.

    clitics: what attaches to the word before it. contractions: two words that become one (`will n't`, `in
    dem`). indefinite: the article whose form depends on the sound of the next word, as English a and an.
    """

    clitics: tuple[str, ...] = ()
    contractions: Mapping[str, str] = field(default_factory=dict)
    indefinite: str = ""

    def join(self, words: Sequence[str]) -> list[str]:
        """Words as they stand between spaces: articles chosen, clitics and marks attached, first capitalized.

        >>> english = Realization(clitics=("'s", "n't"), contractions={"will n't": "won't"}, indefinite="a")
        >>> english.join(["will", "n't", "a", "actor", "'s", "friend", "sing", "?"])
        ["Won't", 'an', "actor's", 'friend', 'sing?']
        """
        joined: list[str] = []
        for place, word in enumerate(words):
            contracted = self.contractions.get(f"{joined[-1]} {word}") if joined else None
            if contracted:
                joined[-1] = contracted
            elif joined and (word in self.clitics or word in MARKS):
                joined[-1] += word
            elif self.indefinite and word == self.indefinite and place + 1 < len(words):
                joined.append(choose_article(words[place + 1]))
            else:
                joined.append(word)
        if joined:
            joined[0] = joined[0][:1].upper() + joined[0][1:]
        return joined

    def realize(self, words: Sequence[str]) -> str:
        """The sentence that the words make.

        >>> Realization(clitics=("'s",), indefinite="a").realize(["it", "'s", "a", "honest", "answer", "."])
        "It's an honest answer."
        """
        return " ".join(self.join(words))
