"""felicity count: the unigram table that NormLP and SLOR need."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json, ModelName, Quiet
from felicity.cli.terminal import out, print_json, progress_bar, step_bar


def count(
    corpus: Annotated[
        Path, typer.Argument(metavar="CORPUS", help="A text file, plain or .gz, a text a line.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Table to write (.tsv or .tsv.gz).")],
    model: ModelName = "smollm2",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Count how often each token of a model's vocabulary occurs in a corpus.

    The table has a line `token<TAB>count` for every token met; `--unigram` reads it.

    \b
    Examples:
      felicity count corpus.txt -m smollm2 -o counts.tsv
      felicity run starter --measure slor --unigram counts.tsv
    """
    from felicity.engines.counting import count_tokens, read_lines
    from felicity.engines.families import open_tokenizer
    from felicity.measures.unigram import write_unigram

    with step_bar(quiet=quiet or json) as steps:
        tokenizer = open_tokenizer(model, progress=steps)
    with progress_bar(f"counting {corpus.name}", quiet=quiet or json) as progress:
        counts = count_tokens(tokenizer, read_lines(corpus, progress=progress))
    write_unigram(counts, output)
    if json:
        print_json({"table": str(output), "types": len(counts), "tokens": sum(counts.values())})
    else:
        out.print(f"{output}: {len(counts):,} types, {sum(counts.values()):,} tokens.", soft_wrap=True)
