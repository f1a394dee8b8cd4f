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
from felicity.data.catalogue import read_items
from felicity.data.sample import sample_items

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
    return read_items("blimp" if data_folder() else "starter")


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
