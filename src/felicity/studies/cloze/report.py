"""The report of the study: the paper's tables and figures, what they rest on, and items to look at."""

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.files import replacing
from felicity.report import (
    MISSING,
    Extra,
    Figure,
    count,
    decimal,
    export_figures,
    percent,
    percent_interval,
    render_template,
    signed,
)
from felicity.report.charts import Row, chart_accuracy
from felicity.run import read_policies
from felicity.studies.cloze.analysis import MAIN, TOP, pick_items
from felicity.studies.cloze.study import PUBLISHED_HUMANS, ClozeStudy, read_again

FIGURES = ("top1", "top5", "top10", "top20", "sensitivity")
NAMES = {
    "top1": "Top 1",
    "top5": "Top 5",
    "top10": "Top 10",
    "top20": "Top 20",
    "sensitivity": "Sensitivity",
}
LONGEST_FRAME = 90


def write_cloze_report(study: ClozeStudy, folder: Path) -> Path:
    """Write report.html and the figures as files into `folder`; gives the page's path."""
    sections = build_sections(study)
    figures = {figure.name: figure for extra in sections for figure in extra.figures}
    export_figures(figures.values(), folder, endings=("svg", "png"))
    page = folder / "report.html"
    content = {
        "datasets": ", ".join(study.datasets),
        "models": ", ".join(study.models),
        "warnings": study.warnings,
        "policies": read_policies(folder),
        "extras": sections,
    }
    with replacing(page) as part:
        part.write_text(render_template("cloze.html.j2", content, figures), encoding="utf-8")
    return page


def report_cloze(folder: Path, *, check: bool = True) -> Path:
    """Write the page again from the answers in the folder; returns its path."""
    return write_cloze_report(read_again(folder, check=check), folder)


def build_sections(study: ClozeStudy) -> list[Extra]:
    """The sections that the study has something for."""
    found = [
        _accuracy(study),
        _sizes(study),
        _changes(study),
        _targets(study),
        _regressions(study),
        _humans(study),
        *(_items(study, dataset) for dataset in study.datasets),
        _words(study),
        _published(study),
    ]
    return [extra for extra in found if extra is not None]


def _accuracy(study: ClozeStudy) -> Extra:
    cells = {
        (row["dataset"], row["model"], row["figure"]): row for row in study.accuracy.iter_rows(named=True)
    }
    rows = []
    for dataset in study.datasets:
        for model in study.models:
            known = [cells.get((dataset, model, figure)) for figure in FIGURES]
            first = next((cell for cell in known if cell), None)
            if first:
                rows.append((dataset, model, *(_interval(cell) for cell in known), count(first["n"])))
    main = study.accuracy.filter(figure=MAIN)
    bars = [
        Row(f"{row['dataset']} · {row['model']}", row["share"], row["low"], row["high"], row["n"])
        for row in main.iter_rows(named=True)
    ]
    figure = Figure(
        name="top5",
        title="Top-5 hit rate",
        subtitle="with 95% intervals",
        label=f"Top-5 hit rate of {len(study.models)} models on {len(study.datasets)} datasets; the table "
        f"has the numbers.",
        chart=partial(chart_accuracy, bars, chance=None, noun="frames"),
    )
    return Extra(
        name="accuracy",
        title="Hit rate and sensitivity",
        lede="The share of frames, in percent, whose target is among a model's k likeliest words. "
        + "; ".join(f"{name}: {data.looked_for}" for name, data in study.sets.items() if data.looked_for)
        + ". Sensitivity is the share of pairs whose likeliest word "
        "changes, right or wrong. 95% intervals are exact, and take frames for independent; frames that "
        "share a target are not, so the intervals of the large sets are too narrow.",
        figures=(figure,),
        columns=("Dataset", "Model", *NAMES.values(), "n"),
        rows=tuple(rows),
        names=2,
        notes=tuple(study.notes),
    )


def _interval(cell: dict[str, Any] | None) -> str:
    return MISSING if cell is None else percent_interval(cell["share"], cell["low"], cell["high"])


def _sizes(study: ClozeStudy) -> Extra | None:
    if study.sizes.is_empty():
        return None
    rows = []
    for row in study.sizes.iter_rows(named=True):
        for size in ("small", "large"):
            rows.append(
                (
                    row[size],
                    NAMES[row["figure"]],
                    f"{row['first']} against {row['second']}",
                    count(row[f"n_{size}"]),
                    signed(100 * row[f"difference_{size}"], 1),
                    decimal(row[f"p_{size}"], 4),
                    decimal(row[f"p_permutation_{size}"], 4),
                    decimal(row[f"power_{size}"], 2),
                    MISSING if row[f"smallest_{size}"] is None else decimal(100 * row[f"smallest_{size}"], 1),
                    row["conclusion"] if size == "large" else "",
                )
            )
    return Extra(
        name="sizes",
        title="Small sets and their extensions",
        lede="Two models compared on a small set and on its extension, item by item. Power is the chance "
        "that "
        "McNemar's exact test finds the difference if the truth is as observed; the smallest difference "
        "is what "
        "as many items show with 80% power. The last column says at which size a difference is detected: "
        "where McNemar's p is at most .05.",
        columns=(
            "Dataset",
            "Figure",
            "Models",
            "n",
            "Difference",
            "p",
            "p, permutation",
            "Power",
            "Smallest",
            "Conclusion",
        ),
        rows=tuple(rows),
        names=3,
        notes=(
            "Differences are percentage points. The permutation test swaps the frames of a pair together. "
            f"p-values are not adjusted for the {count(2 * study.sizes.height)} comparisons of this table.",
        ),
    )


def _changes(study: ClozeStudy) -> Extra | None:
    if study.changes.is_empty():
        return None
    return Extra(
        name="changes",
        title="From small to large",
        lede="How each model's figures move from a small set to its extension, in percentage points, with "
        "Newcombe's 95% interval; the items differ.",
        columns=("Sets", "Model", "Figure", "Small", "Large", "Change", "95% interval"),
        rows=tuple(
            (
                f"{row['small']} to {row['large']}",
                row["model"],
                NAMES[row["figure"]],
                percent(row["share_small"]),
                percent(row["share_large"]),
                signed(100 * row["change"], 1),
                f"{signed(100 * row['low'], 1)} to {signed(100 * row['high'], 1)}",
            )
            for row in study.changes.iter_rows(named=True)
        ),
        names=3,
    )


def _targets(study: ClozeStudy) -> Extra:
    return Extra(
        name="targets",
        title="How likely the targets are",
        lede="More than top-k shows: the mean probability of the target, how often it is among the 20 "
        "likeliest words, its median rank over all frames, and the log-odds, in nats, of the target against "
        "the word its partner ends in, with the share of frames in which the target is the likelier.",
        columns=("Dataset", "Model", "p(target)", "Ranked", "Median rank", "Log-odds", "Preferred, %", "n"),
        rows=tuple(
            (
                row["dataset"],
                row["model"],
                decimal(row["probability"], 4),
                f"{count(row['ranked'])} of {count(row['n'])}",
                ">20" if row["median_rank"] is None else decimal(row["median_rank"], 1),
                signed(row["log_odds"], 2),
                percent(row["preferred"]),
                count(row["contrasts"]),
            )
            for row in study.targets.iter_rows(named=True)
        ),
        names=2,
    )


def _regressions(study: ClozeStudy) -> Extra | None:
    if study.regressions.is_empty():
        return None
    rows = []
    for row in study.regressions.iter_rows(named=True):
        ends = MISSING if row["low"] is None else f"{signed(row['low'])} to {signed(row['high'])}"
        p = MISSING if row["p"] is None else decimal(row["p"], 4)
        rows.append((row["small"], row["term"], signed(row["estimate"]), ends, p))
    formulas = study.regressions["formula"].unique(maintain_order=True)
    return Extra(
        name="regressions",
        title="Mixed logistic regressions",
        lede="Whether a target is among the five likeliest words, by model and set, with items and frames as "
        "random effects (Laplace approximation, Wald tests); estimates are log-odds.",
        columns=("Set", "Term", "Estimate", "95% interval", "p"),
        rows=tuple(rows),
        names=2,
        notes=tuple(f"Formula: {formula}" for formula in formulas),
    )


def _humans(study: ClozeStudy) -> Extra | None:
    rows = []
    if study.humans is not None:
        rows += [
            (
                row["dataset"],
                "this study",
                percent(row["accuracy"]),
                decimal(row["kappa"], 2),
                count(row["n"]),
            )
            for row in study.humans.iter_rows(named=True)
        ]
    rows += [
        (name, "published", decimal(share, 1), decimal(kappa, 2), "100")
        for name, (share, kappa) in PUBLISHED_HUMANS.items()
        if name in study.datasets
    ]
    if not rows:
        return None
    return Extra(
        name="humans",
        title="What people say",
        lede="The share of people's words, in percent, that are the target, over two annotators, and their "
        "agreement. A low ceiling says that a set has no one right word.",
        columns=("Dataset", "Source", "Accuracy, %", "Cohen's kappa", "n"),
        rows=tuple(rows),
        names=2,
    )


def _items(study: ClozeStudy, dataset: str) -> Extra:
    picked = pick_items(study.answers, study.sets, dataset)
    rows = []
    for row in picked.iter_rows(named=True):
        said = [f"{row[f'{model} first']} ({row[f'{model} rank'] or '>20'})" for model in study.models]
        rows.append((row["frame"][-LONGEST_FRAME:], row["target"], *said))
    return Extra(
        name=f"items-{dataset}",
        title=f"Items to look at: {dataset}",
        lede="Frames on which the models disagree, then frames that all of them miss: each model's "
        "likeliest word "
        "and, in brackets, the rank of the target.",
        columns=("Frame", "Target", *study.models),
        rows=tuple(rows),
        names=2 + len(study.models),
    )


def _words(study: ClozeStudy) -> Extra:
    rows = []
    for (dataset,), part in study.words.group_by("dataset", maintain_order=True):
        said = ", ".join(f"{row['target']} {row['n']}" for row in part.iter_rows(named=True))
        held = [percent(part["share"][min(k, len(part)) - 1]) for k in TOP]
        rows.append((str(dataset), said, count(part["different"][0]), *held))
    return Extra(
        name="words",
        title="Most frequent targets",
        lede="The 20 most frequent targets of each set, as figures 2 to 6 of the paper show them, and the "
        "share of frames, in percent, that the 1, 5, 10 and 20 most frequent hold. That share is the "
        "accuracy of answering these words to every frame: few targets, often repeated, make a set easier "
        "than its size says.",
        columns=("Dataset", "Targets", "Different", *(NAMES[f"top{k}"] for k in TOP)),
        rows=tuple(rows),
        names=2,
    )


def _published(study: ClozeStudy) -> Extra | None:
    if study.published.is_empty():
        return None
    wide = study.published.filter(pl.col("figure").is_in(["top5", "sensitivity"]))
    datasets = [name for name in study.datasets if name in wide["dataset"].unique()]
    cells = {
        (row["model"], row["dataset"], row["figure"]): row["published"] for row in wide.iter_rows(named=True)
    }
    models = list(dict.fromkeys(wide["model"]))
    columns = [(dataset, figure) for dataset in datasets for figure in ("top5", "sensitivity")]
    columns = [key for key in columns if any((model, *key) in cells for model in models)]
    rows = tuple(
        (
            model,
            *(
                MISSING if (value := cells.get((model, *key))) is None else decimal(value, 1)
                for key in columns
            ),
        )
        for model in models
    )
    return Extra(
        name="published",
        title="Published figures",
        lede="What the paper printed for 22 models, in percent, as a backdrop. Some cells do not follow "
        "from its own "
        "predictions: `felicity replay` gives both readings.",
        columns=("Model", *(f"{dataset}, {NAMES[figure].lower()}" for dataset, figure in columns)),
        rows=rows,
    )
