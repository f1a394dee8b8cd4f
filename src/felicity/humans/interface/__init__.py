"""The words of the site's own buttons and messages, one table per language."""

import tomllib
from functools import cache
from importlib.resources import files

INTERFACES = ("en", "de", "es", "fr", "ja")


@cache
def _strings(language: str) -> dict[str, str]:
    text = files("felicity.humans.interface").joinpath(f"{language}.toml").read_text(encoding="utf-8")
    return dict(tomllib.loads(text))


def read_interface(language: str) -> dict[str, str]:
    """Every string of a built-in language by its name."""
    return dict(_strings(language))
