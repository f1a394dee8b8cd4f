"""Neutral contexts: where a word would stand if nothing were known about it, for its prior probability.

Each context is a sentence of running text, cut at a random word. A word is put after the cut, after the whole
sentence, or directly after its last word, as it stands in the text whose score is compared with its prior.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.core.ids import fingerprint
from felicity.core.schemas import PROMPTS
from felicity.core.word_forms import Start, WordForm
from felicity.design.contexts import BUILT_IN_TEXT, read_text_file

# Words of a sentence before the cut, at least and at most, and in all.
LEAST_BEFORE, MOST_BEFORE, MOST_WORDS = 2, 6, 24
# A word after a closed word, which shows that it is closed; it is not part of any sum.
NEXT_WORD = " and"
# What follows a word that is predicted from both sides.
FULL_STOP = "."
# Rare words, whose number of tokens depends on whether the tokenizer sees a space before them.
PROBES = (
    "Quokkas",
    "Zeppelins",
    "Wyverns",
    "Gazpacho",
    "Bagpipes",
    "Fjords",
    "Kayaks",
    "Haberdashers",
    "Rhubarb",
)


class NeutralContext(NamedTuple):
    """A sentence, and its beginning: the words up to the last, and the last word before the cut."""

    sentence: str
    left: str
    last: str

    @property
    def beginning(self) -> str:
        """The sentence up to the cut."""
        return f"{self.left} {self.last}"


@dataclass(frozen=True)
class PriorPrompt:
    """A word in a context, as an engine reads it; the word is at `begin` to `end` of the text."""

    context: str
    text: str
    begin: int
    end: int

    @property
    def request(self) -> str:
        """A name that depends on the content alone, so that resumed work finds its own."""
        return fingerprint([self.context, self.text])


def draw_neutral(path: Path | None, *, size: int, seed: int) -> list[NeutralContext]:
    """Contexts from a text, by default the one that comes with felicity: sentences, each cut once.

    Raises BadInput if the text has too few sentences that can be cut.
    """
    if size < 2:
        raise BadInput(f"{size} neutral contexts were asked for; a prior needs at least 2.")
    rng = np.random.default_rng(seed)
    sentences = list(dict.fromkeys(read_text_file(path or BUILT_IN_TEXT)))
    drawn: list[NeutralContext] = []
    for place in rng.permutation(len(sentences)):
        cuts = _find_cuts(sentences[place])
        if cuts:
            words = sentences[place].split()
            cut = int(rng.choice(cuts))
            drawn.append(NeutralContext(" ".join(words), " ".join(words[: cut - 1]), words[cut - 1]))
        if len(drawn) == size:
            return drawn
    raise BadInput(
        f"{path or 'The built-in text'} has {len(drawn)} sentences that can be cut, but {size} neutral "
        "contexts were asked for; give a longer text or ask for fewer."
    )


def _find_cuts(sentence: str) -> list[int]:
    """After how many words a sentence may be cut: between two words, both without punctuation."""
    words = sentence.split()
    if len(words) > MOST_WORDS:
        return []
    cuts = range(LEAST_BEFORE, min(MOST_BEFORE, len(words) - 1) + 1)
    return [cut for cut in cuts if words[cut - 1].isalpha() and words[cut].isalpha()]


def place_word(
    word: WordForm, context: NeutralContext, *, opening: str, closing: bool, both_sides: bool
) -> PriorPrompt:
    """A word in a neutral context, at its own position.

    opening: what replaces the beginning of a text. closing: a closed word is followed by another, so that its
    end has a probability. both_sides: the model also reads what follows, so a full stop does.
    """
    before: Mapping[Start, tuple[str, str]] = {
        "opening": (context.sentence, opening),
        "initial": (context.sentence, ""),
        "inside": (context.beginning, ""),
        "attached": (context.left, context.last),
    }
    left, glue = before[word.start]
    begin = len(glue) + len(word.lead)
    end = begin + len(word.form)
    tail = NEXT_WORD if closing and word.closed else ""
    if both_sides:
        tail = FULL_STOP if word.start != "attached" else ""
    return PriorPrompt(left, f"{glue}{word.lead}{word.form}{tail}", begin, end)


def list_prompts(placed: Sequence[PriorPrompt]) -> pl.DataFrame:
    """Rows of PROMPTS, equal ones once."""
    rows = {one.request: (one.request, one.context, one.text) for one in placed}
    return pl.DataFrame(list(rows.values()), schema=PROMPTS, orient="row")
