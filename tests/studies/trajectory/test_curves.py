"""Sigmoids of learning curves begin at the accuracy of guessing."""

import numpy as np
import pytest

from felicity.data import read_dataset
from felicity.studies.trajectory.checkpoints import find_chance
from felicity.studies.trajectory.curves import acquire

STEPS = np.array([10.0, 100.0, 1000.0, 10_000.0, 100_000.0])


def test_a_curve_below_half_has_a_midpoint_if_chance_is_lower() -> None:
    right = (21, 25, 33, 42, 45)
    answers = np.array([[1.0] * count + [0.0] * (100 - count) for count in right])
    midpoints = [
        acquire(answers, STEPS, criterion=0.4, draws=100, chance=chance)["midpoint"] for chance in (0.2, 0.5)
    ]
    assert midpoints[0] == pytest.approx(1000, rel=0.5)
    assert midpoints[1] is None


def test_guessing_in_pairs_is_right_half_of_the_time() -> None:
    assert find_chance(read_dataset("starter")) == 0.5


@pytest.mark.data
def test_guessing_in_entity_tracking_is_right_one_time_in_five() -> None:
    assert find_chance(read_dataset("entity_tracking")) == pytest.approx(0.2)
