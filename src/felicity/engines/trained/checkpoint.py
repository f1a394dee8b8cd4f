"""The state of a training on disk: all that is needed to go on as if nothing had happened."""

from dataclasses import dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch

from felicity.core.errors import BadInput
from felicity.core.files import replacing
from felicity.engines.trained.lstm_model import LstmModel
from felicity.engines.trained.tdlm_model import TdlmModel

CHECKPOINT = "checkpoint.pt"


@dataclass
class Progressed:
    """How far a training is.

    epoch, step: the next batch to learn from. nats, words: of the language batches of this epoch so far.
    best: the lowest validation perplexity. stale: epochs since then. history: one row an epoch.
    """

    epoch: int = 1
    step: int = 0
    nats: float = 0.0
    words: int = 0
    best: float = float("inf")
    stale: int = 0
    history: list[dict[str, float]] = field(default_factory=list)


@dataclass
class Training:
    """A model on its way."""

    model: LstmModel | TdlmModel
    optimizers: list[torch.optim.Adam]
    so_far: Progressed
    device: str


def save_checkpoint(training: Training, folder: Path, *, key: str) -> None:
    """Write the state; whoever reads sees the old one or the new one, never half of one."""
    state = {
        "key": key,
        "model": training.model.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in training.optimizers],
        "so_far": dict(vars(training.so_far)),
        "random": torch.get_rng_state(),
        "random_cuda": torch.cuda.get_rng_state_all() if training.device.startswith("cuda") else [],
    }
    with replacing(folder / CHECKPOINT) as part:
        torch.save(state, part)


def load_checkpoint(training: Training, folder: Path, *, key: str) -> bool:
    """Put a training where the checkpoint left it; False where there is none.

    Raises BadInput where the checkpoint is damaged, or is of a training of another kind.
    """
    path = folder / CHECKPOINT
    if not path.is_file():
        return False
    state = _read(path)
    if state.get("key") != key:
        raise BadInput(
            f"{folder} holds a training with other settings or another corpus; choose another folder with -o."
        )
    try:
        training.model.load_state_dict(state["model"])
        for optimizer, saved in zip(training.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        training.so_far = Progressed(**state["so_far"])
        torch.set_rng_state(state["random"])
        if training.device.startswith("cuda") and state["random_cuda"]:
            torch.cuda.set_rng_state_all(state["random_cuda"])
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise BadInput(f"{path} is no checkpoint of this training; remove it to begin again.") from error
    return True


def _read(path: Path) -> dict[str, Any]:
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, UnpicklingError, KeyError, ValueError) as error:
        raise BadInput(f"{path} is damaged; remove it to begin again.") from error
    return state if isinstance(state, dict) else {}
