"""What the checks cost: the share of a run that checksums, digests and waiting for the disk take.

    python benchmarks/reliability.py              # 3 rounds of 5 pairs per BLiMP paradigm
    python benchmarks/reliability.py 5 20         # 5 rounds of 20 pairs

Each round is a run of BLiMP with the default model and no scores in the cache, then the same run out of the
cache, each in a process of its own. The checks are timed where they happen. Needs $FELICITY_DATA. Writes a
section of RESULTS.md.
"""

import importlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import report
from felicity.core.files import cache_folder

# What is checked, and the functions that do it; of nested ones the outermost is timed.
CHECKS = {
    "checksums of scores": ("felicity.run.store:_checksum", "felicity.run.store:ScoreStore._keep_checksums"),
    "digests of the run's tables": ("felicity.run.folder:add_digests",),
    "digests of the model's files": ("felicity.engines.sources.resolve:refuse_damaged",),
    "weights that are numbers": ("felicity.engines.runtime.pretrained:refuse_broken_weights",),
    "digests of remembered facts": ("felicity.core.memo:_digest",),
    "files on disk before they replace others": ("felicity.core.files:_sync",),
}

NAMES = ("new scores", "scores in the cache")


class Clock:
    """Seconds by the clock and of the processor that some functions take."""

    def __init__(self) -> None:
        self.seconds = {name: [0.0, 0.0] for name in CHECKS}
        self._inside = False

    def time(self, place: str, name: str) -> None:
        """Time one function from now on."""
        module, _, path = place.partition(":")
        *owners, last = path.split(".")
        owner: Any = importlib.import_module(module)
        for part in owners:
            owner = getattr(owner, part)
        setattr(owner, last, self._wrap(getattr(owner, last), name))

    def _wrap(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def timed(*given: Any, **named: Any) -> Any:
            if self._inside:
                return function(*given, **named)
            self._inside = True
            clock, processor = time.perf_counter(), time.process_time()
            try:
                return function(*given, **named)
            finally:
                self.seconds[name][0] += time.perf_counter() - clock
                self.seconds[name][1] += time.process_time() - processor
                self._inside = False

        return timed


def run_timed(told: Path, arguments: list[str]) -> None:
    """The command line in this process, with the checks timed."""
    clock = Clock()
    for name, places in CHECKS.items():
        for place in places:
            clock.time(place, name)
    sys.argv = ["felicity", *arguments]
    from felicity.cli.app import main

    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise
    told.write_text(json.dumps(clock.seconds))


def run_round(folder: Path, pairs: int) -> dict[str, dict[str, list[float]]]:
    """Seconds of the checks and of the whole process, without scores in the cache and with them."""
    found = {}
    # What is remembered of the model is there, as it is for a user after the first run.
    shutil.copytree(cache_folder(), folder / "cache", ignore=shutil.ignore_patterns("models", "scores"))
    (folder / "cache" / "models").symlink_to(cache_folder() / "models")
    environment = os.environ | {"FELICITY_CACHE": str(folder / "cache")}
    asked = ["run", "blimp", "-m", "smollm2", "--sample", str(pairs), "--no-report", "--quiet"]
    for name in NAMES:
        told = folder / f"{name}.json"
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        clock = time.perf_counter()
        line = [sys.executable, __file__, "--timed", str(told), *asked, "-o", str(folder / name)]
        subprocess.run(line, env=environment, check=True, stdout=subprocess.DEVNULL)
        clock = time.perf_counter() - clock
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        found[name] = json.loads(told.read_text()) | {"whole": [clock, processor]}
    return found


def main() -> None:
    """Write a section of RESULTS.md."""
    if "--timed" in sys.argv:
        run_timed(Path(sys.argv[2]), sys.argv[3:])
        return
    rounds, pairs = (int(sys.argv[place]) if len(sys.argv) > place else n for place, n in ((1, 3), (2, 5)))
    with tempfile.TemporaryDirectory() as folder:
        found = [run_round(Path(folder) / str(number), pairs) for number in range(rounds)]
    lines = [
        f"BLiMP, {pairs} pairs of each paradigm, SmolLM2, {rounds} rounds: median share of the whole process "
        "(seconds by the clock / of the processor).",
        "",
        f"| check | {' | '.join(NAMES)} |",
        "|---|---|---|",
    ]
    for check in (*CHECKS, "all checks"):
        cells = []
        for name in NAMES:
            parts = list(CHECKS) if check == "all checks" else [check]
            shares = [
                [sum(each[name][part][kind] for part in parts) / each[name]["whole"][kind] for kind in (0, 1)]
                for each in found
            ]
            by_clock, by_processor = (100 * median(kind) for kind in zip(*shares, strict=True))
            cells.append(f"{by_clock:.2f}% / {by_processor:.2f}%")
        lines.append(f"| {check} | {' | '.join(cells)} |")
    whole = [median(each[name]["whole"][0] for each in found) for name in NAMES]
    lines.append(f"| the whole process | {' | '.join(f'{seconds:.1f} s' for seconds in whole)} |")
    print("\n".join(lines), flush=True)
    report.write_section("What the checks cost", lines)


if __name__ == "__main__":
    main()
