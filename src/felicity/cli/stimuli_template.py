"""felicity stimuli template: items out of frames with slots."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import err, out, print_json


def template(
    name: Annotated[
        str, typer.Argument(metavar="TEMPLATE", help="A built-in template (neg, role) or a .toml file.")
    ],
    categories: Annotated[
        Path | None, typer.Option(help="Table of categories and their members, in two columns.")
    ] = None,
    wordnet: Annotated[
        list[str] | None, typer.Option(help="Take the hyponyms of this noun as a category; repeatable.")
    ] = None,
    rows: Annotated[Path | None, typer.Option(help="Table of words, one column per slot.")] = None,
    n: Annotated[
        int | None,
        typer.Option("-n", min=1, help="Maximum number of sentences, balanced over targets.  [default: all]"),
    ] = None,
    check: Annotated[
        bool,
        typer.Option(
            help="Leave out rare members, and those that WordNet does not put under their category."
        ),
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    out_path: Annotated[
        Path | None,
        typer.Option("--output", "--out", "-o", help="File to write: .parquet, .csv, .tsv, .jsonl or .txt."),
    ] = None,
    json: Json = False,
) -> None:
    """Fill the frames of a template with words, every combination or a balanced sample.

    The built-in template `neg` makes NEG-1500-SIMP-TEMP of Shivagunde et al. (2023) out of its table of
    categories. A template of your own is a few lines of TOML; docs/studies/probes.md shows how.

    \b
    Examples:
      felicity stimuli template neg --categories my_categories.csv -o neg_temp.parquet
      felicity stimuli template neg --categories my_categories.csv --no-check   # every member listed
      felicity stimuli template neg --wordnet bird --wordnet tool --wordnet tree -n 200 -o neg_wordnet.csv
      felicity stimuli template my_template.toml --rows words.csv
    """
    from felicity.data import find_frequency
    from felicity.stimuli import check_items_file, write_items
    from felicity.stimuli.templates import (
        build_from_template,
        keep_true_members,
        read_categories,
        read_hyponyms,
        read_slot_words,
        read_taxonomy,
        read_template,
    )

    if out_path:
        check_items_file(out_path)
    chosen = read_template(name)
    members, left_out = read_categories(categories) if categories else ([], [])
    for noun in wordnet or ():
        members = [*members, *read_hyponyms(noun)]
    taxonomy = read_taxonomy() if check and members else None
    if check and members:
        members, untrue = keep_true_members(members, taxonomy, zipf=find_frequency())
        left_out = [*left_out, *untrue]
        if taxonomy is None:
            err.print("WordNet is not installed, so nobody checked that members belong to their category.")
    built = build_from_template(
        chosen,
        members=members,
        rows=read_slot_words(rows) if rows else (),
        n=None if n is None else max(1, n // len(chosen.frames)),
        seed=seed,
        taxonomy=taxonomy,
    )
    left_out = [*left_out, *built.left_out]
    if out_path:
        write_items(built.items, out_path)
    if json:
        print_json({"items": built.items.to_dicts(), "left_out": left_out})
        return
    for reason in left_out:
        err.print(f"Left out: {reason}.", markup=False, soft_wrap=True)
    shown = built.items if out_path is None else built.items.head(2 * len(chosen.frames))
    for sentence in shown["sentence"]:
        out.print(sentence, markup=False, soft_wrap=True)
    pairs = built.items["item"].n_unique()
    where = f", in {out_path}" if out_path else ""
    err.print(f"{built.items.height:,} sentences of {pairs:,} items{where}.", soft_wrap=True)
