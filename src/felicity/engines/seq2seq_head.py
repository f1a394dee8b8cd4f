"""Two things that encoder-decoders get wrong silently: where they begin, and what they end in."""

from pathlib import Path
from typing import Any

from felicity.core.errors import NotPossible
from felicity.engines.folders import read_config, read_object, weight_files

HEAD = "lm_head.weight"


def find_start(folder: Path, *, name: str) -> int:
    """The token that the decoder begins with.

    Raises NotPossible where neither configuration names one, BadInput where one is damaged.
    """
    settings = read_config(folder)
    path = folder / "generation_config.json"
    if path.is_file():
        settings |= {name: value for name, value in read_object(path).items() if value is not None}
    start = settings.get("decoder_start_token_id")
    if not isinstance(start, int):
        raise NotPossible(f"The configuration of '{name}' names no decoder_start_token_id; add it.")
    return start


def refuse_changed_head(model: Any, folder: Path, *, name: str) -> None:
    """Stop where transformers has put the embeddings in place of an output layer that is in the files.

    Its configurations of the T5 family say that the two are one, of models too for which they are not.

    Raises NotPossible.
    """
    import torch
    from safetensors import safe_open

    head = getattr(model, "lm_head", None)
    for file in weight_files(folder):
        if head is None or file.suffix != ".safetensors":
            continue
        with safe_open(file, framework="pt") as tensors:
            if HEAD not in tensors.keys():  # noqa: SIM118 - it is no mapping
                continue
            kept = tensors.get_tensor(HEAD).to(head.weight.dtype)
        if not torch.equal(kept, head.weight.detach().cpu()):
            raise NotPossible(
                f"This version of transformers replaces the output layer of '{name}' by its embeddings; "
                "install another version."
            )
