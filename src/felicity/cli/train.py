"""felicity train: n-gram, LSTM and TDLM models from a corpus of one's own."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json, Quiet
from felicity.cli.terminal import err, out, print_json, progress_bar
from felicity.cli.train_lstm import lstm, tdlm
from felicity.cli.train_options import Corpus, MinCount, Valid, WordCasing, Words

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Train word models on a corpus.")


@app.command()
def ngram(
    corpus: Corpus,
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write (.arpa or .arpa.gz).")],
    order: Annotated[int, typer.Option("--order", "-n", help="Words in the longest n-grams.")] = 5,
    valid: Valid = None,
    words: Words = "punctuation",
    casing: WordCasing = "keep",
    min_count: MinCount = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train an n-gram model: interpolated modified Kneser-Ney, written as a standard ARPA file.

    \b
    Examples:
      felicity train ngram corpus.txt -n 5 -o model.arpa
      felicity train ngram corpus.txt.gz -n 3 --min-count 2 --valid held-out.txt -o model.arpa.gz
      felicity judge "The cats annoy Tim." "The cats annoys Tim." -m model.arpa
    """
    from dataclasses import asdict

    from felicity.engines.ngram.training import train_ngram
    from felicity.engines.words.options import check_casing, check_cut

    cut, cased = check_cut(words), check_casing(casing)
    with progress_bar(f"reading {corpus.name}", quiet=quiet or json) as progress:
        report = train_ngram(
            corpus,
            output,
            order=order,
            cut=cut,
            casing=cased,
            min_count=min_count,
            valid=valid,
            progress=progress,
        )
    if json:
        print_json({"model": str(output)} | asdict(report))
        return
    counts = ", ".join(f"{count:,} {n}-grams" for n, count in enumerate(report.ngrams, start=1))
    out.print(f"{output}: {report.tokens:,} tokens in {report.lines:,} lines; {counts}.", soft_wrap=True)
    if report.perplexity is not None:
        held = f"Held-out perplexity {report.perplexity:.1f} ({report.unknown:,} unknown words)."
        out.print(held, soft_wrap=True)
    if report.fallback and not quiet:
        orders = ", ".join(str(n) for n in report.fallback)
        err.print(
            f"Order {orders}: too little text to estimate discounts; 0.5, 1 and 1.5 were used.",
            soft_wrap=True,
        )


app.command()(lstm)
app.command()(tdlm)
