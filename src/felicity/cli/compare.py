"""felicity compare: paired comparisons of models or measures on the same items."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.options import Json, OverItems
from felicity.cli.terminal import err, out, print_json, print_rows
from felicity.core.contrasts import ACCURACY

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from felicity.run import Answers

NUMBERS = ("n", "suites", "difference", "95% interval", "p", "Holm", "BH", "least p")
INTERVALS = "95% intervals"
TIES = {"half": "count half", "wrong": "count as wrong", "drop": "are left out"}


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help="Run folders of the same items, or one with several measures."),
    ],
    measure: Annotated[
        str | None, typer.Option(help="The measure to compare by.  [default: the first run's, if shared]")
    ] = None,
    by: Annotated[
        str | None, typer.Option(help="Compare within each phenomenon, suite, or other column, such as kind.")
    ] = None,
    test: Annotated[
        str,
        typer.Option(
            help="score; exact or mid (McNemar's, with --items); or permutation of suites or items."
        ),
    ] = "score",
    ties: Annotated[str, typer.Option(help="Count a tie as half, as wrong, or drop the item.")] = "half",
    items: OverItems = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of permutations that are too many to count.")] = 0,
    figure: Annotated[Path | None, typer.Option(help="Draw the differences to a .svg or .png file.")] = None,
    page: Annotated[Path | None, typer.Option(help="Write the comparison as an HTML page.")] = None,
    json: Json = False,
) -> None:
    """Test the accuracies of two or more runs against each other, item by item.

    Every pair of runs is compared on its shared items, by a measure that all of them have; the stimuli
    must be the same. Interval and p belong together: the interval excludes 0 exactly where p is below .05.
    They take suites as independent, or items if there is one suite or with --items (McNemar's test). p-values
    are adjusted over all tests (Holm; Benjamini and Hochberg); `least p` is the smallest that so many items
    or suites allow. If one run is given, its measures are compared with each other (in a replayed run these
    are the models).

    \b
    Examples:
      felicity compare runs/blimp-gpt2 runs/blimp-smollm2
      felicity compare runs/blimp-gpt2 runs/blimp-smollm2 --by phenomenon --page compare.html
      felicity compare runs/a runs/b runs/c --test exact --items --json
    """
    from felicity.run import read_answers
    from felicity.stats import describe_comparison, describe_test

    answers = read_answers(runs, measure=measure)
    table = compare_answers(answers, by=by, ties=ties, test=test, items=items, seed=seed)
    if figure:
        _draw(table, answers, figure)
    if page:
        write_page({"Differences": table}, answers, ties, page)
    if json:
        shared = {
            "measure": answers.measure,
            "ties_count": ties,
            "score": answers.headline.as_dict(),
            "policies": answers.policies,
        }
        print_json([row | shared for row in table.to_dicts()])
        return
    out.print(describe_basis(answers, table, ties), soft_wrap=True, markup=False)
    print_rows([_shown(row) for row in table.to_dicts()], right=NUMBERS)
    out.print("\n" + " ".join(describe_test(table)), soft_wrap=True, markup=False)
    if by is None:
        words = describe_comparison(table, passed=answers.headline.passed)
        out.print("\n" + words, soft_wrap=True, markup=False)
    for name in answers.unchecked:
        err.print(f"{name} has no texts, so its items were paired by name only.", markup=False)


def compare_answers(
    answers: "Answers", *, by: str | None, ties: str, test: str, items: bool, seed: int
) -> "pl.DataFrame":
    """Every pair, over all items or within each group."""
    from felicity.stats import compare_all, compare_groups

    options: dict[str, Any] = {"cluster": "suite", "items": items, "ties": ties, "test": test, "seed": seed}
    return (
        compare_all(answers.frames, **options)
        if by is None
        else compare_groups(answers.frames, by=by, **options)
    )


def describe_basis(answers: "Answers", table: "pl.DataFrame", ties: str) -> str:
    """What is compared, how ties count, and how the models were scored."""
    what = f"Judged by {answers.measure}" if answers.measure else "Measures of one run"
    tied = int(table["ties"].max() or 0)  # type: ignore[arg-type]
    counted = f"{what}; ties {TIES[ties]}" + (f" (up to {tied:,} tied answers in a pair)." if tied else ".")
    meaning = [] if answers.headline == ACCURACY else [answers.headline.describe()]
    return " ".join([counted, *meaning, answers.policies])


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    group = {"group": row["group"]} if "group" in row else {}
    return group | {
        "first": f"{row['first']} {100 * row['accuracy_first']:.1f}",
        "second": f"{row['second']} {100 * row['accuracy_second']:.1f}",
        "n": row["n"],
        "suites": row["clusters"],
        "difference": f"{100 * row['difference']:+.1f}",
        "95% interval": f"{100 * row['low']:+.1f} to {100 * row['high']:+.1f}",
        "p": f"{row['p']:.4g}",
        "Holm": f"{row['p_holm']:.4g}",
        "BH": f"{row['p_bh']:.4g}",
        "over": row["over"],
        "least p": f"{row['least_p']:.2g}",
    }


def _chart(table: "pl.DataFrame", **setting: Any) -> Any:
    from felicity.report.charts import Estimate, chart_estimates

    rows = []
    for row in table.to_dicts():
        group = f"{row['group']}: " if "group" in row else ""
        ends = (100 * row[key] for key in ("difference", "low", "high"))
        rows.append(Estimate(f"{group}{row['first']} - {row['second']}", *ends))
    return chart_estimates(rows, axis="points", **setting)


def _title(answers: "Answers") -> str:
    return f"Differences in {answers.headline.noun}"


def _draw(table: "pl.DataFrame", answers: "Answers", figure: Path) -> None:
    from felicity.report.charts import write_figure

    write_figure(_chart(table, title=_title(answers), subtitle=INTERVALS), figure)


def write_page(tables: "Mapping[str, pl.DataFrame]", answers: "Answers", ties: str, page: Path) -> None:
    """Write comparisons as an HTML page, one section per table."""
    from felicity.report import Extra, Figure, write_sections
    from felicity.stats import describe_test

    sections = []
    for title, table in tables.items():
        rows = [_shown(row) for row in table.to_dicts()]
        name = title.lower().replace(" ", "-")
        figure = Figure(
            name=name,
            title=_title(answers),
            subtitle=INTERVALS,
            label=f"{_title(answers)}, {INTERVALS}",
            chart=partial(_chart, table),
        )
        section = Extra(
            name=name,
            title=title,
            lede=describe_basis(answers, table, ties),
            columns=tuple(key.capitalize() if key.islower() else key for key in rows[0]),
            rows=tuple(tuple(str(cell) for cell in row.values()) for row in rows),
            names=3 if "group" in rows[0] else 2,
            figures=(figure,),
            notes=tuple(describe_test(table)),
        )
        sections.append(section)
    write_sections(sections, page, eyebrow="felicity compare", title="Paired comparisons")
