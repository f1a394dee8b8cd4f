"""Which token precedes a plain text: measured once per model, not assumed.

A tokenizer declares one begin token, and in chat models that is the opening of a turn, after which a plain
sentence is out of place. The token that separated documents in pretraining is usually in the vocabulary
too. So a few plain sentences are scored after every token that may stand between documents, and the declared
one is kept unless another makes them clearly more probable.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from felicity.core.memo import recall, remember
from felicity.core.wording import decimal

KIND = "begin_tokens"
# Raised whenever the sentences or the rule change, so that old results are not believed.
MEASUREMENT = 1
NONE = "none"
# The choice in the notes of a model.
BEGIN_NOTE = "begin_token"
# Another token is taken if the sentences gain at least this many nats each, by this many standard errors.
LEAST_GAIN = 1.0
STANDARD_ERRORS = 2.0
# Special tokens that separate documents or begin them, in the vocabularies of published models.
SEPARATORS = (
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|begin_of_text|>",
    "<|startoftext|>",
    "<|endofdocument|>",
    "<|endofprompt|>",
    "<|begin▁of▁sentence|>",
    "<|end▁of▁sentence|>",
    "<s>",
    "</s>",
    "<bos>",
    "<eos>",
    "<BOS>",
    "<EOS>",
    "[BOS]",
    "[EOS]",
    "<eod>",
    "<|eod|>",
)
SENTENCES = (
    "The train was late again this morning.",
    "She put the letter back into the drawer.",
    "Nobody knew how the fire had started.",
    "My brother teaches history at a small school.",
    "It rained for three days without stopping.",
    "Where did you find those old photographs?",
    "In the evening they walked down to the harbour.",
    "Most birds leave the island before winter.",
    "He had forgotten to lock the kitchen door.",
    "The committee will meet again next week.",
    "A small boat lay upside down on the beach.",
    "Why this happens is not yet understood.",
    "When the music stopped, everyone looked up.",
    "Maria has never eaten an oyster.",
    "There were two reasons for the delay.",
    "Our neighbours are selling their house.",
)

# For each sequence of token ids, the log-probability of all but its first token.
ScoreSequences = Callable[[list[list[int]]], list[float]]


@dataclass(frozen=True)
class Gain:
    """How many nats more probable a sentence is after a token than after the declared one."""

    mean: float
    error: float

    @property
    def is_clear(self) -> bool:
        """Whether the token is to be taken instead of the declared one."""
        return self.mean - STANDARD_ERRORS * self.error >= LEAST_GAIN


@dataclass(frozen=True)
class BeginToken:
    """The token before a plain text, and why it was chosen.

    declared: the tokenizer's begin token, else its end token, else `none`. gains: of every other candidate.
    """

    token: str
    declared: str
    gains: dict[str, Gain]
    sentences: int = 0

    @property
    def note(self) -> dict[str, Any]:
        """For the manifest: what was chosen and why, and what was measured."""
        gains = {token: asdict(gain) for token, gain in self.gains.items()}
        return {BEGIN_NOTE: self.describe(), "begin_gains": gains}

    def describe(self) -> str:
        """One clause for the manifest and the terminal."""
        if not self.gains:
            return f"{self.declared} (declared; there is no other candidate)"
        kept = self.token == self.declared
        other = max(self.gains, key=lambda token: self.gains[token].mean) if kept else self.token
        gain = self.gains[other]
        return (
            f"{self.token}, {'as declared' if kept else f'instead of the declared {self.declared}'}: plain "
            f"sentences are {decimal(abs(gain.mean), 1)} nats {'more' if gain.mean > 0 else 'less'} probable "
            f"after {other if kept else 'it'} (SE {decimal(gain.error, 1)}, {self.sentences} sentences)"
        )


def find_declared(tokenizer: Any) -> str:
    """The tokenizer's begin token, else its end token, else `none`."""
    return str(tokenizer.bos_token or tokenizer.eos_token or NONE)


def find_candidates(tokenizer: Any, *, vocabulary: int | None = None) -> list[str]:
    """The declared begin token and every other that may precede a document; empty if none is declared.

    vocabulary: tokens that the model knows; a tokenizer may list more.
    """
    declared = find_declared(tokenizer)
    if declared == NONE:
        return []
    special = getattr(tokenizer, "all_special_tokens", None)
    if special is None:
        others = [token for token in SEPARATORS if token in tokenizer.get_vocab()]
    else:
        listed = {*special, *tokenizer.get_added_vocab()}
        others = [token for token in SEPARATORS if token in listed]
    ends = [str(tokenizer.eos_token)] if tokenizer.eos_token else []
    candidates = dict.fromkeys([declared, *ends, *others])
    return [
        token
        for token in candidates
        if vocabulary is None or int(tokenizer.convert_tokens_to_ids(token)) < vocabulary
    ]


def choose_begin_token(
    tokenizer: Any,
    score: ScoreSequences,
    *,
    key: dict[str, Any],
    window: int,
    vocabulary: int | None = None,
    sentences: int = len(SENTENCES),
) -> BeginToken:
    """The begin token of plain text for a model, measured unless it is known under this key.

    key: what identifies the model: digests of weights and tokenizer. window: the most tokens it reads.
    sentences: how many are scored, for models where each is a request.
    """
    declared = find_declared(tokenizer)
    candidates = find_candidates(tokenizer, vocabulary=vocabulary)
    if len(candidates) < 2 or declared not in candidates:
        return BeginToken(declared, declared, {})
    key = key | {"candidates": candidates, "measurement": MEASUREMENT}
    recalled = recall(KIND, key)
    if recalled is not None:
        gains = {token: Gain(**gain) for token, gain in recalled["gains"].items()}
        return BeginToken(recalled["token"], declared, gains, recalled["sentences"])
    chosen = _measure(tokenizer, score, candidates, SENTENCES[:sentences], window)
    remember(KIND, key, asdict(chosen))
    return chosen


def _measure(
    tokenizer: Any, score: ScoreSequences, candidates: list[str], sentences: tuple[str, ...], window: int
) -> BeginToken:
    """Score the sentences after each candidate, and compare with the first, which is the declared one."""
    declared = candidates[0]
    encoded = tokenizer(list(sentences), add_special_tokens=False)["input_ids"]
    # A vocabulary without Latin letters may have no token for a sentence.
    rows = [row[: window - 1] for row in encoded if row[: window - 1]]
    if len(rows) < 2:
        return BeginToken(declared, declared, {})
    begins = [int(tokenizer.convert_tokens_to_ids(token)) for token in candidates]
    values = np.array(score([[begin, *row] for row in rows for begin in begins]), dtype=float)
    differences = values.reshape(len(rows), -1)[:, 1:] - values.reshape(len(rows), -1)[:, :1]
    means = differences.mean(axis=0)
    errors = differences.std(axis=0, ddof=1) / np.sqrt(len(rows))
    gains = {
        token: Gain(float(mean), float(error))
        for token, mean, error in zip(candidates[1:], means, errors, strict=True)
        if np.isfinite(mean)
    }
    clear = {token: gain.mean for token, gain in gains.items() if gain.is_clear}
    return BeginToken(max(clear, key=clear.__getitem__, default=declared), declared, gains, len(rows))
