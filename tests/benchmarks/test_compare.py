"""The benchmark runs: a tiny model, few texts, felicity alone where its peers are not installed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "compare.py"


@pytest.mark.slow
def test_a_smoke_run_scores_every_work(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "--smoke", "--without-peers", "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rounds = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["work"] for each in rounds] == ["blimp", "blimp whole", "one context", "sweep", "study"]
    assert all(each["felicity"] > 0 for each in rounds)
