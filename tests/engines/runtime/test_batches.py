"""Padded batches under a budget, and chunks that keep alike prompts together."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicity.core.schemas import PROMPTS
from felicity.engines.runtime import batches as chunks
from felicity.engines.runtime.batches import plan_batches


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(1, 100))
def test_every_sequence_is_in_one_batch_and_no_batch_exceeds_the_budget(
    lengths: list[int], budget: int
) -> None:
    sizes = np.array(lengths)
    batches = plan_batches(sizes, budget=budget)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(sizes)))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * sizes[batch].max() <= budget


def test_chunks_hold_all_prompts_once_and_alike_ones_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "PROMPTS_AT_ONCE", 3)
    texts = ["b b", "a a", "b c", "a c", "c"]
    columns = {"request": list("vwxyz"), "context_text": [None, "k", None, "k", ""], "text": texts}
    cut = list(chunks.split_chunks(pl.DataFrame(columns, schema=PROMPTS), join=" "))
    assert [chunk["request"].to_list() for chunk in cut] == [["v", "x", "z"], ["w", "y"]]


def test_a_chunk_is_bounded_by_characters_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHARACTERS_AT_ONCE", 10)
    texts = ["aaaa", "bbbb", "cccc", "d" * 30]
    columns = {"request": list("1234"), "context_text": [None] * 4, "text": texts}
    cut = list(chunks.split_chunks(pl.DataFrame(columns, schema=PROMPTS), join=" "))
    assert [chunk["request"].to_list() for chunk in cut] == [["1", "2"], ["3"], ["4"]]
