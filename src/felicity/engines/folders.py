"""Which files of a model folder decide its numbers, and whether they are all there.

The rules are those by which transformers chooses what to load: safetensors before .bin, one file
before shards.
"""

import json
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from felicity.core.errors import BadInput
from felicity.core.files import read_text

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
VOCABULARIES = (
    "tokenizer.json",
    "tokenizer.model",
    "vocab.json",
    "vocab.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "tekken.json",
)
TOKENIZER_EXTRAS = (
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "merges.txt",
)
# These read bytes or characters and need no vocabulary.
BARE_TOKENIZERS = ("ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer")


def check_folder(folder: Path) -> None:
    """Nothing, when `folder` has all that is needed to load a model.

    Raises BadInput naming what is missing or damaged.
    """
    try:
        list(folder.iterdir())
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadInput(f"Cannot read the model folder {folder}: {reason}.") from error
    read_config(folder)
    for file in weight_files(folder):
        if file.suffix == ".safetensors":
            read_tensors(file)
    tokenizer_files(folder)


def read_config(folder: Path) -> dict[str, Any]:
    """The model's config.json.

    Raises BadInput where it is missing or no configuration.
    """
    path = folder / "config.json"
    if not path.is_file():
        if (folder / "adapter_config.json").is_file():
            raise BadInput(f"{folder} is an adapter, not a model; merge it into its model and save that.")
        raise BadInput(f"{folder} is no model folder: it has no config.json.")
    return read_object(path)


def weight_files(folder: Path) -> list[Path]:
    """The files that the weights are loaded from, the index of shards first where there is one.

    Raises BadInput where there are none, or a shard is missing.
    """
    for name in WEIGHTS:
        if (folder / name).is_file():
            return [folder / name]
        index = folder / f"{name}.index.json"
        if index.is_file():
            return [index, *_shards(index)]
    raise BadInput(f"{folder} has no weights: neither model.safetensors nor pytorch_model.bin nor shards.")


def tokenizer_files(folder: Path) -> list[Path]:
    """The files that decide how a text is cut.

    Raises BadInput where there is no tokenizer.
    """
    named = [folder / name for name in (*VOCABULARIES, *TOKENIZER_EXTRAS)]
    present = sorted([file for file in named if file.is_file()] + list(folder.glob("*.tiktoken")))
    vocabularies = [file for file in present if file.name not in TOKENIZER_EXTRAS]
    if not vocabularies and not _is_bare(folder):
        raise BadInput(f"{folder} has no tokenizer; save the model's tokenizer into it too.")
    return present


def read_tensors(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of every tensor in a safetensors file, from its header alone.

    Raises BadInput where the file is damaged.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}
    except (SafetensorError, OSError) as error:
        raise BadInput(
            f"{path} is damaged or not a safetensors file ({error}); fetch or save it again."
        ) from error


def _shards(index: Path) -> list[Path]:
    names = read_object(index).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise BadInput(f"{index} lists no weights; fetch or save the model again.")
    shards = [index.parent / name for name in sorted(set(names.values()))]
    for shard in shards:
        if not shard.is_file():
            raise BadInput(f"{index.parent} lacks {shard.name}, which {index.name} lists; fetch it again.")
    return shards


def _is_bare(folder: Path) -> bool:
    path = folder / "tokenizer_config.json"
    return path.is_file() and read_object(path).get("tokenizer_class") in BARE_TOKENIZERS


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a model.

    Raises BadInput where it holds none.
    """
    try:
        content = json.loads(read_text(path))
    except ValueError as error:
        raise BadInput(f"{path} is not JSON ({error}); fetch or save the model again.") from error
    if not isinstance(content, dict):
        raise BadInput(f"{path} is not a JSON object; fetch or save the model again.")
    return content
