"""What is timed: BLiMP as it is, behind growing contexts, and many continuations of one context."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput
from felicity.core.files import data_folder
from felicity.data.catalogue import read_dataset, sample_items

SWEEP = range(100, 1000, 100)
ONE_CONTEXT = 500
GPT2 = "GPT-2 small's shape, random weights"


@dataclass(frozen=True)
class Work:
    """Texts to score, and the context of each where there is one."""

    name: str
    texts: list[str]
    contexts: list[str] | None = None

    def head(self, size: int) -> "Work":
        """The first so many of them."""
        return Work(self.name, self.texts[:size], self.contexts[:size] if self.contexts else None)


def blimp_parts(pairs: int, parts: int) -> list[Work]:
    """`pairs` of each of the 67 paradigms, in parts with some of each."""
    items = sample_items(_items(), pairs, seed=3)
    texts: list[list[str]] = [[] for _ in range(parts)]
    for suite in items.partition_by("suite"):
        for place, text in enumerate(suite["text"]):
            texts[place // 2 % parts].append(text)
    return [Work("blimp", part) for part in texts]


def blimp_whole(pairs: int) -> Work:
    """All of that in one call: the more there is, the more of it is shared."""
    return Work("blimp whole", sample_items(_items(), pairs, seed=3)["text"].to_list())


def sweep_parts(items: int, parts: int, count: Callable[[str], int]) -> list[Work]:
    """Pairs behind contexts of their own that grow from 100 to 900 tokens."""
    stream = _stream()
    rows: list[list[tuple[str, str]]] = [[] for _ in range(parts)]
    for number, pair in enumerate(_pairs(items)):
        grown = ""
        for size in SWEEP:
            while count(grown) < size:
                grown = f"{grown} {next(stream)}".strip()
            rows[number % parts] += [(grown, text) for text in pair]
    return [Work("sweep", [text for _, text in part], [context for context, _ in part]) for part in rows]


def study_parts(
    items: int, parts: int, count: Callable[[str], int], *, lengths: tuple[int, ...] = (0, *SWEEP)
) -> list[Work]:
    """The requests of a context study: items with all five kinds of contexts of their own, growing."""
    from felicity.core.sweep import KINDS
    from felicity.design.contexts.conditions import find_sides
    from felicity.design.contexts.drawing import draw_contexts
    from felicity.design.contexts.plan import ContextPlan, assign_groups
    from felicity.design.contexts.sentence_pools import build_pool, read_text_file
    from felicity.design.requests import put_in_context

    everything = _items()
    chosen = sample_items(everything, 1, seed=7)
    names = chosen["item"].unique(maintain_order=True).head(items).to_list()
    chosen = chosen.filter(chosen["item"].is_in(names))
    data = data_folder()
    text = read_text_file(data / "wikitext103" / "wiki.test.raw.gz") if data else []
    plan = ContextPlan(kinds=tuple(KINDS) if text else tuple(KINDS)[:4], lengths=lengths)
    pool = build_pool(everything, find_sides(everything).table)
    contexts = draw_contexts(chosen, pool, text, plan, lambda texts: [count(one) for one in texts]).table
    requests = put_in_context(chosen, contexts, assign_groups(chosen, plan))
    whole = requests.join(contexts.unique("context"), on="context", how="left", maintain_order="left")
    # Peers score behind a context or behind none, not both in one call.
    behind = whole.filter(whole["context_text"].is_not_null())
    shares = [behind.filter(behind["item"].is_in(names[part::parts])) for part in range(parts)]
    return [Work("study", part["text"].to_list(), part["context_text"].to_list()) for part in shares]


def one_context(continuations: int, count: Callable[[str], int]) -> Work:
    """One context of 500 tokens before many sentences."""
    stream = _stream()
    context = ""
    while count(context) < ONE_CONTEXT:
        context = f"{context} {next(stream)}".strip()
    texts = [text for pair in _pairs(continuations // 2) for text in pair]
    return Work("one context", texts, [context] * len(texts))


def _items() -> Any:
    """BLiMP where the published data is here, else the built-in suite, enough for a smoke run."""
    return read_dataset("blimp" if data_folder() else "starter").items


def _pairs(items: int) -> list[tuple[str, str]]:
    frame = sample_items(_items(), 2, seed=4)
    texts = frame["text"].to_list()
    found = [(texts[place], texts[place + 1]) for place in range(0, len(texts), 2)]
    return found[:items]


def _stream() -> Any:
    frame = sample_items(_items(), 40, seed=5)
    return cycle(frame.filter(frame["condition"] == "good")["text"].sample(fraction=1, shuffle=True, seed=6))


def build_gpt2(folder: Path, *, layers: int = 12, width: int = 768, vocabulary: bool = True) -> Path:
    """Random weights of GPT-2 small's shape with its vocabulary; time does not depend on the weights."""
    import torch
    from tokenizers import decoders, pre_tokenizers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    if (folder / "model.safetensors").exists():
        return folder
    tokenizer = _read_vocabulary() if vocabulary else _train_vocabulary()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    end = "<|endoftext|>"
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=end, eos_token=end).save_pretrained(folder)
    torch.manual_seed(0)
    GPT2LMHeadModel(
        GPT2Config(vocab_size=tokenizer.get_vocab_size(), n_layer=layers, n_embd=width, n_head=width // 64)
    ).save_pretrained(folder)
    return folder


def _read_vocabulary() -> Any:
    from tokenizers import Tokenizer, models

    data = data_folder()
    if data is None:
        raise BadInput("Set FELICITY_DATA to the folder of published data; GPT-2's vocabulary is read there.")
    known = json.loads(gzip.decompress((data / "tokenizers" / "gpt2-encoder.json.gz").read_bytes()))
    merges = gzip.decompress((data / "tokenizers" / "gpt2-vocab.bpe.gz").read_bytes()).decode().split("\n")
    pairs = [(left, right) for left, _, right in (line.partition(" ") for line in merges[1:] if line)]
    return Tokenizer(models.BPE(vocab=known, merges=pairs))


def _train_vocabulary() -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_items()["text"], trainer)
    return tokenizer
