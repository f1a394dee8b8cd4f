"""What a model is to the rest of felicity: something that gives a log-probability for every token."""

from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import polars as pl

from felicity.core.ids import fingerprint


@dataclass(frozen=True, kw_only=True)
class EngineInfo:
    """What is known of a model without loading its weights.

    kind: what a token's log-probability means: `left-to-right`, `pseudo`, `permutation`, `seq2seq`.
    weights, tokenizer: digests of the files, so that no score is ever taken for another model's.
    policy: the scoring policy with every `auto` resolved.
    noise: nats by which the log-probability of a sentence may move with the batch it is scored in.
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
