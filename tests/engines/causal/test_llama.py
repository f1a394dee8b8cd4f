"""felicity's own forward pass of Llama beside that of transformers."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from felicity.core.errors import BadInput, NotPossible
from felicity.engines.causal.forward import TreeModel, score_trie
from felicity.engines.causal.llama import Llama, load_llama, read_llama_config
from felicity.engines.causal.self_check import SHAPE, check_tree
from felicity.engines.causal.trie import Shape
from felicity.engines.runtime import TokenScorer, has_onednn, measure_speedup
from felicity.engines.tokenizing import Encoded
from felicity.run import open_model
from tests.conftest import make_tiny_model

# Query heads, key heads, whether input and output embeddings are one.
SHAPES = [(4, 2, True), (4, 4, False), (6, 1, True)]
HALF_RUNS = pytest.mark.skipif(
    not measure_speedup("bfloat16", "cpu"), reason="bfloat16 products do not run here"
)
SENTENCES = ["The cats annoy Tim.", "The cats annoys Tim.", "No dog has ever barked here."]


def make_llama(folder: Path, *, heads: int = 4, groups: int = 2, tied: bool = True, **further: Any) -> Path:
    """A folder with a small random Llama and a byte-level tokenizer."""
    from transformers import LlamaConfig, LlamaForCausalLM

    make_tiny_model(folder, seed=1)
    vocabulary = json.loads((folder / "config.json").read_text())["vocab_size"]
    torch.manual_seed(3)
    settings = {
        "vocab_size": vocabulary,
        "hidden_size": 16 * heads,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": heads,
        "num_key_value_heads": groups,
        "max_position_embeddings": 256,
        "tie_word_embeddings": tied,
        "initializer_range": 0.2,
        "bos_token_id": 0,
        "eos_token_id": 0,
    }
    LlamaForCausalLM(LlamaConfig(**settings | further)).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_llama(tmp_path_factory.mktemp("llama") / "tiny-llama")


@pytest.fixture
def change_config(folder: Path, tmp_path: Path) -> Callable[..., Path]:
    """Copies the folder with other fields in its configuration."""

    def change(**fields: Any) -> Path:
        config = json.loads((folder / "config.json").read_text()) | fields
        (tmp_path / "config.json").write_text(json.dumps(config))
        (tmp_path / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes())
        return tmp_path

    return change


def load_own(folder: Path, dtype: str = "float32") -> Llama:
    config = read_llama_config(folder)
    assert config is not None
    return load_llama(folder, config, name="tiny", dtype=dtype)


def load_theirs(folder: Path, dtype: str = "float32") -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype)).eval()


def draw_sequences(vocabulary: int) -> Encoded:
    """Short sequences with common beginnings, and long ones that take several passes with a KV cache."""
    rng = np.random.default_rng(5)
    trunk = rng.integers(0, vocabulary, 150).tolist()
    short = [trunk[:4] + rng.integers(0, vocabulary, size).tolist() for size in (1, 3, 5, 9)]
    return Encoded.from_ids(
        [*short, *(trunk + one for one in short), rng.integers(0, vocabulary, 30).tolist()]
    )


def score(model: Any, encoded: Encoded, shape: Shape = SHAPE) -> np.ndarray:
    values = np.full(len(encoded.ids), np.nan)
    nothing = np.zeros(len(encoded), dtype=bool)
    for sequences, records in score_trie(TreeModel.wrap(model), encoded, nothing, shape, TokenScorer()):
        values[encoded.places(sequences, encoded.wanted)] = records["logprob"]
    return values[encoded.wanted]


@pytest.mark.parametrize(
    ("dtype", "onednn", "apart"),
    [("float32", False, 5e-5), ("float32", True, 5e-5), ("float64", False, 2e-6)],
)
@pytest.mark.parametrize(("heads", "groups", "tied"), SHAPES)
def test_numbers_are_those_of_transformers_up_to_rounding(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    heads: int,
    groups: int,
    tied: bool,
    dtype: str,
    onednn: bool,
    apart: float,
) -> None:
    place = make_llama(tmp_path / "model", heads=heads, groups=groups, tied=tied)
    theirs = load_theirs(place, dtype)
    monkeypatch.setattr("felicity.engines.runtime.products.prefer_onednn", lambda: onednn and has_onednn())
    own = load_own(place, dtype)
    encoded = draw_sequences(own.config.vocab_size)
    # The last takes several passes, each with more queries than one block of attention has.
    for shape in (SHAPE, Shape(), Shape(row=16, window=80, batch=96, chain=3)):
        np.testing.assert_allclose(
            score(own, encoded, shape), score(theirs, encoded, shape), rtol=0, atol=apart
        )


@HALF_RUNS
def test_half_precision_is_nearer_to_float32_than_transformers(tmp_path: Path) -> None:
    deep = make_llama(tmp_path / "deep", num_hidden_layers=16)
    # Weights that bfloat16 represents exactly, as most models are published: only the computation differs.
    weights = {name: part.bfloat16().float() for name, part in load_file(deep / "model.safetensors").items()}
    save_file(weights, deep / "model.safetensors", metadata={"format": "pt"})
    encoded = draw_sequences(load_own(deep).config.vocab_size)
    exact = score(load_theirs(deep, "float64"), encoded)
    own = score(load_own(deep, "bfloat16"), encoded) - exact
    theirs = score(load_theirs(deep, "bfloat16"), encoded) - exact
    # On 335 BLiMP pairs SmolLM2's median shift is 0.73 times that of transformers; this model is less deep.
    assert np.sqrt(np.mean(own**2)) < 0.95 * np.sqrt(np.mean(theirs**2))


@HALF_RUNS
def test_half_precision_computes_the_first_tokens_in_float32(folder: Path) -> None:
    half, exact = load_own(folder, "bfloat16"), load_own(folder)
    states: dict[str, list[torch.Tensor]] = {"half": [], "exact": []}
    for name, model in (("half", half), ("exact", exact)):
        model._layers[-1] = keep_states(model._layers[-1], states[name])
    # A begin token, two first words, and further words that use them.
    texts = Encoded.from_ids([[0, 5, 9, 4, 7], [0, 6, 9, 3, 8], [0, 5, 9, 4, 2]])
    expected = score(exact, texts)
    found = score(half, texts)
    assert 0 < np.abs(found - expected).max() < 0.2
    # In preorder: the begin token, then "5" with all below it, then "6" with all below it.
    rows = {"begin": 0, "5": 1, "6": 4}
    for row in rows.values():
        torch.testing.assert_close(
            states["half"][0][0, row], states["exact"][0][0, row], rtol=1e-5, atol=1e-5
        )
    assert not torch.allclose(states["half"][0][0, 2], states["exact"][0][0, 2], rtol=1e-5, atol=1e-5)


def keep_states(layer: Any, kept: list[torch.Tensor]) -> Any:
    """The layer, which also keeps the hidden states that it is given."""

    def call(hidden: Any, *further: Any, **options: Any) -> Any:
        kept.append(hidden.clone())
        return layer(hidden, *further, **options)

    return call


@HALF_RUNS
def test_half_precision_takes_the_logit_of_a_scored_token_in_float32(folder: Path) -> None:
    half = load_own(folder, "bfloat16")
    rng = np.random.default_rng(2)
    states = torch.from_numpy(rng.normal(0, 3, (5, 64)).astype(np.float32))
    logits = half.get_output_embeddings()(states.bfloat16())
    rows, targets = np.array([0, 1, 2, 3, 4]), np.array([7, 1, 0, 3, 9])
    rough = logits.float().log_softmax(dim=1)[rows, targets].detach().numpy()
    # The same by hand: the one logit is replaced before the softmax.
    weights = load_file(folder / "model.safetensors")["model.embed_tokens.weight"].double()
    replaced = logits.detach().double()
    replaced[rows, targets] = (states.double() * weights[targets]).sum(dim=1)
    expected = replaced.log_softmax(dim=1)[rows, targets].numpy()
    found = half.refine(rough, logits, states, rows, targets)
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)
    assert np.abs(found - rough).max() > 1e-3


def test_a_model_is_scored_without_transformers_once_it_was_checked(folder: Path, empty_cache: Path) -> None:
    first = open_model(str(folder), cache=False)
    scores = first.score(SENTENCES)["lp"].to_list()
    assert "without transformers" in first.info.notes["scheduler_check"]
    again = open_model(str(folder), cache=False)
    assert again.score(SENTENCES)["lp"].to_list() == scores
    assert isinstance(again.engine.check.tree.model, Llama)  # type: ignore[attr-defined]
    assert "model" not in vars(again.engine)


def test_blanks_are_filled_after_scoring(folder: Path, empty_cache: Path) -> None:
    lm = open_model(str(folder), cache=False)
    lm.score(SENTENCES)
    assert len(lm.fill("The cats ___.", k=3)) == 3


def test_a_forward_pass_that_gives_other_numbers_is_not_used(folder: Path, tmp_path: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"] = weights["model.norm.weight"] * 1.001
    save_file(weights, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_bytes((folder / "config.json").read_bytes())
    theirs = load_theirs(folder)
    tokenizer = open_model(str(folder), cache=False).engine.encoder.tokenizer  # type: ignore[attr-defined]
    for place, expected in ((tmp_path, type(theirs)), (folder, Llama)):
        found = check_tree(
            theirs, tokenizer, window=256, dtype="float32", load_own=lambda place=place: load_own(place)
        )
        assert found.tree is not None
        assert type(found.tree.model) is expected


@pytest.mark.parametrize(
    "fields",
    [
        {"attention_bias": True},
        {"mlp_bias": True},
        {"hidden_act": "gelu"},
        {"architectures": ["MistralForCausalLM"]},
        {"model_type": "mistral", "sliding_window": 8},
        {"num_attention_heads": 0, "head_dim": None},
        {"rms_norm_eps": "small"},
        {"rope_parameters": {"rope_theta": 1e4, "rope_type": "llama3", "factor": 8.0}},
        {"rope_scaling": {"type": "linear", "factor": 2.0}},
        {"quantization_config": {"bits": 4}},
        {"rms_norm_eps": None},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_other_models_are_left_to_transformers(
    change_config: Callable[..., Path], fields: dict[str, Any]
) -> None:
    assert read_llama_config(change_config()) is not None
    assert read_llama_config(change_config(**fields)) is None


def test_a_rotation_base_in_the_place_of_older_configurations_is_read(
    change_config: Callable[..., Path],
) -> None:
    config = read_llama_config(change_config(rope_parameters=None, rope_theta=5e5))
    assert config is not None
    assert config.rope_theta == 5e5


def test_weights_in_an_arrangement_that_only_transformers_knows_are_left_to_it(
    folder: Path, tmp_path: Path, empty_cache: Path
) -> None:
    place = tmp_path / "model"
    shutil.copytree(folder, place)
    weights = load_file(folder / "model.safetensors")
    # Tied, but stored under the name of the output instead of the input.
    weights["lm_head.weight"] = weights.pop("model.embed_tokens.weight")
    save_file(weights, place / "model.safetensors", metadata={"format": "pt"})
    expected, found = (open_model(str(one), cache=False) for one in (folder, place))
    sums = [model.score(SENTENCES)["lp"].to_numpy() for model in (found, expected)]
    np.testing.assert_allclose(*sums, rtol=0, atol=1e-4)
    assert "without transformers" not in found.info.notes["scheduler_check"]


def test_a_weight_that_is_not_a_number_is_refused(folder: Path, change_config: Callable[..., Path]) -> None:
    place = change_config()
    weights = load_file(folder / "model.safetensors")
    weights["model.layers.1.mlp.up_proj.weight"][0, 0] = float("nan")
    save_file(weights, place / "model.safetensors")
    with pytest.raises(NotPossible, match=r"not a number \(model.layers.1.mlp.up_proj.weight\)"):
        load_own(place)


def test_a_file_that_lacks_a_weight_or_is_cut_short_is_refused(
    folder: Path, change_config: Callable[..., Path]
) -> None:
    place = change_config()
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, place / "model.safetensors")
    with pytest.raises(BadInput, match="weights of 'tiny'.*up_proj"):
        load_own(place)
    (place / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-100])
    with pytest.raises(BadInput, match="model.safetensors is damaged"):
        load_own(place)
