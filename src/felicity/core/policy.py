"""The scoring policy: how a text is presented to a model, explicit and recorded.

Two programs that score "the same sentence" often disagree because one adds a begin token, another
tokenizes the context separately, and a third skips the first token. Each such choice is a field here; the
policy is part of every cache key and of every manifest.
"""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, get_args

from felicity.core.errors import FelicityError, UnknownName
from felicity.core.ids import fingerprint

Seam = Literal["offsets", "count", "apart"]
First = Literal["skip", "refuse"]
Casing = Literal["keep", "lower", "lower:tr"]
Overflow = Literal["error", "drop", "slide"]
SLIDE = "slide"
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

# Special values of bos, eos and lead, instead of a token or text; case does not matter.
TOKEN_WORDS = ("auto", "declared", "none", "tokenizer", "alone")
# Prefix for an ordinary token of the vocabulary, so that a typo is not taken for one.
ORDINARY = "token:"
# Prefix under which the begin token of `alone` is recorded.
ALONE = "alone:"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The scoring policy of a run.

    bos: what precedes the text. `declared` is the tokenizer's begin token, else its end token, else
        nothing; `auto` is the same unless, for a left-to-right model, plain sentences are clearly more
        probable after another token that separates documents (measured once per model); `none` is nothing;
        `tokenizer` is whatever the tokenizer adds; `alone` is the token of `declared`, only before texts
        without a context; anything else is that special token, or with `token:X` the ordinary token X.
        There are never two begin tokens.
    eos: `none`; `auto` appends the end token and scores it; anything else is that token.
    join: what separates a context from the text.
    seam: how the text's tokens are found after a context: by character `offsets` in the joint
        tokenization, or by the token `count` of the context alone, as minicons does; with `apart`,
        context and text are tokenized separately and nothing, not even `join`, stands between them.
    first: a first token with nothing before it cannot be scored: `skip` leaves it out of every sum and
        counts it in the audit, `refuse` raises an error.
    casing: `keep`, or `lower` before tokenizing (`lower:tr` as Turkish and Azerbaijani do).
    overflow: an input longer than the window is an `error`, or loses its oldest context sentences
        (`drop`). A text that does not fit by itself is an error, or is scored by a left-to-right model in
        windows that advance by half a window (`slide`) or by N tokens (`slide:N`).

    Each of the other fields applies to one family of models; for other families it is recorded as `auto`.

    pll: masked models: while a token is predicted, the tokens to its right in the same word are masked too
        (`word_l2r`, Kauf & Ivanova 2023, the default), or only the token itself (`original`).
    seq2seq: the text is the decoder's output, with the context, if any, in the encoder (`target`, the
        default); or a gap in the encoder's input, filled by the decoder as in training: the whole text as
        one gap after the context (`span`), or each word in turn (`words`).
    order: XLNet: a token is predicted from all others (`both`, the default) or from those before it
        (`left`).
    lead: XLNet: the text before everything else; `auto` is a paragraph included in felicity, `none` is
        nothing, anything else is that text.
    unknown: word-level models (n-gram, LSTM, TDLM): an unknown word is scored as the model's unknown word
        (`score`, the default), left out of every sum (`skip`), or raises an error (`refuse`).
    """

    bos: str = "auto"
    eos: str = "none"
    join: str = " "
    seam: Seam = "offsets"
    first: First = "skip"
    casing: Casing = "keep"
    overflow: str = "error"
    pll: Pll = "auto"
    seq2seq: Seq2Seq = "auto"
    order: Order = "auto"
    lead: str = "auto"
    unknown: Unknown = "auto"

    def __post_init__(self) -> None:
        for field, choices in CHOICES.items():
            value = getattr(self, field)
            if field == "overflow" and re.fullmatch(rf"{SLIDE}:0*[1-9]\d*", str(value)):
                continue
            if value not in choices:
                raise UnknownName(f"policy {field}", str(value), choices)
        for field in ("bos", "eos", "lead"):
            if getattr(self, field).lower() in TOKEN_WORDS:
                object.__setattr__(self, field, getattr(self, field).lower())
            if not getattr(self, field):
                raise FelicityError(f"The policy's {field} is empty; write 'none' for none.")

    @classmethod
    def compat(cls, program: str) -> "Policy":
        """The policy that reproduces another program's numbers exactly.

        >>> Policy.compat("minicons").bos
        'tokenizer'
        """
        if program not in COMPAT:
            raise UnknownName("compatible program", program, COMPAT)
        return COMPAT[program]

    def replace(self, **changes: Any) -> "Policy":
        """This policy with some fields changed."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, str]:
        """The fields by name, for manifests."""
        return asdict(self)

    @property
    def key(self) -> str:
        """The key of cache entries; equal policies have equal keys."""
        return fingerprint(self.as_dict())


def find_stride(overflow: str, window: int) -> int | None:
    """The tokens by which windows advance over a long text; None if the policy does not slide.

    Raises FelicityError for a stride that is no shorter than the window.

    >>> find_stride("slide", 1024), find_stride("slide:100", 1024), find_stride("drop", 1024)
    (512, 100, None)
    """
    name, _, stride = overflow.partition(":")
    if name != SLIDE:
        return None
    tokens = int(stride) if stride else max(window // 2, 1)
    if tokens >= window:
        raise FelicityError(
            f"--overflow {overflow} advances by more than the model's window of {window} tokens; choose less."
        )
    return tokens


COMPAT: dict[str, Policy] = {
    "minicons": Policy(bos="tokenizer", join=" ", seam="count", pll="original"),
    "lau2020": Policy(bos="alone", seam="apart", pll="original"),
}


# The begin token is always said, other fields where they are not the usual.
USUAL = Policy().as_dict()


def describe_policy(policy: Mapping[str, str]) -> str:
    """What precedes a text, and whatever else of a resolved policy is not the usual.

    >>> describe_policy({"bos": "<s>", "casing": "lower"})
    'begin token <s>, casing lower'
    """
    said = [
        _describe_field(name, str(policy[name]))
        for name, usual in USUAL.items()
        if name in policy and (name == "bos" or policy[name] != usual)
    ]
    return ", ".join(said) or "not recorded"


def _describe_field(name: str, value: str) -> str:
    token = value.removeprefix(ORDINARY)
    if name == "bos" and value.startswith(ALONE):
        return f"begin token {value.removeprefix(ALONE)} only before texts without a context"
    if name in ("bos", "eos"):
        what = "begin" if name == "bos" else "end"
        said = {"none": f"no {what} token", "tokenizer": f"{what} token as the tokenizer adds it"}
        return said.get(value, f"{what} token {token}")
    if name == "lead" and value != "none":
        return f"a lead of {len(value)} characters"
    return f"{name} {value!r}" if name == "join" else f"{name} {value}"


def describe_policies(models: Mapping[str, Mapping[str, Any]]) -> str:
    """The scoring policies of models, by name and as their manifests give them; a warning if they differ.

    >>> describe_policies({"a": {"policy": {"bos": "<s>"}}, "b": {"policy": {"bos": "<s>"}}})
    'Scoring policy: begin token <s>.'
    >>> describe_policies({"a": {"policy": {"bos": "<s>"}}, "b": {"policy": {"bos": "none"}}})
    'Scoring policies differ: a: begin token <s>; b: no begin token.'
    """
    policies = {name: model.get("policy") or {} for name, model in models.items()}
    said = {name: describe_policy(policy) for name, policy in policies.items()}
    if len(set(said.values())) == 1:
        return f"Scoring policy: {next(iter(said.values()))}."
    # Every tokenizer spells its begin token in its own way; that alone is no other policy.
    alike = len({describe_policy({**policy, "bos": _find_sort(policy)}) for policy in policies.values()}) == 1
    each = "; ".join(f"{name}: {text}" for name, text in said.items())
    return (
        f"Scoring policy, the same with each model's own begin token: {each}."
        if alike
        else (f"Scoring policies differ: {each}.")
    )


def _find_sort(policy: Mapping[str, str]) -> str:
    """The begin token without its spelling."""
    bos = policy.get("bos", "none")
    return "alone" if bos.startswith(ALONE) else bos if bos in TOKEN_WORDS else "token"
