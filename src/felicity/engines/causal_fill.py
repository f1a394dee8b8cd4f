"""Blanks filled by models that read from left to right: what comes next after what stands before the blank.

Such a model cannot see what stands after the blank. Punctuation there is left out; words there are refused,
since the numbers would not mean what the frame says.
"""

import unicodedata
from collections.abc import Sequence
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import Engine
from felicity.core.errors import BadInput, NotPossible
from felicity.core.schemas import PROMPTS
from felicity.engines.encoding import Encoder
from felicity.engines.frames import Frame, build_candidates, pair_candidates, parse_frame, rank_fillers
from felicity.engines.hiding import BATCH_TOKENS, LOGITS, normalize, plan_rows
from felicity.engines.picking import Picker


def fill_next(model: Any, encoder: Encoder, frames: Sequence[str], *, k: int, name: str) -> pl.DataFrame:
    """Rows of FILLERS: the likeliest tokens right after what stands before the blank."""
    parsed = [parse_left_frame(text, name=name) for text in frames]
    rows = [np.array(encode_prompt(encoder, frame.before.rstrip(), name=name)) for frame in parsed]
    tables: list[pl.DataFrame] = [pl.DataFrame()] * len(parsed)
    picker = Picker(model.base_model)
    lengths = np.array([len(row) for row in rows])
    most = max(1, LOGITS // model.config.get_text_config().vocab_size)
    for batch in plan_rows(lengths, budget=BATCH_TOKENS, most=most):
        for i, logprobs in zip(batch, _read_last(model, picker, [rows[i] for i in batch]), strict=True):
            tables[i] = rank_fillers(parsed[i].text, logprobs, encoder.tokenizer, k=k)
    picker.release()
    return pl.concat(tables)


def score_next(
    engine: Engine,
    frames: Sequence[str],
    candidates: Sequence[Sequence[str]],
    *,
    unknown: str | None,
    name: str,
) -> pl.DataFrame:
    """Rows of CANDIDATES: log p(candidate | what stands before the blank)."""
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
    found = [_read_word(rows[key], parsed[i], words[i], unknown) for i, key in enumerate(names)]
    return build_candidates(parsed, words, [tokens for tokens, _ in found], [value for _, value in found])


def parse_left_frame(text: str, *, name: str) -> Frame:
    """A frame whose blank is its last word.

    Raises NotPossible where words stand after the blank.
    """
    frame = parse_frame(text)
    if any(unicodedata.category(char)[0] not in "PSZC" for char in frame.after):
        raise NotPossible(
            f"'{name}' reads from left to right and cannot see '{frame.after.strip()}' after the blank of "
            f"'{text}'; end the frame with the blank, or use a masked model."
        )
    return frame


def encode_prompt(encoder: Encoder, text: str, *, name: str) -> list[int]:
    """The tokens of a beginning, with the begin token of the policy; it may be empty where there is one.

    Raises NotPossible where there is neither text nor begin token, BadInput where it fills the window.
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
        ids = [encoder.tokenizer.convert_tokens_to_ids(encoder.policy.bos)]
    if not ids:
        raise NotPossible(
            f"'{name}' has nothing to begin from: no text and no begin token; give one with --bos."
        )
    if len(ids) > encoder.window:
        raise BadInput(
            f"'{text[:40]}...' is {len(ids)} tokens long, but '{name}' reads at most {encoder.window}; "
            "shorten it."
        )
    return ids


def _read_last(model: Any, picker: Picker, rows: list[np.ndarray]) -> np.ndarray:
    """Log-probabilities of what comes after each row; padding stands on the right, unseen."""
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
        logits = picker.read(lambda: model(**inputs).logits, torch.arange(len(rows), device=device), last)
    return normalize(logits)


def _read_word(row: dict[str, Any], frame: Frame, word: str, unknown: str | None) -> tuple[list[str], float]:
    """The word's tokens in the scored text and their sum."""
    # As for `fill`, the space before a word is the word's.
    first = len(frame.before.rstrip())
    spans = list(zip(row["start"], row["end"], strict=True))
    inside = [i for i, (start, end) in enumerate(spans) if end > max(first, start)]
    if not inside or spans[inside[0]][0] < first:
        raise NotPossible(
            f"In '{frame.text}' the word '{word}' shares a token with what stands before the blank; put a "
            "space between them."
        )
    values = [row["logprob"][i] for i in inside]
    if None in values:
        raise NotPossible(f"The first token of '{word}' has nothing before it; give one with --bos.")
    tokens = [row["tokens"][i] for i in inside]
    if unknown in tokens:
        raise BadInput(f"The model's vocabulary cannot spell '{word}'; leave it out.")
    return tokens, float(np.sum(values, dtype=np.float64))
