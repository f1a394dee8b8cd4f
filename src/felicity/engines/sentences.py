"""Where a running text may be cut: after a sentence, keeping every character."""

import re

# Terminal punctuation with any closing quotes or brackets, then white space.
BOUNDARY = re.compile(r"(?<=[.!?…。！？])[\"'”’)\]]*\s+")


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, each with the white space behind it; joined they are the text.

    >>> split_sentences("It rained. “Did it?” Yes.")
    ['It rained. ', '“Did it?” ', 'Yes.']
    """
    pieces = []
    begin = 0
    for match in BOUNDARY.finditer(text):
        pieces.append(text[begin : match.end()])
        begin = match.end()
    if begin < len(text):
        pieces.append(text[begin:])
    return pieces
