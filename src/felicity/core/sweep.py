"""The vocabulary of context studies: the kinds of context, and the tables of contexts that grow.

A context is a sequence of sentences before a stimulus. Its kind says where the sentences come from:
`matched` from the stimulus's own suite, `mismatched` from the other suites, each acceptable or unacceptable;
`unrelated` from running text; `from` from a single named suite.
"""

from typing import NamedTuple

import polars as pl

from felicity.core.schemas import JUDGEMENTS, REQUESTS, TEXT, Schema

BASELINE = "none"
UNPERTURBED = "none"


class Kind(NamedTuple):
    """The properties of a kind of context; null if they do not apply."""

    matched: bool | None
    acceptable: bool | None


KINDS: dict[str, Kind] = {
    "matched_acceptable": Kind(True, True),
    "matched_unacceptable": Kind(True, False),
    "mismatched_acceptable": Kind(False, True),
    "mismatched_unacceptable": Kind(False, False),
    "unrelated": Kind(None, None),
}
# With --from-suite; the suite is in the column `source`.
FROM_KINDS: dict[str, Kind] = {
    "from_acceptable": Kind(None, True),
    "from_unacceptable": Kind(None, False),
}

# What a context is, besides its text. `series` names contexts that are extensions of one another; `group` is
# an item, or the number of the items that share the context; `length` is the requested length, in the unit
# of the study (tokens or sentences); `source` is the one suite that all sentences come from, or null.
FACTORS: Schema = {
    "kind": TEXT,
    "source": TEXT,
    "perturbation": TEXT,
    "draw": pl.Int64(),
    "series": TEXT,
    "length": pl.Int64(),
    "n_tokens": pl.Int64(),
}

# One row per context. `origins` are the items, or lines, that the sentences were taken from.
SWEEP_CONTEXTS: Schema = {
    "context": TEXT,
    "suite": TEXT,
    "group": TEXT,
    **FACTORS,
    "sentences": pl.List(pl.String()),
    "origins": pl.List(pl.String()),
    "context_text": TEXT,
}

# One row per text to score; `case` is an item in one context. Without a context: kind `none`, length 0.
SWEEP_REQUESTS: Schema = {**REQUESTS, "case": TEXT, **FACTORS}

# One row per item, context and measure. ppl_margin: perplexity of the better minus the worse sentence.
SWEEP_JUDGEMENTS: Schema = {**JUDGEMENTS, "context": TEXT, **FACTORS, "ppl_margin": pl.Float64()}
