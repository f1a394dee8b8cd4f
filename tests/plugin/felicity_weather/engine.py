"""An engine: log-probabilities for the tokens of every prompt. This one finds all words equally likely."""

import math
from collections.abc import Collection, Iterator

import polars as pl

from felicity.core.engine import NO_EXTRAS, EngineInfo, TokenExtras
from felicity.core.errors import BadInput
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS, TOKENS
from felicity.engines.runtime import Compute
from felicity.measures import find_words

BATCH = 1000


class UniformEngine:
    """`-m uniform:N`: every word has probability 1/N."""

    def __init__(self, rest: str, *, policy: Policy, compute: Compute) -> None:
        if not rest.isdecimal() or int(rest) < 1:
            raise BadInput(f"-m uniform:{rest} needs the size of the vocabulary, as in uniform:1000.")
        self.size = int(rest)
        self.info = EngineInfo(
            name=f"uniform-{self.size}",
            family="uniform",
            kind="left-to-right",
            weights=f"uniform {self.size}",
            tokenizer="white space",
            policy=policy.as_dict(),
            dtype=compute.dtype,
            parameters=1,
            vocabulary=self.size,
            window=None,
            noise=0.0,
        )

    def encode(self, prompts: pl.DataFrame) -> pl.DataFrame:
        """How many tokens each text has; nothing is lost, unknown or too long."""
        counts = [len(find_words(text)) for text in prompts["text"]]
        zeros = dict.fromkeys(ENCODINGS, [0] * len(prompts))
        told = {"request": prompts["request"], "n_tokens": counts}
        return pl.DataFrame(zeros | told, schema=ENCODINGS)

    def score(
        self, prompts: pl.DataFrame, *, done: Collection[str] = (), extras: TokenExtras = NO_EXTRAS
    ) -> Iterator[pl.DataFrame]:
        """The tokens of every prompt, batch by batch; a batch that is done already is passed over."""
        for batch in prompts.iter_slices(BATCH):
            if set(batch["request"]) <= set(done):
                continue
            rows = []
            for request, text in batch.select("request", "text").iter_rows():
                spans = find_words(text)
                rows.append(
                    {
                        "request": request,
                        "tokens": [text[start:end] for start, end in spans],
                        "start": [start for start, _ in spans],
                        "end": [end for _, end in spans],
                        "logprob": [-math.log(self.size)] * len(spans),
                    }
                )
            yield pl.DataFrame(rows, schema=TOKENS)
