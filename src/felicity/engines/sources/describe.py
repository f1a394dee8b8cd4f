"""What a model folder contains, from its configuration and file headers without loading weights."""

from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from zipfile import is_zipfile

from felicity.core.errors import BadInput
from felicity.engines.sources.folders import read_config, read_tensors, weight_files

WINDOWS = ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length")
# Buffers that older files store beside the parameters; attention's `bias` is a mask if it is 4-dimensional.
BUFFERS = ("masked_bias", "rotary_emb.inv_freq", "position_ids")
MASKS = ("attn.bias", "attention.bias")
MASK_SIDES = 4

# The names that safetensors gives to torch's types.
DTYPES = {"torch.float32": "F32", "torch.float16": "F16", "torch.bfloat16": "BF16", "torch.float64": "F64"}

Tensors = dict[str, tuple[str, tuple[int, ...]]]


@dataclass(frozen=True, kw_only=True)
class ModelDescription:
    """A model at a glance; `window` is None if the configuration sets no limit.

    parameters: their number, tied ones counted once. dtype: that of most parameters.
    size: bytes of the weight files. causal: what the configuration says, if it does; some architectures are
    used for models of both kinds.
    """

    architecture: str
    model_type: str
    parameters: int
    window: int | None
    vocabulary: int | None
    dtype: str
    size: int
    causal: bool | None = None


def describe_model(folder: Path) -> ModelDescription:
    """What `felicity models info` says about a model.

    Raises BadInput if the folder is not a model or its files are damaged.
    """
    config = read_config(folder)
    text_config = config.get("text_config")
    settings = config | text_config if isinstance(text_config, dict) else config
    files = weight_files(folder)
    counts = _count_by_dtype(_read_all(files))
    return ModelDescription(
        architecture=(config.get("architectures") or ["unknown"])[0],
        model_type=str(config.get("model_type", "unknown")),
        parameters=counts.total(),
        window=_first_positive(settings, WINDOWS),
        vocabulary=_first_positive(settings, ("vocab_size",)),
        dtype=counts.most_common(1)[0][0] if counts else "unknown",
        size=sum(file.stat().st_size for file in files),
        causal=causal if isinstance(causal := config.get("causal"), bool) else None,
    )


def _read_all(files: list[Path]) -> Tensors:
    tensors: Tensors = {}
    for file in files:
        if file.suffix == ".safetensors":
            tensors |= read_tensors(file)
        elif file.suffix == ".bin":
            tensors |= _read_pickled(file)
    return tensors


def _read_pickled(path: Path) -> Tensors:
    """Type and shape of every tensor in a .bin file, tied ones once.

    Raises BadInput if the file is damaged.
    """
    import torch

    try:
        # Memory-mapped, the weights stay on disk; the oldest file format does not support this.
        content = torch.load(path, map_location="cpu", weights_only=True, mmap=is_zipfile(path))
    except (OSError, RuntimeError, EOFError, UnpicklingError) as error:
        raise BadInput(f"{path} is damaged or not a weights file; download or save it again.") from error
    tensors: Tensors = {}
    places = set()
    for name, tensor in content.items():
        if tensor.data_ptr() not in places:
            tensors[name] = (DTYPES.get(str(tensor.dtype), str(tensor.dtype)), tuple(tensor.shape))
        places.add(tensor.data_ptr())
    return tensors


def _count_by_dtype(tensors: Tensors) -> Counter[str]:
    counts: Counter[str] = Counter()
    for name, (dtype, shape) in tensors.items():
        mask = name.endswith(MASKS) and len(shape) == MASK_SIDES
        if not mask and not name.endswith(BUFFERS):
            counts[dtype] += prod(shape)
    return counts


def _first_positive(settings: dict[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = settings.get(name)
        if isinstance(value, int) and value > 0:
            return value
    return None
