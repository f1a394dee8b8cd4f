"""pip for downloading, with uv's index settings, even in environments without pip, as uv makes them."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

from felicity.core.errors import NotPossible

Settings = dict[str, list[str]]
SETTING = re.compile(r"(?:global|download|:env:)\.([a-z-]+)=")
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


def read_uv_settings(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """uv's indexes by the names of pip's options, each value in the form of pip's variables.

    `folder` is where the search for a project's settings starts.
    """
    found: Settings = {"index-url": [], "extra-index-url": [], "find-links": [], "no-index": []}
    _add_variables(found, environment)
    for file in _settings_files(environment, folder):
        _add_file(found, file, environment)
    options = {name: " ".join(values) for name, values in found.items() if values}
    if found["index-url"]:
        options["index-url"] = found["index-url"][0]
    if found["no-index"]:
        options["no-index"] = "1"
    return options


def _add_variables(found: Settings, environment: Mapping[str, str]) -> None:
    default = environment.get("UV_DEFAULT_INDEX") or environment.get("UV_INDEX_URL")
    extra = f"{environment.get('UV_INDEX', '')} {environment.get('UV_EXTRA_INDEX_URL', '')}".split()
    links = environment.get("UV_FIND_LINKS", "").replace(",", " ").split()
    if default:
        found["index-url"].append(_address(default, environment))
    found["extra-index-url"] += [_address(entry, environment) for entry in extra]
    found["find-links"] += links
    if environment.get("UV_NO_INDEX", "").lower() in ("1", "true", "yes"):
        found["no-index"].append("1")


def _add_file(found: Settings, file: Path, environment: Mapping[str, str]) -> None:
    settings = _read_settings(file)
    for table in (settings, settings.get("pip", {})):
        if table.get("index-url"):
            found["index-url"].append(_located(table["index-url"], file))
        found["extra-index-url"] += [_located(url, file) for url in table.get("extra-index-url", [])]
        found["find-links"] += [_located(url, file) for url in table.get("find-links", [])]
        if table.get("no-index"):
            found["no-index"].append("1")
    for index in settings.get("index", []):
        if index.get("explicit") or not index.get("url"):
            continue
        option = "index-url" if index.get("default") else "extra-index-url"
        if index.get("format") == "flat":
            option = "find-links"
        url = _located(index["url"], file)
        found[option].append(_with_credentials(url, index.get("name", ""), environment))


def _settings_files(environment: Mapping[str, str], folder: Path) -> Iterable[Path]:
    """uv's settings files that exist, in order of precedence."""
    if environment.get("UV_CONFIG_FILE"):
        return [Path(environment["UV_CONFIG_FILE"])]
    if environment.get("UV_NO_CONFIG"):
        return []
    project = [_project_file(place) for place in (folder, *folder.parents)]
    home = Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    roaming = [Path(environment["APPDATA"])] if environment.get("APPDATA") else []
    system = [Path(place) for place in environment.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":") if place]
    places = [*roaming, home, *system, Path("/etc")]
    nearest = [file for file in project if file is not None][:1]
    return [*nearest, *(place / "uv" / "uv.toml" for place in places)]


def _project_file(folder: Path) -> Path | None:
    if (folder / "uv.toml").is_file():
        return folder / "uv.toml"
    pyproject = folder / "pyproject.toml"
    return pyproject if _read_settings(pyproject) else None


def _read_settings(file: Path) -> dict[str, Any]:
    """uv's table in a settings file; empty if there is none that can be read."""
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if file.name == "pyproject.toml":
        settings = settings.get("tool", {}).get("uv", {})
    return settings if isinstance(settings, dict) else {}


def _address(entry: str, environment: Mapping[str, str]) -> str:
    """The address in `name=address` or `address`."""
    name, equals, url = entry.partition("=")
    if equals and re.fullmatch(r"[\w.-]+", name):
        return _with_credentials(url, name, environment)
    return entry


def _with_credentials(url: str, name: str, environment: Mapping[str, str]) -> str:
    """`url` with the user and password that uv's variables give for the index `name`."""
    variable = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
    user, password = (environment.get(f"{variable}_{part}", "") for part in ("USERNAME", "PASSWORD"))
    scheme, marker, rest = url.partition("://")
    if not (name and marker and (user or password)) or "@" in rest.partition("/")[0]:
        return url
    return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{rest}"


def _located(url: str, file: Path) -> str:
    """Paths in a settings file are relative to the file's folder."""
    return url if "://" in url else (file.parent / url).resolve().as_uri()


def build_pip_environment(command: tuple[str, ...]) -> dict[str, str]:
    """The environment variables for running pip, so that a private index works as the user set it up.

    Addresses are passed as variables, not as arguments: they may contain a password, and arguments are
    visible to everyone on the machine.
    """
    environment = dict(os.environ) | FIXED
    configured = _configured(command)
    wanted = read_uv_settings(os.environ, Path.cwd())
    authority = os.environ.get("SSL_CERT_FILE")
    if authority and Path(authority).is_file() and not any(map(os.environ.get, CERTIFICATES)):
        wanted["cert"] = authority
    for option, value in wanted.items():
        if option not in configured:
            environment["PIP_" + option.upper().replace("-", "_")] = value
    return environment


def _configured(command: tuple[str, ...]) -> set[str]:
    """The options set by pip's own files and variables."""
    done = subprocess.run([*command, "config", "list"], capture_output=True, text=True, check=False)
    return {found[1] for found in map(SETTING.match, done.stdout.splitlines()) if found}


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
