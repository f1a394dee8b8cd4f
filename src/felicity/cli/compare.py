"""felicity compare: paired comparisons of models or measures on the same items."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json, OverItems
from felicity.cli.terminal import err, out, print_json, print_rows

NUMBERS = ("n", "suites", "difference", "95% interval", "p", "Holm", "BH", "least p")


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
    from felicity.api import compare as compare_runs
    from felicity.report.charts import write_figure
    from felicity.stats import describe_test

    found = compare_runs(*runs, measure=measure, by=by, test=test, ties=ties, items=items, seed=seed)
    answers = found.answers
    if figure:
        write_figure(found.figure(), figure)
    if page:
        found.report(page)
    if json:
        shared = {
            "measure": answers.measure,
            "ties_count": ties,
            "score": answers.headline.as_dict(),
            "policies": answers.policies,
        }
        print_json([row | shared for row in found.table.to_dicts()])
        return
    out.print(found.basis, soft_wrap=True, markup=False)
    print_rows(found.rows(), right=NUMBERS)
    out.print("\n" + " ".join(describe_test(found.table)), soft_wrap=True, markup=False)
    if by is None:
        out.print("\n" + found.summary(), soft_wrap=True, markup=False)
    for name in answers.unchecked:
        err.print(f"{name} has no texts, so its items were paired by name only.", markup=False)
