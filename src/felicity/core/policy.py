"""How a text is put before a model: explicit, recorded, never silent.

Two programs that score "the same sentence" often disagree because one adds a begin token, another
tokenizes the context apart, a third leaves the first token out. Each such choice is a field here; the
policy is part of every cache key and of every manifest.
"""

from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from felicity.core.errors import FelicityError, UnknownName
from felicity.core.ids import fingerprint

Seam = Literal["offsets", "count"]
First = Literal["skip", "refuse"]
Casing = Literal["keep", "lower"]
Overflow = Literal["error", "drop"]
Unknown = Literal["score", "skip", "refuse"]

CHOICES: dict[str, tuple[str, ...]] = {
    "seam": get_args(Seam),
    "first": get_args(First),
    "casing": get_args(Casing),
    "overflow": get_args(Overflow),
    "unknown": get_args(Unknown),
}


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The scoring policy of a run.

    bos: what stands before the text. `auto` is the tokenizer's begin token, else its end token, else
        nothing; `none` is nothing; `tokenizer` is whatever the tokenizer adds by itself; anything
        else is that token, which must be in the vocabulary. Never two begin tokens.
    eos: `none`; `auto` appends the end token and scores it; anything else is that token.
    join: what stands between a context and the text.
    seam: how the text's tokens are found behind a context: by character `offsets` in the joint
        tokenization, or by the token `count` of the context alone, as minicons does.
    first: a first token without anything before it cannot be scored: `skip` leaves it out of every
        sum and counts it in the audit, `refuse` stops.
    casing: `keep`, or `lower` before tokenizing.
    overflow: an input longer than the window is an `error`, or loses its oldest context sentences
        (`drop`). A text that does not fit by itself is always an error.
    unknown: a word the model has no token for: `score` takes the probability of its unknown token,
        `skip` leaves it out of every sum, `refuse` stops. All are counted in the audit.
    """

    bos: str = "auto"
    eos: str = "none"
    join: str = " "
    seam: Seam = "offsets"
    first: First = "skip"
    casing: Casing = "keep"
    overflow: Overflow = "error"
    unknown: Unknown = "score"

    def __post_init__(self) -> None:
        for field, choices in CHOICES.items():
            value = getattr(self, field)
            if value not in choices:
                raise UnknownName(f"policy {field}", str(value), choices)
        for field in ("bos", "eos"):
            if not getattr(self, field):
                raise FelicityError(f"The policy's {field} is empty; write 'none' for no token.")

    @classmethod
    def compat(cls, program: str) -> "Policy":
        """The policy under which another program's numbers come out exactly.

        >>> Policy.compat("minicons").bos
        'tokenizer'
        """
        if program not in COMPAT:
            raise UnknownName("program to be compatible with", program, COMPAT)
        return COMPAT[program]

    def but(self, **changes: Any) -> "Policy":
        """This policy with some fields changed."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, str]:
        """The fields by name, for manifests."""
        return asdict(self)

    @property
    def key(self) -> str:
        """What a cache entry is found by; equal policies have equal keys."""
        return fingerprint(self.as_dict())


COMPAT: dict[str, Policy] = {
    "minicons": Policy(bos="tokenizer", join=" ", seam="count"),
}
