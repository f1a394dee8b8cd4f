"""Fingerprints follow the content of the files and nothing else."""

import json
import os
import shutil
from pathlib import Path

import pytest

from felicity.core.ids import hash_file
from felicity.engines.sources import folders as digests
from felicity.engines.sources.folders import cached_digest, fingerprint_tokenizer, fingerprint_weights
from tests.conftest import make_tiny_model


@pytest.fixture
def folder(tiny_model: Path, tmp_path: Path, empty_cache: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "model"))


@pytest.fixture
def old_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every file for settled, so that digests are remembered at once."""
    monkeypatch.setattr(digests, "MIN_AGE_SECONDS", -1.0)


def flip_last_byte(path: Path) -> None:
    """Change the content, keep the size."""
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_a_copy_in_another_place_has_the_same_fingerprints(folder: Path, tiny_model: Path) -> None:
    assert fingerprint_weights(folder) == fingerprint_weights(tiny_model)
    assert fingerprint_tokenizer(folder) == fingerprint_tokenizer(tiny_model)


def test_other_weights_under_the_same_names_have_another_fingerprint(folder: Path, tmp_path: Path) -> None:
    other = make_tiny_model(tmp_path / "other" / "model", seed=2)
    assert (other / "model.safetensors").stat().st_size == (folder / "model.safetensors").stat().st_size
    assert fingerprint_weights(other) != fingerprint_weights(folder)
    assert fingerprint_tokenizer(other) == fingerprint_tokenizer(folder)


def test_weights_changed_in_place_are_noticed_though_size_and_time_are_put_back(
    folder: Path, old_files: None
) -> None:
    weights = folder / "model.safetensors"
    before, stamp = fingerprint_weights(folder), weights.stat()
    flip_last_byte(weights)
    os.utime(weights, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert weights.stat().st_mtime_ns == stamp.st_mtime_ns
    assert fingerprint_weights(folder) != before


def test_the_configuration_counts_but_not_where_it_came_from(folder: Path) -> None:
    before = fingerprint_weights(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"transformers_version": "0.0.0"}))
    assert fingerprint_weights(folder) == before
    (folder / "config.json").write_text(json.dumps(config | {"layer_norm_epsilon": 0.1}))
    assert fingerprint_weights(folder) != before


def test_the_tokenizer_counts_by_itself(folder: Path) -> None:
    weights, tokenizer = fingerprint_weights(folder), fingerprint_tokenizer(folder)
    text = (folder / "tokenizer.json").read_text()
    (folder / "tokenizer.json").write_text(
        text.replace('"add_prefix_space": false', '"add_prefix_space": true')
    )
    assert (folder / "tokenizer.json").read_text() != text
    assert fingerprint_tokenizer(folder) != tokenizer
    assert fingerprint_weights(folder) == weights


def test_a_settled_file_is_read_once(folder: Path, old_files: None, monkeypatch: pytest.MonkeyPatch) -> None:
    first = cached_digest(folder / "model.safetensors")
    monkeypatch.setattr(digests, "hash_file", lambda path: pytest.fail("read again"))
    assert cached_digest(folder / "model.safetensors") == first


def test_a_file_just_written_is_not_remembered(folder: Path, empty_cache: Path) -> None:
    path = folder / "fresh"
    path.write_bytes(b"abc")
    # sha256 of "abc", from FIPS 180-2, appendix B.1.
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert cached_digest(path) == known
    assert not (empty_cache / "digests").exists()


def test_an_unwritable_cache_costs_no_digest(
    folder: Path, old_files: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FELICITY_CACHE", str(tmp_path / "file"))
    path = folder / "config.json"
    assert cached_digest(path) == hash_file(path)


@pytest.mark.parametrize("content", ["", "0" * 63, "g" * 64, "\udcff", "0" * 64 + " 0123"])
def test_a_damaged_digest_memory_is_not_believed(
    folder: Path, empty_cache: Path, old_files: None, content: str
) -> None:
    path = folder / "config.json"
    known = cached_digest(path)
    (memory,) = (empty_cache / "digests").iterdir()
    memory.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert cached_digest(path) == known == hash_file(path)
    # It is written anew, so the next reader finds a good one.
    assert f'"digest": "{known}"' in memory.read_text()
