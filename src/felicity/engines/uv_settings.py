"""The package indexes a user set up for uv, in the words of pip.

pip reads its own settings by itself and knows nothing of uv's. Read here are uv's variables and its
`uv.toml` and `pyproject.toml` files, the nearer before the farther.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

Settings = dict[str, list[str]]


def read_uv_settings(environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """uv's indexes by the names of pip's options, each value as pip's variables take it.

    `folder` is where the search for a project's settings begins.
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
    """uv's settings files that are there, the one that counts most first."""
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
    """uv's table of a settings file; empty where there is none that can be read."""
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
    """`url` with the user and password that uv's variables hold for the index called `name`."""
    variable = "UV_INDEX_" + re.sub(r"[^A-Z0-9]", "_", name.upper())
    user, password = (environment.get(f"{variable}_{part}", "") for part in ("USERNAME", "PASSWORD"))
    scheme, marker, rest = url.partition("://")
    if not (name and marker and (user or password)) or "@" in rest.partition("/")[0]:
        return url
    return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{rest}"


def _located(url: str, file: Path) -> str:
    """A path in a settings file counts from the file's folder."""
    return url if "://" in url else (file.parent / url).resolve().as_uri()
