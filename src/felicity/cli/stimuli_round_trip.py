"""felicity stimuli round-trip: sentences degraded by translation there and back."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.model_options import ModelOptions, takes_groups
from felicity.cli.options import Json, Quiet, build_policy
from felicity.cli.terminal import err, print_json, print_rows, progress_bar

if TYPE_CHECKING:
    from felicity.stimuli.round_trip import Translator


@takes_groups
def round_trip(
    originals: Annotated[
        Path,
        typer.Argument(
            metavar="ORIGINALS", help="One sentence per line; with --documents, one document per line."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Table to write (.csv).")],
    through: Annotated[
        str,
        typer.Option(
            metavar="LANG,...",
            help="Routes: spa is there and back, spa+cat two round trips, spa-cat one through both.",
        ),
    ] = "spa",
    command: Annotated[
        str | None,
        typer.Option(
            help="Translator: a command with {source} and {target}, one sentence per line in and out."
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Translator: a language model, such as openai:NAME.")
    ] = None,
    home: Annotated[str, typer.Option(help="Language of the originals, as the translator calls it.")] = "en",
    documents: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Draw N originals from documents, with real and random contexts."
        ),
    ] = None,
    balance: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="Keep N sentences of each source, balanced by length, each original once.",
        ),
    ] = None,
    keep_flawed: Annotated[
        bool,
        typer.Option(
            "--keep-flawed", help="Keep what has untranslated words or a space before its full stop."
        ),
    ] = False,
    lower: Annotated[bool, typer.Option("--lower", help="Lower-case everything.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of contexts and of the balanced sample.")] = 0,
    *,
    opening: ModelOptions,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Degrade sentences by translating them into other languages and back (Lau et al. 2020).

    Debian's Apertium translates unless --command or --model names another translator; its languages spa,
    cat, gl and eo damage sentences to different degrees. Sentences that come back unchanged are dropped and
    counted, and so are those that the translator did not finish: with words that English does not have (if
    WordNet is installed), or a space before the full stop. The table is read by `felicity rate new --from`
    and `felicity acceptability`; beside it, a .json file records translator, versions, routes and seeds.

    \b
    Examples:
      felicity stimuli round-trip originals.txt --through spa,cat -o degraded.csv
      felicity stimuli round-trip corpus.txt --documents 100 --through spa,gl --balance 20 -o stimuli.csv
      felicity stimuli round-trip originals.txt -m openai:MODEL --home English --through German -o new.csv
      felicity rate new my-study --from degraded.csv
    """
    from felicity.core.errors import BadInput
    from felicity.core.files import FRAMES, find_ending
    from felicity.stimuli.round_trip import parse_routes
    from felicity.studies.acceptability import make_stimuli

    if output.suffix != ".csv":
        raise BadInput(f"{output} does not end in .csv; the stimuli are a table for people.")
    if find_ending(originals) in (*FRAMES, ".jsonl"):
        raise BadInput(f"{originals} is a table; give a text file with one sentence per line.")
    if command and model:
        raise BadInput("--command and --model both name a translator; give one.")
    routes = parse_routes(through)
    languages = list(dict.fromkeys(one for route in routes for one in route.languages))
    translator = _open_translator(command, model, home, languages, opening, quiet=quiet or json)
    with progress_bar(quiet=quiet or json) as progress:
        record = make_stimuli(
            originals,
            output,
            routes,
            translator,
            home=home,
            documents=documents,
            balance=balance,
            lower=lower,
            keep_flawed=keep_flawed,
            seed=seed,
            progress=progress,
        )
    if json:
        print_json(record)
        return
    print_rows(record["routes"], right=("sent", "kept", "unchanged", "empty", "flawed"))
    for route, flaws in record["flaws"].items():
        for item, flaw in flaws.items():
            err.print(f"{route}/{item}: {flaw}.", soft_wrap=True, markup=False)
    if not quiet:
        err.print(
            f"{output}: {record['items']:,} sentences, {record['rows']:,} rows. Next: felicity rate new "
            "STUDY --from "
            f"{output}",
            soft_wrap=True,
            markup=False,
        )


def _open_translator(
    command: str | None,
    model: str | None,
    home: str,
    languages: list[str],
    opening: ModelOptions,
    *,
    quiet: bool,
) -> "Translator":
    from felicity.stimuli.round_trip import open_apertium, open_command, translate_by_prompt

    if command:
        return open_command(command)
    if model is None:
        return open_apertium(languages, source=home)
    lm = opening.open(model, build_policy(None), quiet=quiet)

    def generate(prompt: str, tokens: int) -> str:
        found: Any = lm.generate(prompt, tokens=tokens, stop=["\n"])["continuation"].item()
        return str(found)

    return translate_by_prompt(generate, name=lm.info.name, version=lm.info.key)
