"""Words into a sentence: a or an, clitics and contractions, spacing, the capital at the start."""

from collections.abc import Sequence

from felicity.core.articles import choose_article

CLITICS = ("'s", "'", "n't")
MARKS = (".", "?", "!", ",", ";", ":")
IRREGULAR_NEGATION = {"will": "won't", "can": "can't", "shall": "shan't"}


def join_words(words: Sequence[str]) -> list[str]:
    """Words as they stand between spaces: articles chosen, clitics and marks attached, the first capitalized.

    >>> join_words(["will", "n't", "a", "actor", "'s", "friend", "sing", "?"])
    ["Won't", 'an', "actor's", 'friend', 'sing?']
    """
    joined: list[str] = []
    for place, word in enumerate(words):
        if word == "n't" and joined:
            joined[-1] = IRREGULAR_NEGATION.get(joined[-1], joined[-1] + word)
        elif (word in CLITICS or word in MARKS) and joined:
            joined[-1] += word
        elif word == "a" and place + 1 < len(words):
            joined.append(choose_article(words[place + 1]))
        else:
            joined.append(word)
    if joined:
        joined[0] = joined[0][:1].upper() + joined[0][1:]
    return joined


def realize(words: Sequence[str]) -> str:
    """The sentence that the words make.

    >>> realize(["it", "'s", "a", "honest", "answer", "."])
    "It's an honest answer."
    """
    return " ".join(join_words(words))
