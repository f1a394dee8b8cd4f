"""felicity run: a dataset through a model, into a run folder with a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.groups import takes_groups
from felicity.cli.opening import DataOptions, LongRunOptions, PolicyOptions
from felicity.cli.options import Json, ModelName, Quiet, RuleName
from felicity.cli.terminal import err, out, print_accuracy, print_json, print_rows, progress_bar

if TYPE_CHECKING:
    import polars as pl

    from felicity.run.evaluate import Run


@takes_groups
def run(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A dataset's name, or a file.")],
    model: ModelName = "smollm2",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Run folder.  [default: runs/DATASET-MODEL]")
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(help="A measure; may be given several times.  [default: lp, or what the rule reads]"),
    ] = None,
    rule: RuleName = None,
    unigram: Annotated[
        Path | None, typer.Option(help="token<TAB>count table for norm_lp and slor (.tsv or .tsv.gz).")
    ] = None,
    sample: Annotated[int | None, typer.Option(help="Only that many items of each suite.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample and the bootstrap.")] = 0,
    *,
    data: DataOptions,
    scoring: PolicyOptions,
    opening: LongRunOptions,
    report: Annotated[bool, typer.Option(help="Write report.html and its figures.")] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score every stimulus of DATASET with a model and judge it.

    DATASET is a name (see `felicity data ls`), a .csv, .tsv, .jsonl or .parquet file of pairs or of
    stimuli with conditions, or a .toml or .json suite with regions and predictions. Each is judged by
    the rule its authors meant, or by --rule. The run keeps the log-probability of every token, so other
    measures can be computed later without the model. Run the same command again to go on where it
    stopped.

    \b
    Examples:
      felicity run starter                                  # the built-in suite and model
      felicity run blimp -m gpt2 -o runs/blimp-gpt2
      felicity run blimp --rule one_prefix --suite npi_present_1
      felicity run syntaxgym --sample 5
      felicity run my_pairs.csv -m ./my-model --measure slor --unigram counts.tsv
      felicity run starter -m openai:my-model --url http://localhost:8000/v1 --tokenizer ./my-model
      felicity run starter --workers 2
    """
    from felicity.run.evaluate import evaluate, report_run

    silent = quiet or json
    lm = opening.open(model, scoring.build(), quiet=silent, fields=scoring.policy)
    name = Path(dataset).name.split(".")[0]
    folder = output or Path("runs") / "-".join([name, *([rule] if rule else []), lm.info.name])
    with progress_bar(f"scoring {name}", quiet=silent) as progress:
        done = evaluate(
            dataset,
            lm,
            measures=measure,
            rule=rule,
            source=data.source,
            out=folder,
            unigram=unigram,
            columns=data.columns,
            sample=sample,
            seed=seed,
            progress=progress,
            on_audit=None if silent else print_audit,
        )
    if lm.info.notes.get("scheduler") == "plain" and not silent:
        err.print(f"Read in plain batches: {lm.info.notes['scheduler_check']}.", soft_wrap=True)
    page = report_run(done, folder) if report else None
    if json:
        print_json(summarize(done, folder, page))
    else:
        _print_summary(done)
        out.print(f"\nRun folder: {folder}" + (f"\nReport: {page}" if page else ""), soft_wrap=True)


def print_audit(audit: "pl.DataFrame") -> None:
    """What would bias the result, on standard error, before scoring."""
    met = [row for row in audit.iter_rows(named=True) if row["count"]]
    if not met:
        err.print("Audit: nothing that would bias the result.")
    for row in met:
        err.print(
            f"Audit: {row['check']}: {row['count']:,} of {row['of']:,} ({row['meaning']})", soft_wrap=True
        )


def summarize(done: "Run", folder: Path, page: Path | None) -> dict[str, Any]:
    """A run in one JSON object."""
    return {
        "folder": str(folder),
        "report": str(page) if page else None,
        "manifest": done.manifest,
        "audit": done["audit"].to_dicts(),
        "estimates": done["estimates"].to_dicts(),
    }


def _print_summary(done: "Run") -> None:
    precision = done.manifest.get("precision")
    if precision:
        bound = f"{precision['error_bound']:.2g} nats a sentence (estimated)"
        out.print(
            f"{precision['rescored']:,} of {precision['items']:,} items scored again in float32; "
            f"{precision['dtype']} is off by at most {bound}.",
            soft_wrap=True,
        )
    for measure in done.manifest["measures"]:
        out.print(f"\n[bold]{measure}[/]")
        print_accuracy(done["estimates"], "phenomenon", measure=measure)
        if not done["estimates"].filter(level="prediction", measure=measure).is_empty():
            print_accuracy(done["estimates"], "prediction", measure=measure)
        for level, meaning in (("overall", "over items"), ("macro", "over suites")):
            row = done["estimates"].filter(level=level, measure=measure).row(0, named=True)
            out.print(
                f"Accuracy {meaning}: [bold]{100 * row['accuracy']:.1f}[/] "
                f"({100 * row['low']:.1f} to {100 * row['high']:.1f}), n {row['n']:,}, "
                f"{row['ties']:,} ties, {row['unstable']:,} within numerical noise",
                soft_wrap=True,
            )
    if "correlations" in done.tables:
        _print_correlations(done["correlations"])


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
