"""The words of a text as a model meets them: their form, where they stand, and what follows them.

White space separates the pieces of a text; punctuation at the edges of a piece is split off, punctuation
within it ("don't", "mother-in-law", "10,000") is not.
"""

import unicodedata
from typing import Literal, NamedTuple

from felicity.core.errors import BadInput
from felicity.core.regions import find_unmarked

Start = Literal["opening", "initial", "inside", "attached"]
TERMINAL = ".!?…؟۔।"
CLOSERS = "\"'”’»)]}"


class WordForm(NamedTuple):
    """A word, or punctuation at the edge of one, and its position.

    start: `opening` begins a text without context, where no space precedes it; `initial` begins a later
        sentence; `inside` follows a space within a sentence; `attached` is punctuation directly after a word.
    lead: punctuation directly before a word, such as an opening quote. closed: white space follows, so that
        the model must have ended the word; otherwise punctuation or the end of the text follows.
    """

    form: str
    start: Start
    lead: str = ""
    closed: bool = False


class PlacedForm(NamedTuple):
    """A word and its characters in the text, `begin` to `end`."""

    word: WordForm
    begin: int
    end: int


def find_forms(text: str, *, context: str | None = None) -> list[PlacedForm]:
    """The words and punctuation of a text, in order; `context` is what stands before it, if anything.

    Raises BadInput for a text in a script without spaces whose words are not marked.

    >>> [found.word[:2] for found in find_forms('He said "No."')]
    [('He', 'opening'), ('said', 'inside'), ('"', 'inside'), ('No', 'inside'), ('."', 'attached')]
    """
    unmarked = find_unmarked(text)
    if unmarked:
        raise BadInput(
            f"'{unmarked}' is written without spaces, so its words are unknown; use a measure of whole "
            "sentences, such as pen_lp."
        )
    found: list[PlacedForm] = []
    start: Start = "opening" if not (context or "").strip() else _next_start(context or "")
    place = 0
    for piece in text.split():
        place = text.index(piece, place)
        found += _split_piece(piece, place, start, followed=place + len(piece) < len(text.rstrip()))
        place += len(piece)
        start = _next_start(piece)
    return found


def _next_start(before: str) -> Start:
    """The position of a word after this text and a space."""
    return "initial" if before.rstrip().rstrip(CLOSERS).endswith(tuple(TERMINAL)) else "inside"


def _split_piece(piece: str, place: int, start: Start, *, followed: bool) -> list[PlacedForm]:
    begin = next((at for at, character in enumerate(piece) if not _is_mark(character)), len(piece))
    if begin == len(piece):
        return [PlacedForm(WordForm(piece, start, closed=followed), place, place + len(piece))]
    end = next(at for at in range(len(piece), 0, -1) if not _is_mark(piece[at - 1]))
    lead, word, tail = piece[:begin], piece[begin:end], piece[end:]
    found = [PlacedForm(WordForm(lead, start), place, place + begin)] if lead else []
    closed = followed and not tail
    found.append(PlacedForm(WordForm(word, start, lead, closed), place + begin, place + end))
    if tail:
        mark = WordForm(tail, "attached", closed=followed)
        found.append(PlacedForm(mark, place + end, place + len(piece)))
    return found


def _is_mark(character: str) -> bool:
    """Whether a character is punctuation or a symbol; letters, digits and vowel signs are not."""
    return unicodedata.category(character)[0] in "PS"
