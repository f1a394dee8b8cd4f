"""What a GGUF file says of itself, read before anything is done with it."""

import re
from dataclasses import dataclass
from pathlib import Path

from felicity.core.errors import BadInput, NotPossible

MAGIC = b"GGUF"
PIECE = re.compile(r"-(\d{5})-of-(\d{5})$")
# Tensors that stretch the rotary positions; transformers' reader leaves them out without a word.
STRETCHING = ("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight")


@dataclass(frozen=True, kw_only=True)
class GgufFacts:
    """architecture, tokenizer model and splitting rule as the file names them; how many weights it holds."""

    architecture: str
    tokenizer: str
    splitting: str
    parameters: int


def check_gguf(path: Path) -> None:
    """Nothing, when `path` begins like a GGUF file and is not one piece of several.

    Raises BadInput.
    """
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
    if start != MAGIC:
        raise BadInput(f"{path} is not a GGUF file; fetch it again, or give -m the model's folder.")
    piece = PIECE.search(path.stem)
    if piece and piece[2] != "00001":
        raise BadInput(
            f"{path} is one of {int(piece[2])} pieces; merge them with `llama-gguf-split --merge` first."
        )


def read_gguf(path: Path) -> GgufFacts:
    """The facts that decide how the file is converted.

    Raises BadInput where the file is damaged or cut short, NotPossible where it needs what transformers'
    reader does not do.
    """
    from gguf import GGUFReader

    check_gguf(path)
    try:
        reader = GGUFReader(path)
        keys = ("general.architecture", "tokenizer.ggml.model", "tokenizer.ggml.pre")
        found = [str(reader.fields[key].contents()) if key in reader.fields else "" for key in keys]
        parameters = sum(int(tensor.n_elements) for tensor in reader.tensors)
        stretched = [tensor.name for tensor in reader.tensors if tensor.name in STRETCHING]
    except (ValueError, IndexError, KeyError, OverflowError, MemoryError, OSError) as error:
        raise BadInput(f"{path} is damaged or cut short; fetch it again.") from error
    architecture, tokenizer, splitting = found
    if stretched:
        raise NotPossible(
            f"{path} stretches its rotary positions ({stretched[0]}), which transformers' GGUF reader leaves "
            "out, so every score would be wrong; give -m the model's original folder."
        )
    if not tokenizer:
        raise BadInput(f"{path} holds no tokenizer; give -m the model's original folder.")
    return GgufFacts(
        architecture=architecture, tokenizer=tokenizer, splitting=splitting, parameters=parameters
    )
