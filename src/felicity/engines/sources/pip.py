"""pip for downloading, even in environments without it, as uv makes them."""

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

CERTIFICATE_SET = re.compile(r"(?:global|download|:env:)\.cert=")
# pip reads certificates from these variables; uv and Python from SSL_CERT_FILE.
CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
# Nothing is installed, and what is downloaded is checked by its content.
FIXED = {
    "PIP_REQUIRE_VIRTUALENV": "0",
    "PIP_REQUIRE_HASHES": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PYTHONUNBUFFERED": "1",
}
# `--progress-bar raw` exists since pip 24.1.
RAW_PROGRESS = (24, 1)
BUNDLED = re.compile(r"pip-(\d+)\.(\d+)[^/\\\\]*\.whl")


def build_pip_environment(command: tuple[str, ...]) -> dict[str, str]:
    """The environment variables for running pip, whose own settings name a private index."""
    environment = dict(os.environ) | FIXED
    authority = os.environ.get("SSL_CERT_FILE")
    if authority and Path(authority).is_file() and not any(map(os.environ.get, CERTIFICATES)):
        done = subprocess.run([*command, "config", "list"], capture_output=True, text=True, check=False)
        if not any(map(CERTIFICATE_SET.match, done.stdout.splitlines())):
            environment["PIP_CERT"] = authority
    return environment


@dataclass(frozen=True)
class Pip:
    """A command that runs pip, and its version."""

    command: tuple[str, ...]
    version: tuple[int, ...]

    @property
    def reports_progress(self) -> bool:
        """Whether it can report the progress of a download."""
        return self.version >= RAW_PROGRESS


def find_pip() -> Pip:
    """The first pip that runs: this interpreter's, the one bundled with Python, uv's, or another.

    Raises NotPossible if there is none.
    """
    for command in _candidates():
        version = _read_version(command)
        if version is not None:
            return Pip(command, version)
    raise NotPossible(
        "Downloading the default model needs pip; install pip or uv "
        "(on Debian: python3-venv), or give -m a model folder."
    )


def _candidates() -> list[tuple[str, ...]]:
    """-P keeps a file in the current folder from being run as pip."""
    commands: list[tuple[str, ...]] = []
    if sys.executable and find_spec("pip") is not None:
        commands.append((sys.executable, "-P", "-m", "pip"))
    if sys.executable:
        commands += [(sys.executable, str(wheel / "pip")) for wheel in _bundled_wheels()]
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv:
        commands.append((uv, "tool", "run", "pip"))
    commands += [(path,) for path in map(shutil.which, ("pip3", "pip")) if path]
    return commands


def _bundled_wheels() -> list[Path]:
    """pip wheels bundled with Python, newest first; pip runs from inside its wheel."""
    folders = []
    spec = find_spec("ensurepip")
    if spec is not None and spec.origin:
        folders.append(Path(spec.origin).parent / "_bundled")
    distributors = sysconfig.get_config_var("WHEEL_PKG_DIR")
    if distributors:
        folders.append(Path(distributors))
    return [wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"), reverse=True)]


def _read_version(command: tuple[str, ...]) -> tuple[int, ...] | None:
    """The version of a pip, or None if it does not run."""
    bundled = BUNDLED.search(command[-1])
    if bundled:
        # Started from its wheel pip takes seconds, and the version is in the file name.
        return int(bundled[1]), int(bundled[2])
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    found = re.match(r"pip (\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if done.returncode == 0 and found else None
