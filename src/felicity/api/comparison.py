"""Paired comparisons of models or measures on the same items, as `felicity compare` prints them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.contrasts import ACCURACY
from felicity.core.wording import ALPHA, MINUS, format_interval, p_cell, percent, points
from felicity.report import (
    Figure,
    Linked,
    Page,
    Provenance,
    Section,
    link_items,
    render_result,
    spaced,
    write_page,
)
from felicity.report.charts import Estimate, Row, Spec, as_altair, chart_accuracy, chart_estimates
from felicity.run import Run, RunJudgements, command_line, installed, now, read_run_judgements
from felicity.stats import (
    Units,
    compare_all,
    compare_groups,
    describe_comparison,
    describe_test,
    estimate_judged,
)

INTERVALS = "95% intervals"
TIES = {"half": "count half", "wrong": "count as wrong", "drop": "are left out"}


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Every pair of models on the items they share: one row per pair, or per pair and group.

    answers: the judgements that were compared. ties: how they were counted. by: the column of the groups.
    """

    table: pl.DataFrame
    answers: RunJudgements
    ties: str
    by: str | None = None

    def __repr__(self) -> str:
        return f"Comparison({self.table.height} tests of {', '.join(self.answers.frames)})"

    def _repr_html_(self) -> str:
        return render_result(
            self.title, self.basis, self.summary(), table=pl.DataFrame(self.rows()), figure=self.figure()
        )

    @property
    def title(self) -> str:
        """What the differences are in, in the dataset's words."""
        return f"Differences in {self.answers.headline.noun}"

    @property
    def basis(self) -> str:
        """What is compared, how ties count, and how the models were scored."""
        what = f"Judged by {self.answers.measure}" if self.answers.measure else "Measures of one run"
        tied = int(self.table["ties"].max() or 0)  # type: ignore[arg-type]
        most = f" (up to {tied:,} tied answers in a pair)" if tied else ""
        meaning = [] if self.answers.headline == ACCURACY else [self.answers.headline.describe()]
        return " ".join([f"{what}; ties {TIES[self.ties]}{most}.", *meaning, self.answers.policies])

    def summary(self) -> str:
        """The differences in words; of comparisons within groups, which test was used."""
        if self.by is not None:
            return " ".join(describe_test(self.table))
        return describe_comparison(self.table, passed=self.answers.headline.passed)

    def rows(self) -> list[dict[str, Any]]:
        """The table as it is printed: percentages, intervals and p-values as texts."""
        return [_show(row) for row in self.table.iter_rows(named=True)]

    def figure(self, *, explorer: str = "", **setting: Any) -> Spec:
        """The differences with their intervals, as a Vega-Lite specification.

        explorer: the address of a page that shows every item, which dots and bars lead to.
        """
        rows = []
        # Of two models only the groups have names; the axis says which is subtracted from which.
        alone = self.by is not None and self.table.select("first", "second").n_unique() == 1
        for row in self.table.iter_rows(named=True):
            value, low, high = (100 * row[key] for key in ("difference", "low", "high"))
            pair = f"{row['first']} {MINUS} {row['second']}"
            name = pair if self.by is None else f"{spaced(row['group'])}{'' if alone else f': {pair}'}"
            rows.append(Estimate(name, value, low, high, self.link(row, explorer)))
        named = {"title": self.title, "subtitle": INTERVALS}
        axis = f"points, {pair}" if alone else "points"
        return chart_estimates(rows, axis=axis, **(setting or named))

    def link(self, row: Mapping[str, Any], explorer: str) -> str:
        """Where the items of a row are: the explorer's comparison of its two models."""
        if not explorer or self.answers.measure is None or self.by not in (None, "phenomenon", "suite"):
            return ""
        facet = {self.by: row["group"]} if self.by else {}
        named = {"a": row["first"], "b": row["second"], "measure": self.answers.measure}
        return link_items(explorer, "compare", **named, **facet)

    def plot(self) -> Any:
        """The differences with their intervals, as an altair chart."""
        return as_altair(self.figure())

    def report(self, page: str | Path) -> Path:
        """Write the comparison as an HTML page."""
        return write_comparisons({"Differences": self}, Path(page))


def compare(
    *runs: str | Path | Run,
    measure: str | None = None,
    by: str | None = None,
    test: str = "score",
    ties: str = "half",
    items: bool = False,
    seed: int = 0,
) -> Comparison:
    """Test the accuracies of two or more runs against each other, item by item.

    runs: run folders, folders of several runs, or runs; of a single one its measures are compared.
    measure: the one to compare by. by: compare within each phenomenon, suite or other column. test: score,
    permutation, or with `items` exact or mid (McNemar's). ties: half, wrong or drop. items: intervals and p
    over the items of these suites instead of over suites.

    Raises BadInput if the runs are not of the same stimuli, UnknownName for a measure or column that is
    missing.

    >>> import felicity as fe
    >>> runs = [fe.evaluate("starter", "smollm2", sample=1, measures=["lp", "mean_lp"])]
    >>> fe.compare(*runs).table.select("first", "second", "n").row(0)
    ('lp', 'mean_lp', 48)
    """
    answers = read_run_judgements(runs, measure=measure)
    answers.refuse_missing()
    return compare_answers(answers, by=by, test=test, ties=ties, items=items, seed=seed)


def compare_answers(
    answers: RunJudgements,
    *,
    by: str | None = None,
    test: str = "score",
    ties: str = "half",
    items: bool = False,
    seed: int = 0,
) -> Comparison:
    """The same of judgements that were read before."""
    options: dict[str, Any] = {"cluster": "suite", "items": items, "ties": ties, "test": test, "seed": seed}
    table = (
        compare_all(answers.frames, **options)
        if by is None
        else compare_groups(answers.frames, by=by, **options)
    )
    return Comparison(table=table, answers=answers, ties=ties, by=by)


def write_comparisons(
    comparisons: Mapping[str, Comparison],
    page: Path,
    *,
    dataset: str = "",
    links: Mapping[str, str] | None = None,
    explorer: str = "",
    command: str = "",
) -> Path:
    """Write comparisons as an HTML page, the first of them its answer; gives its path.

    links: the address of each model's own page, by name. explorer: that of a page that shows every item.
    command: the one that made the runs, if the page is part of them.
    """
    first = next(iter(comparisons.values()))
    headline, names = first.answers.headline, list(first.answers.frames)
    whole = first if first.by is None else compare_answers(first.answers, ties=first.ties)
    what = "Measures" if first.answers.measure is None else "Models"
    content = Page(
        title=f"{what} compared",
        subject=dataset,
        question=f"Do {', '.join(names[:-1])} and {names[-1]} differ in {headline.noun}?",
        answer=_answer(whole),
        hero=_side_by_side(whole, dataset, links or {}),
        sure=(*describe_test(whole.table), *_describe_least(whole.table)),
        findings=tuple(
            describe_comparison(whole.table.slice(place, 1), passed=headline.passed)
            for place in range(whole.table.height)
        )
        if whole.table.height > 1
        else (),
        sections=tuple(_section(title, one, explorer) for title, one in comparisons.items()),
        legend=first.basis,
    )
    about = Provenance(
        command=command or command_line(), created=now(), version=installed("felicity"), models=tuple(names)
    )
    return write_page(content, about, page, eyebrow="felicity compare")


def _answer(whole: Comparison) -> str:
    """Of two, the difference in words; of more, how many pairs differ."""
    table = whole.table
    if table.height == 1:
        return describe_comparison(table, passed=whole.answers.headline.passed)
    differ = table.filter(pl.col("p_holm") <= ALPHA)
    best = max(whole.answers.frames, key=lambda name: float(whole.answers.frames[name]["passed"].mean() or 0))  # type: ignore[arg-type]
    if differ.is_empty():
        return f"No detectable difference between any two, after Holm's adjustment of {table.height} tests."
    return (
        f"{differ.height} of {table.height} pairs differ after Holm's adjustment; {best} has the highest "
        f"{whole.answers.headline.noun}."
    )


def _describe_least(table: pl.DataFrame) -> list[str]:
    """What the test could have shown at best, where that limits what it says."""
    least = float(table["least_p"].max() or 0)  # type: ignore[arg-type]
    if least < ALPHA / 5:
        return []
    return [f"With so few suites or items the smallest p that this test can give is {p_cell(least)}."]


def _side_by_side(whole: Comparison, dataset: str, links: Mapping[str, str]) -> Figure:
    """The share of every model or measure with its interval, each name leading to its own page."""
    units: Units = "items" if set(whole.table["over"]) == {"items"} else "suites"
    rows = []
    for name, judged in whole.answers.frames.items():
        found = estimate_judged(judged, units=units)
        share, low, high = (float(str(found[key])) for key in ("accuracy", "low", "high"))
        rows.append(Row(name, share, low, high, judged.height, link=links.get(name, "")))
    headline = whole.answers.headline
    return Figure(
        name="side-by-side",
        title=f"{headline.name} of each",
        subtitle=f"{dataset + '; ' if dataset else ''}{INTERVALS} over {units}",
        label=f"{headline.name} of {', '.join(whole.answers.frames)}, with {INTERVALS}.",
        chart=partial(
            chart_accuracy,
            rows,
            chance=0.5 if headline.margin else None,
            noun="items",
            chance_name=headline.chance_name,
        ),
    )


def _section(title: str, one: Comparison, explorer: str) -> Section:
    rows = one.rows()
    links = [one.link(row, explorer) for row in one.table.iter_rows(named=True)]
    name = title.lower().replace(" ", "-")
    return Section(
        name=name,
        title=title,
        lede=f"Every pair on the items they share; ties {TIES[one.ties]}.",
        columns=tuple(key.capitalize() if key.islower() and len(key) > 1 else key for key in rows[0]),
        rows=tuple(
            tuple(Linked(spaced(cell) if key == "group" else str(cell), link) for key, cell in row.items())
            for row, link in zip(rows, links, strict=True)
        ),
        names=3 if "group" in rows[0] else 2,
        figures=(
            Figure(
                name=name,
                title=one.title,
                subtitle=INTERVALS,
                label=f"{one.title}, {INTERVALS}",
                chart=partial(one.figure, explorer=explorer),
            ),
        ),
        notes=tuple(describe_test(one.table)) if one.by else (),
    )


def _show(row: dict[str, Any]) -> dict[str, Any]:
    group = {"group": row["group"]} if "group" in row else {}
    return group | {
        "first": f"{row['first']} {percent(row['accuracy_first'])}",
        "second": f"{row['second']} {percent(row['accuracy_second'])}",
        "n": row["n"],
        "suites": row["clusters"],
        "difference": points(row["difference"]),
        "95% interval": format_interval(max(row["low"], -1.0), min(row["high"], 1.0), points),
        "p": p_cell(row["p"]),
        "Holm": p_cell(row["p_holm"]),
        "BH": p_cell(row["p_bh"]),
        "over": row["over"],
        "least p": p_cell(row["least_p"]),
    }
