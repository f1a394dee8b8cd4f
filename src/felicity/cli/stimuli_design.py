"""felicity stimuli design: factorial designs with regions and predictions, from a grammar and a lexicon."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import err, out, print_json, print_rows
from felicity.core.errors import NotPossible

if TYPE_CHECKING:
    from felicity.stimuli.designs import DesignItems


def design(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Built-in designs, all, or .toml files of your own."),
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the built-in designs and stop.")] = False,
    n: Annotated[int, typer.Option("-n", min=1, help="Items per design, each in all conditions.")] = 24,
    tokenizer: Annotated[
        list[str] | None,
        typer.Option("--tokenizer", help="A model, or a folder with nothing but a tokenizer; repeatable."),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="Same as --tokenizer.  [default: smollm2]")
    ] = None,
    language: Annotated[
        str, typer.Option(help="A built-in language, or a folder with words, grammar and designs.")
    ] = "english",
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same items.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A .json file (suite), a .csv, .tsv, .parquet or .jsonl file (table), or a folder for both.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Generate items of a factorial design: every item in all conditions, in regions, with predictions.

    The .json file is a suite for `felicity run` and `felicity rate new`. The table has one sentence per row
    with bars between regions and a column for each factor, for `felicity surprisal`, `plot` and `fit`.
    Regions that a design compares have the same number of tokens under every tokenizer that you name.
    Without --output the sentences are printed.

    \b
    Examples:
      felicity stimuli design --list
      felicity stimuli design that_trace -n 2
      felicity stimuli design garden_path_np_z -n 24 -o np_z.json
      felicity stimuli design all -n 24 -o designs
    """
    from felicity.api.pairs import check_designs_path, list_designs, make_designs, write_designs

    if list_them:
        rows = [
            {"name": one.name, "factors": " x ".join(one.factors), "about": one.about, "source": one.source}
            for one in list_designs(language)
        ]
        if not rows:
            raise NotPossible(f"There are no designs for {language}; give .toml files of your own.")
        print_json(rows) if json else print_rows(rows)
        return
    if output:
        check_designs_path(output)
    made = make_designs(
        names or (),
        n,
        tokenizers=[*(tokenizer or ()), *(model or ())] or ["smollm2"],
        seed=seed,
        language=language,
    )
    paths = write_designs(made, output) if output else []
    if json:
        print_json([one.as_suite() for one in made])
    elif output:
        _print_account(made, paths)
    else:
        for one in made:
            print_rows(one.as_table().select("suite", "item", "condition", "text").to_dicts())
    for one in made:
        if len(one.items) < n:
            err.print(f"{one.design.name}: only {len(one.items)} distinct items; add words.", markup=False)


def _print_account(made: "list[DesignItems]", paths: list[Path]) -> None:
    rows = [
        {
            "design": one.design.name,
            "items": len(one.items),
            "conditions": len(one.design.conditions),
            "regions": ", ".join(one.design.regions),
        }
        for one in made
    ]
    print_rows(rows, right=("items", "conditions"))
    shown = paths[0] if len(paths) == 1 else paths[0].parent
    out.print(f"\n{len(paths)} {'file' if len(paths) == 1 else 'files'}: {shown}", markup=False)
