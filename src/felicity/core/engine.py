"""What a model is to the rest of felicity: something that gives a log-probability for every token."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol, runtime_checkable

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.ids import fingerprint


@dataclass(frozen=True, kw_only=True)
class EngineInfo:
    """What is known of a model without loading its weights.

    kind: what a token's log-probability means: `left-to-right`, `pseudo`, `permutation`, `seq2seq`.
    weights, tokenizer: digests of the files, so that no score is ever taken for another model's.
    policy: the scoring policy with every `auto` resolved.
    noise: nats by which the log-probability of a sentence may move with the batch it is scored in.
    can: `score`, and where the engine is a Filler `fill`, a Generator `generate`.
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

    @property
    def key(self) -> str:
        """What decides the numbers: scores may be shared between runs whose keys are equal."""
        return fingerprint([self.family, self.kind, self.weights, self.tokenizer, self.policy, self.dtype])

    def as_dict(self) -> dict[str, Any]:
        """The fields by name, for manifests."""
        return asdict(self) | {"key": self.key}


@dataclass(frozen=True, kw_only=True)
class More:
    """What else an engine may be asked for of each token, read off the same predictions.

    rank: 1 where no token of the vocabulary is likelier. entropy: of the prediction, in nats. top: that
    many likeliest tokens. boundary: log-probability that a word begins there, or the text ends.
    """

    rank: bool = False
    entropy: bool = False
    top: int = 0
    boundary: bool = False

    def __post_init__(self) -> None:
        if self.top < 0:
            raise BadInput(f"top is {self.top}; it must be 0 or more.")

    def check_top(self, vocabulary: int) -> None:
        """Refuse to be asked for more tokens than there are.

        Raises BadInput.
        """
        if self.top > vocabulary:
            raise BadInput(
                f"top is {self.top}, but the model knows {vocabulary} tokens; ask for at most so many."
            )


NOTHING_MORE = More()


class Engine(Protocol):
    """Scores prompts; knows nothing of items, conditions or measures."""

    @property
    def info(self) -> EngineInfo:
        """What the model is and how it will be asked."""
        ...

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """One row of ENCODINGS per prompt, from the tokenizer alone."""
        ...

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), more: More = NOTHING_MORE
    ) -> Iterator[pl.DataFrame]:
        """Rows of TOKENS for every prompt, in any order, a frame whenever a batch is done.

        What is asked for with `more` comes in further columns: rank, entropy, top_tokens with
        top_logprob, boundary. An engine that cannot, raises NotPossible.

        Batches are planned over all prompts, the same way every time; one whose requests are all in
        `done` is passed over. So work that is taken up again gives the very numbers of unbroken work.
        """
        ...


@runtime_checkable
class Filler(Protocol):
    """An engine that can put words into a blank, written `___`."""

    def fill(self, frames: Sequence[str], *, k: int) -> pl.DataFrame:
        """Rows of FILLERS: the k likeliest tokens for each frame's blank, each decoded by itself."""
        ...

    def score_candidates(self, frames: Sequence[str], candidates: Sequence[Sequence[str]]) -> pl.DataFrame:
        """Rows of CANDIDATES: log p(candidate in the blank), exactly, for words of any number of tokens."""
        ...


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How a text is written on.

    temperature: 0 takes the likeliest token each time; above, tokens are drawn, from the smallest set
        that holds `top_p` of the probability. tokens: how many at most. stop: strings at which it ends; they
        are not part of it. samples: continuations for each prompt, all but the likeliest differing by
        the seed's next draw.
    """

    temperature: float = 0.0
    top_p: float = 1.0
    tokens: int = 50
    stop: tuple[str, ...] = ()
    samples: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        for name, wrong, wanted in (
            ("temperature", self.temperature < 0, "0 or more"),
            ("top_p", not 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("tokens", self.tokens < 1, "at least 1"),
            ("samples", self.samples < 1, "at least 1"),
            ("stop", any(not text for text in self.stop), "texts that are not empty"),
        ):
            if wrong:
                raise BadInput(f"{name} is {getattr(self, name)!r}; it must be {wanted}.")
        if self.temperature == 0 and self.samples > 1:
            raise BadInput("The likeliest continuation is one; draw several with a temperature above 0.")


@runtime_checkable
class Generator(Protocol):
    """An engine that can write a text on."""

    def generate(self, prompts: Sequence[str], *, sampling: Sampling) -> pl.DataFrame:
        """Rows of CONTINUATIONS: each prompt written on, the same way every time for the same seed."""
        ...
