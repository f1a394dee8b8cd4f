"""What is particular to encoding for models of words: words they do not know."""

from dataclasses import replace

import numpy as np
import polars as pl

from felicity.core.engine import More
from felicity.core.errors import NotPossible
from felicity.core.policy import Policy
from felicity.engines.encoding import Encoded, Encoder
from felicity.engines.words.tokenizer import WordTokenizer


def settle_policy(policy: Policy) -> Policy:
    """The policy with `unknown` resolved."""
    return policy.but(unknown="score") if policy.unknown == "auto" else policy


def name_casing(policy: Policy, tokenizer: WordTokenizer) -> Policy:
    """The policy as it comes out: a model trained on lower-cased text reads everything so."""
    return policy.but(casing="lower") if tokenizer.lower else policy


def encode_words(encoder: Encoder, prompts: pl.DataFrame, *, name: str) -> Encoded:
    """Ids and offsets of every prompt; what is done with unknown words is the policy's to say.

    Raises NotPossible where there is one and the policy, or a closed vocabulary, forbids it.
    """
    encoded = encoder.encode(prompts)
    unknown = encoded.own & (encoded.ids == encoder.tokenizer.unk_token_id)
    if encoder.policy.unknown == "skip":
        return replace(encoded, wanted=encoded.wanted & ~unknown)
    closed = encoder.tokenizer.unk_token_id < 0
    if unknown.any() and (closed or encoder.policy.unknown == "refuse"):
        place = int(unknown.argmax())
        request = encoded.request[int(np.searchsorted(encoded.bounds, place, side="right")) - 1]
        raise NotPossible(
            f"'{name}' does not know the word at characters {encoded.start[place]} to {encoded.end[place]} "
            f"of the text of '{request}'; change it, or leave such words out with --policy unknown=skip."
        )
    return encoded


def refuse_more(more: More, *, name: str) -> None:
    """Stop where more is asked for than word boundaries, which are certain between words.

    Raises NotPossible.
    """
    if more.rank or more.entropy or more.top:
        raise NotPossible(f"'{name}' gives log-probabilities only, no ranks, entropies or likeliest words.")


def mark_boundaries(tokens: pl.DataFrame, more: More) -> pl.DataFrame:
    """With word boundaries where they are asked for: a word of these models ends for certain."""
    if not more.boundary:
        return tokens
    return tokens.with_columns(pl.col("logprob").list.eval(pl.element() * 0.0).alias("boundary"))
