"""The package indexes a user set up for uv, said in pip's words.

pip reads its own settings by itself; it knows nothing of uv's.
"""

import os
import re
import subprocess

CONFIGURED = re.compile(r"^(?:global|download|:env:)\.([a-z-]+)=")


def pip_environment(command: tuple[str, ...]) -> dict[str, str]:
    """Variables to run pip with: uv's indexes where pip has none of its own."""
    ours = {"PYTHONUNBUFFERED": "1", "PIP_REQUIRE_VIRTUALENV": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    configured = _configured(command)
    return ours | {
        "PIP_" + name.upper().replace("-", "_"): value
        for name, value in read_uv_indexes().items()
        if name not in configured
    }


def read_uv_indexes() -> dict[str, str]:
    """uv's indexes by the name of pip's option."""
    found = {
        "index-url": os.environ.get("UV_DEFAULT_INDEX") or os.environ.get("UV_INDEX_URL"),
        "extra-index-url": os.environ.get("UV_INDEX") or os.environ.get("UV_EXTRA_INDEX_URL"),
        "find-links": os.environ.get("UV_FIND_LINKS", "").replace(",", " "),
    }
    return {name: value for name, value in found.items() if value}


def _configured(command: tuple[str, ...]) -> set[str]:
    done = subprocess.run([*command, "config", "list"], capture_output=True, text=True, check=False)
    return {found[1] for found in map(CONFIGURED.match, done.stdout.splitlines()) if found}
