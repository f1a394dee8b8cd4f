"""The command of every study, made from its settings: `felicity NAME` for each of STUDIES."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from felicity.cli.explorer_page import Explorer, write_explorer
from felicity.cli.model_options import LongRunOptions, PolicyOptions, expand_group, take_group
from felicity.cli.options import Json, Quiet, refuse_unused
from felicity.cli.terminal import err, out, print_json, print_rows, progress_bar
from felicity.core.settings import Option, is_repeatable, list_options

if TYPE_CHECKING:
    from felicity.core.engine import EngineInfo
    from felicity.core.policy import Policy
    from felicity.run import Model
    from felicity.studies import Forecast as StudyForecast
    from felicity.studies import Job, Study, StudyDefinition

MODELS = "smollm2, a folder, a hub name, a .gguf or .arpa file, or openai:NAME; repeatable."
Report = Annotated[bool, typer.Option(help="Write report.html and its figures.")]
Forecast = Annotated[
    bool, typer.Option("--forecast", help="Plan the study, estimate how long it would take, and stop.")
]


def build_command(definition: "StudyDefinition") -> Callable[..., None]:
    """A function with typer's annotations that carries out the study."""
    described = list_options(definition.settings)
    own = [_parameter(name, *about) for name, about in described.items()]
    own.sort(
        key=lambda one: (one.default is not inspect.Parameter.empty, not described[one.name][1].positional)
    )
    shared = [
        _keyword("model", Annotated[list[str] | None, _model_option(definition)], None),
        _keyword("output", Annotated[Path | None, _output_option(definition)], None),
        *(expand_group(PolicyOptions)),
        *(expand_group(LongRunOptions)),
        *([_keyword("forecast", Forecast, False)] if definition.forecasts else []),
        _keyword("report", Report, True),
        _keyword("explorer", Explorer, True),
        _keyword("json", Json, False),
        _keyword("quiet", Quiet, False),
    ]

    def command(**given: Any) -> None:
        settings = {name: value for name in described if (value := given.pop(name)) is not None}
        scoring, opening = take_group(PolicyOptions, given), take_group(LongRunOptions, given)
        repeated = {name for name, (_, _, kind) in described.items() if is_repeatable(kind)}
        settings = {name: tuple(value) if name in repeated else value for name, value in settings.items()}
        run_study(definition, settings, scoring=scoring, opening=opening, **given)

    command.__name__, command.__doc__ = definition.name, definition.settings.__doc__
    parameters = [*own, *shared]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    return command


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _model_option(definition: "StudyDefinition") -> Any:
    default = f"  [default: {definition.default_model}]" if definition.default_model else ""
    return typer.Option("--model", "-m", help=MODELS + default)


def _output_option(definition: "StudyDefinition") -> Any:
    first = next(
        (name for name, (_, about, _) in list_options(definition.settings).items() if about.positional), ""
    )
    shown = f"runs/{first.upper()}-{definition.name}" if first else f"runs/{definition.name}"
    return typer.Option("--output", "-o", help=f"Study folder.  [default: {shown}]")


def _parameter(name: str, one: Field[Any], about: Option, kind: Any) -> inspect.Parameter:
    """A field of the settings as a parameter that typer understands."""
    required = one.default is MISSING
    taken = _simplify(kind)
    if about.positional:
        wanted = typer.Argument(metavar=about.metavar or name.upper(), help=about.help)
    else:
        limits: dict[str, Any] = {
            key: value for key, value in (("min", about.least), ("max", about.most)) if value is not None
        }
        flag = about.flag or f"--{name.replace('_', '-')}"
        flags = [f"{flag}/--no-{flag[2:]}"] if taken is bool and one.default else [flag]
        wanted = typer.Option(
            *flags,
            metavar=about.metavar,
            help=about.help,
            rich_help_panel=about.panel,
            show_default=not is_repeatable(kind),
            **limits,
        )
    repeated = is_repeatable(kind)
    default = inspect.Parameter.empty if required else None if repeated else one.default
    annotation = list[taken] if repeated and required else list[taken] | None if repeated else taken  # type: ignore[valid-type]
    if not repeated and one.default is None:
        annotation = taken | None
    return _keyword(name, Annotated[annotation, wanted], default)


def _simplify(kind: Any) -> Any:
    """The type of one value on the command line: of data it is a name or a file."""
    parts = [part for part in get_args(kind) if part not in (type(None), Ellipsis)] or [kind]
    simple = next((part for part in (bool, int, float, Path, str) if part in parts), str)
    return str if str in parts else simple


def run_study(
    definition: "StudyDefinition",
    settings: dict[str, Any],
    *,
    scoring: PolicyOptions,
    opening: LongRunOptions,
    model: list[str] | None,
    output: Path | None,
    report: bool,
    explorer: bool,
    json: bool,
    quiet: bool,
    forecast: bool = False,
) -> None:
    """Carry out a study as its command does, or forecast it, and print what it found."""
    from felicity.engines.runtime import choose_dtype
    from felicity.studies import carry_out_study, forecast_study

    silent = quiet or json
    specs = list(dict.fromkeys(model or definition.choose_default(settings)))
    # Before a tokenizer imports torch, which reads the processor's settings only once.
    choose_dtype(opening.dtype, opening.device)
    opener = _opener(specs, scoring, opening, quiet=silent)
    if forecast:
        forecasts = forecast_study(
            definition.name, settings, specs, open_one=opener, tokenizer=opening.tokenizer
        )
        _print_forecasts(forecasts, json=json)
        return
    folder = output or default_folder(definition, settings)
    with progress_bar(quiet=silent) as bar:
        study = carry_out_study(
            definition.name,
            settings,
            specs,
            out=folder,
            open_one=opener,
            policy=scoring.build(),
            report=report,
            progress=bar,
            notify=None if silent else _tell,
            tokenizer=opening.tokenizer,
        )
    if report and explorer:
        write_explorer(folder)
    print_study(study, json=json, quiet=quiet)


def _print_forecasts(forecasts: "Iterator[tuple[Job, StudyForecast]]", *, json: bool) -> None:
    rows = []
    for job, found in forecasts:
        if not json:
            out.print(f"{job.label}: {found}", soft_wrap=True, markup=False, highlight=False)
        rows.append(
            {"model": job.model, "texts": found.texts, "tokens": found.tokens, "seconds": found.seconds}
        )
    if json:
        print_json({"forecast": rows})


def _opener(
    specs: list[str], scoring: PolicyOptions, opening: LongRunOptions, *, quiet: bool
) -> Callable[[str, "Policy | None"], "Model"]:
    """Opens a model with the policy of the command, or another that a study asks for.

    A field of --policy that none of the models uses is refused when the last of them is opened.
    """
    from felicity.engines import has_weights

    policy = scoring.build()
    some_served = any(spec.startswith("openai:") for spec in specs)
    opened: dict[str, EngineInfo] = {}
    scored = {spec for spec in specs if has_weights(spec)}

    def open_one(spec: str, other: "Policy | None") -> "Model":
        serve = spec.startswith("openai:") or not some_served
        lm = opening.open(spec, other or policy, quiet=quiet, serve=serve, announce_begin=False)
        opened.setdefault(spec, lm.info)
        if opened.keys() == scored:
            refuse_unused(list(opened.values()), scoring.policy)
        return lm

    return open_one


def default_folder(definition: "StudyDefinition", settings: dict[str, Any]) -> Path:
    """Where a study goes if no folder is named: runs/DATA-STUDY."""
    first = next(
        (name for name, (_, about, _) in list_options(definition.settings).items() if about.positional), ""
    )
    given = settings.get(first)
    names = given if isinstance(given, tuple) else (given,)
    stem = "-".join(Path(str(name)).name.split(".")[0] for name in names if name)
    return Path("runs") / (f"{stem}-{definition.name}" if stem else definition.name)


def _tell(text: str) -> None:
    err.print(text, soft_wrap=True, markup=False, highlight=False)


def print_study(study: "Study", *, json: bool, quiet: bool = False) -> None:
    """What a command says about a finished study: the answer, one table, notes, and where everything is."""
    page = study.folder / "report.html"
    if json:
        print_json(study.as_json() | {"report": str(page) if page.exists() else None})
        return
    if not quiet:
        for note in study.notes:
            if note not in study.record["notes"]:
                _tell(f"Note: {note}")
    table = study.page.table
    if table:
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
        print_rows(rows, right=table.columns[table.names :])
    shown = study.page
    for sentence in (shown.question, shown.answer, *shown.findings[:3], shown.legend, study.policies):
        if sentence:
            out.print(sentence, soft_wrap=True, markup=False, highlight=False)
    where = f"\nStudy folder: {study.folder}" + (f"\nReport: {page}" if page.exists() else "")
    out.print(where, soft_wrap=True, markup=False)
