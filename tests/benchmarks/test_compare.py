"""The benchmark runs: a tiny model, few texts, felicity alone where its peers are not installed."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import make_tiny_model

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "compare.py"


@pytest.mark.slow
def test_a_smoke_run_scores_every_work(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--smoke", "--without-peers", "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["work"] for each in rounds] == ["blimp", "blimp whole", "one context", "sweep", "study"]
    assert all(each["felicity"] > 0 for each in rounds)


@pytest.mark.data
@pytest.mark.slow
def test_the_acceptability_benchmark_carries_out_its_study(
    published: Callable[[str], Path], tmp_path: Path
) -> None:
    published("lau2020")
    model = make_tiny_model(tmp_path / "tiny", seed=1, window=2048)
    script = SCRIPT.with_name("acceptability.py")
    command = [sys.executable, str(script), "--without-peers", "--sentences", "8", "--rounds", "1"]
    done = subprocess.run([*command, "--model", str(model)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "24 requests" in done.stdout
