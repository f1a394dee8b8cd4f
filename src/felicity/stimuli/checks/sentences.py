"""What is wrong within one English sentence: articles, participles, spelling, slurs, denied categories.

Each fault names its rule, says in words what is wrong, and which words of the sentence it is about, so that
what a minimal pair changes on purpose can be told from a mistake.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from felicity.core.articles import choose_article
from felicity.core.documents import read_packaged_toml
from felicity.stimuli.checks.word_list import WordList, list_edits, read_function_words, read_wordnet
from felicity.stimuli.lexicon import read_lexicon
from felicity.stimuli.templates import (
    Taxonomy,
    is_plural,
    is_proper,
    read_taxonomy,
    singularize,
    stands_bare,
)

WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
CONTRACTED = re.compile(r"(?:n['\u2019]t|['\u2019](?:s|re|ve|ll|d|m))$")
CUT_SHORT = {"ca", "wo", "sha"}
DENIAL = re.compile(
    r"(?:(?:an?|the) )?(?P<subject>[\w' -]+?) (?:is|are|was|were) not (?:an? )?(?P<category>[\w-]+)[.!,]?"
)
AFFIRMATION = re.compile(r"(?P<article>an?) (?P<subject>[\w-]+) is (?:an? )?(?P<category>[\w-]+)[.!,]?")
GAP = re.compile(r"\bwhich\b.*\bhad (?P<target>[a-z]+)[.,!?]?$")
HAVE, BE, DO = {"has", "have", "had", "having"}, {"is", "are", "was", "were", "been"}, {"do", "does", "did"}
OBJECTS = {"the", "it", "them", "him", "her", "us", "me", "by"}
SUBJECTS = {"i", "you", "he", "she", "it", "we", "they"}
# Zipf frequencies: a word this frequent is no misspelling, though no list has it; and the same if there is
# no list besides. A misspelt word has a neighbour that is this much more frequent.
FREQUENT, FREQUENT_ALONE, MORE_FREQUENT = 3.6, 2.2, 1.0
# A capitalized first word may be a name, unless it is unknown and close to a word that is this frequent.
COMMON = 4.5
SHORTEST = 3
ARTICLE, MASS, PARTICIPLE = "wrong article", "article before a mass noun", "wrong participle"
SPELLING, UNKNOWN, REPEATED = "misspelt word", "unknown word", "repeated word"
SLUR, DENIED, BLANK = "offensive word", "denied category", "empty sentence"
SENTENCE_RULES = (BLANK, ARTICLE, MASS, PARTICIPLE, REPEATED, SPELLING, UNKNOWN, SLUR, DENIED)

Zipf = Callable[[str], float]


class Fault(NamedTuple):
    """What is wrong, in words, and the numbers of the first word that it is about and of the one after."""

    rule: str
    reason: str
    begin: int
    end: int


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What is installed to check words by: WordNet's words and nouns, frequencies, and our own lexicon."""

    words: WordList | None = None
    taxonomy: Taxonomy | None = None
    zipf: Zipf | None = None
    lexicon: frozenset[str] = frozenset()
    verbs: frozenset[str] = frozenset()
    _verdicts: dict[str, bool] = field(default_factory=dict, repr=False)

    def list_unchecked(self) -> dict[str, str]:
        """The rules that cannot say anything here, or less than they could, each with the reason."""
        found: dict[str, str] = {}
        if self.words is None:
            missing = "WordNet is not installed (Debian: wordnet-base, or set $WNSEARCHDIR)"
            found |= dict.fromkeys((SLUR, DENIED), missing)
        if self.zipf is None and self.words is None:
            need = "neither wordfreq (`pip install 'felicity[stimuli]'`) nor WordNet is installed"
            found |= dict.fromkeys((SPELLING, UNKNOWN), need)
        return found

    def is_known(self, word: str) -> bool:
        """Whether a word is spelt as a known one."""
        lower = CONTRACTED.sub("", word.lower())
        if lower not in self._verdicts:
            self._verdicts[lower] = all(self._is_listed(part) for part in lower.split("-"))
        return self._verdicts[lower]

    def _is_listed(self, part: str) -> bool:
        if len(part) < 2 or not part.isalpha() or part in CUT_SHORT or part in self.lexicon:
            return True
        if self.words is not None and self.words.knows(part):
            return True
        least = FREQUENT_ALONE if self.words is None else FREQUENT
        return self.zipf is not None and self.zipf(part) >= least

    def is_rare(self, word: str, neighbour: str) -> bool:
        """Whether nobody writes a word whose neighbour is common, so that it is hardly a name."""
        return bool(neighbour and self.zipf and not self.zipf(word) and self.zipf(neighbour) >= COMMON)

    def find_neighbour(self, word: str) -> str:
        """The most frequent known word that is one letter away, if it is much more frequent; else empty."""
        lower = word.lower()
        near = {edit for edit in list_edits(lower) if edit != lower and len(edit) > 1 and self.is_known(edit)}
        if self.zipf is None:
            return self.words.find_variant(lower) if self.words is not None else ""
        zipf = self.zipf
        best = max(near, key=lambda edit: (zipf(edit), edit), default="")
        return best if best and zipf(best) >= zipf(lower) + MORE_FREQUENT else ""


def _list(table: str, name: str) -> Any:
    return read_packaged_toml("felicity.stimuli.checks", "english.toml")[table][name]


@cache
def _participles() -> tuple[frozenset[str], frozenset[str]]:
    """Past forms that are no participles, and the participles of the same verbs."""
    forms = _list("participle", "forms")
    return frozenset(past for _, past, _ in forms), frozenset(done for _, _, done in forms)


def open_knowledge(zipf: Zipf | None = None) -> Knowledge:
    """All that is installed; `zipf`: the frequencies of English words, if there are any."""
    lexicon, verbs = _read_own_words()
    return Knowledge(words=read_wordnet(), taxonomy=read_taxonomy(), zipf=zipf, lexicon=lexicon, verbs=verbs)


@cache
def _read_own_words() -> tuple[frozenset[str], frozenset[str]]:
    """The words of the English lexicon, and the base forms of its verbs that are nothing else."""
    readings = read_lexicon().readings
    words = {
        category: {word.lower() for reading in found for word in reading.text.split()}
        for category, found in readings.items()
    }
    bases = {reading.lexeme for reading in readings.get("V", ())}
    others = set[str]().union(*(found for category, found in words.items() if category != "V"))
    return frozenset(set().union(*words.values()) | read_function_words()), frozenset(bases - others)


def split_words(sentence: str) -> list[str]:
    """The words of a sentence, without punctuation.

    >>> split_words("The mother-in-law didn't come, did she?")
    ['The', 'mother-in-law', "didn't", 'come', 'did', 'she']
    """
    return WORD.findall(sentence)


def find_faults(sentence: str, knowledge: Knowledge) -> list[Fault]:
    """Everything that is wrong with an English sentence, in the order of the rules.

    >>> [fault.reason for fault in find_faults("A engineer had warn us.", open_knowledge())]
    ["'A engineer'", "'had warn'"]
    """
    if not sentence.strip():
        return [Fault(BLANK, "nothing is written", 0, 0)]
    words = split_words(sentence)
    joined = _find_joined(sentence)
    found = [
        *_check_articles(words, joined),
        *_check_mass(sentence, words, joined, knowledge),
        *_check_participles(sentence, words, joined, knowledge),
        *_check_repeats(words, joined),
        *_check_spelling(words, knowledge),
        *_check_slurs(words, knowledge),
        *_check_denials(sentence, words, knowledge),
    ]
    return list(dict.fromkeys(found))


def _find_joined(sentence: str) -> list[bool]:
    """For each word whether only white space is between it and the next."""
    places = [match.span() for match in WORD.finditer(sentence)]
    gaps = [sentence[one[1] : other[0]] for one, other in pairwise(places)]
    return [not gap.strip() for gap in gaps] + [False]


def find_wrong_articles(sentence: str) -> list[str]:
    """Articles that do not fit the word behind them: a before a vowel sound, an before a consonant, either
    before a plural.

    >>> find_wrong_articles("A engineer is not an utensil"), find_wrong_articles("An X-ray is a use")
    (['A engineer', 'an utensil'], [])
    """
    faults = _check_articles(split_words(sentence), _find_joined(sentence))
    return [fault.reason.strip("'") for fault in faults]


def _check_articles(words: list[str], joined: list[bool]) -> Iterator[Fault]:
    for place, (word, near) in enumerate(zip(words, joined, strict=True)):
        # A capital within a sentence is the letter: vitamin A, plan A.
        if not near or (word not in ("a", "an", "An") and not (word == "A" and place == 0)):
            continue
        following = words[place + 1]
        plural = following.islower() and following.isalpha() and is_plural(following)
        plural = plural and following not in _list("article", "before_plural")
        if word.lower() != choose_article(following) or plural:
            yield Fault(ARTICLE, f"'{word} {following}'", place, place + 2)


def _check_mass(sentence: str, words: list[str], joined: list[bool], knowledge: Knowledge) -> Iterator[Fault]:
    nouns, adjectives, after = (set(_list("mass", name)) for name in ("words", "adjectives", "after"))
    for place, word in enumerate(words):
        if word.lower() not in ("a", "an") or not joined[place]:
            continue
        noun = place + 1
        if words[noun].lower() in adjectives and joined[noun]:
            noun += 1
        closed = not joined[noun] or words[noun + 1].lower() in after | read_function_words()
        if words[noun].lower() in nouns and closed:
            yield Fault(MASS, f"'{' '.join(words[place : noun + 1])}'", place, noun + 1)
    # What is said to be a kind of metal or of fabric is a mass noun, though "a gold" may be a medal.
    found = AFFIRMATION.fullmatch(sentence.strip()[:1].lower() + sentence.strip()[1:])
    if found and stands_bare(found["subject"], found["category"], knowledge.taxonomy):
        yield Fault(MASS, f"'{words[0]} {found['subject']}'", 0, 2)


def _check_participles(
    sentence: str, words: list[str], joined: list[bool], knowledge: Knowledge
) -> Iterator[Fault]:
    lower = [word.lower() for word in words]
    gap = GAP.search(sentence)
    for place, word in enumerate(lower):
        if word not in HAVE | BE or not joined[place]:
            continue
        verb = place + 1
        if place == 0 and lower[verb] in SUBJECTS and joined[verb] and word in ("has", "had"):
            verb += 1
        while lower[verb] in _list("participle", "between") and joined[verb]:
            verb += 1
        # All they did was complain.
        cleft = word in BE and DO & set(lower[:place])
        last = gap is not None and verb == len(words) - 1 and word == "had"
        if not cleft and _is_wrong_participle(lower, verb, knowledge, gap=last, perfect=word in HAVE):
            yield Fault(PARTICIPLE, f"'{' '.join(words[place : verb + 1])}'", place, verb + 1)


def _is_wrong_participle(
    lower: list[str], place: int, knowledge: Knowledge, *, gap: bool, perfect: bool
) -> bool:
    """Whether the word after an auxiliary is a base or past form. gap: its object is the relative pronoun."""
    word, (pasts, participles) = lower[place], _participles()
    if word in participles or word in _list("participle", "unchanged"):
        return False
    if word in pasts:
        following = lower[place + 1] if place + 1 < len(lower) else ""
        noun = word in _list("participle", "nouns")
        return not noun or gap or following in OBJECTS
    known = knowledge.words.only_verbs if knowledge.words is not None else knowledge.verbs
    if word in known or (perfect and word.removesuffix("s") in known):
        return True
    # Behind the subject of a relative clause without an object only a participle is possible.
    verbs = knowledge.words.verbs if knowledge.words is not None else knowledge.verbs
    ends = word.endswith(("ed", "en", "ing")) or word in _list("participle", "ambiguous")
    return gap and word in verbs and not ends


def _check_repeats(words: list[str], joined: list[bool]) -> Iterator[Fault]:
    for place, near in enumerate(joined):
        word = words[place].lower()
        if (
            near
            and word == words[place + 1].lower()
            and word not in _list("repeated", "allowed")
            and word.isalpha()
        ):
            yield Fault(REPEATED, f"'{words[place]} {words[place + 1]}'", place, place + 2)


def _check_spelling(words: list[str], knowledge: Knowledge) -> Iterator[Fault]:
    if knowledge.words is None and knowledge.zipf is None:
        return
    for place, word in enumerate(words):
        plain = CONTRACTED.sub("", word)
        name = plain[:1].isupper()
        if (name and place) or len(plain) < SHORTEST or not plain.isascii() or knowledge.is_known(word):
            continue
        near = knowledge.find_neighbour(plain)
        if name and near not in read_function_words() and not knowledge.is_rare(plain, near):
            continue
        if near:
            yield Fault(SPELLING, f"'{word}', perhaps '{near}'", place, place + 1)
        elif knowledge.zipf is None or knowledge.zipf(plain) == 0:
            yield Fault(UNKNOWN, f"'{word}'", place, place + 1)


def _check_slurs(words: list[str], knowledge: Knowledge) -> Iterator[Fault]:
    if knowledge.words is None:
        return
    for place, word in enumerate(words):
        noun = singularize(word.lower())
        gloss = knowledge.words.offensive.get(noun)
        harmless = word in _list("offensive", "names") or noun in _list("offensive", "harmless")
        if gloss and not harmless:
            said = f"a sense of '{word}' is marked in WordNet: {gloss.split(';')[0][:80]}"
            yield Fault(SLUR, said, place, place + 1)


def _check_denials(sentence: str, words: list[str], knowledge: Knowledge) -> Iterator[Fault]:
    plain = sentence.strip()
    found = DENIAL.fullmatch(plain[:1].lower() + plain[1:])
    if found is None or knowledge.taxonomy is None or is_proper(found["subject"]):
        return
    noun, category = plain[found.start("subject") : found.end("subject")].split()[-1], found["category"]
    if singularize(noun) == singularize(category):
        return
    if knowledge.taxonomy.is_kind_of(noun, category, usual=True):
        yield Fault(DENIED, f"'{noun}' is a kind of '{category}' in WordNet", 0, len(words))
