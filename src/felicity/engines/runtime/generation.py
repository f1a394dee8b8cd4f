"""Continue texts in batches, each as if it were alone.

A sampled continuation has its own random stream, seeded by the seed, its prompt and its number. So it does
not depend on the prompts it shares a batch with. Beam search, encoder-decoders and models without a plain
cache of keys and values are continued with transformers' own loop, others with that of `decoding`.
"""

from collections.abc import Iterator, Sequence, Sized
from contextlib import contextmanager
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import Sampling
from felicity.core.errors import BadInput
from felicity.core.ids import fingerprint
from felicity.core.schemas import CONTINUATIONS
from felicity.engines.runtime.decoding import can_drop_rows, continue_rows
from felicity.engines.runtime.masking import plan_rows
from felicity.engines.runtime.padding import find_switching, restore_attention

# Tokens of prompts and continuations per batch.
BATCH_TOKENS = 8192
ROWS = 128
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
    alone: bool = False,
) -> pl.DataFrame:
    """Rows of CONTINUATIONS; `rows` are the prompts' tokens.

    With `continues` the output follows the prompt; otherwise it answers the prompt (an encoder-decoder).
    alone: one prompt at a time, for models whose numbers depend on the batch.
    """
    asked = [(i, sample) for i in range(len(prompts)) for sample in range(sampling.samples)]
    lengths = np.array([len(rows[i]) for i, _ in asked])
    continuations: list[tuple[Any, ...]] = [()] * len(asked)
    drops = continues and sampling.beams == 1 and can_drop_rows(model)
    budget = BATCH_TOKENS // sampling.beams
    switching = find_switching(model)
    for batch in plan_rows(lengths + sampling.tokens, budget=budget, most=1 if alone else ROWS):
        restore_attention(switching)
        part = [asked[place] for place in batch]
        streams = [stream_for(sampling.seed, prompts[i], sample) for i, sample in part]
        texts = [rows[i] for i, _ in part]
        if drops:
            written = _write_dropping(model, tokenizer, texts, streams, sampling)
        else:
            written = _write(model, tokenizer, texts, streams, sampling, continues)
        for place, (i, sample), answer in zip(batch, part, written, strict=True):
            continuations[place] = (prompts[i], sample, *answer)
    return pl.DataFrame(continuations, schema=CONTINUATIONS, orient="row")


def stream_for(seed: int, prompt: str, sample: int) -> np.random.Generator:
    """The random stream of one continuation."""
    return np.random.default_rng(int(fingerprint([seed, prompt, sample]), 16))


def refuse_long_prompts(
    rows: Sequence[Sequence[int]], *, limits: Sequence[int], window: int | None, name: str
) -> None:
    """Refuse prompts whose continuation would not fit into the model's window.

    limits: the most new tokens of each row.

    Raises BadInput.
    """
    longest, tokens = max(zip(map(len, rows), limits, strict=True), key=sum, default=(0, 0))
    if window is not None and longest + tokens > window:
        raise BadInput(
            f"A prompt of {longest} tokens and {tokens} more exceed the window of '{name}' ({window}); "
            "shorten the prompt or ask for fewer tokens."
        )


def find_limits(rows: Sequence[Sized], sampling: Sampling, *, continues: bool) -> list[int]:
    """The most new tokens of each row.

    Raises BadInput if a prompt alone has as many tokens as prompt and continuation may have.
    """
    if sampling.whole is None or not continues:
        return [sampling.tokens] * len(rows)
    longest = max(map(len, rows), default=0)
    if longest >= sampling.whole:
        raise BadInput(
            f"A prompt has {longest} tokens, but prompt and continuation may have {sampling.whole} together; "
            "allow more."
        )
    return [min(sampling.tokens, sampling.whole - len(row)) for row in rows]


def _write_dropping(
    model: Any,
    tokenizer: Any,
    rows: Sequence[Sequence[int]],
    streams: Sequence[np.random.Generator],
    sampling: Sampling,
) -> list[tuple[str, int, str]]:
    ends = set(_end_tokens(model, tokenizer))
    stopped = [False] * len(rows)

    def choose(left: list[int], logits: Any) -> list[int]:
        if not sampling.temperature:
            return [int(token) for token in logits.argmax(dim=1).tolist()]
        probabilities = (logits.double() / sampling.temperature).softmax(dim=1).cpu().numpy()
        return [
            draw(row, sampling.top_p, streams[place]) for place, row in zip(left, probabilities, strict=True)
        ]

    def has_ended(place: int, ids: list[int]) -> bool:
        if ids[-1] in ends:
            return True
        if sampling.stop:
            text = tokenizer.decode(ids, skip_special_tokens=True)
            stopped[place] = any(string in text for string in sampling.stop)
        return stopped[place]

    limits = find_limits(rows, sampling, continues=True)
    answers = []
    written = continue_rows(model, rows, limits, choose=choose, has_ended=has_ended)
    for place, ids in enumerate(written):
        ended = bool(ids) and ids[-1] in ends
        reason = "end" if ended else "stop" if stopped[place] else "limit"
        kept = ids[:-1] if ended else ids
        text = _decode(tokenizer, list(rows[place]), kept)
        answers.append((cut_at_stop(text, sampling.stop), len(kept), reason))
    return answers


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
    limits = find_limits(rows, sampling, continues=continues)
    plain = PLAIN | {"num_beams": sampling.beams}
    config = GenerationConfig(
        **plain, max_new_tokens=max(limits), pad_token_id=pad, eos_token_id=ends or None
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
            stopping_criteria=StoppingCriteriaList(
                [stopper] if sampling.stop and sampling.beams == 1 else []
            ),
        )
    answers = []
    for place, whole in enumerate(output[:, begin:].tolist()):
        ids = whole[: limits[place]]
        # Beams go on to the limit: which of them is best is known only then.
        ended = stopper.find(ids) if sampling.beams > 1 else min(stopper.at[place], len(ids))
        ended = ended or len(ids)
        size = next((n for n, token in enumerate(ids[:ended]) if token in ends), ended)
        text = _decode(tokenizer, list(rows[place]) if continues else [], ids[:size])
        cut = cut_at_stop(text, sampling.stop)
        reason = "end" if size < ended else "stop" if cut != text else "limit"
        answers.append((cut, size, reason))
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

    def find(self, ids: Sequence[int]) -> int:
        """After how many tokens a stop string is complete; 0 if there is none."""
        for size in range(1, len(ids) + 1) if self._stop else ():
            text = self._tokenizer.decode(list(ids[:size]), skip_special_tokens=True)
            if any(string in text for string in self._stop):
                return size
        return 0

    def __call__(self, input_ids: Any, _scores: Any, **_options: Any) -> Any:
        import torch

        for index, ids in enumerate(input_ids[:, self._begin :].tolist()):
            if not self.at[index]:
                text = self._tokenizer.decode(ids, skip_special_tokens=True)
                if any(string in text for string in self._stop):
                    self.at[index] = len(ids)
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
