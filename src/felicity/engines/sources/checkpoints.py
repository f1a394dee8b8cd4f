"""Checkpoints of one training: revisions of a hub model, or the folders in a folder."""

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from felicity.core.errors import BadInput

WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "*.arpa*")
NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*([kKmMbBgG]?)(?![a-zA-Z])")
SCALES = {"": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9}


@dataclass(frozen=True)
class Checkpoint:
    """One checkpoint: `spec` opens it, `name` is its name in tables, `step` how far training was."""

    training: str
    label: str
    spec: str
    step: float

    @property
    def name(self) -> str:
        """The training and the label, which together are unique."""
        return f"{self.training}-{self.label}"


def read_step(label: str) -> float:
    """The step, or number of words, in the name of a checkpoint: its last number.

    >>> [read_step(label) for label in ("checkpoint-500", "chck_10M", "step3000", "words-1.5k")]
    [500.0, 10000000.0, 3000.0, 1500.0]

    Raises BadInput if there is none.
    """
    found = NUMBER.findall(label)
    if not found:
        raise BadInput(f"The checkpoint '{label}' has no number, so its place in training is unknown.")
    number, scale = found[-1]
    return float(number) * SCALES[scale.lower()]


def list_checkpoints(spec: str) -> list[Checkpoint]:
    """The checkpoints that a model of a trajectory names, in the order of training.

    `org/name@a,b,c` are revisions; a folder, or a pattern such as `out/checkpoint-*`, has one folder each.

    >>> [one.name for one in list_checkpoints("org/babylm@chck_10M,chck_1M")]
    ['babylm-chck_1M', 'babylm-chck_10M']

    Raises BadInput if there are no checkpoints, or two at the same step.
    """
    repository, _, revisions = spec.partition("@")
    if revisions and not Path(spec).exists():
        training = repository.rpartition("/")[2]
        found = [
            Checkpoint(training, label, f"{repository}@{label}", read_step(label))
            for label in revisions.split(",")
            if label
        ]
    else:
        found = [_describe(folder) for folder in _list_folders(spec)]
    if not found:
        raise BadInput(
            f"{spec} has no checkpoints; give a folder of model folders, a pattern such as "
            "'out/checkpoint-*', or revisions such as org/model@step1,step10."
        )
    found.sort(key=lambda one: one.step)
    for one, next_one in pairwise(found):
        if one.step == next_one.step:
            raise BadInput(f"Two checkpoints of {spec} are at step {one.step:g}; rename or remove one.")
    return found


def _list_folders(spec: str) -> list[Path]:
    path = Path(spec).expanduser()
    if "*" in path.name:
        candidates = sorted(path.parent.glob(path.name))
    else:
        candidates = sorted(path.iterdir()) if path.is_dir() else []
    return [
        folder
        for folder in candidates
        if folder.is_dir() and any(next(folder.glob(pattern), None) for pattern in WEIGHTS)
    ]


def _describe(folder: Path) -> Checkpoint:
    parent = folder.resolve().parent
    training = parent.parent.name if parent.name == "checkpoints" else parent.name
    return Checkpoint(training, folder.name, str(folder), read_step(folder.name))
