"""Weights in memory of their own: equal to what safetensors reads, whatever becomes of the file."""

import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from felicity.core.errors import BadInput
from felicity.engines.sources.private_tensors import PAGE, TYPES, PrivateTensors, load_private_tensors

DTYPES = ("float32", "bfloat16", "float16", "float64", "int64", "uint8", "bool", "float8_e5m2")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    tensors = {
        f"{name}.{rows}": torch.randn(rows, 5).to(getattr(torch, name)) for name in DTYPES for rows in (0, 3)
    }
    save_file(tensors | {"scalar": torch.tensor(2.5)}, tmp_path / "a.safetensors", metadata={"format": "pt"})
    return tmp_path / "a.safetensors"


def test_tensors_are_those_that_safetensors_reads(path: Path) -> None:
    expected, found = load_file(path), load_private_tensors(path)
    assert found.keys() == expected.keys()
    for name, tensor in expected.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert (
            found[name]
            .contiguous()
            .view(-1)
            .view(torch.uint8)
            .equal(tensor.contiguous().view(-1).view(torch.uint8))
        )
    with PrivateTensors(path) as file:
        assert file.metadata() == {"format": "pt"}
        assert file.get_slice("float32.3").get_shape() == [3, 5]
        assert file.get_slice("float32.3").get_dtype() == "F32"
        assert file.get_slice("float32.3")[1:, 2].equal(expected["float32.3"][1:, 2])


def test_tensors_begin_as_far_into_a_page_as_in_the_file(path: Path) -> None:
    size = int.from_bytes(path.read_bytes()[:8], "little")
    header = json.loads(path.read_bytes()[8 : 8 + size])
    for name, tensor in load_private_tensors(path).items():
        if tensor.numel():
            assert tensor.data_ptr() % PAGE == (8 + size + header[name]["data_offsets"][0]) % PAGE


def test_nothing_that_happens_to_the_file_changes_what_was_read(path: Path) -> None:
    found = load_private_tensors(path)
    before = {name: tensor.clone() for name, tensor in found.items()}
    with path.open("r+b") as file:
        file.write(b"\xff" * path.stat().st_size)
    os.truncate(path, 0)
    assert all(found[name].equal(tensor) for name, tensor in before.items())


def test_a_file_cut_short_is_an_error_at_every_length(path: Path) -> None:
    content = path.read_bytes()
    for size in range(0, len(content), 97):
        path.write_bytes(content[:size])
        with pytest.raises(BadInput, match="is damaged"):
            load_private_tensors(path)


def test_all_types_of_safetensors_are_known() -> None:
    from safetensors.torch import _TYPES

    named = {name: str(dtype).removeprefix("torch.") for name, dtype in _TYPES.items() if dtype is not None}
    assert named == TYPES
