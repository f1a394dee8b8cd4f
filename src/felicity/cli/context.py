"""felicity context: the effect of a preceding context on acceptability."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.model_options import DataOptions, LongRunOptions, PolicyOptions, takes_groups
from felicity.cli.options import Json, ModelNames, Quiet, RuleName
from felicity.cli.terminal import err, out, print_json, print_rows, progress_bar
from felicity.core.contrasts import ACCURACY

if TYPE_CHECKING:
    from felicity.run import Model
    from felicity.studies.context import Finished, Forecast

CONTEXTS, ANALYSIS = "Where contexts come from", "Analysis"


@takes_groups
def context(
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="A dataset's name, or a file.")],
    model: ModelNames = ("smollm2",),  # type: ignore[assignment]
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Study folder.  [default: runs/DATASET-context]")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help="A kind of context: matched_acceptable, matched_unacceptable, mismatched_acceptable, "
            "mismatched_unacceptable, unrelated; repeatable.  [default: all; with "
            "--from-suite none]"
        ),
    ] = None,
    lengths: Annotated[
        str | None, typer.Option(help="Tokens of context: 0:900:100, or 0,100,400.  [default: 0:900:100]")
    ] = None,
    sentences: Annotated[
        str | None, typer.Option(help="Sentences of context instead of tokens: 0:10:2, or 10.")
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(help="Contexts of each kind for each item, or group of items.  [default: 1]"),
    ] = None,
    contexts_per_suite: Annotated[
        int | None,
        typer.Option(
            help="Crossed design: this many contexts of each kind per suite, each shared by many items."
        ),
    ] = None,
    from_suite: Annotated[
        list[str] | None,
        typer.Option(
            help="Contexts from this suite for every suite, or `all` of them for a matrix; repeatable.",
            rich_help_panel=CONTEXTS,
        ),
    ] = None,
    perturb: Annotated[
        list[str] | None,
        typer.Option(
            help="Perturb context sentences, in addition to the originals: adverb_before, adverb_after, "
            "long_adverbial, clause_before, clause_after, quotation, all, nonsense.",
            rich_help_panel=CONTEXTS,
        ),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option(
            help="Running text for unrelated contexts (.txt, .gz).  [default: WikiText in $FELICITY_DATA, "
            "else a built-in text]",
            rich_help_panel=CONTEXTS,
        ),
    ] = None,
    contexts: Annotated[
        Path | None,
        typer.Option(
            help="Use items and contexts of another study: the contexts.parquet in its folder.",
            rich_help_panel=CONTEXTS,
        ),
    ] = None,
    length_tokenizer: Annotated[
        str | None,
        typer.Option(
            help="Model whose tokens are counted as lengths.  [default: the first -m]",
            rich_help_panel=CONTEXTS,
        ),
    ] = None,
    measure: Annotated[
        str | None, typer.Option(help="The measure that sentences are compared by.  [default: lp]")
    ] = None,
    rule: RuleName = None,
    sample: Annotated[int | None, typer.Option(help="Use only this many items per suite.")] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Seed of the sample and the contexts.  [default: 0]"),
    ] = None,
    conditions: Annotated[
        Path | None,
        typer.Option(
            help="Which conditions of your own suites are acceptable: a .toml table.",
            rich_help_panel=CONTEXTS,
        ),
    ] = None,
    parse: Annotated[
        bool,
        typer.Option(
            help="Also compare dependency labels of contexts; needs felicity[parse].",
            rich_help_panel=ANALYSIS,
        ),
    ] = False,
    formula: Annotated[
        str | None,
        typer.Option(
            help="A further regression: 'log(length) * acceptable + (1|suite) + (1|item)'.",
            rich_help_panel=ANALYSIS,
        ),
    ] = None,
    forecast: Annotated[
        bool, typer.Option("--forecast", help="Plan the study, estimate how long it would take, and stop.")
    ] = False,
    *,
    data: DataOptions,
    scoring: PolicyOptions,
    opening: LongRunOptions,
    report: Annotated[bool, typer.Option(help="Write report.html and its figures.")] = True,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score every stimulus of DATASET after growing contexts, and analyse their effect.

    Contexts consist of the dataset's own sentences, acceptable or not, from the same suite (matched) or
    from others (mismatched), or of running text (unrelated). Each grows sentence by sentence, so that a
    longer one starts with the shorter. Accuracy in context is compared with that of the same items
    without. The study keeps its contexts, so that another model can use the same ones; run the same
    command again to resume. After Sinha et al. (2023).

    \b
    Examples:
      felicity context starter --kind matched_acceptable --kind matched_unacceptable --sentences 0:6:2
      felicity context blimp -m smollm2 --sample 5
      felicity context blimp --sample 50 --contexts-per-suite 5 --lengths 0,100,300,600,900
      felicity context blimp --from-suite all --sentences 10 --sample 3 --contexts-per-suite 1
      felicity context crows_pairs -m ./my-model --contexts runs/crows_pairs-context/contexts.parquet
    """
    from felicity.core.sweep import KINDS
    from felicity.engines import open_counter
    from felicity.engines.runtime import choose_dtype
    from felicity.run import is_study
    from felicity.studies.context import Setting, find_text, parse_lengths, plan_in, refuse_drawing, run_study

    specs = list(dict.fromkeys(model))
    chosen = tuple(kind or (() if from_suite else KINDS))
    silent = quiet or json
    grid = _choose_grid(lengths, sentences)
    if contexts is not None:
        refuse_drawing(
            {
                "kinds": kind,
                "lengths": lengths if lengths is not None else sentences,
                "draws": draws,
                "contexts_per_suite": contexts_per_suite,
                "from_suites": from_suite,
                "perturbations": perturb,
                "text": text,
                "tokenizer": length_tokenizer,
                "sample": sample,
                "seed": seed,
            }
        )
    setting = Setting(
        dataset=dataset,
        lengths=parse_lengths(grid[1]),
        unit=grid[0],
        tokenizer=_choose_tokenizer(length_tokenizer or opening.tokenizer or specs[0]),
        kinds=chosen,
        draws=1 if draws is None else draws,
        contexts_per_suite=contexts_per_suite,
        from_suites=tuple(from_suite or ()),
        perturbations=tuple(perturb or ()),
        text=find_text(text, chosen) if contexts is None else None,
        sample=sample,
        seed=seed or 0,
        measure=measure,
        rule=rule,
        source=data.source,
        columns=data.columns,
        conditions=conditions,
        parse=parse,
    )
    open_one = opening.opener(specs, scoring, quiet=silent)
    # Before a tokenizer imports torch, which reads the processor's settings only once.
    choose_dtype(opening.dtype, opening.device)
    folder = output or Path("runs") / f"{Path(dataset).name.split('.')[0]}-context"
    counter = partial(open_counter, setting.tokenizer)
    if forecast and not is_study(folder):
        # A forecast of a study that is not begun leaves no folder behind.
        with TemporaryDirectory(prefix="felicity-") as place:
            planned = plan_in(Path(place), setting, counter, given=contexts)
    else:
        planned = plan_in(folder, setting, counter, given=contexts)
    if not silent:
        for note in planned.notes:
            err.print(f"Note: {note}", soft_wrap=True, markup=False, highlight=False)
        err.print(_describe(planned), soft_wrap=True)
    if forecast:
        _forecast_only(planned, (open_one(spec) for spec in specs), json=json)
        return
    with progress_bar(quiet=silent) as bar:
        done = run_study(
            planned,
            [partial(open_one, spec) for spec in specs],
            folder,
            progress=lambda _: bar,
            on_forecast=None if silent else _tell,
            report=report,
            formula=formula,
        )
    if json:
        print_json(_as_json(done))
    else:
        _print_summary(done)


def _choose_grid(lengths: str | None, sentences: str | None) -> tuple[str, str]:
    from felicity.core.errors import BadInput

    if lengths is not None and sentences is not None:
        raise BadInput("The length of contexts is given by --lengths or by --sentences; give one of the two.")
    if sentences is not None:
        return "sentences", sentences
    return "tokens", "0:900:100" if lengths is None else lengths


def _choose_tokenizer(spec: str) -> str:
    from felicity.core.errors import BadInput

    if spec.startswith("openai:"):
        raise BadInput(
            f"Contexts are measured in tokens, and those of '{spec}' are known only to its server; give the "
            "model's files, or another model, with --tokenizer or --length-tokenizer."
        )
    return spec


def _describe(planned: Any) -> str:
    return (
        f"{planned.items['item'].n_unique():,} items in {planned.items['suite'].n_unique()} suites, "
        f"{planned.contexts['context'].n_unique():,} contexts, {len(planned.requests):,} texts to score."
    )


def _tell(name: str, told: "Forecast") -> None:
    err.print(f"{name}: {told}", soft_wrap=True, markup=False, highlight=False)


def _forecast_only(planned: Any, models: Iterable["Model"], *, json: bool) -> None:
    from felicity.studies.context import forecast_model

    rows = []
    for lm in models:
        told = forecast_model(lm, planned)
        rows.append(
            {"model": lm.info.name, "texts": told.requests, "tokens": told.tokens, "seconds": told.seconds}
        )
        if not json:
            out.print(f"{lm.info.name}: {told}", soft_wrap=True, markup=False, highlight=False)
    if json:
        print_json({"forecast": rows})


def _as_json(done: "Finished") -> dict[str, Any]:
    from felicity.run import read_policies

    return {
        "folder": str(done.folder),
        "report": str(done.report) if done.report else None,
        "notes": list(done.planned.notes),
        "score": done.planned.headline.as_dict(),
        "policies": read_policies(done.folder),
        **{name: table.to_dicts() for name, table in done.findings.tables().items() if name != "points"},
    }


def _print_summary(done: "Finished") -> None:
    from felicity.run import read_policies
    from felicity.studies.context import name_kind, print_terms

    headline = done.planned.headline
    overall = done.findings.curves.filter(level="overall")
    for (name,), part in overall.group_by("model", maintain_order=True):
        base = part.filter(kind="none").row(0, named=True)
        out.print(
            f"\n[bold]{name}[/]: {headline.noun} without context {100 * base['accuracy']:.1f} "
            f"({100 * base['low']:.1f} to {100 * base['high']:.1f}), n {base['n']:,}",
            soft_wrap=True,
        )
        rows = [
            {
                "context": name_kind(row["kind"], row["source"], headline=headline),
                "perturbation": row["perturbation"],
                "length": row["length"],
                "n": row["n"],
                headline.noun: f"{100 * row['accuracy']:.1f}",
                "change": f"{100 * row['delta']:+.1f}",
                "95% interval": f"{100 * row['delta_low']:+.1f} to {100 * row['delta_high']:+.1f}",
            }
            for row in part.filter(part["kind"] != "none").iter_rows(named=True)
        ]
        print_rows(rows, right=("length", "n", headline.noun, "change", "95% interval"))
    if headline != ACCURACY:
        out.print(f"\n{headline.describe()}", soft_wrap=True, markup=False)
    out.print(read_policies(done.folder), soft_wrap=True, markup=False)
    if not done.findings.terms.is_empty():
        out.print("\n" + print_terms(done.findings.terms), soft_wrap=True, markup=False, highlight=False)
    where = f"\nStudy folder: {done.folder}" + (f"\nReport: {done.report}" if done.report else "")
    out.print(where, soft_wrap=True, markup=False)
