"""Three runs side by side: the matched set, its unmatched twin and BLiMP, paradigm by paradigm.

    felicity run fair.parquet -m smollm2 --measure lp --measure mean_lp --measure pen_lp -o runs/fair
    felicity run twin.parquet -m smollm2 --measure lp --measure mean_lp --measure pen_lp -o runs/twin
    felicity run blimp --sample 15 -m smollm2 --measure lp --measure mean_lp --measure pen_lp -o runs/blimp
    python docs/studies/pairs/evaluation.py runs/fair runs/twin runs/blimp

Writes evaluation.csv and evaluation.md beside this file: accuracy with 95% intervals, correlations over
paradigms, and accuracy by which sentence is longer.
"""

import sys
from pathlib import Path

import polars as pl
from scipy import stats

from felicity.engines import open_counter
from felicity.stats import wilson_interval
from felicity.studies.bias import SPLITS, measure_lengths

FOLDER = Path(__file__).parent
SETS = ("fair", "twin", "blimp")
INTRODUCTION = """\
As many pairs of each of BLiMP's paradigms from three sets: pairs of equal token length (fair), the same with
their differing words drawn again whatever their length (twin), and BLiMP's own. A=U: both sentences are
equally long; A>U: the good one is longer; A<U: the bad one is. In parentheses 95% intervals. How the sets are
made is described in [Minimal pairs of equal token length](../pairs.md)."""


def main() -> None:
    """Write both files."""
    runs = dict(zip(SETS, map(Path, sys.argv[1:4]), strict=True))
    suites = join_suites(runs)
    suites.write_csv(FOLDER / "evaluation.csv")
    lines = ["# SmolLM2 on the matched pairs, their unmatched twin and BLiMP", "", INTRODUCTION, ""]
    for (measure,), part in suites.group_by("measure", maintain_order=True):
        lines += [f"## {measure}", "", *describe(part), *split(runs, str(measure)), ""]
    lines += tabulate(suites.filter(measure="lp"))
    (FOLDER / "evaluation.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def join_suites(runs: dict[str, Path]) -> pl.DataFrame:
    """One row per measure and paradigm, with the accuracy and interval of each set."""
    joined: pl.DataFrame | None = None
    for name, run in runs.items():
        part = pl.read_csv(run / "estimates.csv").filter(level="suite")
        part = part.select(
            "measure",
            pl.col("name").alias("suite"),
            *(pl.col(column).alias(f"{name}_{column}") for column in ("n", "accuracy", "low", "high")),
        )
        joined = part if joined is None else joined.join(part, on=["measure", "suite"], maintain_order="left")
    if joined is None:
        sys.exit("name three runs")
    return joined


def describe(part: pl.DataFrame) -> list[str]:
    """Mean accuracies, and how paradigms correlate."""
    lines = [
        f"- {name}: mean accuracy over {part.height} paradigms {100 * part[f'{name}_accuracy'].mean():.1f}%"
        for name in SETS
    ]
    for first, second in (("fair", "twin"), ("fair", "blimp"), ("twin", "blimp")):
        x, y = part[f"{first}_accuracy"].to_numpy(), part[f"{second}_accuracy"].to_numpy()
        pearson, spearman = stats.pearsonr(x, y), stats.spearmanr(x, y)
        low, high = pearson.confidence_interval()
        lines.append(
            f"- {first} and {second}: r = {pearson.statistic:.2f} ({low:.2f} to {high:.2f}), "
            f"rho = {spearman.statistic:.2f}"
        )
    return lines


def split(runs: dict[str, Path], measure: str) -> list[str]:
    """Accuracy by which sentence is longer, for each set."""
    count = open_counter("smollm2")
    lines = []
    for name, run in runs.items():
        lengths = measure_lengths(pl.read_parquet(run / "items.parquet"), count).select("item", "split")
        judged = pl.read_parquet(run / "judgements.parquet").filter(measure=measure).join(lengths, on="item")
        cells = []
        for cut in SPLITS:
            passed = judged.filter(split=cut)["passed"]
            if len(passed):
                low, high = wilson_interval(float(passed.sum()), len(passed))
                cells.append(
                    f"{cut} {100 * passed.mean():.1f}% ({100 * low:.1f}–{100 * high:.1f}, n {len(passed):,})"
                )
        told = ", ".join(cells)
        lines.append(f"- {name} by length: {told}")
    return lines


def tabulate(part: pl.DataFrame) -> list[str]:
    """Every paradigm, by lp."""
    lines = ["## Every paradigm (lp)", "", "| paradigm | fair | twin | blimp |", "|---|---|---|---|"]
    for row in part.iter_rows(named=True):
        cells = []
        for name in SETS:
            mean, low, high = (100 * row[f"{name}_{column}"] for column in ("accuracy", "low", "high"))
            cells.append(f"{mean:.1f} ({low:.1f}–{high:.1f})")
        lines.append(f"| {row['suite']} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
