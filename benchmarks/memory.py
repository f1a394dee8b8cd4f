"""Time and peak memory of whole runs by their size: does a larger dataset need more memory?

    python benchmarks/memory.py                       # 1,000 to 67,000 pairs, GPT-2 small's shape
    python benchmarks/memory.py --layers 2            # a shallower model, the same vocabulary: minutes

Needs $FELICITY_DATA. Each run is a process of its own, from a file of pairs to its run folder.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

import report
import works

SIZES = (1_000, 10_000, 67_000)


def main() -> None:
    """Write a section of RESULTS.md."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--layers", type=int, default=12)
    options.add_argument("--pairs", type=int, action="append", help="a size; may be given several times")
    options.add_argument("--run", nargs=2, metavar=("MODEL", "FILE"), help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.run:
        run_one(*chosen.run)
        return
    name = "bench-gpt2" if chosen.layers == 12 else f"bench-gpt2-{chosen.layers}"
    model = works.build_gpt2(Path(__file__).parents[1] / "runs" / name, layers=chosen.layers)
    rows = [measure(model, size) for size in chosen.pairs or SIZES]
    lines = [
        "| pairs | seconds | sentences a second | peak memory (GB) | results (GB) |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        speed = 2 * row["pairs"] / row["seconds"]
        lines.append(
            f"| {row['pairs']:,} | {row['seconds']:.0f} | {speed:.0f} | {row['peak'] / 1e9:.2f} | "
            f"{row['results'] / 1e9:.3f} |"
        )
    print("\n".join(lines))
    shape = (
        "GPT-2 small's shape" if chosen.layers == 12 else f"GPT-2 small's shape with {chosen.layers} layers"
    )
    report.write_section(f"Time and memory by size: {shape}, 50,257 tokens, float32", lines)


def measure(model: Path, pairs: int) -> dict[str, float]:
    """A run of the first so many pairs of BLiMP, its suites taken in turn."""
    from felicity.data.catalogue import read_dataset

    table = read_dataset("blimp").items.pivot(on="condition", index=["item", "suite"], values="text")
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "pairs.csv"
        turn = pl.col("item").cum_count().over("suite")
        table.sort(turn, maintain_order=True).head(pairs).select("good", "bad", "suite").write_csv(path)
        command = [sys.executable, __file__, "--run", str(model), str(path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    row = {"pairs": pairs} | json.loads(done.stdout.strip().splitlines()[-1])
    print(json.dumps(row), flush=True)
    return row


def run_one(model: str, path: str) -> None:
    """In a process of its own: score and judge, say what it took."""
    with tempfile.TemporaryDirectory() as place:
        # Scores are kept on disk, as for any user, but in a cache of this run alone.
        os.environ["FELICITY_CACHE"] = place
        import felicity as fe

        lm = fe.model(model)
        lm.score("Ready.")
        begin = time.perf_counter()
        run = fe.evaluate(path, lm, out=Path(place) / "run")
        seconds = time.perf_counter() - begin
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        results = sum(table.estimated_size() for table in run.tables.values())
    print(json.dumps({"seconds": seconds, "peak": peak, "results": results}))


if __name__ == "__main__":
    main()
