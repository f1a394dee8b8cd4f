"""Simulated raters: what each would answer, to pilot a study before anybody is paid.

Each has habits of its own: a bias, a way of using the scale, noise that grows with fatigue, and sometimes
no interest at all.
"""

import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

from felicity.humans.stimuli import Stimulus
from felicity.humans.study import RatingStudy

CLOZE_WORDS = ("house", "dog", "way", "morning", "people", "friend", "idea", "door")
LATENT_SD = 1.3


@dataclass(frozen=True)
class Population:
    """Who takes part: standard deviations are on a latent scale on which conditions differ by `effect`."""

    raters: int = 30
    effect: float = 1.0
    item_sd: float = 0.5
    bias_sd: float = 0.5
    scale_sd: float = 0.2
    noise_sd: float = 0.7
    fatigue: float = 0.3
    clickers: float = 0.0
    dropout: float = 0.0
    double_clicks: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class SimulatedRater:
    """The habits of one rater; `leaves_at` is the share of trials after which they drop out."""

    bias: float
    scale: float
    noise: float
    fatigue: float
    clicker: bool
    leaves_at: float | None
    double_clicks: float


def draw_rater(population: Population, number: int) -> SimulatedRater:
    """The rater with this number, always the same for the same seed."""
    rng = random.Random(f"{population.seed} rater {number}")
    leaves = rng.random() if rng.random() < population.dropout else None
    return SimulatedRater(
        bias=rng.gauss(0, population.bias_sd),
        scale=math.exp(rng.gauss(0, population.scale_sd)),
        noise=population.noise_sd,
        fatigue=population.fatigue,
        clicker=rng.random() < population.clickers,
        leaves_at=leaves,
        double_clicks=population.double_clicks,
    )


def find_truth(study: RatingStudy, population: Population) -> dict[int, float]:
    """How good each stimulus is: its column `truth` if it has one, else by condition and item.

    Conditions are evenly spaced in the order of the table, the first one best, `effect` from end to end.
    """
    conditions = list(dict.fromkeys(one.condition for one in study.stimuli if one.role == "target"))
    steps = max(len(conditions) - 1, 1)
    truth = {}
    for stimulus in study.stimuli:
        given = stimulus.factors.get("truth", "")
        try:
            truth[stimulus.row] = float(given)
        except ValueError:
            rng = random.Random(f"{population.seed} item {stimulus.item}")
            step = conditions.index(stimulus.condition) if stimulus.condition in conditions else steps / 2
            level = population.effect * (0.5 - step / steps) if len(conditions) > 1 else 0.0
            truth[stimulus.row] = level + rng.gauss(0, population.item_sd)
    return truth


def draw_answer(
    study: RatingStudy,
    stimulus: Stimulus,
    truth: float,
    habits: SimulatedRater,
    done: float,
    rng: random.Random,
) -> dict[str, str]:
    """The fields of the form that this rater would send; `done` is the share of trials behind them."""
    noise = habits.noise * (1 + habits.fatigue * done)
    latent = (
        rng.gauss(0, 1) * LATENT_SD
        if habits.clicker
        else habits.scale * (truth + habits.bias + rng.gauss(0, noise))
    )
    rt = rng.lognormvariate(5.5 if habits.clicker else 8.0, 0.4) * (1 - 0.3 * done)
    fields = {"script": "1", "rt": f"{rt:.1f}", "away": ""}
    if stimulus.answer and not habits.clicker:
        return fields | {"answer": stimulus.answer}
    return fields | TASK_ANSWERS[study.task.kind](study, stimulus, latent, rng)


def _share(latent: float) -> float:
    return NormalDist(0, LATENT_SD).cdf(latent)


def _likert(study: RatingStudy, _stimulus: Stimulus, latent: float, _rng: random.Random) -> dict[str, str]:
    points = study.task.points
    return {"answer": str(min(int(_share(latent) * points), points - 1) + 1)}


def _times(study: RatingStudy, stimulus: Stimulus, latent: float, rng: random.Random) -> dict[str, str]:
    """Words are read more slowly the worse the sentence is; a Maze is sometimes missed."""
    rows: list[dict[str, float | bool]] = []
    for _ in stimulus.text.split():
        right = study.task.kind == "reading" or not rows or rng.random() > 0.02
        rows.append({"ms": round(rng.lognormvariate(5.9 - 0.05 * latent, 0.3), 2), "correct": right})
        if not right and study.task.on_error == "stop":
            break
    # Their screens are redrawn 60 times a second, and now and then leave a frame out.
    frames = int(sum(float(row["ms"]) for row in rows) * 60 / 1000)
    dropped = sum(rng.random() < 0.002 for _ in range(frames))
    screen = {"frames": frames, "hz": 60.0, "dropped": dropped, "clock_ms": 0.1}
    screen["longest_ms"] = 33.3 if dropped else 16.7
    return {"times": json.dumps(rows), "frames": json.dumps(screen)}


def _text(_study: RatingStudy, _stimulus: Stimulus, _latent: float, rng: random.Random) -> dict[str, str]:
    word = rng.choice(CLOZE_WORDS)
    return {"answer": word, "typed": str(len(word)), "pasted": ""}


TASK_ANSWERS: dict[str, Callable[[RatingStudy, Stimulus, float, random.Random], dict[str, str]]] = {
    "likert": _likert,
    "binary": lambda _study, _stimulus, latent, _rng: {"answer": "1" if latent > 0 else "0"},
    "choice": lambda _study, _stimulus, latent, _rng: {"answer": "a" if latent > 0 else "b"},
    "slider": lambda study, _stimulus, latent, _rng: {
        "answer": f"{study.task.minimum + (study.task.maximum - study.task.minimum) * _share(latent):.1f}"
    },
    "magnitude": lambda study, _stimulus, latent, _rng: {
        "answer": f"{study.task.modulus * math.exp(latent / 2):.3f}"
    },
    "cloze": _text,
    "continuation": _text,
    "reading": _times,
    "maze": _times,
}
