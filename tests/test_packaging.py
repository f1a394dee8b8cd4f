"""What is built has everything in it; `.ci/wheel` installs it into an empty environment and runs it."""

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.conftest import ROOT

SOURCE = ROOT / "src"


@pytest.mark.slow
def test_the_wheel_holds_every_file_of_the_package(tmp_path: Path) -> None:
    project = tmp_path / "project"
    shutil.copytree(SOURCE, project / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path)]
    subprocess.run([*command, str(project)], check=True, capture_output=True, text=True)
    (wheel,) = tmp_path.glob("felicity-*.whl")
    with ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("felicity/")}
    files = (path for path in (SOURCE / "felicity").rglob("*") if path.is_file())
    wanted = {path.relative_to(SOURCE).as_posix() for path in files if "__pycache__" not in path.parts}
    assert held == wanted
