"""felicity acceptability: people's ratings, with and without context, beside every model and measure."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from felicity.cli.model_options import LongRunOptions, PolicyOptions, takes_groups
from felicity.cli.options import From, Json, ModelNames, Quiet
from felicity.cli.terminal import err, out, print_json, print_rows, progress_bar
from felicity.core.errors import BadInput

if TYPE_CHECKING:
    from felicity.core.policy import Policy
    from felicity.run import Model
    from felicity.studies.acceptability import AcceptabilityStudy


@takes_groups
def acceptability(
    ratings: Annotated[
        str,
        typer.Argument(
            metavar="RATINGS", help="lau2020, a folder of `felicity rate export`, or a table of ratings."
        ),
    ],
    model: ModelNames = ("smollm2",),  # type: ignore[assignment]
    measure: Annotated[
        list[str] | None, typer.Option(help="A measure; repeatable.  [default: all measures]")
    ] = None,
    unigram: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[MODEL=]FILE",
            help="token<TAB>count table for norm_lp and slor, for one model or for all that it fits; "
            "repeatable.",
        ),
    ] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Text to count tokens in, once per tokenizer, for norm_lp and slor.")
    ] = None,
    unseen: Annotated[
        float, typer.Option(min=0, max=1, help="Share of tokens that a unigram table may lack.")
    ] = 0.05,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Folder to write.  [default: runs/RATINGS-acceptability]"),
    ] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Use only this many sentences per suite.")] = None,
    clean: Annotated[
        str | None,
        typer.Option(
            metavar="RULES",
            help="Clean ratings that have rater ids by the rules of a paper: lau2020. They were made for a "
            "scale of 1 to 4; for another one their bounds are the same shares of the range.  "
            "[default: not cleaned]",
        ),
    ] = None,
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH",
            help="The lowest and highest rating possible.  [default: the lowest and highest given]",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample, the bootstrap and the bounds.")] = 0,
    source: From = None,
    *,
    policy: PolicyOptions,
    opening: LongRunOptions,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Correlate models' scores with people's ratings, with and without context (Lau et al. 2020).

    Every model scores every sentence without a context and in every context that people saw; every measure is
    correlated with the ratings of every setting, beside the upper bounds given by the agreement among people
    (UB1, UB2). Masked models are scored in both ways of masking, XLNet in both orders. Writes CSV tables and
    report.html, and resumes where it stopped.

    \b
    A table has the columns text and rating, and as needed:
      item, condition   the sentence, and the setting: none, real, random, or another name; or
                        an item and which of its sentences this is (an item x condition design)
      context           the text before the sentence, in every setting except none
      rater             one row per answer; such ratings can be cleaned (--clean lau2020)
      ratings           without raters: the single ratings behind a mean, such as 4,3,3

    \b
    Examples:
      felicity acceptability lau2020
      felicity acceptability lau2020 -m smollm2 -m ./my-lstm -m ./my-tdlm --corpus corpus.txt -o runs/lau
      felicity acceptability lau2020 -m gpt2 --compat lau2020 --unigram counts.tsv
      felicity acceptability my_ratings/ -m gpt2 -m bert-base-cased
    """
    from felicity.studies.acceptability import study_acceptability, write_acceptability_report

    folder = output or Path("runs") / f"{Path(ratings).name.split('.')[0]}-acceptability"
    silent = quiet or json

    def open_one(spec: str, chosen: "Policy") -> "Model":
        serve = spec.startswith("openai:") or not any(one.startswith("openai:") for one in model)
        return opening.open(spec, chosen, quiet=silent, serve=serve)

    with progress_bar(quiet=silent) as progress:
        study = study_acceptability(
            ratings,
            model,
            folder,
            open_one=open_one,
            policy=policy.build(),
            measures=measure or (),
            unigram=unigram or (),
            corpus=corpus,
            unseen=unseen,
            copy=source,
            clean=clean,
            scale=_parse_scale(scale),
            sample=sample,
            seed=seed,
            progress=progress,
        )
    page = write_acceptability_report(study, folder)
    if json:
        _print_json(study, page)
        return
    if not quiet:
        for note in study.notes:
            err.print(note, soft_wrap=True, markup=False)
    _print_study(study)
    out.print(f"\n{page}", markup=False, soft_wrap=True)


def _parse_scale(text: str | None) -> tuple[float, float] | None:
    """The ends of a rating scale.

    Raises BadInput.
    """
    if text is None:
        return None
    try:
        low, high = map(float, text.split(":"))
    except ValueError as error:
        raise BadInput(
            f"--scale is '{text}'; write the lowest and the highest rating, such as 1:7."
        ) from error
    return low, high


def _print_json(study: "AcceptabilityStudy", page: Path) -> None:
    from felicity.studies.acceptability import describe_findings

    left_out = ("scores", "sentences", "ratings")
    tables = {name: table.to_dicts() for name, table in study.tables.items() if name not in left_out}
    print_json(
        {"findings": describe_findings(study), "notes": list(study.notes), "report": str(page), **tables}
    )


def _print_study(study: "AcceptabilityStudy") -> None:
    from felicity.studies.acceptability import describe_findings

    wide = study.correlations.pivot(on="measure", index=["setting", "model", "context"], values="r")
    rows = [
        {name: f"{value:.3f}" if isinstance(value, float) else value for name, value in row.items()}
        for row in wide.to_dicts()
    ]
    bounds = {(row["setting"], row["bound"]): row["r"] for row in study.ceilings.to_dicts()}
    for row in rows:
        for bound in ("UB1", "UB2"):
            if (row["setting"], bound) in bounds:
                row[bound] = f"{bounds[row['setting'], bound]:.3f}"
    print_rows(rows, right=tuple(wide.columns[3:]))
    out.print("")
    for text in describe_findings(study):
        out.print(text, markup=False, soft_wrap=True)
