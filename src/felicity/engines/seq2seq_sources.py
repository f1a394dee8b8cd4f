"""What an encoder-decoder reads before it writes a text: the context, or nothing."""

from dataclasses import dataclass

import numpy as np
import polars as pl

from felicity.engines.encoding import Encoder
from felicity.engines.sentences import split_sentences


@dataclass(frozen=True)
class Sources:
    """Token ids to read, an entry a text; how many tokens of context, and how many sentences were dropped."""

    ids: list[np.ndarray]
    n_tokens: np.ndarray
    n_dropped: np.ndarray

    @classmethod
    def none(cls, size: int) -> "Sources":
        """Nothing to read."""
        return cls([np.empty(0, np.int64)] * size, np.zeros(size, np.int64), np.zeros(size, np.int64))


def encode_sources(prompts: pl.DataFrame, encoder: Encoder) -> Sources:
    """The contexts between the tokenizer's special tokens, old sentences dropped where the policy says so."""
    contexts = prompts["context_text"].fill_null("").to_list()
    if encoder.policy.casing == "lower":
        contexts = [context.lower() for context in contexts]
    rows = encoder.tokenizer(contexts, verbose=False)["input_ids"] if contexts else []
    around = len(encoder.tokenizer("")["input_ids"])
    dropped = np.zeros(len(rows), np.int64)
    if encoder.policy.overflow == "drop":
        for i in [i for i, row in enumerate(rows) if len(row) > encoder.window]:
            sentences = split_sentences(contexts[i])
            while sentences and len(rows[i]) > encoder.window:
                sentences = sentences[1:]
                dropped[i] += 1
                rows[i] = encoder.tokenizer("".join(sentences), verbose=False)["input_ids"]
    ids = [np.array(row, dtype=np.int64) for row in rows]
    return Sources(ids, np.array([len(row) - around for row in rows], dtype=np.int64), dropped)
