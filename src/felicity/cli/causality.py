"""felicity causality: pronouns after verbs, what models write, and what people say about it."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.model_options import LongRunOptions, PolicyOptions, takes_groups
from felicity.cli.options import Json, ModelNames, Quiet
from felicity.cli.run_folders import Force
from felicity.cli.terminal import out, print_json, print_rows, step_bar

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Implicit causality: pronouns, continuations, and people's ratings of them.",
)
CONTINUATIONS = "Continuations"
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of `felicity causality run`.")]


@app.command()
@takes_groups
def run(
    source: Annotated[
        str,
        typer.Argument(
            metavar="STIMULI", help="implicit_causality, or a .toml file with your own verbs and nouns."
        ),
    ] = "implicit_causality",
    model: ModelNames = ("smollm2",),  # type: ignore[assignment]
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path("runs/causality"),
    frequency: Annotated[
        Path | None, typer.Option(help="Table with verb and log_frequency, or count.  [default: wordfreq]")
    ] = None,
    continue_: Annotated[
        bool, typer.Option("--continue/--no-continue", help="Have the models continue the prompts.")
    ] = True,
    tokens: Annotated[
        int,
        typer.Option(
            min=2,
            help="Maximum number of tokens of prompt and continuation together.",
            rich_help_panel=CONTINUATIONS,
        ),
    ] = 50,
    stop: Annotated[
        str, typer.Option(help="Cut continuations at this text.", rich_help_panel=CONTINUATIONS)
    ] = ".",
    temperature: Annotated[
        float, typer.Option(min=0, help="Above 0, continuations are sampled.", rich_help_panel=CONTINUATIONS)
    ] = 0.0,
    top_p: Annotated[
        float,
        typer.Option(
            help="Sample from the most probable tokens with this much probability in total.",
            rich_help_panel=CONTINUATIONS,
        ),
    ] = 1.0,
    samples: Annotated[
        int, typer.Option(min=1, help="Continuations per prompt, if sampled.", rich_help_panel=CONTINUATIONS)
    ] = 1,
    beams: Annotated[
        int, typer.Option(min=1, help="Number of beams in beam search.", rich_help_panel=CONTINUATIONS)
    ] = 1,
    sample: Annotated[
        int | None, typer.Option(min=1, help="Use only this many noun pairs, the first ones.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples.")] = 0,
    *,
    scoring: PolicyOptions,
    opening: LongRunOptions,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask models which pronoun follows each verb, and have them continue every prompt.

    Surprisal of both pronouns, agreement with people's bias, mixed models; continuations with their flags
    and the noun they refer to. Writes CSV tables and report.html, and resumes where it stopped.

    \b
    Examples:
      felicity causality run implicit_causality -m smollm2 -o runs/causality
      felicity causality run my_verbs.toml -m gpt2 -m smollm2 --no-continue
      felicity causality run --sample 2 --temperature 0.8 --samples 3 -o runs/sampled
    """
    from felicity.core.engine import Sampling
    from felicity.studies.causality import run_causality, write_causality_report

    open_one = opening.opener(model, scoring, quiet=quiet or json)
    sampling = Sampling(
        tokens=tokens,
        whole=tokens,
        stop=(stop,),
        temperature=temperature,
        top_p=top_p,
        samples=samples,
        seed=seed,
        beams=beams,
    )
    with step_bar(quiet=quiet or json) as bar:
        study = run_causality(
            source,
            [partial(open_one, spec) for spec in model],
            output,
            frequency=frequency,
            sampling=sampling if continue_ else None,
            sample=sample,
            seed=seed,
            progress=lambda _: bar,
        )
    page = write_causality_report(study, output)
    _print_study(study.tables["agreement"].to_dicts(), study.record.get("notes", []), page, json=json)


@app.command()
def sample(
    folder: RunPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="Study folder to write.")],
    verbs: Annotated[int, typer.Option(min=1, help="Number of verbs per bin, the most frequent ones.")] = 10,
    bins: Annotated[int, typer.Option(min=1, help="Number of bins of bias.")] = 10,
    pairs: Annotated[int, typer.Option(min=1, help="Noun pairs per verb, in both orders.")] = 5,
    lists: Annotated[int, typer.Option(min=1, help="Lists to divide the sample into.")] = 25,
    raters: Annotated[int, typer.Option(min=1, help="Raters per list.")] = 3,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Model whose continuations are drawn, if there are several."),
    ] = None,
    review: Annotated[
        Path | None, typer.Option(help="Review folder with decisions about flagged continuations.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    force: Force = False,
    json: Json = False,
) -> None:
    """Draw continuations for people to rate, and write a study folder for `felicity rate`.

    Nothing flagged is shown to raters: the noun pair is exchanged for another one of the verb. Flagged
    continuations are written to STUDY/review; decide about them with `felicity stimuli review
    STUDY/review`, and draw again with --review.

    \b
    Examples:
      felicity causality sample runs/causality --verbs 10 --bins 10 --lists 25 -o study/
      felicity causality sample runs/causality --review study/review -o reviewed/
    """
    from felicity.studies.causality import (
        SampleSize,
        check_balance,
        draw_sample,
        read_continuations,
        read_decisions,
        write_study_folder,
    )

    name, table = read_continuations(folder, model, check=not force)
    drawn = draw_sample(
        table,
        SampleSize(verbs=verbs, bins=bins, pairs=pairs, lists=lists),
        seed=seed,
        decisions=read_decisions(review) if review else None,
    )
    write_study_folder(drawn, output, model=name, seed=seed, raters=raters)
    balance = check_balance(drawn)
    if json:
        print_json({"balance": balance, "flagged": drawn.review.height, "notes": list(drawn.notes)})
        return
    for note in drawn.notes:
        out.print(note, soft_wrap=True, markup=False)
    spread = ", ".join(f"{low} to {high} per {part}" for part, (low, high) in _pairs_of(balance).items())
    out.print(
        f"{output}: {balance['n']} continuations in {lists} lists ({spread}).", soft_wrap=True, markup=False
    )
    if drawn.review.height:
        out.print(
            f"{drawn.review.height} flagged continuations await review: "
            f"felicity stimuli review {output / 'review'}",
            soft_wrap=True,
            markup=False,
        )
    out.print(f"Next: felicity rate preview {output}", soft_wrap=True, markup=False)


def _pairs_of(balance: dict[str, object]) -> dict[str, tuple[int, int]]:
    return {name: (value[0], value[1]) for name, value in balance.items() if isinstance(value, list)}


@app.command()
def report(
    folder: RunPath,
    ratings: Annotated[
        Path | None, typer.Option(help="ratings.csv, or the folder, of `felicity rate export`.")
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="Model whose continuations were rated, if several.")
    ] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Analyse a study again, with ratings if given, and write its report.

    Ratings that were given once are kept in the folder, and are in every later report.

    \b
    Examples:
      felicity causality report runs/causality
      felicity causality report runs/causality --ratings ratings/ratings.csv
    """
    from felicity.studies.causality import read_causality, write_causality_report

    study = read_causality(folder, ratings=ratings, model=model, check=not force)
    page = write_causality_report(study, folder)
    notes = [*study.record.get("notes", []), *(study.ratings.notes if study.ratings else [])]
    _print_study(study.tables["agreement"].to_dicts(), notes, page, json=json)


def _print_study(agreement: list[dict[str, object]], notes: list[str], page: Path, *, json: bool) -> None:
    if json:
        print_json({"agreement": agreement, "notes": notes, "report": str(page)})
        return
    rows = [
        {
            "model": row["lm"],
            "counting": row["counting"],
            "subject": {"m": "male", "f": "female"}.get(str(row["subject_gender"]), "all"),
            "n": row["n"],
            "agreement": f"{100 * float(str(row['agreement'])):.1f}",
        }
        for row in agreement
        if row["bias_bin"] is None
    ]
    print_rows(rows, right=("n", "agreement"))
    for note in notes:
        out.print(note, soft_wrap=True, markup=False)
    out.print(f"\n{page}", markup=False, soft_wrap=True)
