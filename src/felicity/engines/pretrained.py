"""What the engines for models of transformers share: what a model is, and what it is told of a text."""

from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import EngineInfo
from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.core.schemas import ENCODINGS
from felicity.engines.describe import ModelDescription
from felicity.engines.digests import fingerprint_tokenizer, fingerprint_weights
from felicity.engines.encoding import Encoded
from felicity.engines.sources import ModelSource

# Nats by which re-batching may move a sentence's sum. In float32 a property test holds it; in half
# precision it is a first guess, and a run measures its own.
NOISE = {"float32": 1e-4, "float16": 0.1, "bfloat16": 1.0}
# Positions are counted from behind the padding's id, so that many places of the table are never used.
PADDED_POSITIONS = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "roberta-prelayernorm", "mpnet")
# Relative positions: whatever the configuration says, there is no last one.
NO_WINDOW = ("t5", "mt5", "umt5", "xlnet")


def find_window(description: ModelDescription, tokenizer: Any) -> int | None:
    """How many tokens the model reads at most; None where there is no such number."""
    if description.model_type in NO_WINDOW or description.window is None:
        return None
    if description.model_type in PADDED_POSITIONS:
        return description.window - int(tokenizer.pad_token_id or 0) - 1
    return description.window


def build_info(
    source: ModelSource,
    description: ModelDescription,
    *,
    family: str,
    kind: str,
    policy: Policy,
    tokenizer: Any,
    can: tuple[str, ...],
    dtype: str,
) -> EngineInfo:
    """What is known of the model in a folder without loading its weights."""
    return EngineInfo(
        name=source.name,
        family=family,
        kind=kind,
        weights=fingerprint_weights(source.folder),
        tokenizer=fingerprint_tokenizer(source.folder),
        policy=policy.as_dict(),
        dtype=dtype,
        parameters=description.parameters,
        vocabulary=len(tokenizer),
        window=find_window(description, tokenizer),
        noise=NOISE[dtype],
        can=can,
        notes=source.details,
    )


def build_encodings(encoded: Encoded, tokenizer: Any, *, window: int, before: int = 0) -> pl.DataFrame:
    """Rows of ENCODINGS; `before` tokens of every sequence are neither context nor text."""
    n_own = encoded.count(encoded.own)
    unknown = -1 if tokenizer.unk_token_id is None else tokenizer.unk_token_id
    added = np.isin(encoded.ids, tokenizer.all_special_ids) & ~encoded.own
    columns = {
        "n_tokens": n_own,
        "n_unscored": n_own - encoded.count(encoded.wanted),
        "n_across": encoded.n_across,
        "n_unknown": encoded.count(encoded.own & (encoded.ids == unknown)),
        "n_context": np.maximum(encoded.lengths - n_own - encoded.count(added) - before, 0),
        "n_dropped": encoded.n_dropped,
        "n_over": np.maximum(encoded.lengths - window, 0),
    }
    return pl.DataFrame({"request": encoded.request} | columns, schema=ENCODINGS)


def refuse_overlong(encodings: pl.DataFrame, *, window: int, name: str) -> None:
    """Stop before a text is cut or scored wrongly.

    Raises BadInput naming the first text that is longer than the window.
    """
    over = encodings.filter(pl.col("n_over") > 0)
    if over.is_empty():
        return
    first = over.row(0, named=True)
    step = "drop old context with --overflow drop" if first["n_context"] else "shorten it"
    raise BadInput(
        f"The text of '{first['request']}' is {first['n_over']} token{'s' * (first['n_over'] > 1)} too long "
        f"for '{name}', which reads at most {window}; {step} ({len(over)} such text{'s' * (len(over) > 1)})."
    )


def refuse_no_number(logprobs: np.ndarray, *, name: str) -> None:
    """Stop where a log-probability is no number.

    Raises NotPossible.
    """
    if not np.isfinite(logprobs).all():
        raise NotPossible(f"'{name}' gave a log-probability that is no number; are its weights whole?")
