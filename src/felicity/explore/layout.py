"""Sentences laid over one another by character, whatever tokens a model divides them into.

The words of an item's sentences are put into columns: a word that two sentences share stands in the same
column, and a word that replaces another stands over it. Within a column a token starts at its first
character, so that tokens of different tokenizers line up.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import combinations, pairwise

from felicity.measures import assign_tokens

# A word, or a single character of a script that is written without spaces.
UNIT = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")
SPACE = "␣"
# Sums of the same numbers in another order may differ by as much.
ROUNDING = 1e-12
Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class ScoredText:
    """The tokens of a text under one model: pieces, character offsets, log-probabilities in nats."""

    tokens: Sequence[str]
    start: Sequence[int]
    end: Sequence[int]
    logprob: Sequence[float | None]


@dataclass(frozen=True, kw_only=True)
class Sentence:
    """One sentence of an item: its condition, its text, and its tokens by the name of the model."""

    condition: str
    text: str
    scored: Mapping[str, ScoredText]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A token in its column: `at` counts the characters of the column before it.

    logprob: nats; None if the token could not be scored. place: number of its first token in the text.
    """

    column: int
    at: int
    span: int
    text: str
    logprob: float | None
    place: int


@dataclass(frozen=True, kw_only=True)
class Running:
    """The difference of two sentences' log-probabilities, summed up to the end of each column.

    margins: one per column, in nats; the last is the difference of the sums. decided: the column from which
    on the sign is that of the last margin; None if that is zero.
    """

    margins: tuple[float, ...]
    decided: int | None


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Sentences in columns.

    widths: characters of every column. words: for each sentence, the text that stands in each column.
    cells: by sentence and model. running: by the places of two sentences and the model.
    """

    widths: tuple[int, ...]
    words: tuple[tuple[str, ...], ...]
    cells: Mapping[tuple[int, str], tuple[Cell, ...]]
    running: Mapping[tuple[int, int, str], Running]

    def total(self, sentence: int, model: str) -> float:
        """The log-probability of a sentence: the sum of the cells that could be scored."""
        return sum(cell.logprob for cell in self.cells[sentence, model] if cell.logprob is not None)


def lay_out(sentences: Sequence[Sentence]) -> Layout:
    """Put the sentences of one item into common columns."""
    units = [find_units(sentence) for sentence in sentences]
    texts = [
        [sentence.text[start:end] for start, end in own]
        for sentence, own in zip(sentences, units, strict=True)
    ]
    columns = align_words(texts)
    ends = any(_has_end(sentence) for sentence in sentences)
    count = 1 + max((column for own in columns for column in own), default=-1) + int(ends)
    words = [["" for _ in range(count)] for _ in sentences]
    widths = [1] * count
    for own, pieces, line in zip(columns, texts, words, strict=True):
        for column, piece in zip(own, pieces, strict=True):
            line[column] = piece
            widths[column] = max(widths[column], len(piece))
    cells = {
        (number, model): _place(sentence.text, tokens, units[number], columns[number], last=count - 1)
        for number, sentence in enumerate(sentences)
        for model, tokens in sentence.scored.items()
    }
    return Layout(
        widths=tuple(widths),
        words=tuple(map(tuple, words)),
        cells=cells,
        running=_compare(sentences, cells, count),
    )


def find_units(sentence: Sentence) -> list[Span]:
    """The words of a sentence; words that one token of any model covers together are one.

    >>> find_units(Sentence(condition="", text="in spite of it", scored={}))
    [(0, 2), (3, 8), (9, 11), (12, 14)]
    """
    spans = [match.span() for match in UNIT.finditer(sentence.text)]
    joined: set[int] = set()
    for tokens in sentence.scored.values():
        for start, end in zip(tokens.start, tokens.end, strict=True):
            first = start + len(sentence.text[start:end]) - len(sentence.text[start:end].lstrip())
            joined.update(
                number
                for number, (before, after) in enumerate(pairwise(spans))
                if first < before[1] and after[0] < end
            )
    whole: list[Span] = []
    for number, (start, end) in enumerate(spans):
        if number - 1 in joined:
            whole[-1] = (whole[-1][0], end)
        else:
            whole.append((start, end))
    return whole


def align_words(texts: Sequence[Sequence[str]]) -> list[list[int]]:
    """The column of every word of every text: shared words in one column, replaced ones over one another.

    >>> align_words([["The", "cat", "sleeps"], ["The", "big", "cat", "sleep"]])
    [[0, 2, 3], [0, 1, 2, 3]]
    """
    # Each column holds the numbers of the words of the texts that stand in it.
    columns: list[dict[int, int]] = []
    for number, words in enumerate(texts):
        shown = [next(texts[text][word] for text, word in column.items()) for column in columns]
        merged: list[dict[int, int]] = []
        matcher = SequenceMatcher(None, shown, list(words), autojunk=False)
        for _, begin, end, first, last in matcher.get_opcodes():
            here = columns[begin:end]
            merged += [
                column | {number: first + place} if first + place < last else column
                for place, column in enumerate(here)
            ]
            merged += [{number: word} for word in range(first + len(here), last)]
        columns = merged
    places: list[list[int]] = [[0] * len(words) for words in texts]
    for place, column in enumerate(columns):
        for text, word in column.items():
            places[text][word] = place
    return places


def _has_end(sentence: Sentence) -> bool:
    """Whether a model scored an end token, which covers no character, after the text."""
    size = len(sentence.text)
    return any(
        len(tokens.start) > 0 and tokens.start[-1] == tokens.end[-1] == size
        for tokens in sentence.scored.values()
    )


def _place(
    text: str, scored: ScoredText, units: Sequence[Span], columns: Sequence[int], *, last: int
) -> tuple[Cell, ...]:
    belongs, _ = assign_tokens(text, scored.start, scored.end, units)
    cells = []
    for group in _group_tokens(text, scored, belongs.tolist()):
        unit, first = belongs[group[0]], group[0]
        values = [scored.logprob[place] for place in group if scored.logprob[place] is not None]
        value = sum(values) if values else None  # type: ignore[arg-type]
        if unit == len(units):
            cells.append(
                Cell(column=last, at=0, span=1, text=scored.tokens[first], logprob=value, place=first)
            )
            continue
        begin, stop = units[unit]
        start = min(max(begin, min(scored.start[place] for place in group)), stop)
        end = min(stop, max(scored.end[place] for place in group))
        blank = SPACE if len(group) > 1 and text[scored.start[first] : scored.end[first]].isspace() else ""
        cells.append(
            Cell(
                column=columns[unit],
                at=start - begin,
                span=max(1, end - start),
                text=blank + (text[start:end] or scored.tokens[first]),
                logprob=value,
                place=first,
            )
        )
    return tuple(cells)


def _group_tokens(text: str, scored: ScoredText, belongs: Sequence[int]) -> list[list[int]]:
    """Tokens that are shown as one: those that divide a character, and white space with what follows it."""
    groups: list[list[int]] = []
    reached = 0
    for place, unit in enumerate(belongs):
        if unit < 0:
            continue
        start, end = scored.start[place], scored.end[place]
        same = bool(groups) and belongs[groups[-1][0]] == unit
        blank = same and text[scored.start[groups[-1][-1]] : scored.end[groups[-1][-1]]].isspace()
        if same and (blank or start < reached or start == end or text[start:end].isspace()):
            groups[-1].append(place)
        else:
            groups.append([place])
        reached = max(reached, end)
    return groups


def _compare(
    sentences: Sequence[Sentence], cells: Mapping[tuple[int, str], Sequence[Cell]], count: int
) -> dict[tuple[int, int, str], Running]:
    sums: dict[tuple[int, str], list[float]] = {}
    for key, own in cells.items():
        steps = [0.0] * count
        for cell in own:
            steps[cell.column] += cell.logprob or 0.0
        sums[key] = steps
    found = {}
    for first, second in combinations(range(len(sentences)), 2):
        for model in sentences[first].scored:
            if (second, model) in sums:
                found[first, second, model] = run_margin(sums[first, model], sums[second, model])
    return found


def run_margin(first: Sequence[float], second: Sequence[float]) -> Running:
    """Sums per column of two sentences into their running difference.

    >>> run_margin([-1.0, -2.0, -1.0], [-1.0, -5.0, -0.5])
    Running(margins=(0.0, 3.0, 2.5), decided=1)
    """
    margins: list[float] = []
    total = 0.0
    for one, other in zip(first, second, strict=True):
        # Two impossible tokens are level; their difference would not be a number.
        total += 0.0 if one == other else one - other
        margins.append(total)
    final = margins[-1] if margins else 0.0
    if abs(final) <= ROUNDING:
        return Running(margins=tuple(margins), decided=None)
    decided = len(margins) - 1
    while decided > 0 and margins[decided - 1] * final > 0:
        decided -= 1
    return Running(margins=tuple(margins), decided=decided)
