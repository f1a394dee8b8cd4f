"""The interface of a model: log-probabilities for every token, and optionally fillers and continuations."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.ids import fingerprint


@dataclass(frozen=True, kw_only=True)
class EngineInfo:
    """What is known about a model without loading its weights.

    kind: what a token's log-probability means: `left-to-right`, `pseudo`, `permutation`, `seq2seq`.
    weights, tokenizer: digests of the files, so that scores are never attributed to another model.
    policy: the scoring policy with every `auto` resolved.
    noise: nats by which the log-probability of a sentence may change with its batch.
    can: `score`; also `more` if it provides TokenExtras, `boundary` if these include the probability that a
        word ends, `fill` for a Filler and `generate` for a Generator.
        What is not listed here is not asked of the engine, even if it has the method.
    scoring: version of the code that computes this model's numbers. An engine whose numbers change raises it
    for the affected models, so that old scores are never used as new ones.
    """

    name: str
    family: str
    kind: str
    weights: str
    tokenizer: str
    policy: dict[str, str]
    dtype: str
    parameters: int
    vocabulary: int
    window: int | None
    noise: float
    can: tuple[str, ...] = ("score",)
    notes: dict[str, Any] = field(default_factory=dict)
    scoring: int = 1

    @property
    def begin_line(self) -> str:
        """Which begin token was found by measuring, and why, as a line; empty if nothing was measured."""
        return f"Begin token: {self.notes['begin_token']}." if self.notes.get("begin_gains") else ""

    @property
    def key(self) -> str:
        """A digest of all that affects the numbers: runs with equal keys may share scores."""
        # Version 1 adds nothing: scores that were stored before there were versions stay valid.
        version = [self.scoring] if self.scoring != 1 else []
        parts = [self.family, self.kind, self.weights, self.tokenizer, self.policy, self.dtype]
        return fingerprint([*parts, *version])

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for manifests."""
        return asdict(self) | {"key": self.key}


@dataclass(frozen=True, kw_only=True)
class TokenExtras:
    """What else an engine can report for each token, from the same predictions.

    rank: 1 if no token of the vocabulary is more probable. entropy: of the prediction, in nats. top: this
    many most probable tokens. boundary: log-probability that a word starts there or the text ends.
    """

    rank: bool = False
    entropy: bool = False
    top: int = 0
    boundary: bool = False

    def __post_init__(self) -> None:
        if self.top < 0:
            raise BadInput(f"top is {self.top}; it must be 0 or more.")

    def check_top(self, vocabulary: int) -> None:
        """Refuse a `top` larger than the vocabulary.

        Raises BadInput.
        """
        if self.top > vocabulary:
            raise BadInput(
                f"top is {self.top}, but the model has {vocabulary} tokens; request at most that many."
            )


NO_EXTRAS = TokenExtras()


class Engine(Protocol):
    """Scores prompts; knows nothing of items, conditions or measures."""

    @property
    def info(self) -> EngineInfo:
        """What the model is and its settings."""
        ...

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the tokenizer alone."""
        ...

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), extras: TokenExtras = NO_EXTRAS
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS for every prompt, in any order, one frame per finished batch.

        `extras` adds columns: rank, entropy, top_tokens with top_logprob, boundary. An engine that cannot
        provide them raises NotPossible.

        Batches are planned over all prompts, the same way every time; a batch whose requests are all in
        `done` is skipped. So resumed work gives exactly the numbers of uninterrupted work.
        """
        ...


@runtime_checkable
class Verifiable(Protocol):
    """An engine that can check that what it computes with is still what `info` identifies."""

    def refuse_changed(self) -> None:
        """Called after a computation, before its result is stored or returned.

        Raises FelicityError if the model is another one by now.
        """
        ...


def refuse_changed(engine: object) -> None:
    """Check that an engine still computes with the model of its key, if it can tell.

    Raises FelicityError.
    """
    if isinstance(engine, Verifiable):
        engine.refuse_changed()


@runtime_checkable
class Filler(Protocol):
    """An engine that can put words into a blank, written `___`."""

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS: the k most probable tokens for each frame's blank, each decoded alone."""
        ...

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES: log p(candidate in the blank), exact for words of any number of tokens."""
        ...


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How a text is continued.

    temperature: 0 always takes the most probable token; above 0, tokens are sampled from the smallest set
        that holds `top_p` of the probability. tokens: the most tokens of a continuation. stop: strings that
        end it and are not part of it. samples: continuations per prompt, each with its own random
        stream. whole: the most tokens of a prompt and its continuation together. beams: of beam search.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    tokens: int = 50
    stop: tuple[str, ...] = ()
    samples: int = 1
    seed: int = 0
    whole: int | None = None
    beams: int = 1

    def __post_init__(self) -> None:
        for name, wrong, wanted in (
            ("temperature", self.temperature < 0, "0 or more"),
            ("top_p", not 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("tokens", self.tokens < 1, "at least 1"),
            ("samples", self.samples < 1, "at least 1"),
            ("stop", any(not text for text in self.stop), "non-empty texts"),
            ("whole", self.whole is not None and self.whole < 2, "at least 2"),
            ("beams", self.beams < 1, "at least 1"),
        ):
            if wrong:
                raise BadInput(f"{name} is {getattr(self, name)!r}; it must be {wanted}.")
        if self.temperature == 0 and self.samples > 1:
            raise BadInput(
                "There is only one most probable continuation; to sample several, set a temperature above 0."
            )
        if self.temperature and self.beams > 1:
            raise BadInput("Beams look for the most probable text; sample at a temperature without them.")


@runtime_checkable
class Generator(Protocol):
    """An engine that can continue a text."""

    def generate(self, prompts: Sequence[str], *, sampling: Sampling) -> pl.DataFrame:
        """Rows of CONTINUATIONS: each prompt continued, the same way every time for the same seed."""
        ...
