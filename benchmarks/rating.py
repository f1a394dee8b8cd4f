"""Raters at once on the rating site: how long an answer takes to be stored, and whether any is lost.

A real server in a process of its own, simulated raters from another. Raters come one after the other; each
looks at a page for a few seconds and sends an answer. Times are those of answers sent while everybody is
there: from sending the answer to the redirect that acknowledges it, and to the next page.
"""

import argparse
import csv
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from felicity.humans import Population, Store, read_rating_study, send_raters
from felicity.humans.tables import answers
from felicity.web import find_port

STUDY = """\
[study]
title = "Benchmark"
places_per_address = 0
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
HEAD = (
    "raters  think s  answers/s  p50 ms  p95 ms  p99 ms  next page p95 ms  CPU ms/answer: server  database  "
    "raters  other work  stored/sent"
)


def main() -> int:
    """Measure and print one line per number of raters."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raters", type=int, nargs="+", default=[200])
    parser.add_argument(
        "--think", type=float, nargs="+", default=[4.0], help="mean seconds a rater looks at a page"
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long everybody is there, about")
    parser.add_argument("--arrival", type=float, default=20.0, help="seconds within which the raters come")
    parser.add_argument("--database", help="postgresql+psycopg://...; an empty database")
    parser.add_argument(
        "--postgresql", action="store_true", help="start a PostgreSQL of its own (needs pgserver)"
    )
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--limit", type=float, help="fail if p95 is above so many milliseconds")
    options = parser.parse_args()
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; {options.workers} workers")
    print(HEAD)
    worst, whole = 0.0, True
    for raters in options.raters:
        for think in options.think:
            with tempfile.TemporaryDirectory() as name, open_database(Path(name), options) as database:
                slowest, complete = measure(Path(name), database, raters, think, options)
            worst, whole = max(worst, slowest), whole and complete
    return int(not whole or (options.limit is not None and worst > options.limit))


@contextmanager
def open_database(folder: Path, options: argparse.Namespace) -> Iterator[str | None]:
    """The address of the database: that of the option, a new PostgreSQL, or None for SQLite."""
    if not options.postgresql:
        yield options.database
        return
    import pgserver

    server = pgserver.get_server(str(folder / "postgresql"))
    try:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
    finally:
        server.cleanup()


def measure(
    folder: Path, database: str | None, raters: int, think: float, options: argparse.Namespace
) -> tuple[float, bool]:
    """Send so many raters; prints the figures and gives p95 and whether everything was stored."""
    seconds = options.arrival + options.seconds
    trials = 20 + round(3 * seconds / think)
    (folder / "study.toml").write_text(STUDY, encoding="utf-8")
    with (folder / "stimuli.csv").open("w", encoding="utf-8", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerows([("item", "text"), *((n, f"The cat number {n} sleeps.") for n in range(trials))])
    study = read_rating_study(folder)
    store = Store(study, database)
    before = len(store.rows(answers))
    port = find_port()
    command = [sys.executable, "-m", "felicity", "rate", "serve", str(folder), "--port", str(port)]
    command += ["--workers", str(options.workers), "--requests-per-second", "0"]
    command += ["--database", database] if database else []
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        while "Researcher" not in (server.stdout.readline() if server.stdout else ""):
            if server.poll() is not None:
                raise SystemExit("the server did not start")
        busy, begun = read_busy(), time.perf_counter()
        used = read_cpu("felicity", server.pid), read_cpu("postgres"), time.process_time()
        visits = send_raters(
            f"http://127.0.0.1:{port}",
            study,
            Population(raters=raters),
            at_once=raters,
            patience=300,
            think=lambda rng: rng.expovariate(1 / think),
            arrival=options.arrival,
            seconds=seconds,
        )
        spent = read_cpu("felicity", server.pid), read_cpu("postgres"), time.process_time()
        ours = sum(spent) - sum(used)
        other = max(read_busy() - busy - ours, 0.0) / (time.perf_counter() - begun)
    finally:
        server.terminate()
        server.wait()
    stored = len(store.rows(answers)) - before
    store.close()
    sent = sum(len(visit.acknowledged) for visit in visits)
    per_answer = [1000 * (end - begin) / max(stored, 1) for begin, end in zip(used, spent, strict=True)]
    times = np.array([(one.sent, one.stored_ms, one.shown_ms) for visit in visits for one in visit.waits])
    # What was sent while raters were still coming is left out: letting somebody in costs more than an answer.
    times = times[times[:, 0] >= times[:, 0].max() - options.seconds]
    low, high, highest = np.percentile(times[:, 1], [50, 95, 99])
    page = np.percentile(times[:, 2], 95)
    print(
        f"{raters:>6} {think:>8.1f} {len(times) / options.seconds:>10.1f} {low:>7.1f} {high:>7.1f} "
        f"{highest:>7.1f} {page:>17.1f} {per_answer[0]:>22.1f} {per_answer[1]:>9.1f} {per_answer[2]:>7.1f} "
        f"{other:>5.2f} cores  {stored}/{sent}",
        flush=True,
    )
    return float(high), stored == sent and all(visit.left for visit in visits)


def read_cpu(name: str, parent: int | None = None) -> float:
    """Seconds of CPU that processes have used: one and its children, or all of a name; 0 if unknown."""
    total = 0.0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        ours = name in head if parent is None else str(parent) in (stat.parent.name, fields[1])
        if ours:
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def read_busy() -> float:
    """Seconds that the processors have been busy with anything; 0 if unknown."""
    try:
        fields = [int(one) for one in Path("/proc/stat").read_text().split("\n")[0].split()[1:9]]
    except OSError:
        return 0.0
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
