"""A GGUF file made into a folder that transformers loads: float32 weights and a right tokenizer.

transformers reads the file (its architectures are the ones that work); what it loses is put back or
refused here. Conversion is done once, since unpacking quantized weights takes most of a minute.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from felicity.core.errors import NotPossible
from felicity.engines.gguf_tokenizer import repair_tokenizer
from felicity.engines.progress import Progress, no_progress

# Numbers the way of converting: a model converted in another way is converted again.
RECIPE = 1


def convert_gguf(path: Path, folder: Path, *, progress: Progress = no_progress) -> dict[str, str]:
    """Write the model of a GGUF file into `folder`; notes on what a user should know of it.

    Raises NotPossible where transformers cannot read its architecture.
    """
    step = f"convert {path.name}"
    progress(step, 0, 0)
    facts = read_facts(path)
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place = {"pretrained_model_name_or_path": str(path.parent), "gguf_file": path.name}
    with _quiet_transformers(step, progress):
        tokenizer = AutoTokenizer.from_pretrained(**place)
        notes = repair_tokenizer(
            tokenizer, model=facts["tokenizer.ggml.model"], pre=facts["tokenizer.ggml.pre"]
        )
        load: Any = AutoModelForCausalLM.from_pretrained
        model, loading = load(**place, dtype=torch.float32, output_loading_info=True)
        if loading["missing_keys"] or loading["mismatched_keys"]:
            raise NotPossible(f"{path} lacks weights that {type(model).__name__} needs.")
        _forget_quantization(model)
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    return notes


def read_facts(path: Path) -> dict[str, str]:
    """What the header says."""
    from gguf import GGUFReader

    reader = GGUFReader(path)
    wanted = ("general.architecture", "tokenizer.ggml.model", "tokenizer.ggml.pre")
    return {key: str(reader.fields[key].contents()) if key in reader.fields else "" for key in wanted}


def _forget_quantization(model: Any) -> None:
    """The weights are plain numbers by now; newer transformers still refuses to save them."""
    for holder, name in ((model, "hf_quantizer"), (model.config, "quantization_config")):
        if hasattr(holder, name):
            delattr(holder, name)


@contextmanager
def _quiet_transformers(step: str, progress: Progress) -> Iterator[None]:
    """Let transformers' own bars be heard as our progress."""
    from transformers import modeling_gguf_pytorch_utils as reading
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging

    def report(tensors: Any, **_: Any) -> Iterator[Any]:
        for done, tensor in enumerate(tensors):
            progress(step, done, len(tensors))
            yield tensor
        progress(step, len(tensors), len(tensors))

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        if hasattr(reading, "tqdm"):
            with patch.object(reading, "tqdm", report):
                yield
        else:
            yield
    finally:
        if shown:
            logging.enable_progress_bar()
