"""felicity rate simulate: simulated raters go through the real site."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from felicity.cli.options import Json, Quiet
from felicity.cli.terminal import out, print_json, progress_bar
from felicity.core.errors import NotPossible

if TYPE_CHECKING:
    from felicity.humans import Population, RatingStudy

# A folder with this file may be overwritten by the next simulation.
SIMULATION_MARK = ".simulation"
StudyFolder = Annotated[Path, typer.Argument(metavar="STUDY", help="Folder with study.toml.")]


def need_web() -> None:
    """Raises NotPossible if the libraries of the site are not installed."""
    try:
        import alembic  # noqa: F401
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise NotPossible(
            f"The rating site needs {error.name}, which is not installed; run `pip install felicity[web]`."
        ) from error


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
    """Send simulated raters through the site and export.

    They go through the real pages, but into a database of their own; real answers are not touched. They come
    in waves, and the places of those who left are given to the next wave. A column `truth` in the stimuli,
    on the latent scale, replaces --effect.

    \b
    Examples:
      felicity rate simulate my-study --raters 75 --dropout .3
      felicity rate simulate my-study --effect .5 --clickers .1 --analyse --repeats 200
    """
    need_web()
    from felicity.humans import Population, read_rating_study

    checked = read_rating_study(study)
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
        f"{told['refused']} were turned away; {told['ratings']} simulated ratings in {folder}.",
        soft_wrap=True,
        markup=False,
    )
    if analyse:
        out.print(f"{told['power']['sentence']}.", soft_wrap=True, markup=False)


def _simulate(study: "RatingStudy", population: "Population", folder: Path, *, quiet: bool) -> dict[str, Any]:
    import shutil
    import time
    from dataclasses import replace

    from felicity.api.ratings import analyse_timed, write_ratings_report
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
    from felicity.run import command_line
    from felicity.web import RatingOptions, create_rating_site, running

    if folder.exists() and any(folder.iterdir()) and not (folder / SIMULATION_MARK).exists():
        raise NotPossible(
            f"{folder} contains something other than a simulation; name another folder with -o."
        )
    with disk_errors(folder):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / SIMULATION_MARK).touch()
    ahead = 0.0
    # Simulated raters are on no list, and have no links.
    study = replace(study, platform=replace(study.platform, ids=None, signed=False))
    store = Store(
        study, sqlite_url(folder / "answers.sqlite"), clock=lambda: time.time() + ahead, simulated=True
    )
    options = RatingOptions(token="simulation", requests_per_second=0)
    keys = load_keys(folder)
    site = create_rating_site(store, keys, PlatformIds(folder, keys), options)
    visits: list[Any] = []
    with running(site) as url, progress_bar("Raters", quiet=quiet) as bar:
        while store.has_room() is None and (not population.raters or len(visits) < population.raters):
            wave = sum(row["wanted"] for row in describe_progress(store).lists)
            if population.raters:
                wave = min(wave, population.raters - len(visits))
            numbers = range(len(visits), len(visits) + wave)
            visits += send_raters(url, study, replace(population, raters=wave), numbers=numbers, progress=bar)
            # Whoever left is away for longer than the lease before the next wave comes.
            ahead += 61 * study.lease_minutes
        tables = write_export(store, folder, analyse=analyse_timed)
    write_ratings_report(study, tables, folder, command=command_line())
    return {
        "raters": len(visits),
        "finished": sum(bool(visit.code) for visit in visits),
        "left": sum(visit.left for visit in visits),
        "refused": sum(bool(visit.refused) for visit in visits),
        "ratings": tables["ratings"].height,
        "simulated": True,
        "folder": str(folder),
    }


def _analyse(study: "RatingStudy", population: "Population", repeats: int) -> dict[str, Any]:
    from dataclasses import replace

    from felicity.api.ratings import describe_rating_power, simulate_power_of_study
    from felicity.humans import build_lists

    places = study.design.quota * len(build_lists(study))
    wanted = replace(population, raters=min(population.raters or places, places))
    found = simulate_power_of_study(study, wanted, repeats=repeats)
    return {"power": float(found["significant"].mean()), "sentence": describe_rating_power(found)}  # type: ignore[arg-type]
