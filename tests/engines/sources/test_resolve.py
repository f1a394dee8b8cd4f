"""What `-m` may be given, and what it is answered."""

from pathlib import Path

import pytest

from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.engines.sources.resolve import list_models, resolve_source, short_name
from tests.engines.conftest import TinyGguf


@pytest.mark.parametrize("slip", ["smolm2", "smollm", "SmolLM2", "smollm3"])
def test_a_slip_in_the_built_in_name_is_mended(slip: str, empty_cache: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'smollm2'"):
        resolve_source(slip)


@pytest.mark.parametrize(
    "spec", ["./no-such-model", "/no/such/model", "~/no-such-model", "a/b/c", "", " ", "gone.gguf", "a b"]
)
def test_what_can_only_be_a_path_and_is_not_there_is_refused(spec: str, empty_cache: Path) -> None:
    with pytest.raises(BadInput, match=f"There is no model folder or file '{spec}'"):
        resolve_source(spec)


def test_a_file_that_is_no_model_is_refused(tiny_model: Path) -> None:
    with pytest.raises(BadInput, match="give -m the folder that holds the model"):
        resolve_source(str(tiny_model / "model.safetensors"))


def test_the_built_in_model_is_not_fetched_where_the_caller_forbids_it(empty_cache: Path) -> None:
    with pytest.raises(NotPossible, match="download it: felicity models get smollm2"):
        resolve_source("smollm2", download=False)


def test_a_converted_model_is_listed_and_found_by_its_kept_name(
    tiny_gguf: TinyGguf, empty_cache: Path
) -> None:
    converted = resolve_source(str(tiny_gguf.path))
    built_in, kept = [entry for entry in list_models() if entry.origin != "hub"]
    assert (built_in.spec, built_in.folder, built_in.size) == ("smollm2", None, 0)
    assert (kept.spec, kept.origin, kept.source) == (converted.folder.name, "gguf", "Tiny-Llama.gguf")
    assert kept.size == sum(file.stat().st_size for file in converted.folder.iterdir()) - record_size(
        kept.folder
    )
    again = resolve_source(kept.spec)
    assert (again.folder, again.details) == (converted.folder, converted.details)


def record_size(folder: Path | None) -> int:
    assert folder is not None
    return (folder / "felicity.json").stat().st_size


def test_what_lies_half_made_in_the_store_is_not_listed(empty_cache: Path) -> None:
    for name in (".half.x1", "strange"):
        (empty_cache / "models" / name).mkdir(parents=True)
    assert [entry.spec for entry in list_models() if entry.origin != "hub"] == ["smollm2"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpt2", "gpt2"),
        ("My Model", "my-model"),
        ("lab/Größe 1", "gr-e-1"),
        ("org/name@refs/pr/1", "name-refs-pr-1"),
        ("...", "model"),
    ],
)
def test_short_names_are_fit_for_files(text: str, name: str) -> None:
    assert short_name(text) == name
