"""Whether a sentence's first word is capital for its place only, so that something may stand before it.

"The cat" becomes "Luckily, the cat", but "Anna" and "I" stay. Closed-class words are known from a list;
other words from how they are written inside the sentences at hand: "Teenagers" is an ordinary word because
"teenagers" occurs inside other sentences (truecasing, Lita et al. 2003). A word that nothing is known of
stays as it is, for a name in small letters is the worse mistake.
"""

import re
from collections import Counter
from collections.abc import Iterable

from felicity.design.wordlists import read_words

WORD = re.compile(r"[^\W\d_]+")
# A capital after one of these says nothing: a new sentence, a quotation or a title begins.
OPENS = re.compile(r"[.!?…:;\"“‘(\[]\s*$")
# A word with so small a share of capitals inside sentences is an ordinary one that a title or two contains.
MOST_CAPITALS = 0.05

Ordinary = frozenset[str]


def learn_ordinary(sentences: Iterable[str] = ()) -> Ordinary:
    """Words that are not names, lower-cased: the listed ones and those that sentences write small inside.

    >>> sorted(learn_ordinary(["Otters met Rose.", "Anna saw otters."]) - learn_ordinary())
    ['met', 'otters', 'saw']
    """
    small: Counter[str] = Counter()
    capital: Counter[str] = Counter()
    for sentence in sentences:
        matches = list(WORD.finditer(sentence))
        for match in matches[1:]:
            word = match.group()
            if word.islower():
                small[word] += 1
            elif not OPENS.search(sentence, max(0, match.start() - 3), match.start()):
                capital[word.lower()] += 1
    unsure = set(read_words("asking_openers"))
    learnt = {
        word
        for word, count in small.items()
        if word not in unsure and capital[word] <= MOST_CAPITALS * (count + capital[word])
    }
    return frozenset(learnt | set(read_words("openers")))


def is_ordinary(word: str, ordinary: Ordinary, *, asking: bool = False) -> bool:
    """Whether a word that opens a sentence would be written small inside it."""
    if len(word) > 1 and word.isupper():
        return False
    return word.lower() in ordinary or (asking and word.lower() in read_words("asking_openers"))


def lower_first(sentence: str, ordinary: Ordinary, *, asking: bool = False) -> str:
    """The sentence as it is written after something else.

    >>> lower_first("The cat saw Rose.", learn_ordinary())
    'the cat saw Rose.'
    >>> lower_first("I saw Rose.", learn_ordinary())
    'I saw Rose.'
    """
    match = WORD.match(sentence)
    if match is None or not is_ordinary(match.group(), ordinary, asking=asking):
        return sentence
    if len(match.group()) == 1 and sentence[1:2] == ".":
        return sentence
    return sentence[0].lower() + sentence[1:]


def upper_first(text: str) -> str:
    """The text as it opens a sentence.

    >>> upper_first("in all honesty")
    'In all honesty'
    """
    return text[:1].upper() + text[1:]
