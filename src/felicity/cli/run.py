"""felicity run: score and judge a dataset with a model, in a run folder with a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.model_options import DataOptions, LongRunOptions, PolicyOptions, takes_groups
from felicity.cli.options import Affirmative, Json, ModelNames, OverItems, Quiet, RuleName
from felicity.cli.terminal import (
    describe_units,
    err,
    out,
    print_accuracy,
    print_json,
    print_rows,
    progress_bar,
)
from felicity.core.contrasts import ACCURACY
from felicity.core.errors import BadInput
from felicity.core.policy import describe_policies
from felicity.core.regions import BOUNDARIES

if TYPE_CHECKING:
    import polars as pl

    from felicity.run import Run


@takes_groups
def run(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A dataset's name, or a file.")],
    model: ModelNames = ("smollm2",),  # type: ignore[assignment]
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Run folder; with several models, the folder of their runs.  [default: runs/DATASET-MODEL]",
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(help="A measure; repeatable.  [default: lp, or that of the rule]"),
    ] = None,
    rule: RuleName = None,
    affirmative: Affirmative = None,
    unigram: Annotated[
        Path | None, typer.Option(help="token<TAB>count table for norm_lp and slor (.tsv or .tsv.gz).")
    ] = None,
    unseen: Annotated[
        float, typer.Option(min=0, max=1, help="Share of tokens that the unigram table may lack.")
    ] = 0.05,
    sample: Annotated[int | None, typer.Option(help="Use only this many items per suite.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    items: OverItems = False,
    *,
    data: DataOptions,
    scoring: PolicyOptions,
    opening: LongRunOptions,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run of other stimuli in the folder.")
    ] = False,
    report: Annotated[bool, typer.Option(help="Write report.html and its figures.")] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score every stimulus of DATASET with a model, or several, and judge it.

    DATASET is a name (see `felicity data ls`), a .csv, .tsv, .jsonl, .parquet or .xlsx file of pairs or of
    stimuli with conditions, or a .toml or .json suite with regions and predictions. It is judged by
    the authors' rule, or by --rule. The run keeps the log-probability of every token, so other
    measures can be computed later without the model. Run the same command again to resume an
    interrupted run.

    \b
    Examples:
      felicity run starter                                  # the built-in suite and model
      felicity run blimp -m gpt2 -o runs/blimp-gpt2
      felicity run blimp --rule one_prefix --suite npi_present_1
      felicity run syntaxgym --sample 5
      felicity run my_pairs.csv -m ./my-model --measure slor --unigram counts.tsv
      felicity run starter -m openai:my-model --url http://localhost:8000/v1 --tokenizer ./my-model
      felicity run starter --workers 2
      felicity run starter -m smollm2 -m ./my-model -o runs/both   # one report for both
    """
    from felicity.run import check_request, evaluate, report_run

    silent = quiet or json
    name = "-".join([Path(dataset).name.split(".")[0], *([rule] if rule else [])])
    read = check_request(
        dataset,
        measures=measure,
        rule=rule,
        source=data.source,
        columns=data.columns,
        counted=unigram is not None,
        affirmative=affirmative,
    )
    open_one = opening.opener(model, scoring, quiet=silent)
    folders, told = [], []
    for spec in model:
        lm = open_one(spec)
        folder = choose_folder(output, name, lm.info.name, several=len(model) > 1)
        if folder in folders:
            raise BadInput(f"Two models are called '{lm.info.name}'; name each once, or rename a folder.")
        with progress_bar(f"scoring {name}", quiet=silent) as progress:
            done = evaluate(
                read,
                lm,
                measures=measure,
                rule=rule,
                source=data.source,
                out=folder,
                unigram=unigram,
                unseen=unseen,
                columns=data.columns,
                affirmative=affirmative,
                sample=sample,
                seed=seed,
                units="items" if items else "suites",
                progress=progress,
                on_audit=None if silent else print_audit,
                overwrite=overwrite,
            )
        if lm.info.notes.get("scheduler") == "plain" and not silent:
            err.print(f"Scored in plain batches: {lm.info.notes['scheduler_check']}.", soft_wrap=True)
        page = report_run(done, folder) if report else None
        folders.append(folder)
        told.append(summarize(done, folder, page))
        if not json:
            out.print(f"\n[bold]{lm.info.name}[/]" if len(model) > 1 else "")
            _print_summary(done)
            out.print(f"\nRun folder: {folder}" + (f"\nReport: {page}" if page else ""), soft_wrap=True)
    together = (
        _report_together(folders, output or Path("runs") / name, items=items) if len(folders) > 1 else None
    )
    if json:
        print_json(told[0] if together is None else {"runs": told, "report": str(together)})
    elif together is not None:
        out.print(f"\nAll models: {together}", soft_wrap=True)


def choose_folder(output: Path | None, name: str, model: str, *, several: bool) -> Path:
    """The folder for the run of a model: with several models, one of its own below --output."""
    model = model.replace("/", "--")
    if output is None:
        return Path("runs") / f"{name}-{model}"
    return output / model if several else output


def _report_together(folders: list[Path], place: Path, *, items: bool) -> Path:
    """One page on all models: paired comparisons over all items and within each phenomenon."""
    from felicity.cli.compare import compare_answers, write_page
    from felicity.run import read_answers

    answers = read_answers(folders)
    whole, parts = (
        compare_answers(answers, by=by, ties="half", test="score", items=items, seed=0)
        for by in (None, "phenomenon")
    )
    page = place / "report.html"
    write_page({"Over all items": whole, "By phenomenon": parts}, answers, "half", page)
    return page


def print_audit(audit: "pl.DataFrame") -> None:
    """Print what could bias the result, on standard error, before scoring."""
    met = [row for row in audit.iter_rows(named=True) if row["count"]]
    if not [row for row in met if row["check"] != "not checked"]:
        partly = " was found; not everything was checked" if met else ""
        err.print(f"Audit: nothing that would bias the result{partly}.")
    for row in met:
        err.print(
            f"Audit: {row['check']}: {row['count']:,} of {row['of']:,} ({row['meaning']})", soft_wrap=True
        )


def summarize(done: "Run", folder: Path, page: Path | None) -> dict[str, Any]:
    """A run in one JSON object."""
    return {
        "folder": str(folder),
        "report": str(page) if page else None,
        "score": done.headline.as_dict(),
        "policies": describe_policies({"": done.manifest["model"]}),
        "manifest": done.manifest,
        "audit": done["audit"].to_dicts(),
        "estimates": done["estimates"].to_dicts(),
    }


def _print_summary(done: "Run") -> None:
    precision = done.manifest.get("precision")
    if precision:
        out.print(
            f"Scored in {precision['dtype']}; {precision['rescored']:,} of {precision['items']:,} items "
            "again in float32, the smallest margins first. Verdicts expected to differ from float32's: at "
            f"most {precision['expected_differences']:.2g} (estimated).",
            soft_wrap=True,
        )
    headline = done.headline
    if "correlations" in done.tables:
        _print_correlations(done["correlations"])
    regions = done.manifest.get("regions")
    if regions:
        out.print(f"Surprisal of regions: {BOUNDARIES[regions['boundary']]}.", soft_wrap=True)
    for measure in done.manifest["measures"]:
        out.print(f"\n[bold]{measure}[/]")
        print_accuracy(done["estimates"], "phenomenon", measure=measure, score=headline.noun)
        if not done["estimates"].filter(level="prediction", measure=measure).is_empty():
            print_accuracy(done["estimates"], "prediction", measure=measure, score=headline.noun)
        for level, meaning in (("overall", "over items"), ("macro", "over suites")):
            row = done["estimates"].filter(level=level, measure=measure).row(0, named=True)
            out.print(
                f"{headline.name} {meaning}: [bold]{100 * row['accuracy']:.1f}[/] "
                f"({100 * row['low']:.1f} to {100 * row['high']:.1f}), {describe_units(row)}; "
                f"{row['ties']:,} ties, {row['unstable']:,} within numerical noise",
                soft_wrap=True,
            )
    if headline != ACCURACY:
        out.print(headline.describe(), soft_wrap=True, markup=False)
    out.print(describe_policies({"": done.manifest["model"]}), soft_wrap=True, markup=False)


def _print_correlations(correlations: "pl.DataFrame") -> None:
    out.print("\n[bold]Correlation with ratings[/]")
    rows = [
        {
            "measure": row["measure"],
            "condition": row["condition"],
            "method": row["method"],
            "n": row["n"],
            "r": "" if row["r"] is None else f"{row['r']:.3f}",
            "95% interval": "" if row["low"] is None else f"{row['low']:.3f} to {row['high']:.3f}",
        }
        for row in correlations.filter(level="all").iter_rows(named=True)
    ]
    print_rows(rows, right=("n", "r", "95% interval"))
