"""felicity run: score and judge a dataset with a model, in a run folder with a report."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.explorer_page import Explorer, write_explorer
from felicity.cli.model_options import (
    DataOptions,
    LongRunOptions,
    MeasureOptions,
    PolicyOptions,
    takes_groups,
)
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
from felicity.core.wording import decimal, format_digits, format_interval, percent

if TYPE_CHECKING:
    import polars as pl

    from felicity.run import Model, Run


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
    sample: Annotated[int | None, typer.Option(min=1, help="Use only this many items per suite.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    items: OverItems = False,
    *,
    data: DataOptions,
    measuring: MeasureOptions,
    scoring: PolicyOptions,
    opening: LongRunOptions,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a run of other stimuli in the folder.")
    ] = False,
    report: Annotated[bool, typer.Option(help="Write report.html and its figures.")] = True,
    explorer: Explorer = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score every stimulus of DATASET with a model, or several, and judge it.

    DATASET is a name (see `felicity data ls`; of a benchmark all tasks are run, as by `felicity
    benchmark`), a .csv, .tsv, .jsonl, .parquet or .xlsx file of pairs or of stimuli with conditions, or a
    .toml or .json suite with regions and predictions. It is judged by the authors' rule, or by --rule. The
    run keeps the log-probability of every token, so other
    measures can be computed later without the model. Run the same command again to resume an
    interrupted run.

    \b
    Examples:
      felicity run starter                                  # the built-in suite and model
      felicity run blimp -m gpt2 -o runs/blimp-gpt2
      felicity run blimp --rule one_prefix --suite npi_present_1
      felicity run syntaxgym --sample 5
      felicity run multiblimp --language nld -m my-model
      felicity run babylm -m ./my-model -o runs/babylm      # a benchmark: all its tasks, one report
      felicity run clams --language all                     # five languages, each by itself
      felicity run my_pairs.csv -m ./my-model --measure slor --unigram counts.tsv
      felicity run starter --measure word_pmi --measure lp  # token length controlled for
      felicity run starter -m openai:my-model --url http://localhost:8000/v1 --tokenizer ./my-model
      felicity run starter --workers 2
      felicity run starter -m smollm2 -m ./my-model -o runs/both   # one report for both
    """
    from felicity.api import RunHooks
    from felicity.api import run as run_models
    from felicity.cli.study_commands import run_study
    from felicity.data import load_benchmarks
    from felicity.run import default_folder
    from felicity.studies import STUDIES

    if dataset in load_benchmarks():
        _refuse_for_benchmark(
            dataset,
            measure=measure,
            rule=rule,
            unigram=unigram,
            affirmative=affirmative,
            suite=data.suite,
            phenomenon=data.phenomenon,
            overwrite=overwrite,
        )
        given = {"benchmark": dataset, "sample": sample, "seed": seed, "source": data.source}
        settings = {key: value for key, value in given.items() if value is not None}
        run_study(
            STUDIES["benchmark"],
            settings,
            scoring=scoring,
            opening=opening,
            model=list(model),
            output=output,
            report=report,
            explorer=explorer,
            json=json,
            quiet=quiet,
        )
        return
    silent = quiet or json
    several = len(model) > 1
    name = "-".join([Path(dataset).name.split(".")[0], *filter(None, (data.language, rule))])
    together = (output or default_folder(name, "run")) if several else None
    summaries: list[dict[str, Any]] = []

    def show(done: "Run", page: Path | None, lm: "Model") -> None:
        summaries.append(summarize(done, page))
        if lm.info.notes.get("scheduler") == "plain" and not silent:
            err.print(f"Scored in plain batches: {lm.info.notes['scheduler_check']}.", soft_wrap=True)
        if json:
            return
        out.print(f"\n[bold]{lm.info.name}[/]" if several else "")
        _print_summary(done)
        out.print(f"\nRun folder: {done.folder}" + (f"\nReport: {page}" if page else ""), soft_wrap=True)

    runs = run_models(
        dataset,
        model,
        measures=measure,
        rule=rule,
        out=together,
        source=data.source,
        columns=data.columns,
        affirmative=affirmative,
        unigram=unigram,
        unseen=unseen,
        settings=measuring.build(),
        sample=sample,
        seed=seed,
        items=items,
        overwrite=overwrite,
        report=report,
        hooks=RunHooks(
            open_one=opening.opener(model, scoring, quiet=silent),
            choose_folder=None if several else lambda found: output or default_folder(name, found),
            watch=partial(progress_bar, f"scoring {name}", quiet=silent),
            on_audit=None if silent else print_audit,
            on_run=show,
        ),
    )
    kept = together or next(iter(runs)).folder
    if report and explorer and kept:
        write_explorer(Path(kept))
    page = str(together / "report.html") if together and report else None
    if json:
        print_json({"runs": summaries, "report": page} if several else summaries[0])
    elif page:
        out.print(f"\nAll models: {page}", soft_wrap=True)


def _refuse_for_benchmark(name: str, **given: Any) -> None:
    refused = next((option for option, value in given.items() if value), None)
    if refused:
        raise BadInput(f"--{refused} does not apply to {name}, which is a benchmark; omit it.")


def print_audit(audit: "pl.DataFrame") -> None:
    """Print what could bias the result, on standard error, before scoring."""
    met = [row for row in audit.iter_rows(named=True) if row["count"]]
    if not [row for row in met if row["check"] != "not checked"]:
        partly = " was found; not everything was checked" if met else ""
        err.print(f"Audit: nothing that would bias the result{partly}.")
    for row in met:
        named = f": {row['examples']}" if row["check"].startswith("suites") else ""
        err.print(
            f"Audit: {row['check']}: {row['count']:,} of {row['of']:,} ({row['meaning']}){named}",
            soft_wrap=True,
            markup=False,
        )


def summarize(done: "Run", page: Path | None) -> dict[str, Any]:
    """A run in one JSON object."""
    return {
        "folder": str(done.folder),
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
            f"most {format_digits(precision['expected_differences'], 2)} (estimated).",
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
        for group in ("language", "phenomenon"):
            if not done["estimates"].filter(level=group, measure=measure).is_empty():
                print_accuracy(done["estimates"], group, measure=measure, score=headline.noun)
        if not done["estimates"].filter(level="prediction", measure=measure).is_empty():
            print_accuracy(done["estimates"], "prediction", measure=measure, score=headline.noun)
        for level, meaning in (("overall", "over items"), ("macro", "over suites")):
            row = done["estimates"].filter(level=level, measure=measure).row(0, named=True)
            out.print(
                f"{headline.name} {meaning}: [bold]{percent(row['accuracy'])}[/] "
                f"{format_interval(row['low'], row['high'], percent)}, {describe_units(row)}; "
                f"{row['ties']:,} ties, {row['unstable']:,} within numerical noise"
                + (f"; people {percent(row['people'])}" if row.get("people") is not None else ""),
                soft_wrap=True,
            )
    if "baselines" in done.tables:
        overall = done["baselines"].filter(level="overall").to_dicts()
        told = ", ".join(f"{row['baseline']} {percent(row['accuracy'])}" for row in overall)
        out.print(f"Without a model: {told}.", soft_wrap=True, markup=False)
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
            "r": decimal(row["r"], 3),
            "95% interval": format_interval(row["low"], row["high"], places=3),
        }
        for row in correlations.filter(level="all").iter_rows(named=True)
    ]
    print_rows(rows, right=("n", "r", "95% interval"))
