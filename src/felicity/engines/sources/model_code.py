"""Python code that comes with a model: run only if the user names its very version.

A model whose architecture transformers does not have brings modules of its own, which `auto_map` in its
configuration names. Their version is the commit on the hub; of a folder it is the sha256 of the list that
`sha256sum *.py` prints.
"""

from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput, NotPossible
from felicity.engines.sources.folders import cached_digest, read_config
from felicity.engines.sources.resolve import ModelSource


def permit_code(source: ModelSource, version: str | None) -> ModelSource:
    """The source with the version of its code in its details, if `version` is that of its code.

    Without a version nothing is permitted, and the source stays as it is.

    Raises BadInput for another version or a model without code, NotPossible for code in another repository.
    """
    if version is None:
        return source
    code = find_version(source)
    if code is None:
        raise BadInput(f"'{source.name}' has no Python code of its own; omit --allow-code.")
    if version != code:
        raise BadInput(
            f"The code of '{source.name}' is version {code}, not {version}; read it in {source.folder}, and "
            f"if you trust it, allow it with --allow-code {code}."
        )
    mapped = _read_map(source.folder).values()
    named = [str(name) for given in mapped for name in (given if isinstance(given, list) else [given])]
    other = next((name.partition("--")[0] for name in named if "--" in name), None)
    if other:
        raise NotPossible(
            f"The code of '{source.name}' is in another repository, {other}, whose version felicity cannot "
            "check; save model and code into one folder."
        )
    return replace(source, details=source.details | {"code": code})


def find_version(source: ModelSource) -> str | None:
    """The version of a model's own code; None if it has none."""
    if source.origin == "words" or not _read_map(source.folder):
        return None
    files = sorted(source.folder.glob("*.py"))
    if not files:
        return None
    if "commit" in source.details:
        return str(source.details["commit"])
    listed = "".join(f"{cached_digest(file)}  {file.name}\n" for file in files)
    return sha256(listed.encode()).hexdigest()


def _read_map(folder: Path) -> dict[str, Any]:
    """The classes that the configuration takes from the model's own code.

    Raises BadInput if that is not a table.
    """
    mapped = read_config(folder).get("auto_map") or {}
    if not isinstance(mapped, dict):
        raise BadInput(f"{folder / 'config.json'}: 'auto_map' is not an object; download the model again.")
    return mapped
