"""The page of learning curves: when is each suite reached, and does it stay?"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import polars as pl

from felicity.core.wording import decimal, format_interval, p_cell
from felicity.report import Figure, Linked, Page, Section, counted, percent
from felicity.report.charts import MOST_SERIES, Point, chart_lines
from felicity.studies.study import Study
from felicity.studies.trajectory.curves import EVERYTHING

DETECTED = 0.05
MOST_FIGURES = 24


def sections(study: Study) -> Page:
    """The answer, the mean curve, every suite, acquisition, dips and orders."""
    curves, acquisition = study["curves"], study["acquisition"]
    criterion, points = study.settings.criterion, Checkpoints.of(study)
    return Page(
        title="Learning curves",
        subject=study.facts["dataset"],
        question=f"When does training reach {percent(criterion)}% on each suite, and does it stay there?",
        answer=_answer(acquisition, criterion),
        hero=_curve(points, "curve", "All suites", curves.filter(suite=EVERYTHING), criterion),
        sure=(
            "Intervals of curves are Wilson's, over suites for their mean and over items within a suite; "
            "those of steps come from drawing the items again, the same for all checkpoints.",
            "A step is known only as exactly as the checkpoints are apart.",
        ),
        findings=tuple(_findings(study)),
        sections=(
            _acquisition(points, acquisition),
            *_suites(points, curves, criterion),
            _dips(points, study["dips"]),
            *_orders(study["orders"]),
        ),
        legend="Reached: the first checkpoint from which accuracy stays at or above the criterion.",
        summary="acquisition",
    )


def _answer(acquisition: pl.DataFrame, criterion: float) -> str:
    parts = []
    for (training,), part in acquisition.group_by("training", maintain_order=True):
        held = part.drop_nulls("reached")
        median = f", half of them by step {_step(held['reached'].median())}" if len(held) else ""
        parts.append(f"{training} reaches and holds {len(held)} of {len(part)} suites{median}")
    return f"At a criterion of {percent(criterion)}%, {'; '.join(parts)}."


def _findings(study: Study) -> list[str]:
    found = []
    dips = study["dips"].filter(pl.col("p_bh") < DETECTED)
    if len(dips):
        named = ", ".join(f"{row['suite']} ({row['training']})" for row in dips.head(5).to_dicts())
        more = ", among them" if len(dips) > 5 else ":"
        found.append(f"{counted(len(dips), 'suite')} with a fall and a recovery{more} {named}.")
    else:
        found.append("No detectable fall with a recovery in the curve of any suite.")
    for row in study["orders"].iter_rows(named=True):
        found.append(
            f"{row['first']} and {row['second']} order {row['suites']} suites with Kendall's tau "
            f"{decimal(row['tau'])} {format_interval(row['low'], row['high'])}."
        )
    return found


def _step(value: object) -> str:
    if value is None:
        return "–"
    number = float(str(value))
    return "never" if math.isinf(number) else decimal(number, 0)


@dataclass(frozen=True)
class Checkpoints:
    """Where the items of suites are, as checkpoints judge them; names: those of the checkpoints, by step."""

    study: Study
    names: dict[tuple[str, float], str]

    @classmethod
    def of(cls, study: Study) -> "Checkpoints":
        """Those of a study in a folder."""
        rows = study.place.read("checkpoints").sort("step").select("training", "step", "model").iter_rows()
        return cls(study, {(training, step): model for training, step, model in rows})

    def ends(self, training: str) -> tuple[float, float]:
        """The first and the last step of a training."""
        steps = [step for own, step in self.names if own == training]
        return steps[0], steps[-1]

    def place(self, suite: str) -> tuple[str, str]:
        """The part of the runs that a suite is in, and its name there; both empty for all suites."""
        sets = self.study.facts["sets"]
        if suite == EVERYTHING:
            return "", ""
        part, colon, name = suite.partition(": ")
        return (part, name) if len(sets) > 1 and colon else ("", suite)

    def link(self, training: str, step: float | None, suite: str) -> str:
        """The address of a suite's items at one step; empty if they are in several runs or in none."""
        scattered = suite == EVERYTHING and len(self.study.facts["sets"]) > 1
        model = "" if step is None or scattered else self.names.get((training, step), "")
        part, name = self.place(suite)
        return self.study.link(model, part, suite=name) if model else ""

    def link_fall(self, row: dict[str, Any]) -> str:
        """The address of the items of a suite before its fall, compared with those at the bottom."""
        before, bottom = (self.names.get((row["training"], row[name]), "") for name in ("before", "bottom"))
        part, name = self.place(row["suite"])
        return self.study.link_pair(before, bottom, part, suite=name) if before and bottom else ""


def _curve(checkpoints: Checkpoints, name: str, title: str, rows: pl.DataFrame, criterion: float) -> Figure:
    steps = sorted(rows["step"].unique().to_list())
    places = {step: place for place, step in enumerate(steps)}
    several = rows["training"].n_unique() > 1
    series = "training" if several or rows["suite"].n_unique() == 1 else "suite"
    points = [
        Point(
            row[series],
            places[row["step"]],
            100 * row["accuracy"],
            100 * row["low"],
            100 * row["high"],
            checkpoints.link(row["training"], row["step"], row["suite"]),
        )
        for row in rows.iter_rows(named=True)
    ]
    return Figure(
        name=name,
        title=title,
        subtitle="accuracy by checkpoint, 95% intervals; dashed: the criterion; checkpoints are drawn at "
        "equal distances",
        label=f"Accuracy of {title} at {len(steps)} checkpoints, from step {_step(steps[0])} to "
        f"{_step(steps[-1])}; the numbers are in curves.csv.",
        chart=partial(
            chart_lines,
            points,
            x_title="step",
            y_title="accuracy (%)",
            labels=[_step(step) for step in steps],
            level=100 * criterion,
        ),
    )


def _suites(checkpoints: Checkpoints, curves: pl.DataFrame, criterion: float) -> tuple[Section, ...]:
    rows = curves.filter(pl.col("suite") != EVERYTHING)
    names = rows["suite"].unique(maintain_order=True).to_list()
    if rows["training"].n_unique() == 1:
        groups = [names[begin : begin + MOST_SERIES] for begin in range(0, len(names), MOST_SERIES)]
    else:
        groups = [[name] for name in names]
    figures = tuple(
        _curve(
            checkpoints,
            f"suites_{number}",
            group[0] if len(group) == 1 else f"Suites {number}",
            rows.filter(pl.col("suite").is_in(group)),
            criterion,
        )
        for number, group in enumerate(groups[:MOST_FIGURES], start=1)
    )
    more = (
        f" Of {len(groups)} figures the first {MOST_FIGURES} are drawn." if len(groups) > MOST_FIGURES else ""
    )
    lede = f"Accuracy by checkpoint; the dashed line is the criterion.{more}"
    return (Section(name="suites", title="By suite", lede=lede, figures=figures),) if figures else ()


def _acquisition(checkpoints: Checkpoints, acquisition: pl.DataFrame) -> Section:
    rows = tuple(
        (
            row["training"],
            row["suite"],
            *(
                Linked(percent(row[name]), checkpoints.link(row["training"], step, row["suite"]))
                for name, step in zip(("first", "last"), checkpoints.ends(row["training"]), strict=True)
            ),
            Linked(_step(row["reached"]), checkpoints.link(row["training"], row["reached"], row["suite"])),
            f"{_step(row['reached_low'])} to {_step(row['reached_high'])}",
            percent(row["held_share"]),
            _step(row["midpoint"]),
            decimal(row["r2"]),
        )
        for row in acquisition.sort("training", "reached", nulls_last=True).iter_rows(named=True)
    )
    return Section(
        name="acquisition",
        title="Order of acquisition",
        lede="Accuracy at the first and last checkpoint; the step at which a suite is reached and held, 95% "
        "of draws of its items, and the share of draws that hold it at the end; the midpoint of a sigmoid "
        "over the logarithm of the step, from chance to its top, and the variance it explains.",
        columns=("Training", "Suite", "First, %", "Last, %", "Reached", "95%", "Held, %", "Midpoint", "R²"),
        rows=rows,
        names=2,
    )


def _dips(checkpoints: Checkpoints, dips: pl.DataFrame) -> Section:
    rows = tuple(
        (
            row["training"],
            row["suite"],
            Linked(
                f"{_step(row['before'])} · {_step(row['bottom'])} · {_step(row['after'])}",
                checkpoints.link_fall(row),
            ),
            percent(row["depth"]),
            p_cell(row["p"]),
            p_cell(row["p_bh"]),
        )
        for row in dips.iter_rows(named=True)
    )
    return Section(
        name="dips",
        title="Falls with a recovery",
        lede="The deepest fall of each curve that recovers (U-shape): the smaller of fall and rise, and the "
        "larger of their one-sided p over items. The three checkpoints were chosen as the deepest, so p is "
        "too small by itself; the last column adjusts it over curves (Benjamini and Hochberg).",
        columns=("Training", "Suite", "Before · bottom · after", "Depth, points", "p", "p adjusted"),
        rows=rows,
        names=3,
    )


def _orders(orders: pl.DataFrame) -> tuple[Section, ...]:
    if orders.is_empty():
        return ()
    rows = tuple(
        (
            row["first"],
            row["second"],
            str(row["suites"]),
            decimal(row["tau"]),
            format_interval(row["low"], row["high"]),
        )
        for row in orders.iter_rows(named=True)
    )
    return (
        Section(
            name="orders",
            title="Orders compared",
            lede="Kendall's tau-b of the steps at which two trainings reach the suites; a suite that is not "
            "reached comes last. 95% intervals from drawing suites again.",
            columns=("First", "Second", "Suites", "Tau", "95%"),
            rows=rows,
            names=2,
        ),
    )
