"""The notebooks of the docs run to their end, and their pages show the code that is run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_every_notebook_runs_and_its_page_is_up_to_date() -> None:
    threads = {"OMP_NUM_THREADS": "1", "JUPYTER_PLATFORM_DIRS": "1"}
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "notebooks.py"), "--check"],
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | threads,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(list((ROOT / "docs" / "notebooks").glob("*.md"))) == 3
