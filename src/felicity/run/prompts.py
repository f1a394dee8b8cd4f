"""Texts as a user gives them, checked and laid out as an engine expects them."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import polars as pl

from felicity.core.errors import BadInput, UnknownName
from felicity.core.frames import Frame, as_polars, is_frame
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
    if not isinstance(texts, Iterable) or isinstance(texts, bytes | dict | set) or is_frame(texts):
        raise BadInput(f"A {what} is {texts!r}; give a string or a list of strings.")
    return list(texts)


@dataclass(frozen=True)
class TextInput:
    """Texts to score, and the frame that they came in, if any."""

    prompts: pl.DataFrame
    frame: pl.DataFrame | None = None

    def beside(self, found: pl.DataFrame) -> pl.DataFrame:
        """Results, one row per text, beside the texts or all columns of their frame."""
        if self.frame is None:
            return found.select(self.prompts["text"], pl.all())
        return pl.concat([make_room(self.frame, found.columns), found], how="horizontal")

    def each(self, found: pl.DataFrame) -> pl.DataFrame:
        """Several results per text: `row` is the number of the text, then the text or its whole frame."""
        rows = found.rename({"text": "row"})
        frame = self.prompts.select("text") if self.frame is None else self.frame
        named = make_room(frame, rows.columns).with_columns(row=pl.int_range(1, pl.len() + 1))
        whole = named.join(rows, on="row", how="left", maintain_order="left_right")
        return whole.select("row", pl.exclude("row"))


def make_room(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The frame with `_given` after the names of columns that a result needs.

    >>> make_room(pl.DataFrame({"lp": [1.0]}), ["lp"]).columns
    ['lp_given']
    """
    return frame.rename({name: f"{name}_given" for name in frame.columns if name in names})


def take_input(
    texts: str | Sequence[str] | Frame, context: str | Sequence[str] | None, column: str | None
) -> TextInput:
    """One text, several, or a frame with a column of texts; `context` may name a column of the frame.

    Raises BadInput or UnknownName if it is not clear where the texts are, or one cannot be scored.
    """
    if not is_frame(texts):
        if column is not None:
            raise BadInput(
                f"There is no frame to take the column '{column}' from; give a polars or pandas frame."
            )
        return TextInput(build_text_prompts(texts, context))
    frame = as_polars(texts)
    if isinstance(context, str) and context in frame.columns:
        context = frame[context].to_list()
    return TextInput(build_text_prompts(frame[_find_texts(frame, column)].to_list(), context), frame)


def _find_texts(frame: pl.DataFrame, column: str | None) -> str:
    """The column of the texts: the one named, `text`, or the only one that has texts."""
    if column is not None:
        if column not in frame.columns:
            raise UnknownName("column", column, frame.columns)
        return column
    textual = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    if "text" in textual:
        return "text"
    if len(textual) != 1:
        several = f"several columns of texts ({', '.join(textual)})" if textual else "no column of texts"
        raise BadInput(f"The frame has {several}; name the one to score, such as column='text'.")
    return textual[0]


def build_text_prompts(texts: str | Sequence[str], context: str | Sequence[str] | None) -> pl.DataFrame:
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
