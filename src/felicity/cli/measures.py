"""felicity measures: list the measures, and count the unigrams that NormLP and SLOR need."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json, ModelName, Quiet
from felicity.cli.terminal import out, print_json, print_rows, progress_bar, step_bar

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


@app.callback()
def measures(context: typer.Context, json: Json = False) -> None:
    """List the acceptability measures, or count the words that some of them need.

    \b
    Examples:
      felicity measures
      felicity measures count corpus.txt -o counts.tsv
    """
    if context.invoked_subcommand:
        return
    from felicity.api import measures as list_measures

    rows = list_measures().to_dicts()
    print_json(rows) if json else print_rows(rows)


@app.command()
def count(
    corpus: Annotated[
        Path, typer.Argument(metavar="CORPUS", help="A text file, plain or .gz, one text per line.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Table to write (.tsv or .tsv.gz).")],
    model: ModelName = "smollm2",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Count how often each token of a model's vocabulary occurs in a corpus.

    The table has one line `token<TAB>count` per token that occurs; use it with `--unigram`.

    \b
    Examples:
      felicity measures count corpus.txt -m smollm2 -o counts.tsv
      felicity run starter --measure slor --unigram counts.tsv
    """
    from felicity.engines import open_tokenizer
    from felicity.engines.tokenizing import count_pieces, read_lines
    from felicity.measures import write_unigram

    with step_bar(quiet=quiet or json) as steps:
        tokenizer = open_tokenizer(model, progress=steps)
    with progress_bar(f"counting {corpus.name}", quiet=quiet or json) as progress:
        counts = count_pieces(tokenizer, read_lines(corpus, progress=progress))
    write_unigram(counts, output)
    if json:
        print_json({"table": str(output), "types": len(counts), "tokens": sum(counts.values())})
    else:
        out.print(f"{output}: {len(counts):,} types, {sum(counts.values()):,} tokens.", soft_wrap=True)
