"""felicity stimuli repair: make the pairs of your own set equally long."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.model_options import DataOptions, takes_groups
from felicity.cli.options import Json
from felicity.cli.terminal import out, print_json, print_rows


@takes_groups
def repair(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="A file of pairs, or a sheet that was reviewed.")
    ],
    tokenizer: Annotated[
        list[str] | None,
        typer.Option("--tokenizer", "-m", help="A model or a folder with a tokenizer; repeatable."),
    ] = None,
    reviewed: Annotated[
        bool, typer.Option("--reviewed", help="DATASET is the reviewed sheet: write the set agreed on.")
    ] = False,
    lexicon: Annotated[
        str | None,
        typer.Option(help="Words of a built-in language or of a folder; by default, of the set's language."),
    ] = None,
    band: Annotated[float, typer.Option(min=0.0, help="Largest difference in Zipf frequency.")] = 1.0,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="File to write: .csv, .tsv, .jsonl or .parquet.")
    ] = Path("repaired.csv"),
    *,
    data: DataOptions,
    json: Json = False,
) -> None:
    """Keep the pairs that are equally long, and propose other words for those that are not.

    Writes a sheet with one row per pair: kept, proposed (with the words that changed) or dropped (with
    the reason). Read the proposals, write `no` into the column `decision` of those you refuse, and run
    the command again on the sheet with --reviewed.

    \b
    Examples:
      felicity stimuli repair my_pairs.csv -m smollm2 -o sheet.csv
      felicity stimuli repair sheet.csv --reviewed -o repaired.csv
      felicity stimuli repair my_german_pairs.csv --lexicon german -o sheet.csv
    """
    from felicity.api.pairs import accept_repairs, check_pairs_file, repair_pairs, write_pairs
    from felicity.core.files import read_frame

    check_pairs_file(output)
    if reviewed:
        accepted = accept_repairs(read_frame(Path(dataset), as_text=True))
        write_pairs(accepted, output)
        out.print(f"{len(accepted):,} pairs in {output}.", soft_wrap=True, markup=False)
        return
    found = repair_pairs(
        dataset,
        tokenizer or ["smollm2"],
        columns=data.columns,
        folder=data.source,
        band=band,
        lexicon=lexicon,
    )
    write_pairs(found.sheet, output)
    if json:
        print_json({"counts": found.counts, "sheet": found.sheet.to_dicts()})
        return
    print_rows([{"pairs": n, "": status} for status, n in found.counts.items()], right=("pairs",))
    out.print(f"\nThe sheet to review: {output}", soft_wrap=True, markup=False)
