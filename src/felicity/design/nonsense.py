"""Content words replaced by words that do not exist, so that only the grammar of a sentence is left.

Nouns, verbs, adjectives and adverbs are replaced; auxiliaries, names, numbers and words that do grammatical
work (`words/kept.txt`) stay. Endings stay with their words: plural and third person -s, -ed, -ing, -er, -est,
-ly; so do agreement and a/an. The same lemma gets the same word within a sentence. What the words themselves
select is lost with them: "the hid cat" and "the hidden cat" come out alike, and a verb that takes no object
becomes one of which nobody knows.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from felicity.design.casing import Ordinary, is_ordinary
from felicity.design.parsing import Token, load_parser, parse_sentence
from felicity.design.pseudowords import VOWELS, choose_article, count_syllables, inflect, make_pseudoword
from felicity.design.wordlists import read_pairs, read_words

CONTENT = ("NOUN", "VERB", "ADJ", "ADV", "PROPN")
BARE = ("VB", "VBP")
INFLECTED = {
    "NNS": "s",
    "VBZ": "s",
    "VBD": "ed",
    "VBN": "ed",
    "VBG": "ing",
    "JJR": "er",
    "RBR": "er",
    "JJS": "est",
    "RBS": "est",
}
# Forms that must not be words; "e" and "y" since "evad" would be taken for a form of "evade".
FORMS = ("", "s", "ed", "ing", "ings", "er", "est", "ly", "e", "y")
# An ending that belongs to the lemma, and shows what kind of word it is: gladly, scared, painting.
LASTING = re.compile(r"^\w*[aeiouy]\w+?(ing|(?<!e)ed|ly)$")
SHOWS_S = re.compile(r"\w{2}[^suia]s$")
IRREGULAR_PLURAL = re.compile(r"(?:men|people|children|[ai]|ae|eet|eeth|eese|ice)$")
LIGHT_VERBS = ("be", "have", "do", "get", "let")
PLURAL_WORDS = frozenset({"these", "those", "many", "several", "few", "both", "two", "three", "four", "five"})
PLURAL_VERBS = frozenset({"are", "were", "have", "do"})
PREFIX_LETTERS = 3
TRIES_A_LENGTH = 50


def replace_words(sentence: str, draw: Callable[[], float], ordinary: Ordinary) -> str:
    """The sentence with its content words replaced; `draw` gives numbers from 0 up to 1.

    Raises NotPossible where spaCy or its model is not installed.
    """
    tokens = parse_sentence(sentence)
    made: dict[str, str] = {}
    texts = [token.text for token in tokens]
    for index, token in enumerate(tokens):
        if not is_content(tokens, index, ordinary):
            continue
        lemma = token.lemma.lower()
        if lemma not in made:
            made[lemma] = _invent(lemma, draw, ordinary, made.values())
        word = inflect(made[lemma], find_ending(tokens, index))
        texts[index] = _match_case(word, token.text)
        if index and texts[index - 1].lower() in ("a", "an"):
            texts[index - 1] = _match_case(choose_article(word), texts[index - 1])
    return _join(sentence, tokens, texts)


def is_content(tokens: Sequence[Token], index: int, ordinary: Ordinary) -> bool:
    """Whether a token is a word to replace: a noun, verb, adjective or adverb, and no name."""
    token = tokens[index]
    if token.pos not in CONTENT or not token.text.isalpha() or token.dep in ("aux", "auxpass", "neg"):
        return False
    if token.text.lower() in read_words("kept") or token.lemma.lower() in LIGHT_VERBS:
        return False
    if _is_fragment(tokens, index):
        return False
    if token.text.islower():
        return True
    opens = not any(other.text.isalpha() for other in tokens[:index])
    is_plural = token.tag == "NNS" and token.text.endswith("s")
    return opens and (is_plural or is_ordinary(token.text, ordinary))


def _is_fragment(tokens: Sequence[Token], index: int) -> bool:
    """Whether it is a piece of a word: `ca` of can't, `t` of wouldn 't, `na` of gonna, `ex` of ex-wife."""
    token = tokens[index]
    if len(token.text) == 1:
        return True
    if index and tokens[index - 1].end == token.start and tokens[index - 1].text[-1].isalpha():
        return True
    if index + 1 == len(tokens) or tokens[index + 1].start != token.end:
        return False
    after = tokens[index + 1].text
    return after[0].isalpha() or (after == "-" and len(token.text) <= PREFIX_LETTERS)


def find_ending(tokens: Sequence[Token], index: int) -> str:
    """The ending that a token shows, or would show if it were regular.

    The tag decides unless the word's shape speaks against it: taggers stumble over unacceptable sentences.
    """
    token = tokens[index]
    word = token.text.lower()
    number = read_pairs("nouns").get(word) if token.tag != "VBZ" else None
    if number is not None:
        return "s" if number == "plural" or (number == "either" and _is_plural(tokens, index)) else ""
    lasting = LASTING.match(token.lemma.lower() if token.tag in INFLECTED else word)
    if token.tag == "NNS" and lasting and lasting[1] == "ing":
        return "ings"
    ending = INFLECTED.get(token.tag, "")
    if ending and _fits(token, ending):
        return ending
    if SHOWS_S.search(word):
        return "s"
    return lasting[1] if lasting and not (token.tag in BARE and lasting[1] == "ly") else ""


def _fits(token: Token, ending: str) -> bool:
    """Whether a word can have the ending that its tag claims."""
    word = token.text.lower()
    if ending == "s":
        return word.endswith("s") or bool(IRREGULAR_PLURAL.search(word))
    if ending == "ing":
        return word.endswith("ing")
    if ending == "ed":
        is_bare = word == token.lemma.lower() and word not in read_words("steady_verbs")
        return not is_bare and not SHOWS_S.search(word)
    return True


def _is_plural(tokens: Sequence[Token], index: int) -> bool:
    """Whether what stands with a noun of one form (fish, offspring) takes it for a plural."""
    noun = tokens[index]
    modifiers = [other.text.lower() for other in tokens if other.head == index]
    if PLURAL_WORDS & set(modifiers):
        return True
    verbs = [tokens[noun.head], *(other for other in tokens if other.head == noun.head)]
    return noun.dep.startswith("nsubj") and any(
        verb.tag == "VBP" or verb.text.lower() in PLURAL_VERBS for verb in verbs
    )


def _invent(lemma: str, draw: Callable[[], float], ordinary: Ordinary, taken: Iterable[str]) -> str:
    """A word none of whose forms is known to the parser's vocabulary or occurs in the sentences at hand."""
    known = load_parser().vocab.strings
    tries = 0
    while True:
        # Longer ones in the end, so that one is found whatever the draws are.
        syllables = count_syllables(lemma) + tries // TRIES_A_LENGTH
        word = make_pseudoword(syllables, draw, vowel=lemma[0] in VOWELS)
        forms = [inflect(word, ending) for ending in FORMS]
        if word not in taken and not any(form in known or form in ordinary for form in forms):
            return word
        tries += 1


def _match_case(word: str, like: str) -> str:
    return word.capitalize() if like[:1].isupper() else word


def _join(sentence: str, tokens: Sequence[Token], texts: Sequence[str]) -> str:
    """The texts in the places of the tokens, with the sentence's own spacing."""
    pieces, place = [], 0
    for token, text in zip(tokens, texts, strict=True):
        pieces += [sentence[place : token.start], text]
        place = token.end
    return "".join([*pieces, sentence[place:]])
