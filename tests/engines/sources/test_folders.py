"""Model folders: what is missing or damaged is named."""

import json
import os
import shutil
from pathlib import Path

import pytest

from felicity.core.errors import BadInput
from felicity.engines.sources.folders import check_folder, tokenizer_files, weight_files
from felicity.engines.sources.resolve import resolve_source


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path) -> Path:
    """A copy of a whole model folder, to be damaged."""
    return Path(shutil.copytree(tiny_model, tmp_path / "My Model"))


def shard(folder: Path) -> Path:
    """Split the weights in many files; the index."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder, max_shard_size="40KB")
    return folder / "model.safetensors.index.json"


def test_a_whole_folder_is_taken_with_a_name_fit_for_files(folder: Path) -> None:
    source = resolve_source(str(folder))
    assert (source.name, source.folder, source.origin) == ("my-model", folder, "folder")


def test_shards_are_found_through_their_index(folder: Path) -> None:
    index = shard(folder)
    check_folder(folder)
    files = weight_files(folder)
    assert files[0] == index
    assert len(files) > 2
    assert {file.suffix for file in files[1:]} == {".safetensors"}


def test_safetensors_are_taken_before_bin_as_transformers_does(folder: Path) -> None:
    (folder / "pytorch_model.bin").write_bytes(b"")
    assert [file.name for file in weight_files(folder)] == ["model.safetensors"]


def test_a_folder_without_configuration_is_refused(folder: Path) -> None:
    (folder / "config.json").unlink()
    with pytest.raises(BadInput, match=r"My Model is not a model folder: it has no config\.json"):
        resolve_source(str(folder))


def test_an_adapter_is_told_from_a_model(folder: Path) -> None:
    (folder / "config.json").rename(folder / "adapter_config.json")
    with pytest.raises(BadInput, match="is an adapter, not a model"):
        resolve_source(str(folder))


@pytest.mark.parametrize("text", ["{", "[]", "\udcff"])
def test_a_configuration_that_is_not_json_is_refused(folder: Path, text: str) -> None:
    (folder / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadInput, match=r"config\.json"):
        resolve_source(str(folder))


def test_a_folder_without_weights_is_refused(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    with pytest.raises(BadInput, match="has no weights"):
        resolve_source(str(folder))


def test_a_folder_without_tokenizer_is_refused(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    with pytest.raises(BadInput, match="has no tokenizer"):
        resolve_source(str(folder))


def test_a_byte_tokenizer_needs_no_vocabulary(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "ByT5Tokenizer"}))
    assert [file.name for file in tokenizer_files(folder)] == ["tokenizer_config.json"]


@pytest.mark.parametrize("keep", [0, 4, 200, -1])
def test_truncated_weights_are_refused(folder: Path, keep: int) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(BadInput, match=r"model\.safetensors is damaged or not a safetensors file"):
        resolve_source(str(folder))


def test_a_missing_shard_is_named(folder: Path) -> None:
    shard(folder)
    lost = weight_files(folder)[2]
    lost.unlink()
    with pytest.raises(BadInput, match=f"lacks {lost.name}"):
        resolve_source(str(folder))


def test_an_index_without_shards_is_refused(folder: Path) -> None:
    shard(folder).write_text("{}")
    with pytest.raises(BadInput, match="lists no weights"):
        resolve_source(str(folder))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_folder_that_may_not_be_read_is_said(folder: Path) -> None:
    folder.chmod(0)
    try:
        with pytest.raises(BadInput, match="permission denied"):
            resolve_source(str(folder))
    finally:
        folder.chmod(0o700)
