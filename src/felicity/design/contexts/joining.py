"""Sentences into one running text: spaces between them, a full stop only where nothing ends them."""

import re
from collections.abc import Sequence

# Latin, Chinese and Japanese, Arabic and Urdu, Devanagari.
TERMINAL = ".!?…。！？؟۔।"
CLOSERS = "\"'”’»)]}」』"
ENDED = re.compile(rf"[{re.escape(TERMINAL)}][\s{re.escape(CLOSERS)}]*$")
AT_THE_END = TERMINAL + CLOSERS + " "


def close_sentence(sentence: str) -> str:
    """A sentence without space around it, and with a full stop where no other mark ends it.

    >>> close_sentence("The author laughs "), close_sentence('He asked "Why?"')
    ('The author laughs.', 'He asked "Why?"')
    """
    bare = sentence.strip()
    return bare if ENDED.search(bare) else f"{bare}."


def join_sentences(sentences: Sequence[str]) -> str:
    """The running text of sentences.

    >>> join_sentences(["Who left?", "The author laughs"])
    'Who left? The author laughs.'
    """
    return " ".join(map(close_sentence, sentences))


def sentence_key(sentence: str) -> str:
    """What makes two sentences one and the same: their words, whatever spaces and marks end them.

    >>> sentence_key("The  author laughs") == sentence_key("The author laughs .")
    True
    """
    return " ".join(sentence.split()).rstrip(AT_THE_END)
