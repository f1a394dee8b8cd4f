"""felicity rate: collect judgements from people, on a site of your own."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.options import Json, Quiet
from felicity.cli.terminal import err, out, print_json, print_rows, progress_bar
from felicity.core.errors import NotPossible

if TYPE_CHECKING:
    from fastapi import FastAPI

    from felicity.humans import Population, Store, Study

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Collect judgements from people.")

# A folder with this file may be overwritten by the next simulation.
SIMULATION_MARK = ".simulation"
StudyFolder = Annotated[Path, typer.Argument(metavar="STUDY", help="Folder with study.toml.")]
Database = Annotated[
    str | None,
    typer.Option(help="postgresql+psycopg://USER@HOST/NAME.  [default: SQLite file beside study.toml]"),
]


def _need_web() -> None:
    try:
        import alembic  # noqa: F401
        import fastapi  # noqa: F401
        import httpx  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise NotPossible(
            f"The rating site needs {error.name}, which is not installed; run `pip install felicity[web]`."
        ) from error


def _open(folder: Path, database: str | None) -> "Store":
    _need_web()
    from felicity.humans import Store, read_study

    return Store(read_study(folder), database)


@app.command()
def new(
    study: Annotated[Path, typer.Argument(metavar="STUDY", help="Folder to make.")],
    source: Annotated[
        str,
        typer.Option("--from", help="A dataset, a run folder, or a table with the columns item and text."),
    ],
    task: Annotated[
        str,
        typer.Option(help="likert, binary, choice, slider, magnitude, cloze, continuation, reading or maze."),
    ] = "likert",
    points: Annotated[int | None, typer.Option(help="Points of a Likert scale.  [default: 7]")] = None,
    sample: Annotated[int | None, typer.Option(min=1, help="Only that many items of each suite.")] = None,
    parts: Annotated[
        int | None, typer.Option(min=1, help="Lists that the items are dealt out to.  [default: 1]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample, the lists and the orders.")] = 0,
) -> None:
    """Write a study: study.toml, with a comment for every setting, and stimuli.csv.

    \b
    Examples:
      felicity rate new my-study --from lau2020
      felicity rate new pairs --from starter --task choice --sample 2
      felicity rate new my-study --from my_sentences.csv --points 5 --parts 4
    """
    _need_web()
    from felicity.humans import build_lists
    from felicity.studies.ratings import start_study

    made = start_study(study, source, task=task, points=points, sample=sample, parts=parts, seed=seed)
    lists = build_lists(made)
    out.print(
        f"{study}: {len(made.stimuli)} stimuli in {len(lists)} lists of {len(lists[0].rows)}, "
        f"{made.design.quota} raters each. Edit {study / 'study.toml'}, then: felicity rate preview {study}",
        soft_wrap=True,
        markup=False,
    )


@app.command()
def preview(
    study: StudyFolder,
    port: Annotated[int, typer.Option(help="Port; 0 chooses a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
    database: Database = None,
) -> None:
    """Check the study and go through it in the browser; answers are marked as tests and never counted.

    \b
    Examples:
      felicity rate preview my-study
      felicity rate preview my-study --no-browser --port 8001
    """
    import webbrowser

    _serve(
        study,
        host="127.0.0.1",
        port=port,
        database=database,
        preview=True,
        proxy=None,
        started=lambda url: webbrowser.open(url) if browser else None,
    )


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
    """Serve the study to raters until interrupted; answers are on the disk before the next page is shown.

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

    store = _open(folder, database)
    if workers > 1 and store.database.sqlite:
        raise NotPossible("SQLite has one writer; use --workers with a PostgreSQL --database.")
    from felicity.humans import PlatformIds, Store, load_keys
    from felicity.web import RatingOptions, create_rating_site, find_port, serve, warn_about

    port = port or find_port()
    token = token or secrets.token_urlsafe(24)
    warning = warn_about(host, proxy=proxy)
    if warning:
        err.print(warning, soft_wrap=True, markup=False)
    options = RatingOptions(
        token=token, preview=preview, secure=proxy is not None, requests_per_second=requests_per_second
    )
    keys = load_keys(store.study.folder)

    def make() -> "FastAPI":
        # A worker opens its own connections: those of the parent must not be shared.
        own = store if workers == 1 else Store(store.study, database)
        return create_rating_site(own, keys, PlatformIds(store.study.folder), options)

    if workers > 1:
        store.close()
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"

    def announce() -> None:
        parameter = store.study.platform.parameter
        link = f"{url}/?{parameter}=..." if parameter and not preview else f"{url}/"
        out.print(f"{'Preview' if preview else 'Raters'}:     {link}", soft_wrap=True, markup=False)
        out.print(f"Researcher: {url}/researcher?token={token}", soft_wrap=True, markup=False)
        out.print("Stop with Ctrl-C; raters go on where they stopped when the server is back.", markup=False)
        sys.stdout.flush()
        if started is not None:
            started(url)

    serve(make, host=host, port=port, proxy=proxy, workers=workers, started=announce)


@app.command()
def simulate(
    study: StudyFolder,
    raters: Annotated[
        int | None, typer.Option(min=1, help="Raters to send.  [default: until every list is complete]")
    ] = None,
    dropout: Annotated[float, typer.Option(min=0, max=0.95, help="Share that leaves before the end.")] = 0.0,
    clickers: Annotated[float, typer.Option(min=0, max=1, help="Share that answers at random.")] = 0.0,
    double_clicks: Annotated[float, typer.Option(min=0, max=1, help="Share of answers sent twice.")] = 0.05,
    effect: Annotated[
        float, typer.Option(help="Difference between the first and the last condition, latent scale.")
    ] = 1.0,
    noise: Annotated[float, typer.Option(min=0, help="SD of an answer around the rater's own view.")] = 0.7,
    fatigue: Annotated[float, typer.Option(min=0, help="How much noise grows to the last trial.")] = 0.3,
    bias: Annotated[float, typer.Option(min=0, help="SD of raters' mean answers.")] = 0.5,
    analyse: Annotated[
        bool, typer.Option("--analyse", help="Print the power to find the effect, from further studies.")
    ] = False,
    repeats: Annotated[int, typer.Option(min=1, help="Further studies to simulate with --analyse.")] = 100,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write.  [default: STUDY/simulation]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the raters.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Send simulated raters through the real site, into a database of their own, and export what they said.

    Leases of raters who left run out between waves, so that their places are given out again. Real answers
    are not touched. A column `truth` in the stimuli, on the latent scale, takes the place of --effect.

    \b
    Examples:
      felicity rate simulate my-study --raters 75 --dropout .3
      felicity rate simulate my-study --effect .5 --clickers .1 --analyse --repeats 200
    """
    _need_web()
    from felicity.humans import Population, read_study

    checked = read_study(study)
    population = Population(
        raters=raters or 0,
        effect=effect,
        bias_sd=bias,
        noise_sd=noise,
        fatigue=fatigue,
        clickers=clickers,
        dropout=dropout,
        double_clicks=double_clicks,
        seed=seed,
    )
    folder = output or study / "simulation"
    told = _simulate(checked, population, folder, quiet=quiet)
    if analyse:
        told["power"] = _analyse(checked, population, repeats)
    if json:
        print_json(told)
        return
    out.print(
        f"{told['raters']} raters came, {told['finished']} finished, {told['left']} left, "
        f"{told['refused']} were turned away; {told['ratings']} ratings in {folder}.",
        soft_wrap=True,
        markup=False,
    )
    if analyse:
        out.print(f"{told['power']['sentence']}.", soft_wrap=True, markup=False)


def _simulate(study: "Study", population: "Population", folder: Path, *, quiet: bool) -> dict[str, Any]:
    import shutil
    import time
    from dataclasses import replace

    from felicity.core.files import disk_errors
    from felicity.humans import (
        PlatformIds,
        Store,
        describe_progress,
        load_keys,
        send_raters,
        sqlite_url,
        write_export,
    )
    from felicity.studies.ratings import write_ratings_report
    from felicity.web import RatingOptions, create_rating_site, running

    if folder.exists() and any(folder.iterdir()) and not (folder / SIMULATION_MARK).exists():
        raise NotPossible(f"{folder} holds something else than a simulation; name another folder with -o.")
    with disk_errors(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / SIMULATION_MARK).touch()
    ahead = 0.0
    store = Store(study, sqlite_url(folder / "answers.sqlite"), clock=lambda: time.time() + ahead)
    options = RatingOptions(token="simulation", requests_per_second=0)
    site = create_rating_site(store, load_keys(folder), PlatformIds(folder), options)
    visits: list[Any] = []
    with running(site) as url, progress_bar("Raters", quiet=quiet) as bar:
        while store.has_room() is None and (not population.raters or len(visits) < population.raters):
            wave = sum(row["wanted"] for row in describe_progress(store).lists)
            if population.raters:
                wave = min(wave, population.raters - len(visits))
            numbers = range(len(visits), len(visits) + wave)
            visits += send_raters(url, study, replace(population, raters=wave), numbers=numbers, told=bar)
            # Whoever left is away for longer than the lease before the next wave comes.
            ahead += 61 * study.lease_minutes
        tables = write_export(store, folder)
    write_ratings_report(study, tables, folder)
    return {
        "raters": len(visits),
        "finished": sum(bool(visit.code) for visit in visits),
        "left": sum(visit.left for visit in visits),
        "refused": sum(bool(visit.refused) for visit in visits),
        "ratings": tables["ratings"].height,
        "folder": str(folder),
    }


def _analyse(study: "Study", population: "Population", repeats: int) -> dict[str, Any]:
    from dataclasses import replace

    from felicity.humans import build_lists
    from felicity.studies.ratings import describe_power, simulate_power_of_study

    places = study.design.quota * len(build_lists(study))
    wanted = replace(population, raters=min(population.raters or places, places))
    found = simulate_power_of_study(study, wanted, repeats=repeats)
    return {"power": float(found["significant"].mean()), "sentence": describe_power(found)}  # type: ignore[arg-type]


@app.command()
def status(study: StudyFolder, database: Database = None, json: Json = False) -> None:
    """How the study is going: lists, raters, drop-outs, answer times.

    \b
    Examples:
      felicity rate status my-study
      felicity rate status my-study --json
    """
    from felicity.humans import describe_progress

    store = _open(study, database)
    found = describe_progress(store)
    if json:
        print_json({"totals": found.totals, "lists": found.lists, "raters": found.raters})
        return
    totals = found.totals
    print_rows(found.lists, right=tuple(found.lists[0])[2:])
    drop_out = "" if totals["drop_out"] is None else f" ({100 * totals['drop_out']:.0f}%)"
    minutes = "" if totals["median_minutes"] is None else f"; median {totals['median_minutes']} minutes"
    out.print(
        f"\n{totals['finished']} of {totals['quota']} lists finished, {totals['live']} live, "
        f"{totals['lapsed'] + totals['withdrawn']} dropped out{drop_out}, {totals['screened']} screened out, "
        f"{totals['tests']} test runs{minutes}{'; PAUSED' if totals['paused'] else ''}.",
        soft_wrap=True,
        markup=False,
    )


@app.command()
def export(
    study: StudyFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.")],
    database: Database = None,
    unfinished: Annotated[
        bool, typer.Option("--unfinished", help="Also ratings of raters who left or were set aside.")
    ] = False,
    tests: Annotated[bool, typer.Option("--tests", help="Test runs instead of real ones.")] = False,
    payment: Annotated[
        Path | None,
        typer.Option(
            help="Also write platform ids, states and codes for paying; keep it apart from the rest."
        ),
    ] = None,
) -> None:
    """Write ratings, raters and design as .csv and .parquet, with codebook.md and report.html.

    \b
    Examples:
      felicity rate export my-study -o ratings/
      felicity rate export my-study -o ratings/ --payment to-pay.csv
    """
    store = _open(study, database)
    from felicity.core.files import replacing
    from felicity.humans import PlatformIds, payment_list, suggest_fit, write_export
    from felicity.studies.ratings import write_ratings_report

    tables = write_export(store, output, tests=tests, unfinished=unfinished)
    page = write_ratings_report(store.study, tables, output)
    if payment is not None:
        with replacing(payment) as part:
            payment_list(store, PlatformIds(store.study.folder).read()).write_csv(part)
    out.print(
        f"{tables['ratings'].height:,} ratings: {output / 'ratings.csv'}, {page}",
        soft_wrap=True,
        markup=False,
    )
    line = suggest_fit(store.study, str(output / "ratings.csv"))
    if line:
        out.print(line, soft_wrap=True, markup=False)


@app.command()
def forget(
    study: StudyFolder,
    platform_ids: Annotated[
        bool, typer.Option("--platform-ids", help="Confirm: delete every link to platform ids.")
    ] = False,
    database: Database = None,
) -> None:
    """Delete the platform ids, the key that hashed them and the hashes; the study is closed to new raters.

    Pay everybody first: afterwards nobody can say which answers came from which platform id.

    \b
    Examples:
      felicity rate forget my-study --platform-ids
    """
    if not platform_ids:
        raise NotPossible("Nothing was deleted; say --platform-ids to delete the platform ids for good.")
    store = _open(study, database)
    from felicity.humans import forget_platform_ids

    hashes = store.forget()
    store.close()
    existed = forget_platform_ids(store.study.folder)
    deleted = "platform-ids.csv deleted" if existed else "there was no platform-ids.csv"
    out.print(f"{deleted}, {hashes} hashes removed, key replaced; the study is closed.", markup=False)


@app.command()
def reopen(
    study: StudyFolder,
    below: Annotated[float, typer.Option(help="Reliability below which a rater is set aside.")] = 0.4,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")] = False,
    database: Database = None,
    json: Json = False,
) -> None:
    """Set aside raters who disagree with the others, and open their places again.

    Reliability is a rater's Spearman correlation with the mean of the other raters of the list (Huynh et al.
    2022). Of each complete list the best are kept, up to the quota, if they are not below the bound.
    Everybody who finished is compared anew each time, also those set aside before.

    \b
    Examples:
      felicity rate reopen my-study --below .4
      felicity rate reopen my-study --below .4 --dry-run
    """
    store = _open(study, database)
    from felicity.humans import export_tables
    from felicity.studies.ratings import choose_raters

    ratings = export_tables(store, unfinished=True)["ratings"]
    done = ratings.filter(ratings["state"].is_in(["finished", "set_aside"]))
    chosen = choose_raters(done, quota=store.study.design.quota, below=below)
    kept = dict(chosen.select("rater", "kept").iter_rows())
    changed = 0 if dry_run else store.set_aside(kept)
    if json:
        print_json({"changed": changed, "raters": chosen.to_dicts()})
        return
    rows = [
        {**row, "reliability": "" if row["reliability"] is None else f"{row['reliability']:.3f}"}
        for row in chosen.filter(~chosen["kept"]).iter_rows(named=True)
    ]
    if rows:
        print_rows(rows, right=("n", "reliability"))
    verb = "would be set aside" if dry_run else "are set aside; their places are open"
    out.print(f"{len(rows)} of {chosen.height} raters {verb}.", markup=False)
