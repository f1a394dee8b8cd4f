"""Hyperparameters of LSTM and TDLM, by default those of Lau, Baldwin & Cohn (2017), Table 1."""

from dataclasses import asdict, dataclass
from math import inf
from typing import Any

from felicity.core.errors import BadInput, FelicityError
from felicity.core.ids import fingerprint
from felicity.core.policy import Casing
from felicity.engines.words import WordSplitting

# Settings that decide only when training ends: a training may be resumed with other values.
ENDS = ("epochs", "patience")


@dataclass(frozen=True, kw_only=True)
class TopicSettings:
    """The topic model of TDLM; the paper's symbols are in brackets.

    topics (k), size of a topic's output vector (b), filters (a) and their width (h) of the document
    encoder, words predicted per document in a topic batch (m1), longest document in content words (m3), share
    of word types too frequent to indicate a topic, dropout (1 - p1).
    """

    topics: int = 100
    size: int = 50
    filters: int = 20
    width: int = 2
    words: int = 3
    document: int = 300
    frequent: float = 0.001
    dropout: float = 0.6


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """One training.

    From the paper: embedding (e), hidden, layers, steps of back-propagation (m2), batch, epochs, rate (l),
    dropout (1 - p2), min_count and lower-casing. From its program: clip, the largest norm of a gradient.
    Ours: cut (how text is split into words), seed, held (the share of the corpus held out for validation if
    no other text is given), patience (epochs without a better validation perplexity before training ends).
    """

    embedding: int = 300
    hidden: int = 600
    layers: int = 1
    dropout: float = 0.4
    steps: int = 30
    batch: int = 64
    epochs: int = 10
    rate: float = 0.001
    clip: float = 5.0
    min_count: int = 10
    cut: WordSplitting = "punctuation"
    casing: Casing = "lower"
    held: float = 0.05
    patience: int = 2
    seed: int = 1
    topic: TopicSettings | None = None

    def __post_init__(self) -> None:
        whole = ("embedding", "hidden", "layers", "steps", "batch", "epochs", "min_count", "patience")
        _require(self, dict.fromkeys(whole, (1, None)))
        _require(self, {"dropout": (0, 0.99), "held": (0.001, 0.5), "seed": (0, 2**32 - 1)})
        _require(self, {"rate": (1e-9, 10), "clip": (1e-9, None)})
        if self.topic:
            names = ("topics", "size", "filters", "width", "words", "document")
            _require(self.topic, dict.fromkeys(names, (1, None)))
            _require(self.topic, {"dropout": (0, 0.99), "frequent": (0, 1)})

    @property
    def family(self) -> str:
        """`tdlm` with a topic model, else `lstm`."""
        return "tdlm" if self.topic else "lstm"

    @property
    def key(self) -> str:
        """Equal for trainings that compute the same weights."""
        return fingerprint({name: value for name, value in asdict(self).items() if name not in ENDS})

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "TrainingSettings":
        """The inverse of `asdict`.

        Raises BadInput if a field is missing or unknown.
        """
        try:
            topic = fields.get("topic")
            return cls(**fields | {"topic": TopicSettings(**topic) if topic else None})
        except TypeError as error:
            raise BadInput(f"These are not the settings of a training: {error}.") from error


def _require(settings: object, ranges: dict[str, tuple[float, float | None]]) -> None:
    for name, (low, high) in ranges.items():
        value = getattr(settings, name)
        # Written so that what is not a number is refused too.
        if not low <= value < inf or (high is not None and value > high):
            reach = f"at least {low}" if high is None else f"from {low} to {high}"
            raise FelicityError(f"{name} is {value}; give a number {reach}.")
