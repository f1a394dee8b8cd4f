"""Content words replaced by pseudowords, so that only the grammar of a sentence is left.

Nouns, verbs, adjectives and adverbs are replaced; auxiliaries, names, numbers and grammatical words
(`words/kept.txt`) stay. Endings stay: plural and third person -s, -ed, -ing, -er, -est, -ly; so do agreement
and a/an. A lemma gets the same pseudoword throughout a sentence. What the words themselves select is lost:
"the hid cat" and "the hidden cat" become the same, and whether a verb takes an object is no longer
known.
"""

import re
from collections.abc import Callable, Iterable, Sequence

from felicity.core.documents import read_packaged_toml
from felicity.design.insertion import Ordinary, is_ordinary, read_word_list, read_word_pairs
from felicity.design.parsing import Token, load_parser, parse_sentence

VOWELS = "aeiou"
SIBILANT = re.compile(r"(?:s|x|z|sh|ch)$")
LONG_WORD = 9

Draw = Callable[[], float]
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
# Forms that must not be words; "e" and "y" since "evad" would be read as a form of "evade".
FORMS = ("", "s", "ed", "ing", "ings", "er", "est", "ly", "e", "y")
# An ending that is part of the lemma and shows its part of speech: gladly, scared, painting.
LASTING = re.compile(r"^\w*[aeiouy]\w+?(ing|(?<!e)ed|ly)$")
SHOWS_S = re.compile(r"\w{2}[^suia]s$")
IRREGULAR_PLURAL = re.compile(r"(?:men|people|children|[ai]|ae|eet|eeth|eese|ice)$")
LIGHT_VERBS = ("be", "have", "do", "get", "let")
PLURAL_WORDS = frozenset({"these", "those", "many", "several", "few", "both", "two", "three", "four", "five"})
PLURAL_VERBS = frozenset({"are", "were", "have", "do"})
PREFIX_LETTERS = 3
TRIES_A_LENGTH = 50


def make_pseudoword(syllables: int, draw: Draw, *, vowel: bool) -> str:
    """A pronounceable word; `vowel` says whether it starts with one. `draw` gives numbers in [0, 1).

    >>> make_pseudoword(2, lambda: 0.5, vowel=False)
    'prommink'
    """
    parts = read_packaged_toml("felicity.design", "words/syllables.toml")

    def pick(kind: str) -> str:
        options = parts[kind]
        return str(options[int(draw() * len(options))])

    word = pick("openings") if vowel else pick("onsets") + pick("nuclei")
    for _ in range(syllables - 1):
        word += pick("inner_codas") + pick("inner_onsets") + pick("inner_nuclei")
    return word + pick("codas")


def count_syllables(word: str) -> int:
    """The number of syllables of a pseudoword: two, or three for a long word.

    Never one: too many such words exist ("lark", "glom"), and no vocabulary lists them all.
    """
    return 2 + (len(word) > LONG_WORD)


def inflect(word: str, ending: str) -> str:
    """A pseudoword with one of the regular endings: "", s, ed, ing, er, est, ly.

    >>> inflect("gremish", "s"), inflect("prorzunk", "ed")
    ('gremishes', 'prorzunked')
    """
    return word + ("es" if ending == "s" and SIBILANT.search(word) else ending)


def choose_pseudoword_article(word: str) -> str:
    """The indefinite article before a pseudoword; none starts with a vowel letter that sounds otherwise.

    >>> choose_pseudoword_article("olmick"), choose_pseudoword_article("prummeck")
    ('an', 'a')
    """
    return "an" if word[:1].lower() in VOWELS else "a"


def replace_words(sentence: str, draw: Callable[[], float], ordinary: Ordinary) -> str:
    """The sentence with its content words replaced; `draw` gives numbers in [0, 1).

    Raises NotPossible if spaCy or its model is not installed.
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
        word = inflect(made[lemma], find_inflection(tokens, index))
        texts[index] = _match_case(word, token.text)
        if index and texts[index - 1].lower() in ("a", "an"):
            texts[index - 1] = _match_case(choose_pseudoword_article(word), texts[index - 1])
    return _join(sentence, tokens, texts)


def is_content(tokens: Sequence[Token], index: int, ordinary: Ordinary) -> bool:
    """Whether a token is to be replaced: a noun, verb, adjective or adverb, and not a name."""
    token = tokens[index]
    if token.pos not in CONTENT or not token.text.isalpha() or token.dep in ("aux", "auxpass", "neg"):
        return False
    if token.text.lower() in read_word_list("kept") or token.lemma.lower() in LIGHT_VERBS:
        return False
    if _is_fragment(tokens, index):
        return False
    if token.text.islower():
        return True
    opens = not any(other.text.isalpha() for other in tokens[:index])
    is_plural = token.tag == "NNS" and token.text.endswith("s")
    return opens and (is_plural or is_ordinary(token.text, ordinary))


def _is_fragment(tokens: Sequence[Token], index: int) -> bool:
    """Whether it is a fragment of a word: `ca` of can't, `t` of wouldn 't, `na` of gonna, `ex` of ex-wife."""
    token = tokens[index]
    if len(token.text) == 1:
        return True
    if index and tokens[index - 1].end == token.start and tokens[index - 1].text[-1].isalpha():
        return True
    if index + 1 == len(tokens) or tokens[index + 1].start != token.end:
        return False
    after = tokens[index + 1].text
    return after[0].isalpha() or (after == "-" and len(token.text) <= PREFIX_LETTERS)


def find_inflection(tokens: Sequence[Token], index: int) -> str:
    """The ending that a token shows, or would show if it were regular.

    The tag decides unless the word's form contradicts it: taggers make errors on unacceptable sentences.
    """
    token = tokens[index]
    word = token.text.lower()
    number = read_word_pairs("nouns").get(word) if token.tag != "VBZ" else None
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
    """Whether a word can have the ending that its tag implies."""
    word = token.text.lower()
    if ending == "s":
        return word.endswith("s") or bool(IRREGULAR_PLURAL.search(word))
    if ending == "ing":
        return word.endswith("ing")
    if ending == "ed":
        is_bare = word == token.lemma.lower() and word not in read_word_list("steady_verbs")
        return not is_bare and not SHOWS_S.search(word)
    return True


def _is_plural(tokens: Sequence[Token], index: int) -> bool:
    """Whether the context of an invariant noun (fish, offspring) makes it plural."""
    noun = tokens[index]
    modifiers = [other.text.lower() for other in tokens if other.head == index]
    if PLURAL_WORDS & set(modifiers):
        return True
    verbs = [tokens[noun.head], *(other for other in tokens if other.head == noun.head)]
    return noun.dep.startswith("nsubj") and any(
        verb.tag == "VBP" or verb.text.lower() in PLURAL_VERBS for verb in verbs
    )


def _invent(lemma: str, draw: Callable[[], float], ordinary: Ordinary, taken: Iterable[str]) -> str:
    """A word none of whose forms is in the parser's vocabulary or in the given sentences."""
    vocabulary = load_parser().vocab.strings
    tries = 0
    while True:
        # Longer words after many tries, so that one is always found.
        syllables = count_syllables(lemma) + tries // TRIES_A_LENGTH
        word = make_pseudoword(syllables, draw, vowel=lemma[0] in VOWELS)
        forms = [inflect(word, ending) for ending in FORMS]
        if word not in taken and not any(form in vocabulary or form in ordinary for form in forms):
            return word
        tries += 1


def _match_case(word: str, like: str) -> str:
    return word.capitalize() if like[:1].isupper() else word


def _join(sentence: str, tokens: Sequence[Token], texts: Sequence[str]) -> str:
    """The texts in place of the tokens, with the sentence's own spacing."""
    pieces, end = [], 0
    for token, text in zip(tokens, texts, strict=True):
        pieces += [sentence[end : token.start], text]
        end = token.end
    return "".join([*pieces, sentence[end:]])
