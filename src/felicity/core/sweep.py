"""The vocabulary of contexts: what kinds there are, and the tables of a study that grows them.

A context is a run of sentences put before a stimulus. Its kind says where the sentences come from:
`matched` ones from the stimulus's own suite, `mismatched` ones from the other suites, each acceptable or
unacceptable; `unrelated` ones from running text; `from` ones from a single named suite.
"""

from typing import NamedTuple

import polars as pl

from felicity.core.schemas import JUDGEMENTS, REQUESTS, TEXT, Schema

BASELINE = "none"
UNPERTURBED = "none"


class Kind(NamedTuple):
    """What is known of a context by its kind; null where it makes no sense to ask."""

    matched: bool | None
    acceptable: bool | None


KINDS: dict[str, Kind] = {
    "matched_acceptable": Kind(True, True),
    "matched_unacceptable": Kind(True, False),
    "mismatched_acceptable": Kind(False, True),
    "mismatched_unacceptable": Kind(False, False),
    "unrelated": Kind(None, None),
}
# With --from-suite; the suite stands in the column `source`.
FROM_KINDS: dict[str, Kind] = {
    "from_acceptable": Kind(None, True),
    "from_unacceptable": Kind(None, False),
}

# What a context is, besides its text. `series` names the contexts that grow out of one another; `group` is
# an item, or the number of the items that share the context; `length` is what was asked for, in the unit
# of the study (tokens or sentences); `source` is the one suite that all sentences come from, or null.
FACTORS: Schema = {
    "kind": TEXT,
    "source": TEXT,
    "perturbation": TEXT,
    "draw": pl.UInt32(),
    "series": TEXT,
    "length": pl.UInt32(),
    "n_tokens": pl.UInt32(),
}

# One row a context. `origins` are the items, or lines, that the sentences were taken from.
SWEEP_CONTEXTS: Schema = {
    "context": TEXT,
    "suite": TEXT,
    "group": TEXT,
    **FACTORS,
    "sentences": pl.List(pl.String()),
    "origins": pl.List(pl.String()),
    "context_text": TEXT,
}

# One row a thing to score; `case` is an item in one context. Without a context: kind `none`, length 0.
SWEEP_REQUESTS: Schema = {**REQUESTS, "case": TEXT, **FACTORS}

# One row an item, context and measure. ppl_margin: perplexity of the better less that of the worse sentence.
SWEEP_JUDGEMENTS: Schema = {**JUDGEMENTS, "context": TEXT, **FACTORS, "ppl_margin": pl.Float64()}
