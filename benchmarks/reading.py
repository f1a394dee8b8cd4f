"""Mixed models of a million reading times by reader and word, beside lme4 in R on the same data.

    python benchmarks/reading.py             # 200 readers of 5,000 words; lme4 gets 15 minutes
    python benchmarks/reading.py 20          # fewer readers

The times are simulated. Both programs fit the model with surprisal and the one without, by maximum
likelihood, with the same random part; felicity's time includes Satterthwaite's tests and intervals, which
lme4 has not. Each runs in a process of its own, in one thread, and is stopped after LIMIT seconds of the
processor. Needs Rscript with lme4 for the comparison.
Writes a section of RESULTS.md.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl

import report

WORDS = 5_000
LIMIT = 900
# How a program ends that used up its time, as Python and as a shell say it.
STOPPED = (-9, -24, 128 + 9, 128 + 24)
FIXED = ("length", "frequency")
CRITICAL = ("surprisal", "surprisal_1", "surprisal_2")
FELICITY = """
import json, resource, sys, time
import polars as pl
from felicity.stats import fit_reading_times
frame = pl.read_parquet(sys.argv[1])
clock, cpu = time.perf_counter(), time.process_time()
found = fit_reading_times(frame, "rt", sys.argv[2].split(","), sys.argv[3].split(","))
clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
print(json.dumps({"seconds": clock, "cpu": cpu, "gb": peak, "large": found.target.log_likelihood,
                  "small": found.baseline.log_likelihood, "slope": found.slopes["estimate"][0]}))
"""
LME4 = """
suppressMessages(library(lme4))
args <- commandArgs(TRUE)
d <- read.csv(args[1]); d$reader <- factor(d$reader); d$item <- factor(d$item)
fixed <- strsplit(args[2], ",")[[1]]; critical <- strsplit(args[3], ",")[[1]]
random <- c("(1 | reader)", sprintf("(0 + %s | reader)", critical), "(1 | item)")
write <- function(terms) as.formula(paste("rt ~", paste(c(terms, random), collapse = " + ")))
took <- system.time({
  large <- lmer(write(c(fixed, critical)), d, REML = FALSE)
  small <- lmer(write(fixed), d, REML = FALSE)
})
status <- grep("VmHWM", readLines("/proc/self/status"), value = TRUE)
peak <- as.numeric(sub("\\\\D*(\\\\d+).*", "\\\\1", status))
cat(sprintf('{"seconds": %f, "cpu": %f, "gb": %f, "large": %.8f, "small": %.8f, "slope": %.8f}\\n',
            took[["elapsed"]], took[["user.self"]] + took[["sys.self"]], peak / 1e6,
            as.numeric(logLik(large)), as.numeric(logLik(small)), fixef(large)[["surprisal"]]))
"""


def simulate(readers: int, words: int = WORDS, *, seed: int = 0) -> pl.DataFrame:
    """One time per reader and word: 4, 2 and 1 ms per bit of the word and the two before, on average."""
    rng = np.random.default_rng(seed)
    surprisal = rng.gamma(2.0, 3.0, words)
    lagged = np.column_stack([np.roll(surprisal, lag) for lag in range(len(CRITICAL))])
    length, frequency = rng.integers(1, 12, words).astype(float), rng.normal(5.0, 1.0, words)
    slopes = np.array([4.0, 2.0, 1.0]) + rng.normal(0.0, 1.0, (readers, len(CRITICAL)))
    reader, word = np.repeat(np.arange(readers), words), np.tile(np.arange(words), readers)
    rt = 300 + 3 * length[word] - 5 * frequency[word] + (slopes[reader] * lagged[word]).sum(axis=1)
    rt += rng.normal(0.0, 40.0, readers)[reader] + rng.normal(0.0, 15.0, words)[word]
    rt += rng.normal(0.0, 90.0, len(rt))
    columns = dict(zip(CRITICAL, lagged[word].T, strict=True))
    more = {"length": length[word], "frequency": frequency[word], "reader": reader, "item": word}
    return pl.DataFrame({"rt": rt} | columns | more)


def run(command: list[str]) -> dict[str, float] | None:
    """What a program prints, in one thread; None if it was stopped."""
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    limited = ["prlimit", f"--cpu={LIMIT}", *command] if shutil.which("prlimit") else command
    done = subprocess.run(limited, env=os.environ | one, capture_output=True, text=True, check=False)
    if done.returncode in STOPPED:
        return None
    done.check_returncode()
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    """Write a section of RESULTS.md."""
    readers = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    frame = simulate(readers)
    terms = [",".join(FIXED), ",".join(CRITICAL)]
    rows = {}
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        frame.write_parquet(place / "trials.parquet")
        rows["felicity"] = run([sys.executable, "-c", FELICITY, str(place / "trials.parquet"), *terms])
        print(rows["felicity"], flush=True)
        if shutil.which("Rscript"):
            frame.write_csv(place / "trials.csv")
            (place / "fit.R").write_text(LME4)
            rows["lme4"] = run(["Rscript", str(place / "fit.R"), str(place / "trials.csv"), *terms])
            print(rows["lme4"], flush=True)
    title = f"Reading times by reader and word: {frame.height:,}"
    report.write_section(title, tell(rows, readers, limit=LIMIT))


def tell(rows: Mapping[str, dict[str, float] | None], readers: int, *, limit: float) -> list[str]:
    """What was fitted, a line per program, and their ratio."""
    lines = [
        f"{readers * WORDS:,} simulated times of {readers} readers and {WORDS:,} words: three surprisals, "
        "length and frequency; intercepts and three slopes by reader, intercepts by word; with and without "
        "surprisal.",
        "",
        "| program | seconds | processor seconds | peak memory, GB | log-likelihood | without surprisal | "
        "ms per bit |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        lines.append(
            f"| {name} | {row['seconds']:.0f} | {row['cpu']:.1f} | {row['gb']:.1f} | {row['large']:.3f} | "
            f"{row['small']:.3f} | {row['slope']:.5f} |"
            if row
            else f"| {name} | | stopped after {limit:.0f} | | | | |"
        )
    own, peer = rows["felicity"], rows.get("lme4")
    if own and "lme4" in rows:
        ratio = own["cpu"] / (peer["cpu"] if peer else limit)
        than = "" if peer else "less than "
        lines += ["", f"felicity takes {than}{ratio:.2f} times the processor time of lme4, in the same run."]
    return lines


if __name__ == "__main__":
    main()
