"""Regions of a text written with bars, and scripts that are written without spaces.

"The horse | raced past | the barn" has three regions. The bars are marks of the experimenter, so they are
taken out before a model reads the text.
"""

import unicodedata
from collections.abc import Sequence

BAR = "|"
# Scripts whose words are not separated by spaces, as they begin the Unicode names of their letters.
UNSPACED = (
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "HALFWIDTH KATAKANA",
    "BOPOMOFO",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
)
# A run of this many letters in such a script, in a text without any space, is more than one word.
LONGEST_ALONE = 2
# And between spaces: longer than the words of a text whose words are marked.
LONGEST_MARKED = 10

Span = tuple[int, int]

# How the tokens of a word or region may have been summed, in words.
BOUNDARIES = {
    "corrected": "corrected for trailing white space",
    "plain": "the plain sum of tokens",
}


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without spaces.

    >>> is_unspaced("猫"), is_unspaced("ね"), is_unspaced("c"), is_unspaced("")
    (True, True, False, False)
    """
    if not character or character < "\u0e00":
        return False
    return unicodedata.name(character, "").startswith(UNSPACED) or character in "々ー。、！？「」"


def find_unmarked(text: str) -> str:
    """The first stretch of a text in a script without spaces whose words are not marked; empty if none.

    >>> find_unmarked("猫が庭で鳴く。"), find_unmarked("猫 が 庭 で 鳴く 。"), find_unmarked("He saw 北京.")
    ('猫が庭で鳴く', '', '')
    """
    pieces = text.split()
    longest = LONGEST_ALONE if len(pieces) == 1 else LONGEST_MARKED
    for piece in pieces:
        stretch = ""
        for character in [*piece, ""]:
            if is_unspaced(character) and character.isalnum():
                stretch += character
                continue
            if len(stretch) > longest:
                return stretch
            stretch = ""
    return ""


def is_seamless(left: str, right: str) -> bool:
    """Whether no space is written between two pieces: both sides of the seam are of a script without spaces.

    >>> is_seamless("猫", "が"), is_seamless("cat", "purrs")
    (True, False)
    """
    return is_unspaced(left[-1:]) and is_unspaced(right[:1])


def split_bars(text: str, bar: str = BAR) -> tuple[str, list[Span]]:
    """A text without bars, and where its regions are.

    Regions are separated by one space, except between two characters of a script without spaces.

    >>> split_bars("The cat | sat | down.")
    ('The cat sat down.', [(0, 7), (8, 11), (12, 17)])
    >>> split_bars("猫|が|鳴く。")
    ('猫が鳴く。', [(0, 1), (1, 2), (2, 5)])
    """
    pieces = text.split(bar)
    joined, spans = "", list[Span]()
    spaced = False
    for piece in pieces:
        words = piece.strip()
        spaced = spaced or piece[:1].isspace()
        apart = bool(joined and words) and (spaced or not is_seamless(joined, words))
        start = len(joined) + apart
        joined += " " * apart + words
        spans.append((start if words else len(joined), len(joined)))
        spaced = piece[-1:].isspace() or (spaced and not words)
    return joined, spans


def remove_bars(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """Texts without bars between regions, and the places of those that had any.

    >>> remove_bars(["The cat | sat.", "It rains."])
    (['The cat sat.', 'It rains.'], [0])
    """
    places = [place for place, text in enumerate(texts) if BAR in text]
    return [split_bars(text)[0] if BAR in text else text for text in texts], places
