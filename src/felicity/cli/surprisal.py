"""felicity surprisal: how surprising each token, word, region or sentence of a file is to a model."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from felicity.cli.model_options import LongRunOptions, PolicyOptions, takes_groups
from felicity.cli.options import Json, ModelName, Quiet, Unit
from felicity.cli.run import print_audit
from felicity.cli.terminal import err, format_numbers, out, print_json, print_rows, progress_bar
from felicity.core.regions import BOUNDARIES

if TYPE_CHECKING:
    import polars as pl

SHOWN = 60


@takes_groups
def surprisal(
    source: Annotated[
        str, typer.Argument(metavar="FILE", help="A .txt file, a table, or - for standard input.")
    ],
    model: ModelName = "smollm2",
    by: Annotated[
        str,
        typer.Option(help="token, word, unicode (words by UAX 29), region (parts between bars) or sentence."),
    ] = "word",
    unit: Unit = "bits",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a .csv, .tsv, .jsonl or .parquet file.")
    ] = None,
    text: Annotated[str, typer.Option(help="Column of the sentences, in a table.")] = "text",
    context: Annotated[
        str | None, typer.Option(help="A column of contexts, or one text before every sentence; not scored.")
    ] = None,
    rank: Annotated[bool, typer.Option("--rank", help="With --by token: rank in the vocabulary.")] = False,
    entropy: Annotated[
        bool, typer.Option("--entropy", help="With --by token: entropy of the prediction.")
    ] = False,
    top: Annotated[
        int, typer.Option(min=0, help="With --by token: this many of the most probable alternatives.")
    ] = 0,
    spillover: Annotated[
        int, typer.Option(min=0, help="Add the surprisal of this many preceding units.")
    ] = 0,
    boundary: Annotated[
        str,
        typer.Option(
            help="Words and regions: corrected (for trailing white space), plain, or auto: corrected where "
            "the model can."
        ),
    ] = "auto",
    *,
    scoring: PolicyOptions,
    opening: LongRunOptions,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Measure the surprisal of the sentences of a file.

    A .txt file has one sentence per line; a table (.csv, .tsv, .jsonl, .parquet) has them in the column
    `text`, and its other columns are kept. Regions are written with bars: "The horse | raced past | the
    barn"; bars are never scored. Without -o the result is printed. Rows and places are counted from 1.

    \b
    Examples:
      felicity surprisal sentences.txt -o surprisal.csv
      felicity surprisal stimuli.csv --by region --context preamble -o regions.csv
      echo "The cats annoy Tim." | felicity surprisal - --by token --rank --top 3
    """
    from felicity.api import surprisal as measure_texts
    from felicity.api import take_sentences
    from felicity.measures import choose_boundary
    from felicity.run import check_ending, check_units, take_lines, write_table

    silent = quiet or json
    check_units(by, unit, extras=bool(rank or entropy or top), spillover=spillover, boundary=boundary)
    if output:
        check_ending(output)
    given = (
        take_lines(sys.stdin.read(), context=context, where="standard input")
        if source == "-"
        else take_sentences(source, text=text, context=context)
    )
    lm = opening.open(model, scoring.build(), quiet=silent, fields=scoring.policy)
    summed = choose_boundary(boundary, lm.info) if by in ("word", "unicode", "region") else ""
    with progress_bar("scoring", quiet=silent) as progress:
        table = measure_texts(
            given,
            lm,
            by=by,
            unit=unit,
            rank=rank,
            entropy=entropy,
            top=top,
            spillover=spillover,
            boundary=boundary,
            progress=progress,
            on_audit=None if silent else print_audit,
        )
    if output:
        write_table(table, output)
        if not silent:
            what = f"{len(table):,} rows in {output}, {_name(unit, summed)}."
            err.print(what, soft_wrap=True, markup=False)
    if json:
        print_json(table.to_dicts())
    elif not output:
        _print(table, _name(unit, summed))


def _name(unit: str, summed: str) -> str:
    """What the surprisal is: its unit, and how the tokens of a word or region were summed."""
    other = " (--boundary plain sums the tokens)" if summed == "corrected" else ""
    return f"surprisal in {unit}" + (f", {BOUNDARIES[summed]}{other}" if summed else "")


def _print(table: "pl.DataFrame", what: str) -> None:
    numbers = tuple(name for name, dtype in table.schema.items() if dtype.is_numeric())
    print_rows(format_numbers(table.head(SHOWN)), right=numbers)
    more = f"; {len(table) - SHOWN:,} more rows, write them to a file with -o" if len(table) > SHOWN else ""
    out.print(f"\n{what[0].upper()}{what[1:]}{more}.", soft_wrap=True)
