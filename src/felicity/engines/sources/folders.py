"""The files of a model folder, and digests of their content, which identify the model.

Hashing gigabytes takes a while, so the digest of a file is cached by its path, size and times; a file that
has changed is read again.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from felicity.core.errors import BadInput
from felicity.core.files import read_text
from felicity.core.ids import fingerprint, hash_file
from felicity.core.memo import recall, remember
from felicity.core.watched import RESOLUTION_SECONDS

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
# These work on bytes or characters and need no vocabulary.
BARE_TOKENIZERS = ("ByT5Tokenizer", "CanineTokenizer", "PerceiverTokenizer")
# A file changed twice within the clock's resolution would look unchanged, so younger digests are not cached.
MIN_AGE_SECONDS = RESOLUTION_SECONDS
KIND = "digests"
# Parts of a configuration that only say where it came from.
PROVENANCE = ("_name_or_path", "_commit_hash", "transformers_version")
# Numbers by which transformers makes lists as soon as it reads a configuration, and more than any model has.
COUNTED = {"layer": 10_000, "label": 1_000_000}

Digest = Callable[[Path], str]


def check_folder(folder: Path) -> None:
    """Check that `folder` has all that is needed to load a model.

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

    Raises BadInput if it is missing or not a configuration.
    """
    path = folder / "config.json"
    if not path.is_file():
        if (folder / "adapter_config.json").is_file():
            raise BadInput(f"{folder} is an adapter, not a model; merge it into its model and save that.")
        raise BadInput(f"{folder} is not a model folder: it has no config.json.")
    config = read_object(path)
    _refuse_counts(config, path)
    return config


def _refuse_counts(config: dict[str, Any], path: Path) -> None:
    """Refuse a number of layers or labels that no model has, wherever in the configuration it is."""
    parts = [config]
    while parts:
        for name, value in parts.pop().items():
            if isinstance(value, dict):
                parts.append(value)
            most = min((most for part, most in COUNTED.items() if part in name), default=None)
            if most is not None and isinstance(value, int | float) and value > most:
                raise BadInput(
                    f"{path}: '{name}' is {str(value)[:20]}, more than any model has; correct it, or "
                    "download the model again."
                )


def weight_files(folder: Path) -> list[Path]:
    """The files that the weights are loaded from, an index of shards first.

    Raises BadInput if there are none, or a shard is missing.
    """
    for name in WEIGHTS:
        if (folder / name).is_file():
            return [folder / name]
        index = folder / f"{name}.index.json"
        if index.is_file():
            return [index, *_shards(index)]
    raise BadInput(f"{folder} has no weights: neither model.safetensors nor pytorch_model.bin nor shards.")


def model_files(folder: Path) -> list[Path]:
    """The files that decide a model's numbers.

    Raises BadInput if weights or tokenizer are missing.
    """
    settings = [folder / name for name in ("config.json", "generation_config.json")]
    present = [file for file in settings if file.is_file()]
    return [*present, *weight_files(folder), *tokenizer_files(folder)]


def tokenizer_files(folder: Path) -> list[Path]:
    """The files that decide how a text is tokenized.

    Raises BadInput if there is no tokenizer.
    """
    named = [folder / name for name in (*VOCABULARIES, *TOKENIZER_EXTRAS)]
    present = sorted([file for file in named if file.is_file()] + list(folder.glob("*.tiktoken")))
    vocabularies = [file for file in present if file.name not in TOKENIZER_EXTRAS]
    if not vocabularies and not _is_bare(folder):
        raise BadInput(f"{folder} has no tokenizer; save the model's tokenizer into it too.")
    return present


def read_tensors(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of every tensor in a safetensors file, from its header alone.

    Raises BadInput if the file is damaged.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
            return {name: (part.get_dtype(), tuple(part.get_shape())) for name, part in slices.items()}
    except (SafetensorError, OSError) as error:
        raise BadInput(
            f"{path} is damaged or not a safetensors file ({error}); download or save it again."
        ) from error


def _shards(index: Path) -> list[Path]:
    names = read_object(index).get("weight_map")
    if not isinstance(names, dict) or not names or not all(isinstance(one, str) for one in names.values()):
        raise BadInput(f"{index} lists no weights; download or save the model again.")
    shards = [index.parent / name for name in sorted(set(names.values()))]
    for shard in shards:
        if shard.parent != index.parent:
            raise BadInput(
                f"{index} lists {shard}, which is not beside it; download or save the model again."
            )
        if not shard.is_file():
            raise BadInput(f"{index.parent} lacks {shard.name}, which {index.name} lists; download it again.")
    return shards


def _is_bare(folder: Path) -> bool:
    path = folder / "tokenizer_config.json"
    return path.is_file() and read_object(path).get("tokenizer_class") in BARE_TOKENIZERS


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file of a model.

    Raises BadInput if it is not a JSON object.
    """
    try:
        content = json.loads(read_text(path))
    except RecursionError as error:
        raise BadInput(f"{path} is nested too deeply; download or save the model again.") from error
    except ValueError as error:
        raise BadInput(f"{path} is not JSON ({error}); download or save the model again.") from error
    if not isinstance(content, dict):
        raise BadInput(f"{path} is not a JSON object; download or save the model again.")
    return content


def fingerprint_weights(folder: Path, digest: Digest | None = None) -> str:
    """Digest of the weights and the configuration they are run with; `digest` gives that of a file.

    Raises BadInput if the folder has no weights.
    """
    config = {name: value for name, value in read_config(folder).items() if name not in PROVENANCE}
    return fingerprint([config, *_digests(weight_files(folder), digest)])


def fingerprint_tokenizer(folder: Path, digest: Digest | None = None) -> str:
    """Digest of everything that decides how a text is tokenized; `digest` gives that of a file.

    Raises BadInput if the folder has no tokenizer.
    """
    return fingerprint(_digests(tokenizer_files(folder), digest))


def cached_digest(path: Path) -> str:
    """sha256 of a file, computed once and cached until the file changes.

    Raises BadInput if the file cannot be read.
    """
    try:
        status = path.stat()
        stamp = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
        key = [str(path.resolve()), *stamp]
        remembered = recall(KIND, key)
        if remembered:
            return str(remembered["digest"])
        digest = hash_file(path)
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
    if time.time() - max(status.st_mtime, status.st_ctime) > MIN_AGE_SECONDS:
        remember(KIND, key, {"digest": digest})
    return digest


def _digests(files: list[Path], digest: Digest | None) -> list[list[str]]:
    take = digest or cached_digest
    return [[file.name, take(file)] for file in files]
