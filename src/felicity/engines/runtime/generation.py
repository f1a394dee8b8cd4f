"""Continue texts with transformers' own loop, in batches, each as if it were alone.

A sampled continuation has its own random stream, seeded by the seed, its prompt and its number. So it does
not depend on the prompts it shares a batch with.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import Sampling
from felicity.core.errors import BadInput
from felicity.core.ids import fingerprint
from felicity.core.schemas import CONTINUATIONS
from felicity.engines.runtime.masking import plan_rows

# Tokens of prompts and continuations per batch.
BATCH_TOKENS = 4096
ROWS = 64
# Heuristics that a model's files may ask for; here texts follow the model's probabilities alone.
PLAIN: dict[str, Any] = {
    "do_sample": False,
    "num_beams": 1,
    "temperature": 1.0,
    "top_p": 1.0,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "no_repeat_ngram_size": 0,
    "min_length": 0,
    "length_penalty": 1.0,
}
# Not heuristics, but part of the model: the tokens at the beginning and end of its texts.
MARKS = ("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id")


def generate_texts(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[str],
    rows: Sequence[Sequence[int]],
    *,
    sampling: Sampling,
    continues: bool,
) -> pl.DataFrame:
    """Rows of CONTINUATIONS; `rows` are the prompts' tokens.

    With `continues` the output follows the prompt; otherwise it answers the prompt (an encoder-decoder).
    """
    asked = [(i, sample) for i in range(len(prompts)) for sample in range(sampling.samples)]
    lengths = np.array([len(rows[i]) for i, _ in asked])
    found: list[tuple[Any, ...]] = [()] * len(asked)
    for batch in plan_rows(lengths + sampling.tokens, budget=BATCH_TOKENS, most=ROWS):
        part = [asked[place] for place in batch]
        streams = [stream_for(sampling.seed, prompts[i], sample) for i, sample in part]
        written = _write(model, tokenizer, [rows[i] for i, _ in part], streams, sampling, continues)
        for place, (i, sample), answer in zip(batch, part, written, strict=True):
            found[place] = (prompts[i], sample, *answer)
    return pl.DataFrame(found, schema=CONTINUATIONS, orient="row")


def stream_for(seed: int, prompt: str, sample: int) -> np.random.Generator:
    """The random stream of one continuation."""
    return np.random.default_rng(int(fingerprint([seed, prompt, sample]), 16))


def refuse_long_prompts(rows: Sequence[Sequence[int]], *, tokens: int, window: int | None, name: str) -> None:
    """Refuse prompts whose continuation would not fit into the model's window.

    Raises BadInput.
    """
    longest = max(map(len, rows), default=0)
    if window is not None and longest + tokens > window:
        raise BadInput(
            f"A prompt of {longest} tokens and {tokens} more exceed the window of '{name}' ({window}); "
            "shorten the prompt or ask for fewer tokens."
        )


def _write(
    model: Any,
    tokenizer: Any,
    rows: Sequence[Sequence[int]],
    streams: Sequence[np.random.Generator],
    sampling: Sampling,
    continues: bool,
) -> list[tuple[str, int, str]]:
    import torch
    from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

    width = max(map(len, rows))
    ends = _end_tokens(model, tokenizer)
    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else (ends or [0])[0]
    # Prompts are padded on the left, so that all continuations start at the same position.
    padded = np.full((len(rows), width), pad, dtype=np.int64)
    seen = np.zeros_like(padded)
    for place, row in enumerate(rows):
        part = slice(width - len(row), width) if continues else slice(0, len(row))
        padded[place, part], seen[place, part] = row, 1
    config = GenerationConfig(
        **PLAIN, max_new_tokens=sampling.tokens, pad_token_id=pad, eos_token_id=ends or None
    )
    drawers = [_Sampler(sampling, streams)] if sampling.temperature else []
    begin = width if continues else 1
    stopper = _Stopper(tokenizer, sampling.stop, begin, len(rows))
    with torch.inference_mode(), _without_heuristics(model):
        output = model.generate(
            torch.from_numpy(padded).to(model.device),
            attention_mask=torch.from_numpy(seen).to(model.device),
            generation_config=config,
            logits_processor=LogitsProcessorList(drawers),
            stopping_criteria=StoppingCriteriaList([stopper] if sampling.stop else []),
        )
    answers = []
    for place, ids in enumerate(output[:, begin:].tolist()):
        ended = stopper.at[place] if stopper.at[place] else len(ids)
        size = next((n for n, token in enumerate(ids[:ended]) if token in ends), ended)
        reason = "end" if size < ended else "stop" if stopper.at[place] else "limit"
        text = _decode(tokenizer, list(rows[place]) if continues else [], ids[:size])
        answers.append((cut_at_stop(text, sampling.stop), size, reason))
    return answers


@contextmanager
def _without_heuristics(model: Any) -> Iterator[None]:
    """Hide the model's generation settings: transformers uses them for whatever a call leaves open."""
    from transformers import GenerationConfig

    kept = model.generation_config
    model.generation_config = GenerationConfig(**{name: getattr(kept, name) for name in MARKS})
    try:
        yield
    finally:
        model.generation_config = kept


def _end_tokens(model: Any, tokenizer: Any) -> list[int]:
    ends = model.generation_config.eos_token_id
    if ends is None:
        ends = tokenizer.eos_token_id
    return [] if ends is None else [ends] if isinstance(ends, int) else list(ends)


def _decode(tokenizer: Any, before: list[int], ids: list[int]) -> str:
    """The text of `ids` as it follows `before`; some tokenizers drop a leading space."""
    start = tokenizer.decode(before, skip_special_tokens=True)
    whole = tokenizer.decode(before + ids, skip_special_tokens=True)
    if whole.startswith(start):
        return str(whole[len(start) :])
    return str(tokenizer.decode(ids, skip_special_tokens=True))


def cut_at_stop(text: str, stop: Sequence[str]) -> str:
    """The text before the first of the strings that end it.

    >>> cut_at_stop("on the mat. It", ["."])
    'on the mat'
    """
    places = [place for place in (text.find(string) for string in stop) if place >= 0]
    return text[: min(places)] if places else text


class _Stopper:
    """Tells transformers which texts contain a stop string, and records after how many tokens."""

    def __init__(self, tokenizer: Any, stop: Sequence[str], begin: int, size: int) -> None:
        self._tokenizer = tokenizer
        self._stop = stop
        self._begin = begin
        self.at = [0] * size

    def __call__(self, input_ids: Any, _scores: Any, **_options: Any) -> Any:
        import torch

        for place, ids in enumerate(input_ids[:, self._begin :].tolist()):
            if not self.at[place]:
                text = self._tokenizer.decode(ids, skip_special_tokens=True)
                if any(string in text for string in self._stop):
                    self.at[place] = len(ids)
        return torch.tensor([bool(at) for at in self.at], device=input_ids.device)


class _Sampler:
    """Samples the next token of each text from its own stream and leaves transformers no other choice."""

    def __init__(self, sampling: Sampling, streams: Sequence[np.random.Generator]) -> None:
        self._sampling = sampling
        self._streams = streams

    def __call__(self, _input_ids: Any, scores: Any) -> Any:
        import torch

        probabilities = (scores.double() / self._sampling.temperature).softmax(dim=1).cpu().numpy()
        chosen = [
            draw(row, self._sampling.top_p, stream)
            for row, stream in zip(probabilities, self._streams, strict=True)
        ]
        only = torch.full_like(scores, -torch.inf)
        only[torch.arange(len(chosen)), torch.tensor(chosen)] = 0.0
        return only


def draw(probabilities: np.ndarray, top_p: float, stream: np.random.Generator) -> int:
    """Sample one entry from the smallest set of most probable ones that holds `top_p` of the probability.

    >>> draw(np.array([0.1, 0.6, 0.3]), 0.5, np.random.default_rng(0))
    1
    """
    order = np.argsort(-probabilities, kind="stable")
    running = np.cumsum(probabilities[order])
    kept = int(np.searchsorted(running, top_p * running[-1])) + 1
    place = int(np.searchsorted(running[:kept], stream.random() * running[:kept][-1], side="right"))
    return int(order[min(place, kept - 1)])
