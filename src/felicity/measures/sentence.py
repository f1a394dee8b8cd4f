"""Sentence measures: token log-probabilities in, one number per sentence out.

Most measures use three sums: the log-probability of the sentence under the model and under a unigram model,
both in nats, and its length in tokens; a measure may also use the token list, the priors of its words, or its
length in characters and bytes. Higher is always more
acceptable. `shared_lp` is the score of CrowS-Pairs (Nangia et al. 2020): the log-probability of the tokens
that two sentences share. It is defined for masked models, where each shared token is predicted from all
others; for a left-to-right model it is the same sum, each token given those
before it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import partial
from typing import NamedTuple

import numpy as np
import polars as pl

from felicity.core.errors import BadInput, NotPossible
from felicity.core.registry import Registry
from felicity.core.schemas import SCORES, conform
from felicity.measures.morcela import MorcelaWeights
from felicity.measures.priors import WordPriors
from felicity.measures.unigram import Unigram

PENALTY_OFFSET = 5
PENALTY_POWER = 0.8
SLLN_EXPONENT = 0.5
SHARED = "shared_lp"
NOTHING = np.empty(0)
NO_RATINGS = (
    "'morcela' needs rated sentences to fit its weights to, other than those to be judged; give them with "
    "--ratings."
)


class ScoredTokens(NamedTuple):
    """Every scored token of every sentence, one array entry per token, sentence after sentence.

    first: where each sentence's tokens begin, one entry per sentence, as `numpy.ufunc.reduceat` takes it.
    tokens: as the model's tokenizer writes them. lp, unigram: their log-probabilities in nats.
    """

    first: np.ndarray
    tokens: pl.Series
    lp: np.ndarray
    unigram: np.ndarray

    def reduce(self, operation: np.ufunc, values: np.ndarray) -> np.ndarray:
        """One number per sentence from one per token, such as `reduce(np.minimum, tokens.lp)`."""
        return np.asarray(operation.reduceat(values, self.first))

    def spread(self, values: np.ndarray) -> np.ndarray:
        """One number per token from one per sentence: each sentence's value at each of its tokens."""
        return np.repeat(values, np.diff(self.first, append=len(self.lp)))


class Totals(NamedTuple):
    """Per-sentence sums over the scored tokens, one array entry per sentence; `tokens` has the tokens.

    prior: the sum of the log-priors of the compared words. characters, size: the length of the whole text in
    characters and in bytes of UTF-8. exponent: of slln_lp. weights: of morcela, fitted to ratings.
    """

    lp: np.ndarray
    unigram: np.ndarray
    length: np.ndarray
    tokens: ScoredTokens
    prior: np.ndarray = NOTHING
    characters: np.ndarray = NOTHING
    size: np.ndarray = NOTHING
    exponent: float = SLLN_EXPONENT
    weights: MorcelaWeights | None = None


@dataclass(frozen=True)
class Measure:
    """A measure: a function of `Totals`, and what it reads besides the sums of log-probabilities.

    unigram: it reads unigram log-probabilities, so a table of counts is needed. tokens: it reads the
    token list, so its error is found token by token. prior: it reads the priors of words, which a run scores
    besides its sentences. rated: it reads weights that are fitted to rated sentences. usual: a study that is
    given no measures computes it.
    """

    compute: Callable[[Totals], np.ndarray]
    unigram: bool = False
    tokens: bool = False
    prior: bool = False
    rated: bool = False
    usual: bool = True

    def __call__(self, totals: Totals) -> np.ndarray:
        return np.asarray(self.compute(totals))

    @property
    def meaning(self) -> str:
        """The first line of the function's docstring."""
        return (self.compute.__doc__ or "").strip().split("\n")[0]


def as_measure(given: object) -> Measure:
    """What an entry point provides: a `Measure`, or a function of `Totals` alone.

    Raises TypeError for anything else.
    """
    if isinstance(given, Measure):
        return given
    if not callable(given):
        raise TypeError(f"a measure is a function or a Measure, not {type(given).__name__}")
    return Measure(given)


MEASURES: Registry[Measure] = Registry("measure", accept=as_measure)


@MEASURES.add("lp")
@Measure
def lp(totals: Totals) -> np.ndarray:
    """Log-probability of the sentence: the sum over its tokens, in nats."""
    return totals.lp


@MEASURES.add("mean_lp")
@Measure
def mean_lp(totals: Totals) -> np.ndarray:
    """Log-probability per token (Lau et al. 2020): normalized linearly by length."""
    return np.asarray(totals.lp / totals.length)


@MEASURES.add("pen_lp")
@Measure
def pen_lp(totals: Totals) -> np.ndarray:
    """Normalized less than linearly by length, as in beam search (Wu et al. 2016; Lau et al. 2020)."""
    penalty = (PENALTY_OFFSET + totals.length) / (PENALTY_OFFSET + 1)
    return np.asarray(totals.lp / penalty**PENALTY_POWER)


@MEASURES.add("slln_lp")
@partial(Measure, usual=False)
def slln_lp(totals: Totals) -> np.ndarray:
    """Normalized sublinearly by length: SLLN-LP, LP / n^a, by default with a = 0.5 (Liu et al. 2024)."""
    return np.asarray(totals.lp / totals.length**totals.exponent)


@MEASURES.add("norm_lp")
@partial(Measure, unigram=True)
def norm_lp(totals: Totals) -> np.ndarray:
    """Log-probability over that of the unigram model, negated (Lau et al. 2020): controls for frequency."""
    return np.asarray(-totals.lp / totals.unigram)


@MEASURES.add("slor")
@partial(Measure, unigram=True)
def slor(totals: Totals) -> np.ndarray:
    """Log-odds against the unigram model per token: controls for length and word frequency."""
    return np.asarray((totals.lp - totals.unigram) / totals.length)


@MEASURES.add("char_lp")
@partial(Measure, usual=False)
def char_lp(totals: Totals) -> np.ndarray:
    """Log-probability per character: a length that does not depend on the tokenizer."""
    return np.asarray(totals.lp / totals.characters)


@MEASURES.add("byte_lp")
@partial(Measure, usual=False)
def byte_lp(totals: Totals) -> np.ndarray:
    """Log-probability per byte of UTF-8: a length that does not depend on the tokenizer or the script."""
    return np.asarray(totals.lp / totals.size)


@MEASURES.add("morcela")
@partial(Measure, unigram=True, rated=True, usual=False)
def morcela(totals: Totals) -> np.ndarray:
    """SLOR with weights of frequency and length fitted to given ratings (Tjuatja et al. 2024)."""
    if totals.weights is None:
        raise NotPossible(NO_RATINGS)
    weighted = totals.lp - totals.weights.beta * totals.unigram + totals.weights.gamma
    return np.asarray(weighted / totals.length)


@MEASURES.add("word_pmi")
@partial(Measure, prior=True, usual=False)
def word_pmi(totals: Totals) -> np.ndarray:
    """Log-probability minus the words' own in neutral contexts: controls for words and their tokens."""
    return np.asarray(totals.lp - totals.prior)


@dataclass(frozen=True)
class Scored:
    """Scores, and how many tokens are not in the unigram table."""

    scores: pl.DataFrame
    unseen: int


def score_measures(
    tokens: pl.DataFrame,
    measures: Sequence[str],
    *,
    noise: float | np.ndarray,
    unigram: Unigram | None = None,
    priors: WordPriors | None = None,
    texts: Mapping[str, str] | None = None,
    exponent: float = SLLN_EXPONENT,
    weights: MorcelaWeights | None = None,
) -> Scored:
    """Rows of SCORES for each request and measure.

    priors: of the words that `word_pmi` compares. texts: the text of each request, for its length in
    characters. exponent: of `slln_lp`. weights: of `morcela`.

    `noise` is the possible error in nats of a sentence's sum (one number for all, or one each); `error` in
    the result is its effect on each value.

    Raises UnknownName, or NotPossible if a measure needs unigram counts and has none.
    """
    check_measures(measures, unigram is not None)
    totals = sum_tokens(tokens, unigram)._replace(exponent=exponent, weights=weights)
    if priors is not None:
        totals = totals._replace(prior=priors.sum_priors(tokens))
    if texts is not None:
        own = [texts[request] for request in tokens["request"]]
        sizes = [[len(text) for text in own], [len(text.encode()) for text in own]]
        totals = totals._replace(characters=np.array(sizes[0]), size=np.array(sizes[1]))
    empty = np.flatnonzero(totals.length == 0)
    if len(empty):
        raise BadInput(
            f"No token of '{tokens['request'][int(empty[0])]}' can be scored; give a begin token with --bos."
        )
    noises = np.broadcast_to(np.asarray(noise, dtype=np.float64), totals.lp.shape)
    parts = []
    for name in measures:
        value = _compute(name, totals)
        error = _find_error(name, totals, value, noises)
        parts.append(
            pl.DataFrame({"request": tokens["request"], "measure": name, "value": value, "error": error})
        )
    scores = conform(pl.concat(parts), SCORES)
    unseen = 0 if unigram is None else unigram.unseen(tokens["tokens"].explode(empty_as_null=False))
    return Scored(scores, unseen)


def _compute(name: str, totals: Totals) -> np.ndarray:
    """The values of a measure.

    Raises NotPossible if the measure does not give one number per sentence.
    """
    value = MEASURES[name](totals)
    if value.shape != totals.lp.shape:
        raise NotPossible(
            f"The measure '{name}' gave an array of shape {value.shape} for {len(totals.lp)} sentences; it "
            "must give one number per sentence."
        )
    return value


def _find_error(name: str, totals: Totals, value: np.ndarray, noise: np.ndarray) -> np.ndarray:
    """How far the noise of a sentence's sum may move the measure.

    A measure of the token list is moved furthest, to first order, when one token carries all the noise,
    so each place in the sentence carries it in turn, upwards and downwards.
    """
    if not MEASURES[name].tokens:
        return np.asarray(np.abs(_compute(name, totals._replace(lp=totals.lp + noise)) - value))
    tokens = totals.tokens
    error = np.zeros(len(value))
    for place in range(int(totals.length.max(initial=0))):
        longer = totals.length > place
        for shift in (noise, -noise):
            shifted = tokens.lp.copy()
            shifted[tokens.first[longer] + place] += shift[longer]
            moved = totals._replace(lp=totals.lp + shift, tokens=tokens._replace(lp=shifted))
            error = np.maximum(error, np.where(longer, np.abs(_compute(name, moved) - value), 0.0))
    return error


def needs_unigram(measures: Collection[str]) -> list[str]:
    """Those of the measures that need a table of unigram counts.

    Raises UnknownName.
    """
    return [name for name in measures if MEASURES[name].unigram]


def needs_ratings(measures: Collection[str]) -> bool:
    """Whether one of the measures has weights that are fitted to ratings.

    Raises UnknownName.
    """
    return any(MEASURES[name].rated for name in measures)


def needs_priors(measures: Collection[str]) -> bool:
    """Whether one of the measures reads the priors of words.

    Raises UnknownName.
    """
    return any(MEASURES[name].prior for name in measures)


def check_measures(measures: Sequence[str], has_unigram: bool) -> None:
    """Refuse unknown measures, and those without their counts, before any scoring."""
    needy = needs_unigram(measures)
    if needy and not has_unigram:
        raise NotPossible(
            f"'{needy[0]}' needs unigram counts of the model's tokens; build them with "
            "`felicity measures count CORPUS.txt -m MODEL -o counts.tsv` and pass --unigram counts.tsv."
        )


def sum_tokens(tokens: pl.DataFrame, unigram: Unigram | None = None) -> Totals:
    """Sums over the scored tokens; tokens without a log-probability are ignored."""
    flat = tokens.select(pl.int_range(pl.len()).alias("row"), "tokens", "logprob").explode(
        "tokens", "logprob"
    )
    flat = flat.filter(pl.col("logprob").is_not_null())
    base = unigram.logprob(flat["tokens"]) if unigram else np.zeros(len(flat))
    flat = flat.with_columns(pl.col("logprob").cast(pl.Float64), pl.Series("unigram", base))
    summed = flat.group_by("row").agg(
        pl.col("logprob").sum(), pl.col("unigram").sum(), pl.len().alias("length")
    )
    rows = pl.DataFrame({"row": np.arange(len(tokens), dtype=np.int64)})
    whole = rows.join(summed, on="row", how="left", maintain_order="left").fill_null(0)
    length = whole["length"].to_numpy()
    first = np.cumsum(length, dtype=np.int64) - length
    each = ScoredTokens(first, flat["tokens"], flat["logprob"].to_numpy(), flat["unigram"].to_numpy())
    return Totals(whole["logprob"].to_numpy(), whole["unigram"].to_numpy(), length, each)


def score_shared(requests: pl.DataFrame, tokens: pl.DataFrame, *, errors: dict[str, float]) -> pl.DataFrame:
    """Rows of SCORES, one per request, for items of two stimuli; `errors` are the possible errors."""
    rows = requests.select("request", "item").join(
        tokens.select("request", "tokens", "logprob"), on="request", maintain_order="left"
    )
    pairs: dict[str, list[tuple[str, list[str], list[float | None]]]] = {}
    for request, item, pieces, logprobs in rows.iter_rows():
        pairs.setdefault(item, []).append((request, pieces, logprobs))
    found = []
    for first, second in pairs.values():
        ours, theirs = match_tokens(first[1], second[1])
        for (request, _, logprobs), places in ((first, ours), (second, theirs)):
            found.append((request, SHARED, sum(logprobs[place] or 0.0 for place in places), errors[request]))
    return pl.DataFrame(found, schema=SCORES, orient="row")


def match_tokens(first: list[str], second: list[str]) -> tuple[list[int], list[int]]:
    """The indices of the tokens that two sentences share, in each of them.

    >>> match_tokens(["The", "poor", "are", "loud"], ["The", "very", "rich", "are", "loud"])
    ([0, 2, 3], [0, 3, 4])
    """
    blocks = SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
    return (
        [block.a + step for block in blocks for step in range(block.size)],
        [block.b + step for block in blocks for step in range(block.size)],
    )
