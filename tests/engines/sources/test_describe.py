"""What is told of a model without loading it."""

import json
import shutil
from pathlib import Path

import pytest

from felicity.core.errors import BadInput
from felicity.engines.sources.describe import describe_model
from tests.conftest import TINY_WINDOW


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


def count_by_loading(folder: Path) -> int:
    from transformers import AutoModelForCausalLM

    return int(AutoModelForCausalLM.from_pretrained(folder).num_parameters())


def test_a_small_gpt2_is_described_right(folder: Path) -> None:
    told = describe_model(folder)
    assert (told.architecture, told.model_type) == ("GPT2LMHeadModel", "gpt2")
    assert told.parameters == count_by_loading(folder)
    assert told.window == TINY_WINDOW
    assert told.vocabulary == json.loads((folder / "config.json").read_text())["vocab_size"]
    assert told.dtype == "F32"
    assert told.size == (folder / "model.safetensors").stat().st_size


def test_masks_kept_in_older_files_are_no_parameters(folder: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    expected = count_by_loading(folder)
    tensors = load_file(folder / "model.safetensors")
    tensors["transformer.h.0.attn.bias"] = torch.ones(1, 1, TINY_WINDOW, TINY_WINDOW)
    tensors["transformer.h.0.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    assert describe_model(folder).parameters == expected


@pytest.mark.parametrize("zipped", [True, False])
def test_bin_files_count_tied_weights_once(folder: Path, zipped: bool) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder)
    state = model.state_dict()
    assert state["lm_head.weight"].data_ptr() == state["transformer.wte.weight"].data_ptr()
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin", _use_new_zipfile_serialization=zipped)
    told = describe_model(folder)
    assert told.parameters == model.num_parameters()
    assert told.dtype == "F32"


def test_half_precision_is_told(folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    AutoModelForCausalLM.from_pretrained(folder).to(torch.bfloat16).save_pretrained(folder)
    assert describe_model(folder).dtype == "BF16"


def test_a_damaged_bin_file_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"no weights")
    with pytest.raises(BadInput, match=r"pytorch_model\.bin is damaged"):
        describe_model(folder)


@pytest.mark.parametrize(
    ("settings", "window"),
    [
        ({"max_position_embeddings": 2048}, 2048),
        ({"n_positions": 1024, "n_ctx": 512}, 1024),
        ({"max_position_embeddings": -1}, None),
        ({"text_config": {"max_position_embeddings": 77}}, 77),
        ({}, None),
    ],
)
def test_the_window_is_found_under_its_many_names(
    folder: Path, settings: dict[str, object], window: int | None
) -> None:
    (folder / "config.json").write_text(json.dumps(settings | {"model_type": "any"}))
    assert describe_model(folder).window == window


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("n_layer", 10_000_000, "'n_layer' is 10000000, more than any model has"),
        ("n_layer", 500, "'n_layer' is 500, but the weight files have 28 tensors"),
        ("n_layer", -1, "'n_layer' is -1"),
        ("num_labels", 1_000_000_000, "'num_labels' is 1000000000, more than any model has"),
        ("architectures", 5, "'architectures' is not a list of class names"),
    ],
)
def test_a_configuration_that_the_files_cannot_fill_is_refused(
    folder: Path, field: str, value: object, said: str
) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(BadInput, match=said):
        describe_model(folder)


@pytest.mark.parametrize("content", [[1, 2], 5, {"a": "b"}])
def test_a_bin_file_of_no_tensors_is_refused(folder: Path, content: object) -> None:
    import torch

    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")
    with pytest.raises(BadInput, match="other things than named tensors"):
        describe_model(folder)
