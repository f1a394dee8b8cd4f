"""Time the mixed models: against lme4 on the golden models, and at the sizes the studies need.

    python benchmarks/stats_mixed.py            # prints, and rewrites benchmarks/STATS.md

Needs the published data ($FELICITY_DATA) for the golden models and Rscript with lme4 and lmerTest for
the comparison; what is missing is left out and said.
"""

import json
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import polars as pl

from felicity.stats import fit_glmm, fit_lmm

REPEATS = 9
ROOT = Path(__file__).parents[1]
REPORT = Path(__file__).with_name("STATS.md")

GOLDEN = {
    "huynh_study1": ("huynh2022/experiment1_surprisals.csv.gz", fit_lmm),
    "huynh_study2": ("lme4/huynh_study2_model_frame.csv.gz", fit_lmm),
    "sinha_like_glmm": ("lme4/sinha_like_counts.csv.gz", fit_glmm),
}

R_SCRIPT = """
suppressMessages(library(lme4))
args <- commandArgs(TRUE)
d <- read.csv(gzfile(args[1])); f <- as.formula(args[2]); binomial_model <- args[3] == "glmm"
once <- function(expr) system.time(expr)[["elapsed"]]
fit <- function() suppressWarnings(suppressMessages(
  if (binomial_model) glmer(f, d, family = binomial) else lmer(f, d)))
full <- function() suppressWarnings(suppressMessages(
  if (binomial_model) summary(glmer(f, d, family = binomial)) else summary(lmerTest::lmer(f, d))))
invisible(fit()); invisible(full())
cat(min(replicate(9, once(fit()))), min(replicate(9, once(full()))), "\\n")
"""


def timed(function: Callable[[], object], repeats: int = REPEATS) -> float:
    """Seconds of the fastest of some calls, one more having gone before: the least disturbed one."""
    function()
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        function()
        seconds.append(perf_counter() - start)
    return min(seconds)


def find_data() -> Path | None:
    """The published data, if they are here."""
    named = os.environ.get("FELICITY_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    return folder if folder.is_dir() else None


def time_r(path: Path, formula: str, kind: str) -> tuple[float, float] | None:
    """Seconds of lme4's fit, and of fit with summary (lmerTest's degrees of freedom for linear models)."""
    if shutil.which("Rscript") is None:
        return None
    with tempfile.NamedTemporaryFile("w", suffix=".R", delete=False) as handle:
        handle.write(R_SCRIPT)
    done = subprocess.run(
        ["Rscript", handle.name, str(path), formula, kind], capture_output=True, text=True, check=False
    )
    Path(handle.name).unlink()
    if done.returncode:
        return None
    fit, full = done.stdout.split()
    return float(fit), float(full)


def time_golden() -> list[str]:
    """A table row per golden model."""
    folder = find_data()
    if folder is None:
        return ["| (the published data is not here) | | | |"]
    lines = (folder / "lme4/golden.jsonl").read_text().splitlines()
    rows = []
    for entry in map(json.loads, lines):
        name, fit = GOLDEN[entry["name"]]
        frame = pl.read_csv(folder / name)
        mine = timed(lambda fit=fit, entry=entry, frame=frame: fit(entry["formula"], frame))
        theirs = time_r(folder / name, entry["formula"], "glmm" if fit is fit_glmm else "lmm")
        said = [f"{seconds:.3f}" for seconds in theirs] if theirs else ["no R", "no R"]
        rows.append(f"| {entry['name']} | {mine:.3f} | {said[0]} | {said[1]} |")
    return rows


def make_bernoulli(rng: np.random.Generator, *, distinct: bool) -> pl.DataFrame:
    """134,000 answers of 67 groups on a grid of 10 lengths, matched and acceptable or not."""
    n = 134_000
    group = np.repeat(np.arange(67), n // 67)
    length = rng.choice([10, 50, 100, 200, 300, 400, 500, 600, 700, 1000], n).astype(float)
    matched, acceptable = rng.choice([-1, 1], (2, n))
    eta = 0.9 + 0.03 * np.log(length) + 0.1 * matched + 0.06 * np.log(length) * acceptable
    eta += 1.1 * rng.normal(size=67)[group]
    hit = (rng.random(n) < 1 / (1 + np.exp(-eta))).astype(int)
    length += rng.random(n) if distinct else 0.0
    columns = {"hit": hit, "length": length, "matched": matched, "acceptable": acceptable, "group": group}
    return pl.DataFrame(columns)


def make_crossed(rng: np.random.Generator, n: int, subjects: int, items: int) -> pl.DataFrame:
    """Rows with a random subject and item each, intercepts of both, a slope of subjects."""
    subject, item = rng.integers(0, subjects, n), rng.integers(0, items, n)
    x = rng.normal(size=n)
    y = 1 + 0.5 * x + rng.normal(size=subjects)[subject] + 0.7 * rng.normal(size=items)[item]
    y += 0.3 * rng.normal(size=subjects)[subject] * x + rng.normal(size=n)
    return pl.DataFrame({"y": y, "x": x, "subject": subject, "item": item})


def time_sizes() -> list[str]:
    """A table row per size."""
    rng = np.random.default_rng(0)
    sweep = "hit ~ log(length) * matched * acceptable + (1 | group)"
    grid, loose = (make_bernoulli(rng, distinct=distinct) for distinct in (False, True))
    crossed = make_crossed(rng, 100_000, 500, 1_000)
    wide = make_crossed(rng, 200_000, 100, 30_000)
    intercepts = "y ~ x + (1 | subject) + (1 | item)"
    slopes = "y ~ x + (1 + x | subject) + (1 | item)"
    cases: list[tuple[str, str, Callable[[], object]]] = [
        (
            "134,000 Bernoulli rows, 10 lengths, 67 groups, 8 fixed effects",
            "2",
            lambda: fit_glmm(sweep, grid),
        ),
        ("the same, no two rows alike", "10", lambda: fit_glmm(sweep, loose)),
        ("100,000 rows, 500 x 1,000 crossed, intercepts", "10", lambda: fit_lmm(intercepts, crossed)),
        ("the same with slopes of subjects", "-", lambda: fit_lmm(slopes, crossed)),
        ("200,000 rows, 100 x 30,000 crossed, intercepts", "-", lambda: fit_lmm(intercepts, wide)),
    ]
    return [f"| {name} | {timed(case, 2):.2f} | {goal} |" for name, goal, case in cases]


def main() -> None:
    """Measure and write the report."""
    lines = [
        "# Mixed models: time",
        "",
        f"Measured by `benchmarks/stats_mixed.py` on {platform.machine()}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}; seconds of the fastest call, data frame in memory.",
        "felicity's times include formula, Satterthwaite tests, R2, residuals and conditional modes.",
        "",
        "| golden model | felicity | lme4, fit alone | lme4, fit and summary |",
        "|---|---|---|---|",
        *time_golden(),
        "",
        "| size | felicity | goal |",
        "|---|---|---|",
        *time_sizes(),
    ]
    text = "\n".join(lines) + "\n"
    REPORT.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
