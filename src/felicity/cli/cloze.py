"""felicity cloze: small probes and their extensions, models compared at both sizes."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.model_options import LongRunOptions, PolicyOptions, takes_groups
from felicity.cli.options import Affirmative, Json, ModelNames, Quiet
from felicity.cli.terminal import err, out, print_json, print_rows, progress_bar


@takes_groups
def cloze(
    datasets: Annotated[
        list[str],
        typer.Argument(
            metavar="DATASET...", help="Cloze datasets, files, or folders of `felicity stimuli extend`."
        ),
    ],
    model: ModelNames = ("smollm2",),  # type: ignore[assignment]
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")] = Path("runs/cloze"),
    against: Annotated[
        list[str] | None, typer.Option(help="A small set and its extension, as SMALL:LARGE; repeatable.")
    ] = None,
    human: Annotated[
        Path | None,
        typer.Option(help="People's answers: a table with dataset, item, condition, annotator, answer."),
    ] = None,
    affirmative: Affirmative = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Use only this many items per suite.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    *,
    scoring: PolicyOptions,
    opening: LongRunOptions,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask models to complete sentences, on small probes and on their extensions.

    Top-1/5/10/20 hit rate and sensitivity of every model on every dataset; the probability, rank and
    log-odds of targets; and whether what a small set says about two models holds on its extension, with
    paired tests and power at both sizes. Writes CSV tables and report.html, and resumes where it stopped.

    A file has the columns item, condition, context_text (the sentence up to the blank) and text (the target);
    the targets of all its conditions are looked for, or with --affirmative those of one.

    \b
    Examples:
      felicity cloze neg_136_simp role_88
      felicity cloze neg_136_simp neg_1500_simp_temp role_88 role_1500 -m smollm2 -m gpt2 -o runs/probes
      felicity cloze role_88 role_extended/ --against role_88:role_extended
      felicity cloze my_frames.csv --affirmative aff --sample 20
    """
    from felicity.run import read_policies
    from felicity.studies.cloze import study_cloze, write_cloze_report

    open_one = opening.opener(model, scoring, quiet=quiet or json)
    with progress_bar(quiet=quiet or json) as progress:
        study = study_cloze(
            datasets,
            [partial(open_one, spec) for spec in model],
            out=output,
            against=against or (),
            human=human,
            affirmative=affirmative,
            sample=sample,
            seed=seed,
            progress=progress,
        )
    page = write_cloze_report(study, output)
    if json:
        tables = {name: table.to_dicts() for name, table in study.tables.items()}
        print_json(
            {
                "warnings": study.warnings,
                "notes": study.notes,
                "targets_of": {name: data.looked_for for name, data in study.sets.items()},
                "policies": read_policies(output),
                "report": str(page),
                **tables,
            }
        )
        return
    for warning in study.warnings:
        err.print(f"Warning: {warning}", soft_wrap=True, markup=False)
    wide = study.accuracy.pivot(on="figure", index=["dataset", "model"], values="share")
    rows = [
        {name: f"{100 * value:.1f}" if isinstance(value, float) else value for name, value in row.items()}
        for row in wide.to_dicts()
    ]
    print_rows(rows, right=tuple(wide.columns[2:]))
    for name, data in study.sets.items():
        out.print(f"{name}: hit rates of the {data.looked_for}.", markup=False, soft_wrap=True)
    out.print(read_policies(output), markup=False, soft_wrap=True)
    for row in study.sizes.filter(figure="top5").to_dicts() if study.sizes.width else ():
        out.print(
            f"{row['first']} against {row['second']}, top 5, {row['small']} to {row['large']}: "
            f"{row['conclusion']} (p {row['p_small']:.3g} and {row['p_large']:.3g}, not adjusted).",
            markup=False,
            soft_wrap=True,
        )
    out.print(f"\n{page}", markup=False, soft_wrap=True)
