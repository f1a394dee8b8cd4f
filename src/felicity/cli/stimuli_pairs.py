"""felicity stimuli pairs: minimal pairs of equal token length, from a grammar and a lexicon."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.options import Json, Quiet
from felicity.cli.terminal import err, out, print_json, print_rows, progress_bar
from felicity.core.wording import decimal, format_share, percent

if TYPE_CHECKING:
    import polars as pl

    from felicity.api.pairs import PairSet

SHOWN = ("suite", "n", "dropped", "duplicates", "distinct_words", "top_word", "top_share")
UNPARSED_SHOWN = 50


def pairs(
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="[FILE]...", help="Paradigm files of your own (TOML).")
    ] = None,
    paradigm: Annotated[
        list[str] | None,
        typer.Option(
            "--paradigm",
            help="A built-in paradigm, phenomenon or collection (blimp, beyond), or all; repeatable.",
        ),
    ] = None,
    list_them: Annotated[bool, typer.Option("--list", help="List the built-in paradigms and stop.")] = False,
    n: Annotated[int, typer.Option("-n", min=1, help="Pairs per paradigm.")] = 1000,
    tokenizer: Annotated[
        list[str] | None,
        typer.Option(
            "--tokenizer",
            help="A model, or a folder with nothing but a tokenizer; repeatable.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("--model", "-m", help="Same as --tokenizer.  [default: smollm2]")
    ] = None,
    match: Annotated[
        list[str] | None,
        typer.Option(help="length, frequency, or none.  [default: length and frequency]"),
    ] = None,
    band: Annotated[float, typer.Option(min=0.0, help="Largest difference in Zipf frequency.")] = 0.5,
    method: Annotated[str, typer.Option(help="signatures, or redraw (Ueda et al. 2024).")] = "signatures",
    language: Annotated[
        str, typer.Option(help="A built-in language, or a folder with words, grammar and paradigms.")
    ] = "english",
    parse: Annotated[
        bool,
        typer.Option("--parse", help="Parse the good sentences with link-grammar and list the failures."),
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same set.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write: .parquet, .csv, .tsv or .jsonl."),
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Generate minimal pairs whose two sentences have the same number of tokens.

    The pairs of BLiMP's 67 paradigms, of others beyond it, or of your own, are drawn from a grammar and a
    lexicon so that both sentences are equally long under every tokenizer that you name, and the words that
    distinguish them about equally frequent. `--match none` makes the unmatched twin of the same set.
    Without --output the pairs are printed.

    \b
    Examples:
      felicity stimuli pairs --list
      felicity stimuli pairs --paradigm causative -n 5
      felicity stimuli pairs --paradigm all -n 1000 --tokenizer ./gpt2-tokenizer -m smollm2 -o fair.parquet
      felicity stimuli pairs my_paradigm.toml -n 200 -o mine.csv
    """
    from felicity.api.pairs import list_paradigms
    from felicity.api.pairs import pairs as make

    if list_them:
        rows = [
            {"uid": p.uid, "phenomenon": p.phenomenon, "collection": p.collection, "about": p.about}
            for p in list_paradigms(language)
        ]
        print_json(rows) if json else print_rows(rows)
        return
    with progress_bar("paradigms", quiet=quiet) as bar:
        made = make(
            paradigm or (),
            files=files or (),
            n=n,
            tokenizers=[*(tokenizer or ()), *(model or ())] or "smollm2",
            match=match or ("length", "frequency"),
            band=band,
            method=method,
            seed=seed,
            language=language,
            out=output,
            progress=bar,
        )
    unparsed = _parse(made.pairs, language) if parse else None
    if json:
        print_json(_as_json(made, unparsed))
    elif output:
        _print_account(made, unparsed, output, wanted=n)
    else:
        print_rows(made.pairs.select("suite", "good", "bad").to_dicts())
        if unparsed is not None:
            _print_unparsed(unparsed, len(made.pairs), None)


def _parse(made: "pl.DataFrame", language: str) -> "pl.DataFrame":
    from felicity.stimuli.pairs import parse_sentences, read_language

    code = read_language(language).lexicon.language
    return made.filter([not parsed for parsed in parse_sentences(made["good"].to_list(), code)])


def _as_json(made: "PairSet", unparsed: "pl.DataFrame | None") -> dict[str, Any]:
    from felicity.api.pairs import describe_pairs

    shown: dict[str, Any] = {
        "pairs": made.pairs.to_dicts(),
        "account": made.account.to_dicts(),
        "quality": describe_pairs(made.pairs, made.language).to_dicts(),
    }
    if unparsed is not None:
        shown["unparsed"] = unparsed.select("suite", "item", "good").to_dicts()
    return shown


def _print_account(made: "PairSet", unparsed: "pl.DataFrame | None", path: Path, *, wanted: int) -> None:
    from felicity.api.pairs import describe_pairs

    table = made.account.join(
        describe_pairs(made.pairs, made.language).drop("n"), on="suite", maintain_order="left"
    )
    rows = table.select(SHOWN).to_dicts()
    for row in rows:
        row["top_share"] = format_share(row["top_share"])
    print_rows(rows, right=("n", "dropped", "duplicates", "distinct_words", "top_share"))
    total, dropped = len(made.pairs), int(made.account["dropped"].sum())
    begun, seconds = int(made.account["begun"].sum()), float(made.account["seconds"].sum())
    out.print(
        f"\n{total:,} pairs in {path}; {dropped:,} of {begun:,} dropped for their length "
        f"({percent(dropped / max(begun, 1), 2)}%), {decimal(seconds, 0)} s.",
        soft_wrap=True,
        markup=False,
    )
    for uid, why in made.unequal.items():
        err.print(f"{uid}: the sentences are not equally long: {why}", soft_wrap=True, markup=False)
    few = made.account.filter(made.account["n"] < wanted)
    for row in few.iter_rows(named=True):
        err.print(
            f"{row['suite']}: only {row['n']} distinct pairs; add words, or name fewer tokenizers.",
            soft_wrap=True,
            markup=False,
        )
    if unparsed is not None:
        _print_unparsed(unparsed, total, path.with_suffix(".unparsed.csv"))


def _print_unparsed(unparsed: "pl.DataFrame", total: int, path: Path | None) -> None:
    """The good sentences without a complete parse: the first of them here, all of them in the file."""
    from felicity.api.pairs import write_pairs

    out.print(f"\nlink-grammar finds no complete parse of {len(unparsed):,} of {total:,} good sentences:")
    shown = unparsed if path is None else unparsed.head(UNPARSED_SHOWN)
    for row in shown.iter_rows(named=True):
        out.print(f"  {row['suite']}/{row['item']}  {row['good']}", soft_wrap=True, markup=False)
    if path is not None:
        write_pairs(unparsed.select("suite", "item", "good"), path)
        out.print(f"All of them: {path}", soft_wrap=True, markup=False)
