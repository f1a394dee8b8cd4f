"""What a word is worth without its sentence: its probability in neutral contexts, its prior.

`word_pmi` compares each word of a sentence with what the same model gives the same word on average,

    word_pmi(x) = sum over words w of  log p(w | what precedes) - b log prior(w),
    prior(w) = ((1/K) sum over k of p(w | c_k)^q)^(1/q),

both chains over the word's own tokens, so that their number cancels for b = 1, the default. The words'
log-probabilities sum to LP, so the measure is LP minus a weighted sum of log-priors. Words that all sentences
of an item share are in neither sum.
The mean is a power mean, with q = 2 by default: the arithmetic mean (q = 1) over few contexts misses those in
which a rare word is likely, so that rare words, which have more tokens, get priors that are too low. Where
predictions do not depend on the context, all means are the same.
The prior is a Monte Carlo estimate; its error in a margin is the jackknife's, over the K contexts.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from felicity.core.schemas import PRIORS
from felicity.core.word_forms import PlacedForm, WordForm, find_forms


def find_compared(requests: pl.DataFrame, *, cancel: bool) -> dict[str, list[PlacedForm]]:
    """The words of each request that are compared with their priors.

    requests: columns request, item, text and context_text. cancel: leave out the words that all sentences of
    an item share, which cancel in every margin: as often as each of them has the word at the same start.

    Raises BadInput for a script without spaces.
    """
    words = {
        request: find_forms(text, context=context)
        for request, text, context in requests.select("request", "text", "context_text").iter_rows()
    }
    if not cancel:
        return words
    groups: dict[str, list[str]] = defaultdict(list)
    for request, item in requests.select("request", "item").iter_rows():
        groups[item].append(request)
    compared: dict[str, list[PlacedForm]] = {}
    for names in groups.values():
        sentences = [words[name] for name in names]
        if len(names) > 1:
            # A word before a space in one sentence and before a full stop in the other is shared too.
            for key in (lambda word: word, lambda word: word._replace(closed=False)):
                sentences = _cancel(sentences, key)
        compared |= dict(zip(names, sentences, strict=True))
    return compared


def _cancel(
    sentences: Sequence[list[PlacedForm]], key: Callable[[WordForm], WordForm]
) -> list[list[PlacedForm]]:
    """Sentences without the words that all of them have, as often as all have them."""
    counts = [Counter(key(found.word) for found in sentence) for sentence in sentences]
    shared = counts[0]
    for other in counts[1:]:
        shared &= other
    left = []
    for sentence in sentences:
        waiting = shared.copy()
        kept = []
        for found in sentence:
            if waiting[key(found.word)] > 0:
                waiting[key(found.word)] -= 1
            else:
                kept.append(found)
        left.append(kept)
    return left


def sum_word(
    row: Mapping[str, Sequence[float | None]], begin: int, end: int, *, text: str, after_space: bool
) -> tuple[float, int]:
    """The log-probability of the word at these characters of a text, and its number of tokens.

    row: start and logprob of every token, and `boundary` if the word is corrected for trailing white space:
    divided by the probability that a word begins there, if it stands after a space, and multiplied by the
    probability that it ends, if a word follows it.
    """
    firsts = [int(start or 0) for start in row["start"]]
    # A token that begins before the word, such as the line break before it, is not the word's.
    inside = [
        place for place, first in enumerate(firsts) if begin <= first and _skip_space(text, first) < end
    ]
    total = sum(float(row["logprob"][place] or 0.0) for place in inside)
    if not inside or "boundary" not in row:
        return total, len(inside)
    if after_space:
        total -= float(row["boundary"][inside[0]] or 0.0)
    following = inside[-1] + 1
    if text[end : end + 1].isspace() and following < len(firsts):
        total += float(row["boundary"][following] or 0.0)
    return total, len(inside)


def _skip_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place


@dataclass(frozen=True)
class WordPriors:
    """Priors of words, and which words of each request are compared with theirs.

    logprobs: one row per word, one column per context. power: of the mean over contexts. weight: of the
    log-priors in every sum.
    """

    words: Sequence[WordForm]
    logprobs: np.ndarray
    n_tokens: np.ndarray
    compared: Mapping[str, Sequence[PlacedForm]]
    power: float = 1.0
    weight: float = 1.0

    @cached_property
    def _place(self) -> dict[WordForm, int]:
        return {word: place for place, word in enumerate(self.words)}

    @cached_property
    def log_means(self) -> np.ndarray:
        """The log-prior of each word: that of its mean over the contexts."""
        return _log_mean(self.logprobs, self.power)

    @cached_property
    def left_out(self) -> np.ndarray:
        """The log-priors without each context in turn, one column per context."""
        places = range(self.logprobs.shape[1])
        return np.column_stack(
            [_log_mean(np.delete(self.logprobs, place, axis=1), self.power) for place in places]
        )

    def table(self) -> pl.DataFrame:
        """Rows of PRIORS."""
        rows = [
            (word.form, word.start, word.lead, word.closed, int(n), list(values), float(mean))
            for word, n, values, mean in zip(
                self.words, self.n_tokens, self.logprobs, self.log_means, strict=True
            )
        ]
        return pl.DataFrame(rows, schema=PRIORS, orient="row")

    def sum_priors(self, tokens: pl.DataFrame) -> np.ndarray:
        """The weighted sum of the log-priors of each request's compared words, in the order of the tokens.

        A word of which not every token has a score is in neither sum.
        """
        unscored = tokens["logprob"].list.eval(pl.element().is_null()).list.any().to_list()
        sums = np.zeros(len(tokens))
        for place, (row, partly) in enumerate(zip(tokens.iter_rows(named=True), unscored, strict=True)):
            compared = self.compared[row["request"]]
            if partly:
                compared = _drop_unscored(compared, row)
            sums[place] = sum(self.log_means[self._place[found.word]] for found in compared)
        return self.weight * sums

    def leave_out(self, requests: Iterable[str]) -> np.ndarray:
        """The weighted sums of log-priors without each context in turn: one row per request."""
        size = self.logprobs.shape[1]
        rows = [
            self.left_out[[self._place[found.word] for found in self.compared[request]]].sum(axis=0)
            for request in requests
        ]
        return self.weight * np.array(rows).reshape(-1, size)


def _log_mean(logs: np.ndarray, power: float) -> np.ndarray:
    """The logarithm of the power mean of each row's exponentials."""
    return np.asarray(np.logaddexp.reduce(power * logs, axis=1) - np.log(logs.shape[1])) / power


def _drop_unscored(compared: Iterable[PlacedForm], row: Mapping[str, Sequence[float]]) -> list[PlacedForm]:
    gaps = [
        (start, end)
        for start, end, value in zip(row["start"], row["end"], row["logprob"], strict=True)
        if value is None
    ]
    return [
        found for found in compared if not any(start < found.end and end > found.begin for start, end in gaps)
    ]
