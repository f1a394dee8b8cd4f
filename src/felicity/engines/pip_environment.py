"""The variables pip is run with: the user's own, and uv's settings where pip has none."""

import os
import re
import subprocess
from pathlib import Path

from felicity.engines.uv_settings import read_uv_settings

SETTING = re.compile(r"(?:global|download|:env:)\.([a-z-]+)=")
# pip reads certificates from these; uv and Python from SSL_CERT_FILE.
CERTIFICATES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
# What is fetched is no installation, and is checked by its content afterwards.
FIXED = {
    "PIP_REQUIRE_VIRTUALENV": "0",
    "PIP_REQUIRE_HASHES": "0",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_NO_INPUT": "1",
    "PYTHONUNBUFFERED": "1",
}


def build_pip_environment(command: tuple[str, ...]) -> dict[str, str]:
    """Every variable for running pip, so that a private index works as the user set it up.

    Addresses go by variables, not by arguments: they may hold a password, and arguments can be read
    by everyone on the machine.
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
    """The options that pip's own files and variables set."""
    done = subprocess.run([*command, "config", "list"], capture_output=True, text=True, check=False)
    return {found[1] for found in map(SETTING.match, done.stdout.splitlines()) if found}
