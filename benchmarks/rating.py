"""Raters at once on the rating site: how long an answer takes to be stored, and whether any is lost.

A real server in a process of its own, 200 simulated raters from another: each reads a page for a few seconds
and sends an answer. The time is that of the POST, from sending it to the redirect that acknowledges it.
"""

import argparse
import csv
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from felicity.humans import Population, Store, read_study, send_raters
from felicity.humans.tables import answers
from felicity.web import find_port

STUDY = """\
[study]
title = "Benchmark"
[consent]
text = "Agree?"
agree = "Yes"
[task]
kind = "likert"
question = "How natural?"
points = 7
labels = ["bad", "good"]
[stimuli]
file = "stimuli.csv"
[design]
lists = "all"
quota = 100000
"""


def main() -> int:
    """Measure and print one line per number of raters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raters", type=int, nargs="+", default=[200])
    parser.add_argument("--think", type=float, default=4.0, help="mean seconds a rater looks at a page")
    parser.add_argument("--answers", type=int, default=20, help="answers of each rater")
    parser.add_argument("--database", help="postgresql+psycopg://...; an empty database")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--limit", type=float, help="fail if p95 is above so many milliseconds")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {options.answers} answers each")
    print("raters  answers/s  p50 ms  p95 ms  p99 ms  server CPU ms/answer  stored/sent")
    worst = 0.0
    for raters in options.raters:
        worst = max(worst, measure(raters, options))
    return int(options.limit is not None and worst > options.limit)


def measure(raters: int, options: argparse.Namespace) -> float:
    """Send so many raters at once; prints the figures and gives p95."""
    database, trials = options.database, options.answers
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "study.toml").write_text(STUDY, encoding="utf-8")
        with (folder / "stimuli.csv").open("w", encoding="utf-8", newline="") as handle:
            writer = csv.writer(handle)
            writer.writerows([("item", "text"), *((n, f"The cat number {n} sleeps.") for n in range(trials))])
        study = read_study(folder)
        store = Store(study, database)
        before = len(store.rows(answers))
        port = find_port()
        command = [sys.executable, "-m", "felicity", "rate", "serve", name, "--port", str(port)]
        command += [
            "--workers",
            str(options.workers),
            "--requests-per-second",
            "0",
            *(["--database", database] if database else []),
        ]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            while "Researcher" not in (server.stdout.readline() if server.stdout else ""):
                if server.poll() is not None:
                    raise SystemExit("the server did not start")
            cpu_before = read_cpu(server.pid)
            begin = time.perf_counter()
            visits = send_raters(
                f"http://127.0.0.1:{port}",
                study,
                Population(raters=raters),
                at_once=raters,
                think=lambda rng: rng.expovariate(1 / options.think),
            )
            seconds = time.perf_counter() - begin
            cpu = read_cpu(server.pid) - cpu_before
        finally:
            server.terminate()
            server.wait()
        waits = np.array([wait for visit in visits for wait in visit.waits_ms])
        stored = len(store.rows(answers)) - before
        store.close()
    low, high, highest = np.percentile(waits, [50, 95, 99])
    print(
        f"{raters:>6} {len(waits) / seconds:>10.1f} {low:>7.1f} {high:>7.1f} {highest:>7.1f} "
        f"{1000 * cpu / max(len(waits), 1):>21.1f}  {stored}/{raters * trials}"
    )
    return float(high)


def read_cpu(process: int) -> float:
    """Seconds of CPU that a process and its workers have used; 0 where the system does not tell."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if stat.parent.name == str(process) or fields[1] == str(process):
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


if __name__ == "__main__":
    sys.exit(main())
