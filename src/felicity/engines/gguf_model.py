"""A GGUF file made into a folder that transformers loads: float32 weights and a right tokenizer.

transformers reads the file (its architectures are the ones that work); what it loses is put back or
refused here. It is done once, since reading quantized weights takes half a minute.
"""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

from safetensors import SafetensorError

from felicity.core.errors import FelicityError, NotPossible
from felicity.engines.gguf_file import GgufFacts, read_gguf
from felicity.engines.gguf_tokenizer import repair_tokenizer
from felicity.engines.progress import Progress, no_progress

# Numbers the way of converting: a model converted in another way is converted again.
RECIPE = 3
FLOAT32_BYTES = 4
TOKENIZER_ROOM = 50_000_000
# Arguments of this conversion that transformers would write among the tokenizer's settings.
OPENING = ("is_local", "local_files_only", "name_or_path", "gguf_file")


def room_for(facts: GgufFacts) -> int:
    """Bytes that the conversion of a GGUF file will take on the disk, about."""
    return facts.parameters * FLOAT32_BYTES + TOKENIZER_ROOM


def convert_gguf(
    path: Path, folder: Path, *, facts: GgufFacts | None = None, progress: Progress = no_progress
) -> dict[str, Any]:
    """Write the model of a GGUF file into `folder`; `notes` tells what a user should know of it.

    `facts` are those of the file where they were read before.

    Raises BadInput where the file is damaged, NotPossible where transformers cannot read its
    architecture, FelicityError where the folder cannot be written.
    """
    step = f"convert {path.name}"
    progress(step, 0, 0)
    facts = facts or read_gguf(path)
    with _hear_transformers(step, progress):
        tokenizer, model = _load(path, folder, facts)
        notes = repair_tokenizer(tokenizer, model=facts.tokenizer, rule=facts.splitting)
        try:
            model.save_pretrained(folder)
            _save_tokenizer(tokenizer, folder)
        except SafetensorError as error:
            raise FelicityError(
                f"Cannot write the converted weights of {path.name}: {str(error).rstrip('.')}; free some "
                "space or let FELICITY_CACHE name a folder on another disk."
            ) from error
    made_with = {name: version(name) for name in ("transformers", "gguf")}
    return {"notes": notes, "made_with": made_with}


def _load(path: Path, folder: Path, facts: GgufFacts) -> tuple[Any, Any]:
    """Tokenizer and model, from the file alone: what lies beside it may be another model's."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = {"pretrained_model_name_or_path": str(folder), "gguf_file": str(path.resolve())}
    load: Any = AutoModelForCausalLM.from_pretrained
    try:
        tokenizer = AutoTokenizer.from_pretrained(**place)
        model, report = load(**place, dtype=torch.float32, output_loading_info=True)
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
    """The weights are plain numbers by now; newer transformers still refuses to save them."""
    for holder, name in ((model, "hf_quantizer"), (model.config, "quantization_config")):
        if hasattr(holder, name):
            delattr(holder, name)


def _save_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Leave out how the file was opened, so that every machine makes the same tokenizer."""
    tokenizer.save_pretrained(folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    kept = {name: value for name, value in settings.items() if name not in OPENING}
    path.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@contextmanager
def _hear_transformers(step: str, progress: Progress) -> Iterator[None]:
    """Let transformers' own bars be heard as our progress, and nothing else of it."""
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
