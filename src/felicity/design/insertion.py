"""A phrase before or after a sentence, or the sentence in quotes, with capitals and punctuation set right."""

import re
from dataclasses import dataclass, replace

from felicity.design.casing import WORD, Ordinary, lower_first, upper_first

ENDING = re.compile(r"(?P<space>\s*)(?P<mark>[.!?…]+)(?P<close>\s*[\"”’']*)$")
# A full stop that belongs to the last word stays with it: "in the U.S., fortunately."
ABBREVIATION = re.compile(r"(?:\b(?:[^\W\d_]\.)+[^\W\d_]|\b(?:etc|Inc|Jr|Sr|Co|Ltd|Corp))$")
# Some published questions end in a full stop; no statement begins with these.
ASKING = ("who", "whose", "whom", "which")
# One that is not closed, because the text was cut inside a quotation, goes on to the end.
INNER_DOUBLE = re.compile(r"\"([^\"]*)(\"|$)|“([^”]*)(”|$)")
INNER_SINGLE = re.compile(r"(?<!\w)['‘]([^'‘’]+)['’](?!\w)")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence taken apart: brackets around the whole of it, its words, and how it ends.

    `space` is what stands before the mark: nothing, but in text such as WikiText's ("He left .") a space.
    `close` are quotes that close after the mark.
    """

    body: str
    space: str = ""
    mark: str = ""
    close: str = ""
    bracketed: bool = False

    @property
    def text(self) -> str:
        """The sentence, put together again."""
        text = f"{self.body}{self.space}{self.mark}{self.close}"
        return f"({text})" if self.bracketed else text

    @property
    def comma(self) -> str:
        """A comma, set as the sentence sets its full stop."""
        return f"{self.space}, "

    @property
    def asking(self) -> bool:
        """Whether it is a question, so that what is put around it may suit one."""
        first = WORD.match(self.body)
        return ("?" in self.mark and not self.close) or (
            first is not None and first.group().lower() in ASKING
        )


def take_apart(text: str) -> Sentence:
    """The parts of a sentence; without an ending mark, all of it is body.

    >>> take_apart('Who said, "Go."')
    Sentence(body='Who said, "Go', space='', mark='.', close='"', bracketed=False)
    """
    text = text.strip()
    if text.startswith("(") and text.endswith(")") and text.count("(") == 1:
        return replace(take_apart(text[1:-1]), bracketed=True)
    match = ENDING.search(text)
    if match is None:
        return Sentence(text, space=" " if " , " in text else "")
    return Sentence(text[: match.start()], match["space"][:1], match["mark"], match["close"])


def put_before(sentence: Sentence, phrase: str, ordinary: Ordinary) -> Sentence:
    """The sentence after a phrase.

    >>> put_before(take_apart("The cat left."), "luckily", frozenset({"the"})).text
    'Luckily, the cat left.'
    """
    body = lower_first(sentence.body, ordinary, asking=sentence.asking)
    return replace(sentence, body=f"{upper_first(phrase)}{sentence.comma}{body}")


def put_after(sentence: Sentence, phrase: str) -> Sentence:
    """The sentence with a phrase at its end, before the mark.

    >>> put_after(take_apart("The cat left."), "luckily").text
    'The cat left, luckily.'
    >>> put_after(take_apart('He said, "Go."'), "luckily").text
    'He said, "Go," luckily.'
    """
    body, space, mark = sentence.body, sentence.space, sentence.mark
    if sentence.close:
        inner = "," if mark == "." else mark
        return replace(sentence, body=f"{body}{space}{inner}{sentence.close} {phrase}", mark=".", close="")
    if mark == "." and ABBREVIATION.search(body):
        body += mark
    return replace(sentence, body=f"{body}{sentence.comma}{phrase}")


def put_in_quotes(sentence: Sentence, speech: str) -> Sentence:
    """The sentence as what somebody said; quotes inside it become single ones.

    >>> put_in_quotes(take_apart('I heard "Go" twice.'), "yesterday, Nora said").text
    'Yesterday, Nora said, "I heard \\'Go\\' twice."'
    """
    said = replace(sentence, mark=sentence.mark or ".", bracketed=False)
    opening, closing = ("“", "”") if "“" in said.text else ('"', '"')
    gap = sentence.space
    lead = upper_first(speech).replace(", ", sentence.comma)
    quoted = f"{opening}{gap}{_nest(said.text)}{gap}{closing}"
    return Sentence(f"{lead}{sentence.comma}{quoted}", bracketed=sentence.bracketed)


def _nest(text: str) -> str:
    """Double quotes as single ones, and single ones inside them as double ones.

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
