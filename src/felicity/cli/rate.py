"""felicity rate: collect judgements from people, on a site of your own."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.options import Json
from felicity.cli.rate_new import new
from felicity.cli.rate_people import Database, forget, links, open_store, release, withdraw
from felicity.cli.rate_simulate import StudyFolder, need_web, simulate
from felicity.cli.terminal import err, out, print_json, print_rows
from felicity.core.errors import BadInput, NotPossible
from felicity.core.wording import decimal, percent

if TYPE_CHECKING:
    from fastapi import FastAPI

    from felicity.humans import Store

app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Collect judgements from people, on a site of your own."
)


app.command()(new)


@app.command()
def preview(
    study: StudyFolder,
    port: Annotated[int, typer.Option(help="Port; 0 chooses a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    database: Database = None,
    static: Annotated[
        Path | None,
        typer.Option(metavar="FILE.html", help="Write one file to click through, without a server."),
    ] = None,
    trials: Annotated[
        int | None, typer.Option(min=1, help="Trials in the file of --static.  [default: all of a list]")
    ] = None,
) -> None:
    """Go through the study in the browser, as a test run.

    The study is checked first. Answers are marked as tests and never counted. With --static the pages of the
    first list are written to a file that stores nothing, to show to colleagues or a review board.

    \b
    Examples:
      felicity rate preview my-study
      felicity rate preview my-study --no-browser --port 8001
      felicity rate preview my-study --static my-study.html --trials 3
    """
    import webbrowser

    if trials is not None and static is None:
        raise BadInput("--trials says how many trials the file of --static has; add --static FILE.html.")
    if static is not None:
        _write_preview(study, static, trials)
        return
    _serve(
        study,
        host="127.0.0.1",
        port=port,
        database=database,
        preview=True,
        proxy=None,
        started=lambda url: webbrowser.open(url) if browser else None,
    )


def _write_preview(folder: Path, static: Path, trials: int | None) -> None:
    need_web()
    from felicity.humans import read_rating_study
    from felicity.web import write_preview_page

    if static.suffix.lower() not in (".html", ".htm"):
        raise BadInput(f"{static} does not end in .html; the file is a page for the browser.")
    number = write_preview_page(read_rating_study(folder), static, trials=trials)
    out.print(f"{number} pages: {static}", soft_wrap=True, markup=False)


@app.command()
def serve(
    study: StudyFolder,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 chooses a free one.")] = 8000,
    database: Database = None,
    proxy: Annotated[
        str | None,
        typer.Option(help="Address of the reverse proxy that terminates TLS; cookies become Secure."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="FELICITY_TOKEN", help="Token of the researcher's page.  [default: a random one]"
        ),
    ] = None,
    requests_per_second: Annotated[
        float, typer.Option(min=0, help="Limit per client address; 0 for none.")
    ] = 100.0,
    workers: Annotated[int, typer.Option(min=1, help="Processes; more than one needs PostgreSQL.")] = 1,
) -> None:
    """Serve the study to raters until interrupted.

    Every answer is on the disk before the next page is shown. Raters outside this machine need a proxy that
    provides HTTPS; docs/how-to/rating-server.md describes the set-up step by step.

    \b
    Examples:
      felicity rate serve my-study --port 8000
      felicity rate serve my-study --proxy 127.0.0.1 --database postgresql+psycopg://felicity@localhost/ratings
    """
    _serve(
        study,
        host=host,
        port=port,
        database=database,
        preview=False,
        proxy=proxy,
        token=token,
        requests_per_second=requests_per_second,
        workers=workers,
    )


def _check_platform(store: "Store") -> None:
    """Raises BadInput if the file of expected ids cannot be used."""
    from felicity.humans import ExpectedIds

    if store.study.platform.ids is not None and not store.closed():
        ExpectedIds(store.study.platform.ids)


def _serve(
    folder: Path,
    *,
    host: str,
    port: int,
    database: str | None,
    preview: bool,
    proxy: str | None,
    token: str | None = None,
    requests_per_second: float = 100.0,
    workers: int = 1,
    started: Callable[[str], Any] | None = None,
) -> None:
    import secrets

    store = open_store(folder, database)
    if workers > 1 and store.database.sqlite:
        raise NotPossible("SQLite has one writer; use --workers with a PostgreSQL --database.")
    from felicity.humans import PlatformIds, Store, load_keys
    from felicity.web import AddressLimit, RatingOptions, create_rating_site, find_port, serve_app, warn_about

    _check_platform(store)
    port = port or find_port()
    # A token that somebody has chosen is not written where logs may keep it.
    shown = "..." if token else secrets.token_urlsafe(24)
    token = token or shown
    warning = warn_about(host, proxy=proxy)
    if warning:
        err.print(warning, soft_wrap=True, markup=False)
    options = RatingOptions(
        token=token,
        preview=preview,
        secure=proxy is not None,
        requests_per_second=requests_per_second,
        addresses=AddressLimit(store.study.places_per_address),
    )
    keys = load_keys(store.study.folder)

    def make() -> "FastAPI":
        # A worker opens its own connections: those of the parent must not be shared.
        own = store if workers == 1 else Store(store.study, database)
        return create_rating_site(own, keys, PlatformIds(store.study.folder, keys), options)

    if workers > 1:
        store.close()
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def announce() -> None:
        platform = store.study.platform
        signature = "&signature=..." if platform.signed else ""
        link = (
            f"{url}/?{platform.parameter}=...{signature}" if platform.parameter and not preview else f"{url}/"
        )
        out.print(f"{'Preview' if preview else 'Raters'}:     {link}", soft_wrap=True, markup=False)
        out.print(f"Researcher: {url}/researcher?token={shown}", soft_wrap=True, markup=False)
        out.print(
            "Stop with Ctrl-C; raters continue where they stopped when the server is back.", markup=False
        )
        sys.stdout.flush()
        if started is not None:
            started(url)

    serve_app(make, host=host, port=port, proxy=proxy, workers=workers, started=announce)


app.command()(simulate)


@app.command()
def status(study: StudyFolder, database: Database = None, json: Json = False) -> None:
    """Show progress by list, drop-outs and times.

    \b
    Examples:
      felicity rate status my-study
      felicity rate status my-study --json
    """
    from felicity.humans import describe_progress

    store = open_store(study, database)
    _check_platform(store)
    found = describe_progress(store)
    if json:
        print_json({"totals": found.totals, "lists": found.lists, "raters": found.raters})
        return
    totals = found.totals
    print_rows(found.lists, right=tuple(found.lists[0])[2:])
    drop_out = "" if totals["drop_out"] is None else f" ({percent(totals['drop_out'], 0)}%)"
    minutes = "" if totals["median_minutes"] is None else f"; median {totals['median_minutes']} minutes"
    out.print(
        f"\n{totals['finished']} of {totals['quota']} lists finished, {totals['live']} live, "
        f"{totals['dropped']} dropped out{drop_out}, {totals['screened']} screened out, "
        f"{totals['tests']} test runs{minutes}{'; PAUSED' if totals['paused'] else ''}.",
        soft_wrap=True,
        markup=False,
    )
    if totals["unerased"]:
        out.print(
            f"{totals['unerased']} withdrawn: their answers are deleted, but the file of the database is "
            "still to be rewritten without them; the server does so while it runs.",
            soft_wrap=True,
            markup=False,
        )


@app.command()
def export(
    study: StudyFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")],
    database: Database = None,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Include raters who left or were set aside.")
    ] = False,
    tests: Annotated[bool, typer.Option("--tests", help="Export test runs instead of real ones.")] = False,
    payment: Annotated[
        Path | None,
        typer.Option(
            help="Also write a table of platform ids, states and codes for payment; keep it separate."
        ),
    ] = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="In CSV, leave texts that a spreadsheet would run as they are.")
    ] = False,
) -> None:
    """Write the ratings as tables, with codebook and report.

    The folder gets ratings, raters and design as .csv and .parquet, codebook.md and report.html. Timed tasks
    add words, timing (a certificate per rater), curves by region, differences, outliers and errors. The
    command also prints a first `felicity fit`. In .csv files, texts that a spreadsheet would run as a formula
    get an apostrophe in front, since raters may write anything.

    \b
    Examples:
      felicity rate export my-study -o ratings/
      felicity rate export my-study -o ratings/ --payment to-pay.csv
    """
    store = open_store(study, database)
    from felicity.api.ratings import analyse_timed, write_ratings_report
    from felicity.core.files import escape_formulas, replacing
    from felicity.humans import PlatformIds, load_keys, payment_list, suggest_fit, write_export
    from felicity.run import command_line

    tables = write_export(store, output, tests=tests, unfinished=unfinished, raw=raw, analyse=analyse_timed)
    page = write_ratings_report(store.study, tables, output, command=command_line())
    if payment is not None:
        ids = PlatformIds(store.study.folder, load_keys(store.study.folder))
        paid = payment_list(store, ids.read())
        with replacing(payment, private=True) as part:
            (paid if raw else escape_formulas(paid)).write_csv(part)
        if ids.damaged:
            err.print(
                f"{ids.path}: {ids.damaged} lines are damaged and were left out.",
                soft_wrap=True,
                markup=False,
            )
    out.print(
        f"{tables['ratings'].height:,} ratings: {output / 'ratings.csv'}, {page}",
        soft_wrap=True,
        markup=False,
    )
    line = suggest_fit(store.study, str(output / "ratings.csv"))
    if line:
        out.print(line, soft_wrap=True, markup=False)


for command in (forget, release, withdraw, links):
    app.command()(command)


@app.command()
def reopen(
    study: StudyFolder,
    below: Annotated[float, typer.Option(help="Reliability below which a rater is set aside.")] = 0.4,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")] = False,
    database: Database = None,
    json: Json = False,
) -> None:
    """Set unreliable raters aside and open their places.

    Reliability is a rater's Spearman correlation with the mean of the other raters of the list (Huynh et al.
    2022). Of each complete list the most reliable raters are kept, up to the quota, unless they are below the
    bound. Everybody who finished is compared again each time, including raters set aside before.

    \b
    Examples:
      felicity rate reopen my-study --below .4
      felicity rate reopen my-study --below .4 --dry-run
    """
    store = open_store(study, database)
    from felicity.api.ratings import choose_raters
    from felicity.humans import build_rating_tables

    ratings = build_rating_tables(store, unfinished=True)["ratings"]
    done = ratings.filter(ratings["state"].is_in(["finished", "set_aside"]))
    chosen = choose_raters(done, quota=store.study.design.quota, below=below)
    kept = dict(chosen.select("rater", "kept").iter_rows())
    changed = 0 if dry_run else store.set_aside(kept)
    if json:
        print_json({"changed": changed, "raters": chosen.to_dicts()})
        return
    rows = [
        {**row, "reliability": decimal(row["reliability"], 3)}
        for row in chosen.filter(~chosen["kept"]).iter_rows(named=True)
    ]
    if rows:
        print_rows(rows, right=("n", "reliability"))
    verb = "would be set aside" if dry_run else "are set aside; their places are open"
    out.print(f"{len(rows)} of {chosen.height} raters {verb}.", markup=False)
