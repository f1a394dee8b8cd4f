"""What a model folder contains, from its configuration and file headers without loading weights."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
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

# How the names of types begin that hold whole numbers.
WHOLE = ("I", "U", "BOOL", "torch.int", "torch.uint")

Tensors = dict[str, tuple[str, tuple[int, ...]]]

# Layers that have at least one weight each; those of ALBERT are one layer, repeated.
LAYERS = (
    *("num_hidden_layers", "num_layers", "n_layer", "n_layers", "num_decoder_layers"),
    *("encoder_layers", "decoder_layers"),
)
SHARED_LAYERS = ("albert",)
# How much more than its files a model may hold while it is built: tied weights are made before they are tied,
# some files pack eight values into one or several tensors into one, and masks and positions are not stored.
MOST_TIMES = 8
SPARE_TENSORS = 1_000
SPARE_VALUES = 10_000_000
SPARE_BUFFERS = 1_000_000_000


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
    tensors = _read_all(files)
    refuse_unfillable(config, tensors, folder)
    counts = _count_by_dtype(tensors)
    if counts and counts.most_common(1)[0][0].startswith(WHOLE) and not config.get("quantization_config"):
        raise BadInput(
            f"The weights in {folder} are whole numbers, but config.json does not say how they were "
            "quantized; save the model again."
        )
    return ModelDescription(
        architecture=_read_architecture(config, folder),
        model_type=str(config.get("model_type", "unknown")),
        parameters=counts.total(),
        window=_first_positive(settings, WINDOWS),
        vocabulary=_first_positive(settings, ("vocab_size",)),
        dtype=counts.most_common(1)[0][0] if counts else "unknown",
        size=sum(file.stat().st_size for file in files),
        causal=causal if isinstance(causal := config.get("causal"), bool) else None,
    )


def _read_architecture(config: dict[str, Any], folder: Path) -> str:
    names = config.get("architectures") or ["unknown"]
    if not isinstance(names, list) or not isinstance(names[0], str):
        raise BadInput(
            f"{folder / 'config.json'}: 'architectures' is not a list of class names; correct it, or "
            "download the model again."
        )
    return names[0]


def refuse_unfillable(config: dict[str, Any], tensors: Tensors, folder: Path) -> None:
    """Refuse a configuration without layers, or with more of them than the files have tensors.

    Raises BadInput naming the field.
    """
    if config.get("model_type") in SHARED_LAYERS:
        return
    inner = [config.get(name) for name in ("text_config", "encoder", "decoder")]
    for part in (config, *(part for part in inner if isinstance(part, dict))):
        for name in LAYERS:
            promised = part.get(name)
            if not isinstance(promised, int) or 0 < promised <= len(tensors):
                continue
            raise BadInput(
                f"{folder / 'config.json'}: '{name}' is {promised}, but the weight files have {len(tensors)} "
                "tensors; correct it, or download the model again."
            )


@contextmanager
def refuse_larger_model(folder: Path) -> Iterator[None]:
    """Stop while a model is built that is far larger than the weight files in `folder`.

    Raises BadInput.
    """
    tensors = _read_all(weight_files(folder))
    with limit_construction(len(tensors), count_values(tensors), folder / "config.json"):
        yield


def count_values(tensors: Tensors) -> int:
    """How many numbers these tensors hold."""
    return sum(prod(shape) for _, shape in tensors.values())


@contextmanager
def limit_construction(tensors: int, values: int, path: Path) -> Iterator[None]:
    """Stop while a model is built that has far more tensors or values than these; `path` describes it.

    Raises BadInput.
    """
    from torch.nn.modules import module

    room = {
        "tensors": MOST_TIMES * tensors + SPARE_TENSORS,
        "values": MOST_TIMES * values + SPARE_VALUES,
        "buffers": MOST_TIMES * values + SPARE_BUFFERS,
    }

    def take(kind: str, amount: int) -> None:
        room[kind] -= amount
        if room[kind] < 0:
            raise BadInput(
                f"{path} describes a model that is much larger than its weights ({tensors:,} tensors, "
                f"{values:,} values); correct its sizes, or download the model again."
            )

    # One that takes another's place, as a loaded weight does, is not counted again.
    def count_parameter(owner: Any, name: str, parameter: Any) -> None:
        if parameter is not None and owner._parameters.get(name) is None:
            take("tensors", 1)
            take("values", parameter.numel())

    def count_buffer(owner: Any, name: str, buffer: Any) -> None:
        if buffer is not None and owner._buffers.get(name) is None:
            take("buffers", buffer.numel())

    hooks = [
        module.register_module_parameter_registration_hook(count_parameter),
        module.register_module_buffer_registration_hook(count_buffer),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


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
    if not isinstance(content, dict) or not all(isinstance(one, torch.Tensor) for one in content.values()):
        raise BadInput(f"{path} contains other things than named tensors; save the model's weights again.")
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
