"""felicity bias: does accuracy depend on which sentence of a pair is longer?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.model_options import DataOptions, LongRunOptions, PolicyOptions, takes_groups
from felicity.cli.options import Json, Quiet
from felicity.cli.terminal import err, out, print_json, print_rows, progress_bar
from felicity.core.errors import BadInput

if TYPE_CHECKING:
    from felicity.studies.bias import BiasStudy


@takes_groups
def bias(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="A dataset of pairs, or a file of pairs.")
    ],
    model: Annotated[
        list[str],
        typer.Option(
            "--model",
            "-m",
            help="A model, or a folder with only a tokenizer; repeatable.",
        ),
    ],
    measure: Annotated[list[str] | None, typer.Option(help="A measure; repeatable.  [default: lp]")] = None,
    unigram: Annotated[
        Path | None, typer.Option(help="token<TAB>count table for norm_lp and slor (.tsv or .tsv.gz).")
    ] = None,
    unseen: Annotated[
        float, typer.Option(min=0, max=1, help="Share of tokens that the unigram table may lack.")
    ] = 0.05,
    score: Annotated[
        bool, typer.Option(help="Score with models that have weights; --no-score only splits.")
    ] = True,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write.  [default: runs/DATASET-bias]")
    ] = None,
    debias: Annotated[
        str | None,
        typer.Option(
            metavar="DATASET", help="A debiased set with the same suites, to compare with this one."
        ),
    ] = None,
    sample: Annotated[int | None, typer.Option(help="Use only this many items per suite.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    *,
    data: DataOptions,
    scoring: PolicyOptions,
    opening: LongRunOptions,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Split pairs by token length and show accuracy within each split.

    A is the acceptable sentence, U the unacceptable one (of crows_pairs: the more and the less stereotyping
    one); the splits are A=U, A>U and A<U under each model's own tokenizer. A measure that is not biased by
    length gives the same accuracy in all splits. Writes splits.csv (every suite), curves.csv (accuracy by
    difference in length) and report.html. With --debias, both sets are scored and shown side by side:
    debias.csv and report.html.

    \b
    Examples:
      felicity bias crows_pairs -m ./gpt2-tokenizer -m ./bert-tokenizer
      felicity bias blimp -m smollm2 --sample 20 --measure lp --measure mean_lp --measure pen_lp
      felicity bias my_pairs.csv -m smollm2 --json
      felicity bias twin.parquet --debias fair.parquet -m smollm2
    """
    from felicity.studies.bias import study_bias, write_bias

    stem = Path(dataset).name.split(".")[0]
    folder = output or Path("runs") / f"{stem}-{'debias' if debias else 'bias'}"
    silent = quiet or json

    options: dict[str, Any] = {
        "unigram": unigram,
        "unseen": unseen,
        "columns": data.columns,
        "source": data.source,
        "sample": sample,
        "seed": seed,
        "open_one": opening.opener(model, scoring, quiet=silent),
    }
    if debias:
        if not score:
            raise BadInput("--debias compares accuracies; leave out --no-score.")
        _compare(dataset, debias, model, folder, measure, options, json=json, quiet=silent)
        return
    with progress_bar(quiet=silent) as progress:
        study = study_bias(
            dataset, model, folder, measures=measure or ["lp"], score=score, progress=progress, **options
        )
    written = write_bias(study, folder)
    if json:
        print_json(_as_json(study, written))
        return
    for name, how in study.models.items():
        if how != "scored" and not quiet:
            err.print(f"{name}: {how}, so there are splits but no accuracies.", soft_wrap=True, markup=False)
    _print_splits(study)
    out.print("\n" + "\n".join(str(path) for path in written), soft_wrap=True, markup=False)


def _compare(
    dataset: str,
    fair: str,
    model: list[str],
    folder: Path,
    measure: list[str] | None,
    options: dict[str, Any],
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Accuracy on the biased and the debiased set, side by side."""
    from felicity.studies.bias import write_legend
    from felicity.studies.pairs import DEBIAS_MEASURES, study_debias, write_debias

    with progress_bar(quiet=quiet) as progress:
        study = study_debias(
            dataset, fair, model, folder, measures=measure or DEBIAS_MEASURES, progress=progress, **options
        )
    written = write_debias(study, folder)
    if json:
        words = {"score": study.headline.as_dict(), "policies": study.policies}
        print_json({"files": [str(path) for path in written], "table": study.table.to_dicts()} | words)
        return
    rows = study.table.filter(study.table["suite"] == "all").to_dicts()
    names = ("A=U", "A>U", "A<U", "biased", "debiased")
    shown = [
        {key: row[key] for key in ("model", "measure")}
        | {key: "N/A" if row[key] is None else f"{100 * row[key]:.1f}" for key in names}
        | {key: "" if row[key] is None else f"{row[key]:.3g}" for key in ("p", "p_suites")}
        for row in rows
    ]
    print_rows(shown, right=(*names, "p", "p_suites"))
    out.print(f"{write_legend(study.headline)} {study.policies}".strip(), soft_wrap=True, markup=False)
    out.print("\n" + "\n".join(str(path) for path in written), soft_wrap=True, markup=False)


def _as_json(study: "BiasStudy", written: list[Path]) -> dict[str, Any]:
    return {
        "dataset": study.dataset,
        "models": study.models,
        "score": study.headline.as_dict(),
        "policies": study.policies,
        "files": [str(path) for path in written],
        "splits": study.splits.to_dicts(),
        "curves": study.curves.to_dicts(),
    }


def _print_splits(study: "BiasStudy") -> None:
    from felicity.studies.bias import EVERYTHING, INTERVALS, SPLITS, write_legend

    rows = []
    whole = study.splits.filter(suite=EVERYTHING)
    for (model, measure), part in whole.group_by("model", "measure", maintain_order=True):
        row: dict[str, Any] = {"model": model, "measure": measure or ""}
        for cell in part.iter_rows(named=True):
            row[f"n {cell['split']}"] = cell["n"]
        if measure:
            row |= {cell["split"]: _accuracy(cell) for cell in part.iter_rows(named=True)}
        else:
            row |= dict.fromkeys(SPLITS, "")
        rows.append(row)
    print_rows(rows, right=tuple(f"n {split}" for split in SPLITS) + SPLITS)
    said = f"{write_legend(study.headline)} {INTERVALS} {study.policies}".strip()
    out.print(said, soft_wrap=True, markup=False)
    uneven = study.splits.filter((study.splits["split"] != SPLITS[0]) & (study.splits["n"] > 0))
    suites = uneven.filter(uneven["suite"] != EVERYTHING)["suite"].n_unique()
    of = study.splits.filter(study.splits["suite"] != EVERYTHING)["suite"].n_unique()
    out.print(f"\n{suites} of {of} suites have pairs of unequal length under at least one model.")


def _accuracy(cell: dict[str, Any]) -> str:
    if cell["accuracy"] is None:
        return "N/A"
    interval = f"{100 * cell['low']:.1f} to {100 * cell['high']:.1f}"
    return f"{100 * cell['accuracy']:.1f} ({interval}; suites {cell['suites']})"
