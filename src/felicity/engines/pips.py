"""A pip to fetch with, also in environments that have none, as uv makes them."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from felicity.core.errors import NotPossible

# `--progress-bar raw` came with pip 24.1.
RAW_PROGRESS = (24, 1)
BUNDLED = re.compile(r"pip-(\d+)\.(\d+)[^/\\\\]*\.whl")


@dataclass(frozen=True)
class Pip:
    """A command that runs pip, and the version it said it is."""

    command: tuple[str, ...]
    version: tuple[int, ...]

    @property
    def says_progress(self) -> bool:
        """Whether it can write how far a download is."""
        return self.version >= RAW_PROGRESS


def find_pip() -> Pip:
    """The first pip that runs: this interpreter's, the one Python ships with, uv's, another one's.

    Raises NotPossible where there is none.
    """
    for command in _candidates():
        version = _said_version(command)
        if version is not None:
            return Pip(command, version)
    raise NotPossible(
        "There is no pip to fetch the default model with; install pip or uv "
        "(on Debian: python3-venv), or give -m a model folder."
    )


def _candidates() -> list[tuple[str, ...]]:
    """-P keeps what lies in the current folder from being taken for pip."""
    found: list[tuple[str, ...]] = []
    if sys.executable and find_spec("pip") is not None:
        found.append((sys.executable, "-P", "-m", "pip"))
    if sys.executable:
        found += [(sys.executable, str(wheel / "pip")) for wheel in _bundled_wheels()]
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv:
        found.append((uv, "tool", "run", "pip"))
    found += [(path,) for path in map(shutil.which, ("pip3", "pip")) if path]
    return found


def _bundled_wheels() -> list[Path]:
    """pip wheels that came with Python, newest first; pip runs from inside its wheel."""
    folders = []
    spec = find_spec("ensurepip")
    if spec is not None and spec.origin:
        folders.append(Path(spec.origin).parent / "_bundled")
    distributors = sysconfig.get_config_var("WHEEL_PKG_DIR")
    if distributors:
        folders.append(Path(distributors))
    return [wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"), reverse=True)]


def _said_version(command: tuple[str, ...]) -> tuple[int, ...] | None:
    """The version of a pip that runs; None of one that does not."""
    bundled = BUNDLED.search(command[-1])
    if bundled:
        # Out of its wheel pip takes seconds to start, and its version is in the name.
        return int(bundled[1]), int(bundled[2])
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    found = re.match(r"pip (\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if done.returncode == 0 and found else None
