"""Phrases inserted before or after a sentence, or quotes around it, with correct capitals and punctuation."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

FOLDER = "words"
WORD = re.compile(r"[^\W\d_]+")
# A capital after one of these is no evidence: a new sentence, a quotation or a title starts.
OPENS = re.compile(r"[.!?…:;\"“‘(\[]\s*$")
# A word capitalized this rarely inside sentences is an ordinary word that also occurs in titles.
MOST_CAPITALS = 0.05
ENDING = re.compile(r"(?P<space>\s*)(?P<mark>[.!?…]+)(?P<close>\s*[\"”’']*)$")
# A full stop that belongs to the last word stays with it: "in the U.S., fortunately."
ABBREVIATION = re.compile(r"(?:\b(?:[^\W\d_]\.)+[^\W\d_]|\b(?:etc|Inc|Jr|Sr|Co|Ltd|Corp))$")
SHORTEST_PLURAL = 4
# Some published questions end in a full stop; no statement starts with these.
ASKING = ("who", "whose", "whom", "which")
# A noun before a finite verb is a subject, not an order: "Help came.", "Try as he might, he failed."
SUBJECT_NEXT = re.compile(r"\s+(?:is|are|was|were|has|have|had|will|would|can|could|came|as)\b")
# What may stand before the verb of an order.
BEFORE_ORDER = re.compile(r"(?:please|never|do not|don't|always)\s+", re.IGNORECASE)
# Sentence adverbs (Thankfully, Virtually), but not names that end alike: those are in the list of names.
ADVERB = re.compile(r"[^\W\d_]{4,}ly$")
# An unclosed quotation, from a text truncated inside it, extends to the end.
INNER_DOUBLE = re.compile(r"\"([^\"]*)(\"|$)|“([^”]*)(”|$)")
INNER_SINGLE = re.compile(r"(?<!\w)['‘]([^'‘’]+)['’](?!\w)")


@cache
def read_word_list(name: str) -> tuple[str, ...]:
    """The words of a list, in order; lines that start with # are comments."""
    lines = (line for line in _read(f"{name}.txt").splitlines() if not line.startswith("#"))
    return tuple(word for line in lines for word in line.split())


@cache
def read_word_pairs(name: str) -> dict[str, str]:
    """A table of two columns with a header, as a mapping from the first to the second."""
    rows = (line.partition("\t") for line in _read(f"{name}.tsv").splitlines()[1:])
    return {first: second for first, _, second in rows}


def _read(name: str) -> str:
    return files("felicity.design").joinpath(FOLDER, name).read_text(encoding="utf-8")


Ordinary = frozenset[str]


def learn_ordinary(sentences: Iterable[str] = ()) -> Ordinary:
    """Words that are not names, lower-cased: a list, and those that the sentences write in lower case.

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
    unsure = set(read_word_list("asking_openers"))
    learnt = {
        word
        for word, count in small.items()
        if word not in unsure and capital[word] <= MOST_CAPITALS * (count + capital[word])
    }
    return frozenset(learnt | set(read_word_list("openers")))


def is_ordinary(word: str, ordinary: Ordinary, *, question: bool = False) -> bool:
    """Whether a word at the start of a sentence would be lower-cased inside it."""
    lower = word.lower()
    if len(word) > 1 and word.isupper():
        return False
    if (
        lower in ordinary
        or lower in read_word_list("imperative_openers")
        or (question and lower in read_word_list("asking_openers"))
    ):
        return True
    if ADVERB.match(lower) and word not in read_word_list("names") and word not in read_word_list("ly_names"):
        return True
    # The plural of an ordinary word is one: nations, where the sentences have nation.
    return lower.endswith("s") and len(lower) > SHORTEST_PLURAL and lower[:-1] in ordinary


def lower_first(sentence: str, ordinary: Ordinary, *, question: bool = False) -> str:
    """The sentence as it is written after something else.

    >>> lower_first("The cat saw Rose.", learn_ordinary())
    'the cat saw Rose.'
    >>> lower_first("I saw Rose.", learn_ordinary())
    'I saw Rose.'
    """
    match = WORD.match(sentence)
    if match is None or not is_ordinary(match.group(), ordinary, question=question):
        return sentence
    if len(match.group()) == 1 and sentence[1:2] == ".":
        return sentence
    return sentence[0].lower() + sentence[1:]


def upper_first(text: str) -> str:
    """The text as it starts a sentence.

    >>> upper_first("in all honesty")
    'In all honesty'
    """
    return text[:1].upper() + text[1:]


@dataclass(frozen=True, slots=True)
class SentenceParts:
    """A sentence in parts: brackets around it, its words, and its end.

    `space` precedes the mark: usually empty, but a space in tokenized text such as WikiText ("He left .").
    `close` are quotes that close after the mark.
    """

    body: str
    space: str = ""
    mark: str = ""
    close: str = ""
    bracketed: bool = False

    @property
    def text(self) -> str:
        """The sentence, reassembled."""
        text = f"{self.body}{self.space}{self.mark}{self.close}"
        return f"({text})" if self.bracketed else text

    @property
    def comma(self) -> str:
        """A comma, spaced as the sentence spaces its full stop."""
        return f"{self.space}, "

    @property
    def imperative(self) -> bool:
        """Whether it is an order or a request, so that insertions can suit one."""
        rest = BEFORE_ORDER.sub("", self.body, count=1)
        first = WORD.match(rest)
        return (
            first is not None
            and self.mark != "?"
            and first.group().lower() in read_word_list("imperative_openers")
            and (rest != self.body or not SUBJECT_NEXT.match(rest, first.end()))
        )

    @property
    def question(self) -> bool:
        """Whether it is a question, so that insertions can suit one."""
        first = WORD.match(self.body)
        return ("?" in self.mark and not self.close) or (
            first is not None and first.group().lower() in ASKING
        )


def split_sentence(text: str) -> SentenceParts:
    """The parts of a sentence; without a final mark, all of it is body.

    >>> split_sentence('Who said, "Go."')
    SentenceParts(body='Who said, "Go', space='', mark='.', close='"', bracketed=False)
    """
    text = text.strip()
    if text.startswith("(") and text.endswith(")") and text.count("(") == 1:
        return replace(split_sentence(text[1:-1]), bracketed=True)
    match = ENDING.search(text)
    if match is None:
        return SentenceParts(text, space=" " if " , " in text else "")
    return SentenceParts(text[: match.start()], match["space"][:1], match["mark"], match["close"])


def insert_before(sentence: SentenceParts, phrase: str, ordinary: Ordinary) -> SentenceParts:
    """The sentence after a phrase.

    >>> insert_before(split_sentence("The cat left."), "luckily", frozenset({"the"})).text
    'Luckily, the cat left.'
    """
    body = lower_first(sentence.body, ordinary, question=sentence.question)
    return replace(sentence, body=f"{upper_first(phrase)}{sentence.comma}{body}")


def insert_after(sentence: SentenceParts, phrase: str) -> SentenceParts:
    """The sentence with a phrase at its end, before the mark.

    >>> insert_after(split_sentence("The cat left."), "luckily").text
    'The cat left, luckily.'
    >>> insert_after(split_sentence('He said, "Go."'), "luckily").text
    'He said, "Go," luckily.'
    """
    body, space, mark = sentence.body, sentence.space, sentence.mark
    if sentence.close:
        inner = "," if mark == "." else mark
        return replace(sentence, body=f"{body}{space}{inner}{sentence.close} {phrase}", mark=".", close="")
    if mark == "." and ABBREVIATION.search(body):
        body += mark
    return replace(sentence, body=f"{body}{sentence.comma}{phrase}")


def insert_in_quotes(sentence: SentenceParts, speech: str) -> SentenceParts:
    """The sentence as direct speech; quotes inside it become single quotes.

    >>> insert_in_quotes(split_sentence('I heard "Go" twice.'), "yesterday, Nora said").text
    'Yesterday, Nora said, "I heard \\'Go\\' twice."'
    """
    said = replace(sentence, mark=sentence.mark or ".", bracketed=False)
    opening, closing = ("“", "”") if "“" in said.text else ('"', '"')
    gap = sentence.space
    lead = upper_first(speech).replace(", ", sentence.comma)
    quoted = f"{opening}{gap}{_nest(said.text)}{gap}{closing}"
    return SentenceParts(f"{lead}{sentence.comma}{quoted}", bracketed=sentence.bracketed)


def _nest(text: str) -> str:
    """Double quotes as single quotes, and single quotes inside them as double quotes.

    >>> _nest('He said, "I saw \\'Emma\\' there."')
    'He said, \\'I saw "Emma" there.\\''
    """

    def make_single(match: re.Match[str]) -> str:
        curly = match[3] is not None
        inside = match[3] if curly else match[1]
        opening, closing = "“”" if curly else '""'
        inside = INNER_SINGLE.sub(rf"{opening}\1{closing}", inside)
        opening, closing = "‘’" if curly else "''"
        return f"{opening}{inside}{closing if match[4 if curly else 2] else ''}"

    return INNER_DOUBLE.sub(make_single, text)
