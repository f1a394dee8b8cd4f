"""How long a command takes before and besides scoring, as ratios to a floor measured in the same rounds.

    python benchmarks/startup.py                 # 5 rounds on the default model

The floor is a process that imports torch and reads the model's weights, and does nothing else. The ratio of
processor time tells more than that of the clock where others share the machine.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import report
from felicity.engines.sources.resolve import resolve_source

FLOOR = "import torch; from safetensors.torch import load_file; load_file({weights!r})"
JUDGE = ("judge", "The cats annoy Tim.", "The cats annoys Tim.")
RUN = ("run", "starter", "--sample", "2", "--no-report")


def main() -> None:
    """Write a section of RESULTS.md."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--rounds", type=int, default=5)
    rounds = options.parse_args().rounds
    source = resolve_source("smollm2")
    floor = [sys.executable, "-c", FLOOR.format(weights=str(source.folder / "model.safetensors"))]
    taken: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as place, tempfile.TemporaryDirectory() as other:
            for cache in (place, other):
                (Path(cache) / "models").symlink_to(source.folder.parent)
            os.environ["FELICITY_CACHE"] = other
            unmeasured = measure(felicity(*JUDGE, "--bos", "declared"))
            os.environ["FELICITY_CACHE"] = place
            new = f"The cats annoy all {number + 2} of us."
            out = str(Path(place) / "run")
            for name, command in (
                ("floor: import torch, read the weights", floor),
                ("judge, nothing known of the model", felicity(*JUDGE)),
                ("judge, other sentences", felicity("judge", new, JUDGE[2])),
                ("judge, scores in the cache", felicity(*JUDGE)),
                ("run, 24 pairs", felicity(*RUN, "-o", out)),
                ("run, scores in the cache", felicity(*RUN, "-o", f"{out}-again")),
            ):
                taken.setdefault(name, []).append(measure(command))
            taken.setdefault("judge --bos declared, nothing known of the model", []).append(unmeasured)
    base = next(iter(taken.values()))
    lines = [
        "| process | seconds | processor seconds | ratio to the floor | ratio of processor time |",
        "|---|---|---|---|---|",
    ]
    for name, found in taken.items():
        ratios = [
            median(mine[kind] / least[kind] for mine, least in zip(found, base, strict=True))
            for kind in (0, 1)
        ]
        clock, processor = (median(one[kind] for one in found) for kind in (0, 1))
        lines.append(f"| {name} | {clock:.2f} | {processor:.2f} | {ratios[0]:.2f} | {ratios[1]:.2f} |")
    lines += ["", f"Medians of {rounds} rounds; {os.getloadavg()[0]:.1f} processes wanted to run at the end."]
    print("\n".join(lines))
    report.write_section("Start-up: the default model", lines)


def felicity(*arguments: str) -> list[str]:
    """The command line in a process of its own."""
    return [sys.executable, "-m", "felicity", *arguments]


def measure(command: list[str]) -> tuple[float, float]:
    """Seconds by the clock, and of the processor, that a process takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    clock = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
