"""Pools that contexts can be drawn from: made-up ones for properties, published ones for the real thing."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polars as pl
import pytest

from felicity.core.schemas import ITEMS
from felicity.data.catalogue import read_dataset
from felicity.design.contexts.conditions import find_sides
from felicity.design.contexts.growth import Count
from felicity.design.contexts.sentence_pools import build_pool

WORDS = ("cat", "dog", "horse", "cow", "hen", "goose", "sheep", "goat", "pig", "duck", "mule")


@dataclass(frozen=True)
class Ground:
    """What contexts are drawn for and from."""

    items: pl.DataFrame
    pool: pl.DataFrame
    unrelated: tuple[str, ...]


def make_ground(*, suites: int = 3, size: int = 11, lines: int = 40) -> Ground:
    """Suites of pairs, their sentences of several lengths, with and without a full stop.

    The first two items of a suite share their good sentence, with those of s0 and s1 the same one.
    """
    rows = []
    for suite in range(suites):
        shared = f"In field {max(suite, 1)} the shared cat sleeps"
        for number in range(size):
            who = WORDS[number % len(WORDS)]
            own = f"In {suite}/{number} a {who} does {'very ' * (number % 3)}well."
            good = {0: shared, 1: f"{shared}."}.get(number, own)
            about = (f"s{suite}/{number}", f"s{suite}", f"s{suite}")
            rows += [(*about, "good", good), (*about, "bad", f"In {suite}/{number} a {who} do well")]
    items = pl.DataFrame(rows, schema=ITEMS, orient="row")
    unrelated = tuple(f"Line {number} is about {'the ' * (number % 4)}sea ." for number in range(lines))
    return Ground(items, build_pool(items, find_sides(items).table), unrelated)


def count_words(texts: list[str]) -> list[int]:
    """Tokens as words between spaces."""
    return [len(text.split()) for text in texts]


@pytest.fixture(scope="session")
def gpt2_count(published: Callable[[str], Path]) -> Count:
    """The published GPT-2 tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    folder = published("tokenizers")
    vocabulary = json.loads(gzip.decompress((folder / "gpt2-encoder.json.gz").read_bytes()))
    lines = gzip.decompress((folder / "gpt2-vocab.bpe.gz").read_bytes()).decode("utf-8").split("\n")
    pairs = [line.split() for line in lines[1:] if line]
    tokenizer = Tokenizer(models.BPE(vocabulary, [(left, right) for left, right in pairs]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return lambda texts: [len(one) for one in tokenizer.encode_batch_fast(texts, add_special_tokens=False)]


@pytest.fixture(scope="session")
def published_ground(published: Callable[[str], Path]) -> Callable[[str, str | None], Ground]:
    """The whole of a published dataset, and WikiText."""
    from felicity.design.contexts.sentence_pools import read_text_file

    unrelated = tuple(read_text_file(published("wikitext103/wiki.test.raw.gz")))

    def read(name: str, rule: str | None) -> Ground:
        whole = read_dataset(name, rule=rule)
        sides = find_sides(whole.items, contrasts=whole.contrasts)
        items = whole.items.filter(pl.col("suite").is_in(sides.suites))
        return Ground(items, build_pool(items, sides.table), unrelated)

    return read
