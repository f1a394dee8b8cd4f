"""The explorer at the size of BLiMP: 67,000 pairs under two models, through the real server.

The scores are random numbers, written by the same functions that write a run; what is measured is the time
from a question to its answer and the memory of the server's process.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx
import numpy as np
import polars as pl

from felicity.core.contrasts import PAIR
from felicity.design import build_requests
from felicity.judge import judge_contrasts
from felicity.measures import score_measures
from felicity.run import RunFolder, Verdicts, write_verdicts
from felicity.web import find_port

SUITES, PAIRS = 67, 1000
WORDS = ("the", "cats", "near", "old", "trees", "annoy", "Tim", "and", "sleep", "here")
FIRST_PAGE_MS, FACET_MS, MEMORY_MB = 1000, 300, 500
QUESTIONS = {
    "first page": "items",
    "phenomenon": "items?phenomenon=phenomenon_3",
    "two facets": "items?phenomenon=phenomenon_3&verdict=wrong",
    "search": "items?q=annoy+tim",
    "margin, sorted": "items?low=0&high=2&sort=margin",
    "page 1,000": "items?page=1000",
    "item": "item?key=suite_40/500",
    "compare": "compare?pick=disagree",
    "suites": "suites",
}


def main() -> int:
    """Measure, print a line per question, and fail above the limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=PAIRS, help="pairs in each of the 67 suites")
    options = parser.parse_args()
    print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {SUITES * options.pairs:,} pairs, 2 models"
    )
    with tempfile.TemporaryDirectory() as name:
        runs = [write_run(Path(name) / model, model, seed, options.pairs) for seed, model in enumerate("ab")]
        return measure(runs)


def write_run(path: Path, model: str, seed: int, pairs: int) -> Path:
    """A run folder of random scores on generated pairs."""
    rng = np.random.default_rng(0)
    count = SUITES * pairs
    names = [f"suite_{suite}/{pair}" for suite in range(SUITES) for pair in range(pairs)]
    texts = [" ".join(WORDS[word] for word in row) for row in rng.integers(0, len(WORDS), (2 * count, 9))]
    labels = {
        "item": names * 2,
        "suite": [name.split("/")[0] for name in names] * 2,
        "phenomenon": [f"phenomenon_{int(name.split('/')[0].split('_')[1]) % 12}" for name in names] * 2,
        "condition": ["good"] * count + ["bad"] * count,
        "text": texts,
    }
    items = pl.DataFrame(labels)
    requests, contexts = build_requests(items)
    pieces = [text.split() for text in requests["text"].to_list()]
    ends = [np.cumsum([len(word) + 1 for word in own]) - 1 for own in pieces]
    values = np.random.default_rng(seed + 1).gamma(2.0, -2.0 / -1.0, (len(pieces), 9))
    tokens = pl.DataFrame(
        {
            "request": requests["request"],
            "tokens": pieces,
            "start": [[0, *(end[:-1] + 1)] for end in ends],
            "end": [end.tolist() for end in ends],
            "logprob": (-values).tolist(),
        },
        schema_overrides={
            "start": pl.List(pl.UInt32),
            "end": pl.List(pl.UInt32),
            "logprob": pl.List(pl.Float32),
        },
    )
    folder = RunFolder(path)
    folder.prepare()
    for table, frame in {
        "items": items,
        "requests": requests,
        "contexts": contexts,
        "tokens": tokens,
    }.items():
        folder.write(table, frame)
    scores = score_measures(tokens, ("lp",), noise=1e-4).scores
    folder.write("scores", scores)
    judged = judge_contrasts(items, requests, scores, (PAIR,))
    write_verdicts(folder, Verdicts(judgements=judged), seed=0, estimated=False)
    folder.finish(
        {"model": {"name": model}, "dataset": {"name": "blimp-sized", "digest": "0"}, "measures": ["lp"]}
    )
    return path


def measure(runs: list[Path]) -> int:
    """Ask every question five times; the first page counts from the first question on."""
    port = find_port()
    command = [
        sys.executable,
        "-m",
        "felicity",
        "explore",
        *map(str, runs),
        "--port",
        str(port),
        "--no-browser",
    ]
    begin = time.perf_counter()
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip() if server.stdout else ""
        if not address:
            raise SystemExit("the server did not start")
        print(f"opened in {time.perf_counter() - begin:.1f} s")
        worst = 0.0
        headers = {"x-felicity-key": address.partition("key=")[2]}
        with httpx.Client(base_url=address.partition("?")[0], headers=headers, timeout=60) as client:
            first = _time(client, "/api/about") + _time(client, "/api/items")
            print(f"{'first page, cold':<18} {first:8.0f} ms")
            for name, path in QUESTIONS.items():
                spent = sorted(_time(client, f"/api/{path}") for _ in range(5))
                print(f"{name:<18} {spent[2]:8.0f} ms   slowest {spent[-1]:6.0f} ms")
                worst = max(worst, spent[2]) if path.startswith("items?") else worst
        memory = _read_memory(server.pid)
        print(f"memory of the server: {memory:.0f} MB at most")
        return int(first > FIRST_PAGE_MS or worst > FACET_MS or memory > MEMORY_MB)
    finally:
        server.terminate()
        server.wait()


def _time(client: httpx.Client, path: str) -> float:
    begin = time.perf_counter()
    client.get(path).raise_for_status()
    return 1000 * (time.perf_counter() - begin)


def _read_memory(process: int) -> float:
    """The largest resident memory so far, in MB; 0 where the system does not tell."""
    status = Path(f"/proc/{process}/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1000 for line in lines if line.startswith("VmHWM")), 0.0)


if __name__ == "__main__":
    sys.exit(main())
