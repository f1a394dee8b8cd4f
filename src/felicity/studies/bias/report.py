"""The page about token-length bias: splits, accuracies within them, and curves by difference in length."""

from functools import partial
from pathlib import Path

import polars as pl

from felicity.core.contrasts import ACCURACY, Headline
from felicity.report import Extra, Figure, count, counted, percent_interval, write_sections
from felicity.report.charts import MOST_SERIES, Point, chart_lines
from felicity.studies.bias.analysis import EVERYTHING, INTERVALS, SPLITS, write_legend

# Differences with fewer pairs than this are not drawn.
FEWEST = 5


def write_bias_page(
    dataset: str,
    splits: pl.DataFrame,
    curves: pl.DataFrame,
    folder: Path,
    *,
    headline: Headline = ACCURACY,
    policies: str = "",
) -> Path:
    """Write report.html and the curves as files into `folder`; returns the page's path.

    headline: what the share is called, in the dataset's words. policies: how the models were scored.
    """
    return write_sections(
        [
            _overall(splits, headline),
            *draw_differences(curves, dataset, headline=headline),
            _suites(splits),
        ],
        folder / "report.html",
        eyebrow="felicity bias",
        title="Token-length bias",
        subject=dataset,
        meta=" ".join(part for part in (write_legend(headline), policies) if part),
    )


def _overall(splits: pl.DataFrame, headline: Headline) -> Extra:
    return Extra(
        name="splits",
        title="Splits",
        lede=f"{headline.name}, %, and the number of pairs in each split. {INTERVALS} N/A: no pair.",
        columns=("Model", "Measure", *SPLITS),
        rows=tuple(_rows(splits.filter(pl.col("suite") == EVERYTHING), suite=False)),
        names=2,
        notes=(write_legend(headline),),
    )


def _suites(splits: pl.DataFrame) -> Extra:
    return Extra(
        name="suites",
        title="By suite",
        lede="The same for every suite; intervals are over its pairs.",
        columns=("Suite", "Model", "Measure", *SPLITS),
        rows=tuple(_rows(splits.filter(pl.col("suite") != EVERYTHING), suite=True)),
        names=3,
    )


def _rows(splits: pl.DataFrame, *, suite: bool) -> list[tuple[str, ...]]:
    keys = ["suite", "model", "measure"]
    rows = []
    for (name, model, measure), part in splits.group_by(keys, maintain_order=True):
        cells = {cell["split"]: _cell(cell) for cell in part.iter_rows(named=True)}
        first = (str(name),) if suite else ()
        rows.append((*first, str(model), str(measure or "–"), *(cells[split] for split in SPLITS)))
    return rows


def _cell(cell: dict[str, object]) -> str:
    n = count(int(str(cell["n"])))
    if cell["accuracy"] is None:
        return f"n {n}" if cell["measure"] is None else f"N/A, n {n}"
    share, low, high = (float(str(cell[name])) for name in ("accuracy", "low", "high"))
    return f"{percent_interval(share, low, high)}, n {n}, {counted(int(str(cell['suites'])), 'suite')}"


def draw_differences(curves: pl.DataFrame, dataset: str, *, headline: Headline = ACCURACY) -> list[Extra]:
    """Accuracy, in the dataset's words, by difference in length, one figure per model with enough pairs."""
    kept = curves.filter(pl.col("n") >= FEWEST)
    figures = []
    for (model,), part in kept.group_by("model", maintain_order=True):
        measures = part["measure"].unique(maintain_order=True).to_list()[:MOST_SERIES]
        points = [
            Point(
                row["measure"], row["difference"], *(100 * row[name] for name in ("accuracy", "low", "high"))
            )
            for row in part.filter(pl.col("measure").is_in(measures)).iter_rows(named=True)
        ]
        figures.append(
            Figure(
                name=f"curve_{model}",
                title=f"{headline.name} by difference in length: {model}",
                subtitle=f"{dataset}; 95% intervals over suites, or over pairs of one suite",
                label=f"{headline.name} of {model} by tokens of A minus tokens of U, for "
                f"{', '.join(measures)}.",
                chart=partial(
                    chart_lines,
                    points,
                    x_title="tokens of A minus tokens of U",
                    y_title=f"{headline.noun} (%)",
                    level=50,
                ),
            )
        )
    if not figures:
        return []
    lede = (
        f"{headline.name} by the difference in tokens, for differences with at least {FEWEST} pairs. "
        f"{INTERVALS} A "
        "measure that is not biased by length gives a horizontal line."
    )
    return [Extra(name="curves", title="By difference in length", lede=lede, figures=tuple(figures))]
