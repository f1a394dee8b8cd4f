"""The words of the site's own buttons and messages, one table per language."""

from felicity.core.documents import read_packaged_toml

INTERFACES = ("en", "ar", "de", "es", "fr", "ja", "nl", "tr", "zh")


def read_interface(language: str) -> dict[str, str]:
    """Every string of a built-in language by its name."""
    return dict(read_packaged_toml("felicity.humans.interface", f"{language}.toml"))
