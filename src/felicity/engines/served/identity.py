"""Which model stands behind an address: weights cannot be hashed, so it is known by what it says.

The log-probabilities of the probe are kept with the user's cache. A server that gives them again, within
rounding, is taken for the same model; one that does not has another behind the same name, and its scores
are kept apart.
"""

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from felicity.core.files import cache_folder, disk_errors, replacing
from felicity.core.ids import fingerprint

# Mean absolute difference in nats below which two probes are of one model: rounding in bfloat16 makes
# about 0.01, the nearest other checkpoints several times as much.
SAME = 0.02
# Of float32; no measurement on a few sentences is believed below it.
LEAST_NOISE = 1e-4
SAFETY = 2.0
DIGITS = 4

# Short, so that any window takes them, and plain, so that any server's tokens can be read.
PROBE = (
    "The keys to the old cabinet were on the table.",
    "Nobody had ever heard of Zanzibar or quarks.",
    "In 1911 she won it a second time.",
    '"No", he said; naive as ever, he didn\'t mind.',
)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What the model is known by, and how far its scores move with what else the server is doing."""

    digest: str
    noise: float


def identify(server: dict[str, Any], values: list[float], *, noise: float) -> Identity:
    """The identity that was given to this server's model before, or a new one.

    server: what it says of itself, with its address and the model's name.
    """
    folder = cache_folder() / "served" / fingerprint(server)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        known = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    same = [(_distance(record["probe"], values), record) for record in known]
    near = [(distance, record) for distance, record in same if distance <= SAME]
    if near:
        record = min(near, key=lambda pair: pair[0])[1]
        return Identity(digest=record["digest"], noise=record["noise"])
    digest = fingerprint([server, [round(value, DIGITS) for value in values]])
    record = {"digest": digest, "noise": noise, "server": server, "probe": values}
    with replacing(folder / f"{digest}.json") as part:
        part.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return Identity(digest=digest, noise=noise)


def measure_noise(alone: list[float], together: list[list[float]]) -> float:
    """Nats by which the sum of a sentence moves with what else is scored, from sums found both ways.

    >>> measure_noise([-10.0, -20.0], [[-10.0, -20.25], [-10.0, -20.0]])
    0.5
    """
    shifts = np.abs(np.array(together) - np.array(alone)) if together else np.zeros(1)
    return max(LEAST_NOISE, float(f"{SAFETY * shifts.max():.1e}"))


def _distance(before: list[float], now: list[float]) -> float:
    if len(before) != len(now):
        return np.inf
    return float(np.mean(np.abs(np.array(before) - np.array(now)))) if now else 0.0
