"""Every architecture gives its plain numbers; which of them take the fast path is found out on loading."""

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from felicity.engines.causal.forward import TreeModel, find_attention_windows, score_trie
from felicity.engines.causal.self_check import check_tree, recall_check, score_in_batches
from felicity.engines.causal.trie import Shape
from felicity.engines.runtime.token_scores import TokenScorer
from felicity.engines.tokenizing.encoding import Encoded
from tests.engines.random_models import (
    ARCHITECTURES,
    GROUPED,
    LOCAL,
    LONG_ROTATION,
    VOCABULARY,
    WINDOW,
    build_model,
    draw_sequences,
    encode,
)

PLAIN = ("GPT-Neo", "Phi-3", "Bloom", "Mamba")
TOLERANCE = 1e-4  # nats a token
SHAPES = (Shape(row=32, window=48, batch=100, chain=3), Shape(row=16, window=24, batch=48, chain=2), Shape())


class Letters:
    """Stands in for a tokenizer: one token a letter."""

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[int]]:
        return {"input_ids": [1 + ord(letter) % (VOCABULARY - 1) for letter in text]}


def score_tree(model: TreeModel, encoded: Encoded, shape: Shape) -> np.ndarray:
    found = np.full(len(encoded.ids), np.nan, dtype=np.float32)
    seen: list[int] = []
    for sequences, values in score_trie(
        model, encoded, np.zeros(len(encoded), dtype=bool), shape, TokenScorer()
    ):
        found[encoded.places(sequences, encoded.wanted)] = values["logprob"]
        seen += sequences.tolist()
    assert sorted(seen) == list(range(len(encoded)))
    return found


@pytest.fixture(scope="module")
def models() -> dict[str, Any]:
    return {name: build_model(name) for name in ARCHITECTURES}


@pytest.mark.parametrize("architecture", [name for name in ARCHITECTURES if name not in PLAIN])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"rows of {shape.row}")
def test_trie_and_plain_numbers_are_equal(models: dict[str, Any], architecture: str, shape: Shape) -> None:
    model = models[architecture]
    encoded = encode(draw_sequences())
    plain = score_in_batches(model, encoded)
    tree = score_tree(TreeModel.wrap(model), encoded, shape)
    assert np.isfinite(tree[encoded.wanted]).all()
    np.testing.assert_allclose(tree[encoded.wanted], plain[encoded.wanted], rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_plain_batches_give_what_each_sequence_gives_alone(models: dict[str, Any], architecture: str) -> None:
    model = models[architecture]
    sequences = draw_sequences()[2:40:3]
    together = score_in_batches(model, encode(sequences))
    alone = np.concatenate([score_in_batches(model, encode([tokens])) for tokens in sequences])
    np.testing.assert_allclose(together, alone, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_check_on_loading_finds_out_who_can_be_read_as_a_trie(
    models: dict[str, Any], architecture: str
) -> None:
    check = check_tree(models[architecture], Letters(), window=WINDOW, dtype="float32")
    assert check.scheduler == ("plain" if architecture in PLAIN else "trie"), check.note


def test_the_docs_name_the_same_models(models: dict[str, Any]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "explanation" / "engine.md").read_text(encoding="utf-8")
    for name, model in models.items():
        check = check_tree(model, Letters(), window=WINDOW, dtype="float32")
        assert f"| {name} | {check.scheduler} |" in page


def test_a_window_left_out_of_the_mask_is_noticed(models: dict[str, Any]) -> None:
    blind = TreeModel(models["Mistral"], {"all": None})
    encoded = encode(draw_sequences())
    difference = score_tree(blind, encoded, SHAPES[0]) - score_in_batches(models["Mistral"], encoded)
    assert np.nanmax(np.abs(difference)) > 100 * TOLERANCE


def test_continuations_behind_a_context_longer_than_a_local_window_have_plain_numbers(
    models: dict[str, Any],
) -> None:
    """GPT-Neo's local layers count places in a row; the check's sentences are too short to show that."""
    import torch

    model = models["GPT-Neo"]
    rng = np.random.default_rng(2)
    context = rng.integers(1, VOCABULARY, LOCAL + 30).tolist()
    sequences = [context + rng.integers(1, VOCABULARY, 6).tolist() for _ in range(20)]
    encoded = encode(sequences)
    with torch.inference_mode():
        logits = model(torch.tensor(sequences)).logits.log_softmax(dim=-1)
    targets = torch.tensor(sequences)[:, 1:, None]
    wanted = logits[:, :-1].gather(2, targets)[..., 0].flatten().numpy()

    blind = score_tree(TreeModel(model, {"all": None}), encoded, Shape())
    assert np.abs(blind[encoded.wanted] - wanted).max() > 100 * TOLERANCE
    check = check_tree(model, Letters(), window=2 * LOCAL, dtype="float32")
    assert check.tree is None
    assert "position-dependent mask" in check.note
    found = score_in_batches(model, encoded)
    np.testing.assert_allclose(found[encoded.wanted], wanted, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [
        ("GPTNeo", {}, "attention_layers"),
        ("Llama4Text", {"num_hidden_layers": 4}, "chunked_attention"),
        ("Llama4Text", {"layer_types": ["full_attention"] * 48}, "attention_chunk_size"),
        ("RecurrentGemma", {}, "attention_window_size"),
        ("Doge", {}, "keep_window_size"),
        ("DeepseekV32", {}, "indexed_attention"),
        ("BigBird", {}, "block_size"),
        ("Phi3", {"rope_parameters": LONG_ROTATION, **GROUPED}, "longrope"),
        ("Llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "dynamic"),
    ],
)
def test_a_look_back_that_the_check_cannot_reach_is_refused_by_its_name(
    name: str, options: dict[str, Any], reason: str
) -> None:
    import transformers

    with pytest.raises(ValueError, match=reason):
        find_attention_windows(getattr(transformers, f"{name}Config")(**options))


sequences = st.lists(st.integers(0, 5), min_size=1, max_size=30)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(sequences, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_scores_do_not_depend_on_what_else_is_scored(
    models: dict[str, Any], drawn: list[list[int]], random: Any
) -> None:
    """Shuffled, doubled and with others beside them, sequences keep their scores within 1e-4 nats."""
    model = TreeModel.wrap(models["GPT-2"])
    once = score_in_batches(models["GPT-2"], encode(drawn))
    order = random.choices(range(len(drawn)), k=2 * len(drawn))
    mixed = [drawn[place] for place in order] + draw_sequences()[:9]
    for shape in SHAPES[1:]:
        encoded = encode(mixed)
        found = score_tree(model, encoded, shape)
        bounds = encode(drawn).bounds
        for row, place in enumerate(order):
            ours = found[encoded.bounds[row] : encoded.bounds[row + 1]]
            theirs = once[bounds[place] : bounds[place + 1]]
            assert abs(np.nansum(ours) - np.nansum(theirs)) < TOLERANCE
            np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)


def test_what_is_finished_is_not_read_and_the_rest_has_the_very_same_numbers(models: dict[str, Any]) -> None:
    model = TreeModel.wrap(models["GPT-2"])
    encoded = encode(draw_sequences())
    whole: dict[int, list[float]] = {}
    parts = list(score_trie(model, encoded, np.zeros(len(encoded), dtype=bool), SHAPES[0], TokenScorer()))
    for sequences, values in parts:
        sizes = np.cumsum(encoded.count(encoded.wanted)[sequences])[:-1]
        whole |= zip(sequences.tolist(), map(list, np.split(values, sizes)), strict=True)
    for broken_off in (1, 3, len(parts) - 1):
        finished = np.zeros(len(encoded), dtype=bool)
        for sequences, _ in parts[:broken_off]:
            finished[sequences] = True
        again = list(score_trie(model, encoded, finished, SHAPES[0], TokenScorer()))
        assert len(again) < len(parts)
        for sequences, values in again:
            sizes = np.cumsum(encoded.count(encoded.wanted)[sequences])[:-1]
            for sequence, found in zip(sequences.tolist(), np.split(values, sizes), strict=True):
                assert list(found) == whole[sequence]
                finished[sequence] = True
        assert finished.all()


class TestMemory:
    """What a check said is believed for the same key, and for no other."""

    KEY: ClassVar[dict[str, Any]] = {"weights": "a", "dtype": "float32", "versions": {"torch": "1"}}

    def test_a_checked_model_is_read_the_same_way_without_another_check(
        self, models: dict[str, Any], empty_cache: Path
    ) -> None:
        for name in ("GPT-2", "Llama"):
            key = self.KEY | {"weights": name}
            first = check_tree(models[name], Letters(), window=WINDOW, dtype="float32", key=key)
            again = recall_check(lambda own, name=name: models[name], key)
            assert again is not None
            assert (again.scheduler, again.note) == (first.scheduler, first.note) == ("trie", first.note)
            encoded = encode(draw_sequences())
            shape = SHAPES[0]
            assert again.tree is not None
            assert first.tree is not None
            np.testing.assert_array_equal(
                score_tree(again.tree, encoded, shape), score_tree(first.tree, encoded, shape)
            )

    @pytest.mark.parametrize(
        "change", [{"weights": "b"}, {"dtype": "bfloat16"}, {"versions": {"torch": "2"}}], ids=str
    )
    def test_other_weights_dtype_or_versions_are_checked_anew(
        self, models: dict[str, Any], empty_cache: Path, change: dict[str, Any]
    ) -> None:
        check_tree(models["Llama"], Letters(), window=WINDOW, dtype="float32", key=self.KEY)
        assert recall_check(lambda own: models["Llama"], self.KEY) is not None
        assert recall_check(lambda own: models["Llama"], self.KEY | change) is None

    def test_a_damaged_memory_is_no_check(self, models: dict[str, Any], empty_cache: Path) -> None:
        check_tree(models["Llama"], Letters(), window=WINDOW, dtype="float32", key=self.KEY)
        (file,) = (empty_cache / "checks").iterdir()
        file.write_bytes(file.read_bytes()[:-5])
        assert recall_check(lambda own: models["Llama"], self.KEY) is None

    def test_an_error_is_not_remembered(self, models: dict[str, Any], empty_cache: Path) -> None:
        check = check_tree(models["GPT-Neo"], Letters(), window=WINDOW, dtype="float32", key=self.KEY)
        assert check.scheduler == "plain"
        assert recall_check(lambda own: models["GPT-Neo"], self.KEY) is None
