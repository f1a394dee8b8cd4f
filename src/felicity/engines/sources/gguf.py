"""GGUF files converted to a folder that transformers loads: float32 weights and a correct tokenizer.

transformers reads the file, so the supported architectures are its own; what it loses is restored or
refused here. The conversion is done once, since reading quantized weights takes half a minute.
"""

import json
import logging
import re
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from tokenizers import Regex, pre_tokenizers

from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.files import disk_errors
from felicity.core.ids import hash_file
from felicity.core.progress import Progress, no_progress
from felicity.core.watched import ChangedFile
from felicity.engines.sources.describe import limit_construction
from felicity.engines.sources.model_cache import require_disk_space

MAGIC = b"GGUF"
COPY = ".original.gguf"
PIECE = re.compile(r"-(\d{5})-of-(\d{5})$")
LAYER = re.compile(r"blk\.(\d{1,6})\.")
# Tensors that scale the rotary positions; transformers' reader ignores them silently.
ROPE_SCALING = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
# The rules by the name that `tokenizer.ggml.pre` gives them.
DIGITS_APART = ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b")
AS_GPT2 = ("gpt-2", "mpt", "olmo", "phi-2", "jais", "trillion", "gigachat")
AS_LLAMA3 = ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral")
AS_QWEN2 = ("qwen2", "stablelm2", "hunyuan", "megrez", "deepseek-r1-qwen")
# The version of the conversion: a model converted by another version is converted again.
RECIPE = 3
FLOAT32_BYTES = 4
TOKENIZER_ROOM = 50_000_000
# Arguments of this conversion that transformers would save among the tokenizer's settings.
OPENING = ("is_local", "local_files_only", "name_or_path", "gguf_file")


@dataclass(frozen=True, kw_only=True)
class GgufFacts:
    """Architecture, tokenizer and splitting rule, as the file names them; how many weights and tensors."""

    architecture: str
    tokenizer: str
    splitting: str
    parameters: int
    tensors: int


def check_gguf(path: Path) -> None:
    """Check that `path` starts like a GGUF file and is not one part of several.

    Raises BadInput.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
    if start != MAGIC:
        raise BadInput(f"{path} is not a GGUF file; download it again, or give -m the model's folder.")
    piece = PIECE.search(path.stem)
    if piece and piece[2] != "00001":
        raise BadInput(
            f"{path} is one of {int(piece[2])} parts; merge them with `llama-gguf-split --merge` first."
        )


def read_gguf(path: Path, *, original: Path | None = None) -> GgufFacts:
    """The facts that decide how the file is converted; messages name the `original` of a copy.

    Raises BadInput if the file is damaged or incomplete, NotPossible if it needs what transformers' reader
    does not support.
    """
    from gguf import GGUFReader

    copy, path = path, original or path
    check_gguf(path)
    try:
        reader = GGUFReader(copy)
        keys = ("general.architecture", "tokenizer.ggml.model", "tokenizer.ggml.pre")
        values = [str(reader.fields[key].contents()) if key in reader.fields else "" for key in keys]
        parameters = sum(int(tensor.n_elements) for tensor in reader.tensors)
        names = [tensor.name for tensor in reader.tensors]
        layers = reader.fields.get(f"{values[0]}.block_count")
        stored = max((int(layer[1]) + 1 for name in names if (layer := LAYER.match(name))), default=0)
        promised = int(layers.contents()) if layers is not None else stored
        stretched = [name for name in names if name in ROPE_SCALING]
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError, OSError) as error:
        raise BadInput(f"{path} is damaged or incomplete; download it again.") from error
    architecture, tokenizer, splitting = values
    if promised != stored:
        raise BadInput(f"{path} announces {promised:,} layers, but has {stored:,}; download it again.")
    if stretched:
        raise NotPossible(
            f"{path} scales its rotary positions ({stretched[0]}), which transformers' GGUF reader ignores, "
            "so every score would be wrong; give -m the model's original folder."
        )
    if not tokenizer:
        raise BadInput(f"{path} has no tokenizer; give -m the model's original folder.")
    return GgufFacts(
        architecture=architecture,
        tokenizer=tokenizer,
        splitting=splitting,
        parameters=parameters,
        tensors=len(reader.tensors),
    )


def split_rule(pre: str) -> Any | None:
    """The pre-tokenizer that `tokenizer.ggml.pre` names; None if the name is unknown."""
    if pre in DIGITS_APART:
        digits = pre_tokenizers.Digits(individual_digits=True)
        return pre_tokenizers.Sequence([digits, _byte_level(use_regex=True)])
    if pre in AS_GPT2:
        return _byte_level(use_regex=True)
    pattern = LLAMA3 if pre in AS_LLAMA3 else QWEN2 if pre in AS_QWEN2 else None
    if pattern is None:
        return None
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    return pre_tokenizers.Sequence([split, _byte_level(use_regex=False)])


def repair_tokenizer(tokenizer: Any, *, model: str, rule: str) -> dict[str, str]:
    """Give a tokenizer read by transformers its own splitting rule; returns notes on what was done.

    `model` and `rule` are the file's `tokenizer.ggml.model` and `tokenizer.ggml.pre`.
    """
    if model != "gpt2":
        return {
            "tokenizer": f"transformers' rendering of the file's '{model}' tokenizer is used; felicity does "
            "not check that it splits as the original tokenizer does"
        }
    parts = split_rule(rule)
    if parts is None:
        return {
            "tokenizer": f"the file's splitting rule '{rule}' is not known to felicity; transformers' choice "
            "for it is used and may split some texts differently from the original tokenizer"
        }
    tokenizer.backend_tokenizer.pre_tokenizer = parts
    # Llama 3 takes a whole word that is in the vocabulary, whatever the merges say.
    tokenizer.backend_tokenizer.model.ignore_merges = rule in AS_LLAMA3
    return {}


def _byte_level(*, use_regex: bool) -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def estimate_disk_space(facts: GgufFacts) -> int:
    """The approximate disk space that the conversion of a GGUF file takes, in bytes."""
    return facts.parameters * FLOAT32_BYTES + TOKENIZER_ROOM


def convert_gguf(
    path: Path, folder: Path, *, sha256: str | None = None, progress: Progress = no_progress
) -> dict[str, Any]:
    """Write the model of a GGUF file into `folder`; `notes` in the result is for the user.

    sha256: what the file must have. It is read from a copy, since its readers map it into memory, where a
    program that writes to it changes the weights or ends this process.

    Raises BadInput if the file is damaged or has changed, NotPossible if transformers cannot read its
    architecture, FelicityError if the folder cannot be written or the disk has no room.
    """
    step = f"convert {path.name}"
    progress(step, 0, 0)
    check_gguf(path)
    folder.mkdir(parents=True, exist_ok=True)
    require_disk_space(folder, path.stat().st_size)
    copy = folder / COPY
    with disk_errors(copy):
        shutil.copyfile(path, copy)
    try:
        if sha256 is not None and hash_file(copy) != sha256:
            raise ChangedFile(path)
        facts = read_gguf(copy, original=path)
        require_disk_space(folder, estimate_disk_space(facts))
        notes = _convert(copy, path, folder, facts, step, progress)
    finally:
        copy.unlink(missing_ok=True)
    made_with = {name: version(name) for name in ("transformers", "gguf")}
    return {"notes": notes, "made_with": made_with}


def _convert(
    copy: Path, path: Path, folder: Path, facts: GgufFacts, step: str, progress: Progress
) -> dict[str, str]:
    """Write the model in a copy of `path` into `folder`; returns notes on its tokenizer."""
    with _relay_progress(step, progress):
        tokenizer, model = _load(copy, path, folder, facts)
        notes = repair_tokenizer(tokenizer, model=facts.tokenizer, rule=facts.splitting)
        try:
            model.save_pretrained(folder)
            _save_tokenizer(tokenizer, folder)
        except SafetensorError as error:
            raise FelicityError(
                f"Cannot write the converted weights of {path.name}: {str(error).rstrip('.')}; free some "
                "space or set FELICITY_CACHE to a folder on another disk."
            ) from error
    return notes


def _load(copy: Path, path: Path, folder: Path, facts: GgufFacts) -> tuple[Any, Any]:
    """Tokenizer and model from this copy alone; files beside `path` may belong to another model."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    location = {"pretrained_model_name_or_path": str(folder), "gguf_file": str(copy.resolve())}
    safe = {"local_files_only": True, "trust_remote_code": False}
    load: Any = AutoModelForCausalLM.from_pretrained
    try:
        tokenizer = AutoTokenizer.from_pretrained(**location, **safe)
        with limit_construction(facts.tensors, facts.parameters, path):
            model, report = load(**location, **safe, dtype=torch.float32, output_loading_info=True)
    except FelicityError:
        raise
    except Exception as error:
        # transformers raises whatever its parts raise.
        reason = " ".join(str(error).split())[:160].rstrip(".")
        raise NotPossible(
            f"transformers {version('transformers')} cannot read {path}, a GGUF file of architecture "
            f"'{facts.architecture}' ({reason}); give -m the model's original folder."
        ) from error
    missing = sorted([*report["missing_keys"], *map(str, report["mismatched_keys"])])
    if missing:
        raise NotPossible(
            f"{path} lacks {len(missing)} weights of {type(model).__name__} ({missing[0]}, ...), which "
            "would be random; give -m the model's original folder."
        )
    _forget_quantization(model)
    return tokenizer, model


def _forget_quantization(model: Any) -> None:
    """The weights are plain floats by now, but newer versions of transformers still refuse to save them."""
    for holder, name in ((model, "hf_quantizer"), (model.config, "quantization_config")):
        if hasattr(holder, name):
            delattr(holder, name)


def _save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Leave out how the file was opened, so that every machine gets the same tokenizer."""
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    kept = {name: value for name, value in settings.items() if name not in OPENING}
    path.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def _relay_progress(step: str, progress: Progress) -> Iterator[None]:
    """Report transformers' progress bars as our progress, and silence the rest."""
    from unittest.mock import patch

    from transformers import modeling_gguf_pytorch_utils as reading
    from transformers.utils import logging as transformers_logging

    def report(tensors: Any, **_: Any) -> Iterator[Any]:
        for done, tensor in enumerate(tensors):
            progress(step, done, len(tensors))
            yield tensor
        progress(step, len(tensors), len(tensors))

    talk: Any = transformers_logging
    bars, verbosity = talk.is_progress_bar_enabled(), talk.get_verbosity()
    talk.disable_progress_bar()
    talk.set_verbosity(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), patch.object(reading, "tqdm", report, create=True):
            warnings.simplefilter("ignore")
            yield
    finally:
        talk.set_verbosity(verbosity)
        if bars:
            talk.enable_progress_bar()
