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
Pll = Literal["auto", "word_l2r", "original"]
Seq2Seq = Literal["auto", "target", "span", "words"]
Order = Literal["auto", "both", "left"]
Unknown = Literal["auto", "score", "skip", "refuse"]

CHOICES: dict[str, tuple[str, ...]] = {
    "seam": get_args(Seam),
    "first": get_args(First),
    "casing": get_args(Casing),
    "overflow": get_args(Overflow),
    "pll": get_args(Pll),
    "seq2seq": get_args(Seq2Seq),
    "order": get_args(Order),
    "unknown": get_args(Unknown),
}

# What bos, eos and lead may say instead of a token or text; written in any case.
TOKEN_WORDS = ("auto", "none", "tokenizer")
# An ordinary token of the vocabulary is named with this before it, so that no slip is taken for one.
ORDINARY = "token:"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The scoring policy of a run.

    bos: what stands before the text. `auto` is the tokenizer's begin token, else its end token, else
        nothing; `none` is nothing; `tokenizer` is whatever the tokenizer adds by itself; anything
        else is that special token, or `token:X` the ordinary token X. Never two begin tokens.
    eos: `none`; `auto` appends the end token and scores it; anything else is that token.
    join: what stands between a context and the text.
    seam: how the text's tokens are found behind a context: by character `offsets` in the joint
        tokenization, or by the token `count` of the context alone, as minicons does.
    first: a first token without anything before it cannot be scored: `skip` leaves it out of every
        sum and counts it in the audit, `refuse` stops.
    casing: `keep`, or `lower` before tokenizing.
    overflow: an input longer than the window is an `error`, or loses its oldest context sentences
        (`drop`). A text that does not fit by itself is always an error.

    The rest is for one family of models each; in what another family tells of its policy it is `auto`.

    pll: masked models: while a token is predicted, the rest of its word to the right is hidden too
        (`word_l2r`, Kauf & Ivanova 2023, what `auto` is), or the token alone (`original`).
    seq2seq: the text is what the decoder writes when the encoder has read the context, or nothing
        (`target`, what `auto` is); or a gap in what the encoder reads, filled by the decoder as in
        training: the whole text one gap behind the context (`span`), or each word in turn (`words`).
    order: XLNet: a token is predicted from all others (`both`, what `auto` is) or from those before
        it (`left`).
    lead: XLNet: the text that stands before everything; `auto` is a paragraph that comes with
        felicity, `none` is nothing, anything else is that text.
    unknown: models of words (n-gram, LSTM, TDLM): a word the model does not know is scored as its unknown
        word (`score`, what `auto` is), left out of every sum (`skip`), or stops the work (`refuse`).
    """

    bos: str = "auto"
    eos: str = "none"
    join: str = " "
    seam: Seam = "offsets"
    first: First = "skip"
    casing: Casing = "keep"
    overflow: Overflow = "error"
    pll: Pll = "auto"
    seq2seq: Seq2Seq = "auto"
    order: Order = "auto"
    lead: str = "auto"
    unknown: Unknown = "auto"

    def __post_init__(self) -> None:
        for field, choices in CHOICES.items():
            value = getattr(self, field)
            if value not in choices:
                raise UnknownName(f"policy {field}", str(value), choices)
        for field in ("bos", "eos", "lead"):
            if getattr(self, field).lower() in TOKEN_WORDS:
                object.__setattr__(self, field, getattr(self, field).lower())
            if not getattr(self, field):
                raise FelicityError(f"The policy's {field} is empty; write 'none' to have none.")

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
    "minicons": Policy(bos="tokenizer", join=" ", seam="count", pll="original"),
}
