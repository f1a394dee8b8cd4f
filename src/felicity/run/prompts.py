"""Texts as a user gives them, checked and laid out as an engine expects them."""

import re
from collections.abc import Iterable, Sequence

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.schemas import PROMPTS

# Half of a character, as an invalid byte of the command line or a JSON escape leaves it.
SURROGATE = re.compile(r"[\ud800-\udfff]")


def as_list(texts: str | Sequence[str], what: str) -> list[str]:
    """One text or several, as a list.

    Raises BadInput if there is none or one is not a string.
    """
    found = take_texts(texts, what)
    if not found:
        raise BadInput(f"There is no {what}; give at least one.")
    for place, text in enumerate(found):
        if not isinstance(text, str):
            raise BadInput(f"The {what} number {place + 1} is {text!r}; give a text.")
        if SURROGATE.search(text):
            raise BadInput(f"The {what} number {place + 1} is not valid Unicode; write it again.")
    return found


def take_texts(texts: str | Iterable[str], what: str) -> list[str]:
    """One text, or a list, column or other series of texts, as a list.

    Raises BadInput for anything else.
    """
    if isinstance(texts, str):
        return [texts]
    if not isinstance(texts, Iterable) or isinstance(texts, bytes | dict):
        raise BadInput(f"A {what} is {texts!r}; give a string or a list of strings.")
    return list(texts)


def build_prompts(texts: str | Sequence[str], context: str | Sequence[str] | None) -> pl.DataFrame:
    """Texts, and one context for all or one each, as an engine expects them.

    Raises BadInput if a text is not a string or the contexts are too few or too many.
    """
    texts = take_texts(texts, "text")
    contexts: list[str | None] = [None] * len(texts)
    if context is not None:
        contexts = [context] * len(texts) if isinstance(context, str) else [*take_texts(context, "context")]
    if not texts:
        raise BadInput("There is no text to score; give at least one.")
    if len(contexts) != len(texts):
        raise BadInput(
            f"There are {len(texts)} texts but {len(contexts)} contexts; give one for all or one each."
        )
    for place, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise BadInput(f"Text {place + 1} is {text!r}; give a sentence.")
    if any(
        SURROGATE.search(text) for text in [*texts, *(part for part in contexts if isinstance(part, str))]
    ):
        raise BadInput("A text or context is not valid Unicode; write it again.")
    names = [f"text {place + 1}" for place in range(len(texts))]
    return pl.DataFrame({"request": names, "context_text": contexts, "text": texts}, schema=PROMPTS)
