"""felicity explore: look at runs in the browser, down to the token, and score sentences that you type."""

import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from felicity.cli.model_options import ModelOptions, PolicyOptions, takes_groups
from felicity.cli.options import Quiet
from felicity.cli.run_folders import Force
from felicity.cli.terminal import err, out
from felicity.core.errors import BadInput, NotPossible

if TYPE_CHECKING:
    from felicity.explore import Collection, TextCollection
    from felicity.run import Model

DEFAULT = "smollm2"


@takes_groups
def explore(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders of runs, of several runs, or of studies.")
    ],
    live: Annotated[
        bool, typer.Option("--live", help="Score sentences typed on the page, and show alternatives.")
    ] = False,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help=f"A model for --live; repeatable.  [default: {DEFAULT}]"),
    ] = None,
    static: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html", help="Write one file that opens without a server, linked from the reports."
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="Port of the page; 0 chooses a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    *,
    scoring: PolicyOptions,
    opening: ModelOptions,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Look at runs in the browser: items, tokens, models against each other, suites, curves.

    Of `felicity reading`: times and surprisals over the words of each text. Runs of the same stimuli are
    shown side by side. The page is served on this machine alone, at the
    printed address, until Ctrl-C. With --static it is written to a file instead.

    \b
    Examples:
      felicity explore runs/starter-smollm2
      felicity explore runs/ns                              # a study of `felicity reading`
      felicity explore runs/blimp-gpt2 runs/blimp-smollm2 --live -m gpt2
      felicity explore runs/starter-smollm2 --static runs/starter-smollm2/explore.html
    """
    if model and not live:
        raise BadInput("-m names a model for typed sentences; add --live.")
    if static and live:
        raise BadInput("A file cannot score sentences; leave out --live or --static.")
    if static and static.suffix.lower() not in (".html", ".htm"):
        raise BadInput(f"{static} does not end in .html; the file is a page for the browser.")
    _need_web()
    from felicity.explore import open_collections

    with open_collections(runs, check=not force) as collections:
        if static:
            _write(collections, static, quiet=quiet)
            return
        models = {}
        for name in (model or [DEFAULT]) if live else []:
            lm = opening.open(name, scoring.build(), quiet=quiet, fields=scoring.policy)
            models[lm.info.name] = lm
        _serve(collections, models, port=port, browser=browser, quiet=quiet)


def _need_web() -> None:
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise NotPossible(
            f"The explorer needs {error.name}, which is not installed; run `pip install felicity[web]`."
        ) from error


def _write(collections: "tuple[Collection | TextCollection, ...]", static: Path, *, quiet: bool) -> None:
    from felicity.api import report
    from felicity.explore import Collection
    from felicity.run import list_runs, read_run, report_run
    from felicity.web import write_offline_page

    size = write_offline_page(collections, static)
    for collection in collections:
        for source in collection.sources if isinstance(collection, Collection) else ():
            if (source.run.path / "report.html").exists():
                report_run(read_run(source.run.path, check=False), source.run.path, explorer=static)
    # The page of a study or of several models, if that is where the file is.
    folder = static.parent
    if (folder / "report.html").exists() and list_runs(folder) != [folder]:
        report(folder, check=False)
    out.print(f"Page: {static}", soft_wrap=True, markup=False)
    if not quiet:
        err.print(f"{size / 1e6:.1f} MB; it needs no network.", soft_wrap=True)


def _serve(
    collections: "tuple[Collection | TextCollection, ...]",
    models: "dict[str, Model]",
    *,
    port: int,
    browser: bool,
    quiet: bool,
) -> None:
    from felicity.web import serve_explore

    def announce(address: str) -> None:
        if not quiet:
            err.print("The page is at this address; end with Ctrl-C:")
        typer.echo(address)
        if browser:
            webbrowser.open(address)

    serve_explore(collections, models, port=port, started=announce)
