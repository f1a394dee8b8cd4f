"""Accuracy on a biased set and on its debiased counterpart, side by side (Ueda et al. 2024).

Each suite of the biased set is split by token length (A=U, A>U, A<U); beside the splits stands the accuracy
on the debiased suite of the same name. Where both sets have the same items, as a set and its unmatched twin
have, the two accuracies are compared as by `felicity compare`; over suites, by Wilcoxon's signed ranks.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.contrasts import ACCURACY, Headline
from felicity.core.errors import BadInput, NotPossible
from felicity.core.progress import Progress
from felicity.data import Columns, read_dataset
from felicity.report import Extra, Figure, count, percent, percent_interval, write_sections
from felicity.report.charts import Dot, Row, chart_accuracy, chart_scatter
from felicity.run import Model, open_model, write_sheets
from felicity.stats import compare_pairs, estimate_judged, pair_answers, signed_rank
from felicity.studies.bias import EVERYTHING, INTERVALS, SPLITS, draw_differences, study_bias, write_legend

DEBIAS_MEASURES = ("lp", "mean_lp", "pen_lp")
BIASED, DEBIASED = "biased", "debiased"


@dataclass(frozen=True, kw_only=True)
class DebiasStudy:
    """One row per model, measure and suite (and `all`): splits of the biased set, and the debiased set.

    curves: accuracy on the biased set by difference in length. headline: what the share is called, in the
    dataset's words. policies: how the models were scored.
    """

    biased: str
    fair: str
    table: pl.DataFrame
    curves: pl.DataFrame
    headline: Headline = ACCURACY
    policies: str = ""


def study_debias(
    biased: str,
    fair: str,
    specs: Sequence[str],
    folder: Path,
    *,
    measures: Sequence[str] = DEBIAS_MEASURES,
    unigram: Path | None = None,
    unseen: float = 0.05,
    columns: Columns | None = None,
    source: Path | None = None,
    sample: int | None = None,
    seed: int = 0,
    open_one: Callable[[str], Model] = open_model,
    progress: Progress | None = None,
) -> DebiasStudy:
    """Score both sets with every model and put their accuracies side by side.

    The runs are kept under `folder`/biased and `folder`/debiased.

    Raises BadInput if the two sets have no suite in common, NotPossible if a model has no weights.
    """
    study = partial(
        study_bias,
        specs=specs,
        measures=measures,
        unigram=unigram,
        unseen=unseen,
        columns=columns,
        source=source,
        sample=sample,
        seed=seed,
        open_one=open_one,
        progress=progress,
    )
    # A file that is not there is noticed before the other one is scored.
    read_dataset(fair, columns, folder=source)
    left = study(biased, folder=folder / BIASED)
    for name, how in left.models.items():
        if how != "scored":
            raise NotPossible(f"--debias compares accuracies, but {name} has no weights; name a model.")
    right = study(fair, folder=folder / DEBIASED)
    tables = [
        compare_sets(left.judged.filter(model=name), right.judged.filter(model=name), model=name)
        for name in left.models
    ]
    return DebiasStudy(
        biased=biased,
        fair=fair,
        table=pl.concat(tables),
        curves=left.curves,
        headline=left.headline,
        policies=left.policies,
    )


def compare_sets(biased: pl.DataFrame, fair: pl.DataFrame, *, model: str) -> pl.DataFrame:
    """The rows of one model, from the judgements of both sets with the split of each item.

    Raises BadInput if the two sets have no suite in common.
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
    parts = {split: left.filter(split=split) for split in SPLITS} | {BIASED: left, DEBIASED: right}
    for name, part in parts.items():
        found = estimate_judged(part) if part.height else dict.fromkeys(("accuracy", "low", "high"))
        row |= {f"n {name}": part.height, name: found["accuracy"]}
        row |= {f"{name} {end}": found[end] for end in ("low", "high")}
    row["unequal in debiased"] = right.filter(pl.col("split") != SPLITS[0]).height
    row["p"] = _paired_p(left, right)
    row["p_suites"] = None
    return row


def _paired_p(left: pl.DataFrame, right: pl.DataFrame) -> float | None:
    """p of `felicity compare` over the items that both sets have; None unless they have the same ones."""
    if set(left["item"]) != set(right["item"]) or not left["item"].is_unique().all():
        return None
    return float(compare_pairs(pair_answers(left, right, cluster="suite")).p[0])


def write_debias(study: DebiasStudy, folder: Path) -> list[Path]:
    """Write debias.csv and report.html with its figures; gives their paths."""
    (path,) = write_sheets(folder, {"debias": study.table})
    extras = [
        _overall(study),
        _splits(study),
        *draw_differences(study.curves, Path(study.biased).name, headline=study.headline),
        *_scatter(study),
        _suites(study),
    ]
    page = write_sections(
        extras,
        folder / "report.html",
        eyebrow="felicity bias --debias",
        title="Token-length bias",
        subject=f"{Path(study.biased).name} and {Path(study.fair).name}",
        meta=f"{write_legend(study.headline)} {study.policies}",
    )
    return [path, page]


def _overall(study: DebiasStudy) -> Extra:
    return Extra(
        name="debias",
        title="Biased and debiased",
        lede=f"{study.headline.name} in each split of the biased set, on the whole of it, and on the "
        f"debiased set. {INTERVALS} p: the score test over suites (over pairs within a suite) where both "
        "sets have the same items; over suites, Wilcoxon's signed ranks.",
        columns=("Model", "Measure", *SPLITS, "biased", "debiased", "p", "p over suites"),
        rows=tuple(_cells(row) for row in study.table.filter(suite=EVERYTHING).iter_rows(named=True)),
        names=2,
        notes=(write_legend(study.headline),),
    )


def _splits(study: DebiasStudy) -> Extra:
    """The splits of the biased set above the whole of it and the debiased set, one figure per model."""
    figures = []
    whole = study.table.filter(suite=EVERYTHING)
    for (model,), part in whole.group_by("model", maintain_order=True):
        rows = [one for row in part.iter_rows(named=True) for one in _bars(row)]
        figures.append(
            Figure(
                name=f"splits_{model}",
                title=f"{study.headline.name} by which sentence is longer: {model}",
                subtitle=f"{Path(study.biased).name} and {Path(study.fair).name}",
                label=f"{study.headline.name} of {model} in each split of the biased set, on all of it and "
                "on the debiased set, for each measure.",
                chart=partial(chart_accuracy, rows, chance=0.5, noun="pairs"),
            )
        )
    lede = f"A measure that is not biased by length gives the same share in the three splits. {INTERVALS}"
    return Extra(name="splits", title="By which sentence is longer", lede=lede, figures=tuple(figures))


def _bars(row: dict[str, Any]) -> list[Row]:
    bars = []
    for name in (*SPLITS, BIASED, DEBIASED):
        n = row[f"n {name}"]
        if n:
            ends = (row[f"{name} low"], row[f"{name} high"])
            bars.append(Row(f"{row['measure']}, {name}", row[name], *ends, n))
    return bars


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
        percent_interval(row[name], row[f"{name} low"], row[f"{name} high"]) for name in (BIASED, DEBIASED)
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
                title=f"{study.headline.name} on the biased and the debiased set: {model}",
                subtitle=f"{part['suite'].n_unique()} suites",
                label=f"{study.headline.name} of {model} on each suite of the debiased set against the "
                "biased one.",
                chart=partial(
                    chart_scatter, dots, x_title="biased (%)", y_title="debiased (%)", diagonal=True
                ),
            )
        )
    lede = "Each dot is a suite. Above the diagonal the debiased suite is the easier one."
    return [Extra(name="scatter", title="Suite by suite", lede=lede, figures=tuple(figures))]
