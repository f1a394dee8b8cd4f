"""The inference over suites, simulated: coverage near .95, errors at most about .05."""

import runpy
from pathlib import Path

import pytest

SCRIPT = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "coverage.py"))
REPLICATES = 2_000

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("suites", [1, 2, 4, 8, 30])
@pytest.mark.parametrize("sd", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("items", [10, 100])
def test_intervals_of_accuracies_cover_the_truth(suites: int, sd: float, items: int) -> None:
    for accuracy in (0.5, 0.8):
        covered, _ = SCRIPT["cover_accuracy"](accuracy, items, sd, suites, replicates=REPLICATES, seed=7)
        # 2,000 samples give .95 to +-.01; with two suites of ten items it depends on the accuracy (.925).
        assert covered >= 0.915, accuracy


@pytest.mark.parametrize("suites", [1, 2, 4, 8, 30])
@pytest.mark.parametrize("sd", [0.0, 1.0])
def test_differences_are_covered_and_no_difference_is_seldom_found(suites: int, sd: float) -> None:
    for items in (10, 60):
        covered, found = SCRIPT["cover_difference"](
            0.8, 0.8, items, sd, suites, replicates=REPLICATES, seed=7
        )
        assert covered >= 0.935
        assert found <= 0.065
        covered, _ = SCRIPT["cover_difference"](0.85, 0.7, items, sd, suites, replicates=REPLICATES, seed=7)
        assert covered >= 0.93
