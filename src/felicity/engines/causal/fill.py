"""Blanks filled by left-to-right models: the next token after the text before the blank.

Such a model cannot see what follows the blank. Punctuation there is ignored; words there are refused, since
the probabilities would not be those of the whole frame.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import Engine
from felicity.core.errors import BadInput, NotPossible
from felicity.core.schemas import PROMPTS
from felicity.engines.runtime import (
    LOGITS,
    ClozeFrame,
    PositionSelector,
    build_candidates,
    normalize_logits,
    pair_candidates,
    parse_frame,
    plan_rows,
    rank_fillers,
)
from felicity.engines.runtime import MASKED_BATCH_TOKENS as BATCH_TOKENS
from felicity.engines.tokenizing import Encoder


def fill_next(
    model: Any, encoder: Encoder, frames: Sequence[str], *, k: int, name: str, alone: bool = False
) -> pl.DataFrame:
    """Rows of FILLERS: the most probable tokens right after the text before the blank.

    alone: one frame at a time, for models whose numbers depend on the batch.
    """
    parsed = [parse_left_frame(text, name=name) for text in frames]
    rows = [np.array(encode_prompt(encoder, frame.before.rstrip(), name=name)) for frame in parsed]
    tables: list[pl.DataFrame] = [pl.DataFrame()] * len(parsed)
    selector = PositionSelector(model.base_model)
    lengths = np.array([len(row) for row in rows])
    most = 1 if alone else max(1, LOGITS // model.config.get_text_config().vocab_size)
    for batch in plan_rows(lengths, budget=BATCH_TOKENS, most=most):
        for i, logprobs in zip(batch, _predict_next(model, selector, [rows[i] for i in batch]), strict=True):
            tables[i] = rank_fillers(parsed[i].text, logprobs, encoder.tokenizer, k=k)
    selector.release()
    return pl.concat(tables)


def score_next(
    engine: Engine,
    frames: Sequence[str],
    candidates: Sequence[Sequence[str]],
    *,
    unknown: str | None,
    name: str,
) -> pl.DataFrame:
    """Rows of CANDIDATES: log p(candidate | the text before the blank)."""
    parsed, words = pair_candidates(frames, candidates)
    for frame in parsed:
        parse_left_frame(frame.text, name=name)
    texts = [frame.before + word for frame, word in zip(parsed, words, strict=True)]
    names = [str(place) for place in range(len(texts))]
    prompts = pl.DataFrame(
        {"request": names, "context_text": [None] * len(texts), "text": texts}, schema=PROMPTS
    )
    scored = pl.concat(list(engine.score(prompts)))
    rows = {row["request"]: row for row in scored.iter_rows(named=True)}
    scores = [_score_word(rows[key], parsed[i], words[i], unknown) for i, key in enumerate(names)]
    return build_candidates(parsed, words, [tokens for tokens, _ in scores], [value for _, value in scores])


def parse_left_frame(text: str, *, name: str) -> ClozeFrame:
    """A frame whose blank is its last word.

    Raises NotPossible if words follow the blank.
    """
    frame = parse_frame(text)
    if any(unicodedata.category(char)[0] not in "PSZC" for char in frame.after):
        raise NotPossible(
            f"'{name}' reads from left to right and cannot see '{frame.after.strip()}' after the blank of "
            f"'{text}'; end the frame with the blank, or use a masked model."
        )
    return frame


def encode_prompt(encoder: Encoder, text: str, *, name: str) -> list[int]:
    """The tokens of a prompt, with the begin token of the policy; the prompt may be empty if there is one.

    Raises NotPossible if there is neither text nor begin token, BadInput if the prompt fills the window.
    """
    ids: list[int]
    if text:
        prompts = pl.DataFrame({"request": [text], "context_text": [None], "text": [text]}, schema=PROMPTS)
        ids = encoder.encode(prompts).ids.tolist()
        if encoder.policy.eos != "none":
            ids = ids[:-1]
    elif encoder.policy.bos in ("none", "tokenizer"):
        ids = list(encoder.tokenizer("", add_special_tokens=encoder.policy.bos == "tokenizer")["input_ids"])
    else:
        ids = [] if encoder.begin is None else [encoder.begin]
    if not ids:
        raise NotPossible(f"'{name}' needs a text or a begin token to start from; give one with --bos.")
    if len(ids) > encoder.window:
        raise BadInput(
            f"'{text[:40]}...' is {len(ids)} tokens long, but '{name}' reads at most {encoder.window}; "
            "shorten it."
        )
    return ids


def _predict_next(model: Any, selector: PositionSelector, rows: list[np.ndarray]) -> np.ndarray:
    """Log-probabilities of the next token after each row; padding is on the right, where it is not seen."""
    import torch

    lengths = np.array([len(row) for row in rows])
    ids = np.zeros((len(rows), int(lengths.max())), dtype=np.int64)
    for place, row in enumerate(rows):
        ids[place, : len(row)] = row
    seen = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)
    device = model.device
    inputs = {
        "input_ids": torch.from_numpy(ids).to(device),
        "attention_mask": torch.from_numpy(seen).to(device),
        "use_cache": False,
    }
    last = torch.from_numpy(lengths - 1).to(device)
    with torch.inference_mode():
        logits = selector.logits_at(
            lambda: model(**inputs).logits, torch.arange(len(rows), device=device), last
        )
    return normalize_logits(logits)


def _score_word(
    row: dict[str, Any], frame: ClozeFrame, word: str, unknown: str | None
) -> tuple[list[str], float]:
    """The word's tokens in the scored text and their sum."""
    # As for `fill`, the space before a word counts as the word's.
    first = len(frame.before.rstrip())
    spans = list(zip(row["start"], row["end"], strict=True))
    inside = [i for i, (start, end) in enumerate(spans) if end > max(first, start)]
    if not inside or spans[inside[0]][0] < first:
        raise NotPossible(
            f"In '{frame.text}' the word '{word}' shares a token with the text before it; put a "
            "space between them."
        )
    values = [row["logprob"][i] for i in inside]
    if None in values:
        raise NotPossible(f"Nothing precedes the first token of '{word}'; give a begin token with --bos.")
    tokens = [row["tokens"][i] for i in inside]
    if unknown in tokens:
        raise BadInput(f"The model's vocabulary cannot spell '{word}'; leave it out.")
    return tokens, float(np.sum(values, dtype=np.float64))
