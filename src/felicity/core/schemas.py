"""The tables that rooms exchange, defined once.

Every table may have further columns (design factors, a dataset's own fields); those named here are required,
with these types. Counts, ranks and positions are Int64, so that a difference of two of them may be negative;
only lists of character offsets, of which a run has millions, are UInt32.
"""

from typing import TypeVar

import polars as pl
from polars import selectors

from felicity.core.errors import BadInput

Frame = TypeVar("Frame", pl.DataFrame, pl.LazyFrame)
Schema = dict[str, pl.DataType]

TEXT = pl.String()
NUMBERS = pl.List(pl.UInt32())

# One row per stimulus.
ITEMS: Schema = {"item": TEXT, "suite": TEXT, "phenomenon": TEXT, "condition": TEXT, "text": TEXT}

# Each context text once.
CONTEXTS: Schema = {"context": TEXT, "context_text": TEXT}

# One row per text to score; `context` is null if there is none.
REQUESTS: Schema = {"request": TEXT, "item": TEXT, "condition": TEXT, "context": TEXT, "text": TEXT}

# The input of an engine: no items, no conditions.
PROMPTS: Schema = {"request": TEXT, "context_text": TEXT, "text": TEXT}

# The output of an engine: one row per request, lists with one entry per token. A token that could not be
# scored has a null log-probability. Offsets are characters of the text.
TOKENS: Schema = {
    "request": TEXT,
    "tokens": pl.List(pl.String()),
    "start": NUMBERS,
    "end": NUMBERS,
    "logprob": pl.List(pl.Float32()),
}

# Tokens of a model that also gives the log-probability that a word starts, or the text ends, at each token.
BOUNDED_TOKENS: Schema = TOKENS | {"boundary": pl.List(pl.Float32())}

# What an engine reports about a request before scoring it.
ENCODINGS: Schema = {
    "request": TEXT,
    "n_tokens": pl.Int64(),
    "n_unscored": pl.Int64(),
    "n_across": pl.Int64(),
    "n_unknown": pl.Int64(),
    "n_context": pl.Int64(),
    "n_dropped": pl.Int64(),
    "n_over": pl.Int64(),
}

# Fillers of a blank: one row per token, most probable first. `dropped` counts more probable tokens that are
# not text by themselves and have no row; `logprob` is in nats over the whole vocabulary.
FILLERS: Schema = {
    "frame": TEXT,
    "rank": pl.Int64(),
    "filler": TEXT,
    "token": TEXT,
    "logprob": pl.Float64(),
    "dropped": pl.Int64(),
}

# The log-probability of given words in a blank, whatever their number of tokens.
CANDIDATES: Schema = {
    "frame": TEXT,
    "candidate": TEXT,
    "tokens": pl.List(pl.String()),
    "logprob": pl.Float64(),
}

# Continued texts; `ended` says why: the model's `end` token, a `stop` string, or the `limit`.
CONTINUATIONS: Schema = {
    "prompt": TEXT,
    "sample": pl.Int64(),
    "continuation": TEXT,
    "n_tokens": pl.Int64(),
    "ended": TEXT,
}

# `error` is how far numerical noise may change the value.
SCORES: Schema = {"request": TEXT, "measure": TEXT, "value": pl.Float64(), "error": pl.Float64()}

JUDGEMENTS: Schema = {
    "item": TEXT,
    "suite": TEXT,
    "phenomenon": TEXT,
    "measure": TEXT,
    "rule": TEXT,
    "passed": pl.Float64(),
    "margin": pl.Float64(),
    "stable": pl.Boolean(),
}

ESTIMATES: Schema = {
    "measure": TEXT,
    "level": TEXT,
    "name": TEXT,
    "n": pl.Int64(),
    "suites": pl.Int64(),
    "accuracy": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "interval": TEXT,
    "ties": pl.Int64(),
    "unstable": pl.Int64(),
}

# The surprisal of every region of every stimulus, its tokens combined as the suite specifies.
REGIONS: Schema = {
    "item": TEXT,
    "suite": TEXT,
    "condition": TEXT,
    "region": TEXT,
    "name": TEXT,
    "surprisal_bits": pl.Float64(),
    "n_tokens": pl.Int64(),
}

# The most probable words for each frame; `rank` is the target's among them, `dropped` the number of more
# probable tokens that are not text by themselves.
CLOZE: Schema = {
    "item": TEXT,
    "suite": TEXT,
    "phenomenon": TEXT,
    "condition": TEXT,
    "frame": TEXT,
    "target": TEXT,
    "rank": pl.Int64(),
    "predictions": pl.List(pl.String()),
    "dropped": pl.Int64(),
}

# One row per word and position: its log-probability in each neutral context, and its log-prior.
PRIORS: Schema = {
    "form": TEXT,
    "start": TEXT,
    "lead": TEXT,
    "closed": pl.Boolean(),
    "n_tokens": pl.Int64(),
    "logprobs": pl.List(pl.Float64()),
    "prior": pl.Float64(),
}

# Scores against ratings; `level` is `all`, `suite` or `phenomenon`.
CORRELATIONS: Schema = {
    "measure": TEXT,
    "condition": TEXT,
    "level": TEXT,
    "name": TEXT,
    "method": TEXT,
    "n": pl.Int64(),
    "r": pl.Float64(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "p": pl.Float64(),
}

# What word frequency, length or a 5-gram alone would score; `level` is overall, phenomenon or suite.
BASELINES: Schema = {
    "baseline": TEXT,
    "level": TEXT,
    "name": TEXT,
    "n": pl.Int64(),
    "accuracy": pl.Float64(),
}

# The check of an audit that names what could not be checked.
NOT_CHECKED = "not checked"
AUDIT: Schema = {"check": TEXT, "count": pl.Int64(), "of": pl.Int64(), "meaning": TEXT, "examples": TEXT}


def check_schema(frame: pl.DataFrame, schema: Schema, name: str) -> pl.DataFrame:
    """`frame` itself, if it has the columns of `schema` with their types.

    Raises BadInput naming the table and the first column that is missing or of another type.
    """
    for column, dtype in schema.items():
        if column not in frame.columns:
            raise BadInput(f"The table '{name}' has no column '{column}'; it has {', '.join(frame.columns)}.")
        if frame.schema[column] != dtype:
            raise BadInput(f"Column '{column}' of the table '{name}' is {frame.schema[column]}, not {dtype}.")
    return frame


def sign_counts(frame: Frame) -> Frame:
    """Unsigned columns, as polars counts and as older files have them, as Int64.

    >>> sign_counts(pl.DataFrame({"word": ["a", "a"]}).group_by("word").len()).schema["len"]
    Int64
    """
    return frame.with_columns(selectors.unsigned_integer().cast(pl.Int64))


def conform(frame: pl.DataFrame, schema: Schema) -> pl.DataFrame:
    """The columns of `schema`, in its order and types."""
    return frame.select(pl.col(name).cast(dtype) for name, dtype in schema.items())


def empty_table(schema: Schema) -> pl.DataFrame:
    """A table with these columns and no rows."""
    return pl.DataFrame(schema=schema)


# The ids of raters that `felicity rate simulate` made begin with this; those of people are hexadecimal.
SIMULATED_RATER = "sim-"
SIMULATED_MARK = "simulated raters"
SIMULATED_NOTE = (
    "Simulated ratings: `felicity rate simulate` drew them to pilot a study; no person gave them, and they "
    "say nothing about people."
)


def is_simulated(table: pl.DataFrame) -> bool:
    """Whether ratings come from simulated raters: by the column `simulated`, or by the ids of the raters.

    >>> is_simulated(pl.DataFrame({"rater": ["sim-1f", "2a"]})), is_simulated(pl.DataFrame({"rater": ["2a"]}))
    (True, False)
    """
    marks = table.get_column("simulated", default=None)
    if marks is not None and marks.cast(pl.String).str.to_lowercase().eq("true").any():
        return True
    ids = [table[name].cast(pl.String) for name in ("rater", "participant") if name in table.columns]
    return any(bool(one.str.starts_with(SIMULATED_RATER).any()) for one in ids)
