"""What a language model is asked, and its answer: a prompt with examples; lines, sentences and pairs.

Every line of the answer has exactly one outcome, so what is kept and what is rejected add up to what was
generated, as in the paper's tables: an empty line counts one, and so does each sentence.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from felicity.core.errors import BadInput
from felicity.core.ids import fingerprint
from felicity.stimuli.extension.forms import Form
from felicity.stimuli.items import Pair, clean

# A number, a letter or a dash that a model puts before what it lists.
LISTED = re.compile(r"^\s*(?:\(?\d+[.):]|[-*•]|[a-z]\))\s+", re.I)
# Two sentences on one line: behind the comma or full stop begins a new one.
BETWEEN = re.compile(r"(?<=[,.;])\s+(?=(?:An?|The|the|an?)\s|[A-Z][a-z]+ (?:is|are) )")


@dataclass(frozen=True)
class Prompt:
    """A request's text, and the seeds that it shows."""

    number: int
    text: str
    examples: tuple[str, ...]

    @property
    def digest(self) -> str:
        """The same text has the same digest."""
        return fingerprint(self.text)


def build_prompt(seeds: Sequence[Pair], instruction: str, *, k: int, seed: int, number: int) -> Prompt:
    """The prompt of one request: which examples it shows depends on the seed and its number only.

    Raises BadInput if there are fewer than k seeds.
    """
    if not 1 <= k <= len(seeds):
        raise BadInput(
            f"{k} examples are to be shown and there are {len(seeds)} seeds; choose --examples between."
        )
    chosen = random.Random(f"{seed}/{number}").sample(list(seeds), k)
    shown = "".join(f"{pair.first},\n{pair.second},\n" for pair in chosen)
    return Prompt(number, f"{instruction}\n{shown}", tuple(pair.item for pair in chosen))


def unique_pairs(pairs: Sequence[Pair]) -> list[Pair]:
    """Seeds without repetitions; the published NEG-136-SIMP lists every pair twice."""
    seen: dict[tuple[str, str], Pair] = {}
    for pair in pairs:
        seen.setdefault((pair.first.lower(), pair.second.lower()), pair)
    return list(seen.values())


@dataclass(frozen=True)
class AnswerLine:
    """A sentence of an answer, or an empty line; `place` counts them through the answer from 0."""

    place: int
    text: str


def split_answer(answer: str) -> list[AnswerLine]:
    """The sentences and empty lines of an answer, in order.

    >>> [sentence.text for sentence in split_answer("1. A cat is an animal, A cat is not a tool,\\n\\nAn")]
    ['A cat is an animal', 'A cat is not a tool', '', 'An']
    """
    texts: list[str] = []
    for line in answer.splitlines():
        plain = LISTED.sub("", line).strip().strip("\"'“”")
        texts += [clean(part) for part in BETWEEN.split(plain)] if plain.strip(" ,.;") else [""]
    return [AnswerLine(place, text) for place, text in enumerate(texts)]


def pair_sentences(
    sentences: list[AnswerLine], form: Form, *, name: str
) -> tuple[list[tuple[Pair, tuple[int, int]]], list[AnswerLine]]:
    """Neighbours that make a pair of this form, each with its places, and the sentences left alone.

    `sentences` are those that passed the rules for single sentences; empty lines between two members do not
    separate them.
    """
    pairs: list[tuple[Pair, tuple[int, int]]] = []
    alone: list[AnswerLine] = []
    waiting: AnswerLine | None = None
    for sentence in sentences:
        if waiting is not None:
            first, second = form.parse(waiting.text), form.parse(sentence.text)
            if first and second and form.matches(first, second):
                pair = Pair(f"{name}.{len(pairs) + 1}", waiting.text, sentence.text)
                pairs.append((pair, (waiting.place, sentence.place)))
                waiting = None
                continue
            alone.append(waiting)
        waiting = sentence
    return pairs, alone + ([waiting] if waiting is not None else [])
