"""Accuracy on a biased set and on its debiased counterpart, side by side (Ueda et al. 2024).

Each suite of the biased set is split by token length (A=U, A>U, A<U); beside the splits stands the accuracy
on the debiased suite of the same name. Where both sets have the same items, as a set and its unmatched twin
have, the two accuracies are compared by McNemar's exact test; over suites, by Wilcoxon's signed ranks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import replacing
from felicity.data import Columns, read_dataset, sample_items
from felicity.engines import open_counter
from felicity.report import Extra, Figure, count, percent, write_sections
from felicity.report.charts import Dot, chart_scatter
from felicity.run import evaluate, open_model
from felicity.stats import mcnemar_p, signed_rank, wilson_interval
from felicity.studies.bias import EVERYTHING, SPLITS, measure_lengths

MEASURES = ("lp", "mean_lp", "pen_lp")


@dataclass(frozen=True, kw_only=True)
class DebiasStudy:
    """One row per model, measure and suite (and `all`): splits of the biased set, and the debiased set."""

    biased: str
    fair: str
    table: pl.DataFrame


def study_debias(
    biased: str,
    fair: str,
    specs: Sequence[str],
    *,
    measures: Sequence[str] = MEASURES,
    columns: Columns | None = None,
    folder: Path | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> DebiasStudy:
    """Score both sets with every model and put their accuracies side by side.

    Raises BadInput where the two sets have no suite in common.
    """
    tables = []
    for spec in specs:
        lm, counter = open_model(spec), open_counter(spec)
        judged = []
        for dataset in (biased, fair):
            run = evaluate(
                dataset, lm, measures=measures, columns=columns, source=folder, sample=sample, seed=seed
            )
            items = sample_items(read_dataset(dataset, columns, folder=folder).items, sample, seed=seed)
            lengths = measure_lengths(items, counter).select("item", "split")
            judged.append(run["judgements"].join(lengths, on="item"))
        name = Path(spec).name if Path(spec).is_dir() else spec
        tables.append(compare_sets(*judged, model=name))
    return DebiasStudy(biased=biased, fair=fair, table=pl.concat(tables))


def compare_sets(biased: pl.DataFrame, fair: pl.DataFrame, *, model: str) -> pl.DataFrame:
    """The rows of one model, from the judgements of both sets with the split of each item.

    Raises BadInput where the two sets have no suite in common.
    """
    suites = [s for s in biased["suite"].unique(maintain_order=True) if s in set(fair["suite"].unique())]
    if not suites:
        raise BadInput("The two sets have no suite in common; --debias needs suites of the same names.")
    rows: list[dict[str, Any]] = []
    for measure in biased["measure"].unique(maintain_order=True):
        left, right = (
            side.filter((pl.col("measure") == measure) & pl.col("suite").is_in(suites))
            for side in (biased, fair)
        )
        own = [_row(left.filter(suite=s), right.filter(suite=s), model, measure, s) for s in suites]
        whole = _row(left, right, model, measure, EVERYTHING)
        if len(suites) > 1:
            pairs = [(row["debiased"], row["biased"]) for row in own]
            whole["p_suites"] = float(signed_rank(*map(list, zip(*pairs, strict=True)))["p"][0])
        rows += [whole, *own]
    return pl.DataFrame(rows, infer_schema_length=None)


def _row(left: pl.DataFrame, right: pl.DataFrame, model: str, measure: str, suite: str) -> dict[str, Any]:
    row: dict[str, Any] = {"model": model, "measure": measure, "suite": suite}
    for split in SPLITS:
        part = left.filter(split=split)["passed"]
        row[f"n {split}"] = len(part)
        row[split] = part.mean() if len(part) else None
    for name, side in (("biased", left), ("debiased", right)):
        passed = side["passed"]
        low, high = wilson_interval(float(passed.sum()), len(passed))
        row |= {f"n {name}": len(passed), name: passed.mean(), f"{name} low": low, f"{name} high": high}
    row["unequal in debiased"] = right.filter(pl.col("split") != SPLITS[0]).height
    row["p"] = _paired_p(left, right)
    row["p_suites"] = None
    return row


def _paired_p(left: pl.DataFrame, right: pl.DataFrame) -> float | None:
    """McNemar's exact p over the items that both sets have; None unless they have the same ones."""
    joined = left.select("item", "passed").join(
        right.select("item", pl.col("passed").alias("other")), on="item"
    )
    if joined.height != left.height or joined.height != right.height:
        return None
    only_first = joined.filter(pl.col("passed") > pl.col("other")).height
    only_second = joined.filter(pl.col("passed") < pl.col("other")).height
    return mcnemar_p(only_first, only_second)


def write_debias(study: DebiasStudy, folder: Path) -> list[Path]:
    """Write debias.csv and report.html with its figures; gives their paths."""
    path = folder / "debias.csv"
    with replacing(path) as part:
        study.table.write_csv(part)
    extras = [_overall(study), *_scatter(study), _suites(study)]
    page = write_sections(
        extras,
        folder / "report.html",
        eyebrow="felicity bias --debias",
        title="Token-length bias",
        subject=f"{Path(study.biased).name} and {Path(study.fair).name}",
        meta="A is the acceptable sentence, U the unacceptable one; lengths in each model's own tokens.",
    )
    return [path, page]


def _overall(study: DebiasStudy) -> Extra:
    return Extra(
        name="debias",
        title="Biased and debiased",
        lede="Accuracy in each split of the biased set, on the whole of it, and on the debiased set. p: "
        "McNemar's exact test where both sets have the same items; over suites, Wilcoxon's signed ranks.",
        columns=("Model", "Measure", *SPLITS, "biased", "debiased", "p", "p over suites"),
        rows=tuple(_cells(row) for row in study.table.filter(suite=EVERYTHING).iter_rows(named=True)),
        names=2,
    )


def _suites(study: DebiasStudy) -> Extra:
    rows = study.table.filter(pl.col("suite") != EVERYTHING)
    return Extra(
        name="suites",
        title="By suite",
        lede="The same for every suite.",
        columns=("Suite", "Model", "Measure", *SPLITS, "biased", "debiased", "p"),
        rows=tuple((row["suite"], *_cells(row)[:-1]) for row in rows.iter_rows(named=True)),
        names=3,
    )


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    splits = [
        f"N/A, n {count(row[f'n {s}'])}" if row[s] is None else f"{percent(row[s])}, n {count(row[f'n {s}'])}"
        for s in SPLITS
    ]
    sets = [
        f"{percent(row[name])} ({percent(row[f'{name} low'])}–{percent(row[f'{name} high'])})"
        for name in ("biased", "debiased")
    ]
    tests = ["–" if row[name] is None else f"{row[name]:.3g}" for name in ("p", "p_suites")]
    return (str(row["model"]), str(row["measure"]), *splits, *sets, *tests)


def _scatter(study: DebiasStudy) -> list[Extra]:
    figures = []
    table = study.table.filter(pl.col("suite") != EVERYTHING)
    for (model,), part in table.group_by("model", maintain_order=True):
        dots = [
            Dot(row["measure"], "", 100 * row["biased"], 100 * row["debiased"], row["suite"])
            for row in part.iter_rows(named=True)
        ]
        figures.append(
            Figure(
                name=f"debias_{model}",
                title=f"Accuracy on the biased and the debiased set: {model}",
                subtitle=f"{part['suite'].n_unique()} suites",
                label=f"Accuracy of {model} on each suite of the debiased set against the biased one.",
                chart=partial(
                    chart_scatter, dots, x_title="biased (%)", y_title="debiased (%)", diagonal=True
                ),
            )
        )
    lede = "Each dot is a suite. Above the diagonal the debiased suite is the easier one."
    return [Extra(name="scatter", title="Suite by suite", lede=lede, figures=tuple(figures))]
