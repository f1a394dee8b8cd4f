"""felicity run: a dataset through a model, into a run folder with a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.options import (
    Bad,
    Bos,
    Casing,
    Compat,
    Device,
    Eos,
    Good,
    Join,
    Json,
    ModelName,
    NoCache,
    Overflow,
    Phenomenon,
    Quiet,
    Suite,
    Unknown,
    build_columns,
    build_policy,
)
from felicity.cli.terminal import err, out, print_accuracy, print_json, progress_bar, step_bar

if TYPE_CHECKING:
    import polars as pl

    from felicity.run.evaluate import Run


def run(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A dataset's name or a file of pairs.")],
    model: ModelName = "smollm2",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Run folder.  [default: runs/DATASET-MODEL]")
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option(help="A measure; may be given several times.  [default: lp]")
    ] = None,
    unigram: Annotated[
        Path | None, typer.Option(help="token<TAB>count table for norm_lp and slor (.tsv or .tsv.gz).")
    ] = None,
    sample: Annotated[int | None, typer.Option(help="Only that many items of each suite.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the sample and the bootstrap.")] = 0,
    good: Good = "good",
    bad: Bad = "bad",
    suite: Suite = None,
    phenomenon: Phenomenon = None,
    bos: Bos = None,
    eos: Eos = None,
    join: Join = None,
    overflow: Overflow = None,
    casing: Casing = None,
    unknown: Unknown = None,
    compat: Compat = None,
    device: Device = "auto",
    no_cache: NoCache = False,
    report: Annotated[bool, typer.Option(help="Write report.html and its figures.")] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score every stimulus of DATASET with a model and judge it.

    DATASET is a name (see `felicity data ls`) or a .csv, .tsv, .jsonl or .parquet file. The run keeps the
    log-probability of every token, so other measures can be computed later without the model. Run the
    same command again to go on where it stopped.

    \b
    Examples:
      felicity run starter                                  # the built-in suite and model
      felicity run blimp -m gpt2 -o runs/blimp-gpt2
      felicity run my_pairs.csv -m ./my-model --measure slor --unigram counts.tsv
    """
    from felicity.run.evaluate import evaluate, report_run
    from felicity.run.model import open_model

    policy = build_policy(
        compat, bos=bos, eos=eos, join=join, overflow=overflow, casing=casing, unknown=unknown
    )
    columns = build_columns(good, bad, suite, phenomenon)
    with step_bar(quiet=quiet or json) as steps:
        lm = open_model(model, policy=policy, device=device, progress=steps, cache=not no_cache)
    name = Path(dataset).name.split(".")[0]
    folder = output or Path("runs") / f"{name}-{lm.info.name}"
    with progress_bar(f"scoring {name}", quiet=quiet or json) as progress:
        done = evaluate(
            dataset,
            lm,
            measures=measure or ["lp"],
            out=folder,
            unigram=unigram,
            columns=columns,
            sample=sample,
            seed=seed,
            progress=progress,
            on_audit=None if quiet or json else print_audit,
        )
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
    for measure in done.manifest["measures"]:
        out.print(f"\n[bold]{measure}[/]")
        print_accuracy(done["estimates"], "phenomenon", measure=measure)
        for level, meaning in (("overall", "over items"), ("macro", "over suites")):
            row = done["estimates"].filter(level=level, measure=measure).row(0, named=True)
            out.print(
                f"Accuracy {meaning}: [bold]{100 * row['accuracy']:.1f}[/] "
                f"({100 * row['low']:.1f} to {100 * row['high']:.1f}), n {row['n']:,}, "
                f"{row['ties']:,} ties, {row['unstable']:,} within numerical noise",
                soft_wrap=True,
            )
