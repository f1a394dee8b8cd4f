"""felicity replay: judge and report published numbers without a model."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.explorer_page import write_explorer
from felicity.cli.options import Json
from felicity.cli.terminal import describe_units, err, out, print_accuracy, print_json
from felicity.core.wording import format_interval, percent


def replay(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A table of numbers, or a folder of predictions.")
    ],
    dataset: Annotated[
        str | None, typer.Option(help="The dataset of the numbers, if SOURCE does not say.")
    ] = None,
    good: Annotated[
        str, typer.Option(help="The condition that should score highest, if no dataset says so.")
    ] = "good",
    leave_out: Annotated[list[str] | None, typer.Option(help="A suite to leave out; repeatable.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Run folder.  [default: runs/SOURCE-replay]")
    ] = None,
    report: Annotated[bool, typer.Option(help="Write report.html and its figures.")] = True,
    json: Json = False,
) -> None:
    """Judge, estimate and report numbers from other programs.

    SOURCE is a table (.csv, .tsv, .jsonl, .parquet, also gzipped) with the columns item, condition and
    value (scores, higher is better; also measure, suite, phenomenon), with item, condition, region and
    value (surprisals in bits of a suite's regions), with suite, item and correct (the results of
    SyntaxGym), or with UID and accuracies (BLiMP's summaries); or a file or folder of cloze predictions
    (one list of words per line), which are read as published and corrected; or stored outputs: a table of
    Gulordava et al. (.tab), a folder of Zorro's results, or BabyLM's predictions.json or report, whose ties
    are counted as their programs do and half. If there are several models, each is a measure of the run.

    \b
    Examples:
      felicity replay scores.csv --dataset blimp
      felicity replay syntaxgym_results_gpt-2-pretrained_.csv.gz --leave-out nn-nv-rpl
      felicity replay models_summary.jsonl -o runs/blimp-published
      felicity replay predictions/ROLE-1500 --json
      felicity replay evaluation_output/Italian/best_model.tab.gz
      felicity replay results/opt-1024/entity_tracking/predictions.json
    """
    from felicity.papers.replay import leave_out as drop
    from felicity.papers.replay import replay_file, write_replay
    from felicity.run import default_folder, report_run

    replayed = drop(replay_file(source, dataset=dataset, good=good), leave_out or [])
    folder = output or default_folder(source, "replay")
    done = write_replay(replayed, source, folder)
    page = report_run(done, folder) if report else None
    if report:
        write_explorer(folder)
    if json:
        told = {"folder": str(folder), "report": str(page) if page else None, "form": replayed.form}
        notes = [{"note": note, "count": count, "of": of} for note, count, of in replayed.notes]
        print_json(told | {"notes": notes, "estimates": done["estimates"].to_dicts()})
        return
    for note, count, of in replayed.notes:
        err.print(f"Left out: {count:,} {note} ({of:,} in all).", soft_wrap=True, markup=False)
    for measure in replayed.measures:
        out.print(f"\n[bold]{measure}[/]")
        level = "prediction" if "prediction" in done["estimates"]["level"] else "phenomenon"
        print_accuracy(done["estimates"], level, measure=measure, score=done.headline.noun)
        for shown, meaning in (("overall", "over items"), ("macro", "over suites")):
            row = done["estimates"].filter(level=shown, measure=measure).row(0, named=True)
            out.print(
                f"{done.headline.name} {meaning}: [bold]{percent(row['accuracy'], 2)}[/] "
                f"{format_interval(row['low'], row['high'], percent)}, {describe_units(row)}",
                soft_wrap=True,
            )
    out.print(f"\nRun folder: {folder}" + (f"\nReport: {page}" if page else ""), soft_wrap=True)
