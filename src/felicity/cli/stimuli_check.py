"""felicity stimuli check: what is wrong with stimuli, and with the log of an extension."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from felicity.cli.model_options import DataOptions, takes_groups
from felicity.cli.options import Json
from felicity.cli.terminal import err, out, print_json, print_rows
from felicity.core.wording import decimal

if TYPE_CHECKING:
    from felicity.api import Checked

TO_FIX = 1
# So many findings of each rule are printed, unless rules are named.
SHOWN = 10


@takes_groups
def check(
    dataset: Annotated[
        str,
        typer.Argument(
            metavar="DATASET", help="A file, a dataset's name, or the folder of `stimuli extend`."
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="A model that looks for swapped labels and unequal token length."),
    ] = None,
    tokenizer: Annotated[
        list[str] | None,
        typer.Option(help="A model or folder whose tokenizer compares token lengths; repeatable."),
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Text that the 5-gram is trained on.  [default: built-in prose]")
    ] = None,
    rule: Annotated[
        list[str] | None, typer.Option(help="Only what this rule finds, all of it; repeatable.")
    ] = None,
    form: Annotated[
        str | None, typer.Option(help="How cloze pairs are built: negation, role.  [default: detected]")
    ] = None,
    last: Annotated[
        str | None, typer.Option(help="A hash noted earlier, which must be in the log of the extension.")
    ] = None,
    *,
    data: DataOptions,
    json: Json = False,
) -> None:
    """Check stimuli before they are scored: every line of a file, every sentence, every pair, every suite.

    DATASET is whatever `felicity run` takes (minimal pairs, conditions, ratings, blanks, suites), a list of
    seed sentences (.txt), or the folder of an extension, whose log is verified. Problems (empty cells, stray
    spaces, identical texts, what a run would refuse) are to be fixed: exit code 1. What the rules find is for
    you to decide: articles, misspelt words, wrong participles, slurs, near-duplicates, pairs that differ in
    length, punctuation or capitals, labels that may be swapped. For pairs it prints what word frequency,
    length and a 5-gram alone would score, and names the suites that one of them decides.

    \b
    Examples:
      felicity stimuli check my_pairs.csv
      felicity stimuli check my_pairs.tsv --good right --bad wrong --json
      felicity stimuli check starter -m smollm2
      felicity stimuli check pairs.parquet --tokenizer gpt2 --corpus novels.txt
      felicity stimuli check role_1500 --rule duplicate --rule "repeated sentence"
      felicity stimuli check role_extended          # its log too
    """
    from felicity.api import check as check_stimuli

    found = check_stimuli(
        dataset,
        columns=data.columns,
        source=data.source,
        model=model,
        tokenizers=tokenizer or (),
        corpus=corpus,
        form=form,
        rules=rule or (),
        last=last,
    )
    if json:
        print_json(found.as_dict())
    else:
        _print(found, shown=None if rule else SHOWN)
    if not found.usable:
        raise typer.Exit(TO_FIX)


def _print(found: "Checked", *, shown: int | None) -> None:
    import polars as pl

    if len(found.problems):
        print_rows(found.problems.to_dicts(), right=("line",))
        out.print("")
    if len(found.findings):
        place = pl.int_range(pl.len()).over("rule")
        first = found.findings if shown is None else found.findings.filter(place < shown)
        rows = [row | {"line": "" if row["line"] is None else row["line"]} for row in first.to_dicts()]
        print_rows(rows, right=("line",))
        if len(first) < len(found.findings):
            more = len(found.findings) - len(first)
            out.print(f"{more:,} more; --rule NAME lists all that a rule finds.", markup=False)
        out.print("")
    table = found.table_of_baselines()
    if len(table):
        names = [name for name in table.columns if name not in ("suite", "n")]
        rows = [row | {name: decimal(row[name], 1) for name in names} for row in table.to_dicts()]
        print_rows(rows, right=("n", *names))
        out.print(f"{found.describe_baselines()}\n", markup=False, soft_wrap=True)
    if found.log is not None and found.log.whole:
        told = f"{found.log.lines:,} lines of the log, unbroken; the last hash is {found.log.last}"
        out.print(told, markup=False, soft_wrap=True)
    elif found.log is not None:
        told = f"{found.name}: {found.log.problem}. {found.log.lines:,} lines before it are unbroken."
        out.print(told, markup=False, soft_wrap=True)
    if found.items or found.log is None:
        out.print(found.summary(), markup=False, soft_wrap=True)
    for note in found.notes:
        err.print(note, markup=False, soft_wrap=True)
