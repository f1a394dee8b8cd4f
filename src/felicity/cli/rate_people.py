"""felicity rate forget, release, withdraw and links: what concerns single raters and their ids."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from felicity.cli.options import Json
from felicity.cli.rate_simulate import StudyFolder, need_web
from felicity.cli.terminal import out, print_json
from felicity.core.errors import BadInput, NotPossible

if TYPE_CHECKING:
    from felicity.humans import Store

# For so many seconds a program that reads the database is waited for before it is written anew.
ERASE_PATIENCE = 15.0

Database = Annotated[
    str | None,
    typer.Option(help="postgresql+psycopg://USER@HOST/NAME.  [default: SQLite file beside study.toml]"),
]


def open_store(folder: Path, database: str | None) -> "Store":
    """The database of the study in a folder.

    Raises FelicityError if the study or the database cannot be read.
    """
    need_web()
    from felicity.humans import Store, read_rating_study

    return Store(read_rating_study(folder), database)


def _check_id(given: str) -> str:
    """Raises BadInput for what cannot be the id of anybody."""
    from felicity.humans import PLATFORM_ID

    if not PLATFORM_ID.fullmatch(given):
        raise BadInput(f"'{given[:80]}' is no id; ids have letters, digits and . _ @ - only.")
    return given


def forget(
    study: StudyFolder,
    platform_ids: Annotated[
        bool, typer.Option("--platform-ids", help="Confirm that the ids are to be deleted for good.")
    ] = False,
    database: Database = None,
) -> None:
    """Delete platform ids, once everybody has been paid.

    The file of ids, the key that hashed them and the hashes are deleted, and the study is closed to new
    raters. Afterwards nobody can say which answers came from which platform id. The server may run meanwhile.

    \b
    Examples:
      felicity rate forget my-study --platform-ids
    """
    if not platform_ids:
        raise NotPossible("Nothing was deleted; add --platform-ids to delete the platform ids for good.")
    store = open_store(study, database)
    from felicity.humans import forget_platform_ids

    hashes = store.forget()
    # The study is closed: from here on nobody's id is written.
    existed = forget_platform_ids(store.study.folder)
    store.erase(patience=ERASE_PATIENCE)
    store.close()
    deleted = "platform-ids.csv deleted" if existed else "there was no platform-ids.csv"
    out.print(f"{deleted}, {hashes} hashes removed, key replaced; the study is closed.", markup=False)
    if store.study.platform.ids is not None and store.study.platform.ids.exists():
        out.print(
            f"{store.study.platform.ids} is yours and still lists ids; delete it, and the files of "
            "`rate export --payment` and `rate links`.",
            soft_wrap=True,
            markup=False,
        )


def release(
    study: StudyFolder,
    idle: Annotated[
        float | None,
        typer.Option(min=0, help="Places where no answer was stored for so many minutes; 0 for all."),
    ] = None,
    rater: Annotated[list[str] | None, typer.Option(help="The place of this rater; repeatable.")] = None,
    database: Database = None,
    json: Json = False,
) -> None:
    """Free places that are held but not worked on.

    For a study that somebody keeps full. Raters whose place is freed cannot go on; whoever has finished a
    list keeps it and gets the completion code. Answers stay, with the state `released`.

    \b
    Examples:
      felicity rate release my-study --idle 15
      felicity rate release my-study --rater 3f9c1a52b7d0
    """
    if idle is None and not rater:
        raise NotPossible("Nothing was freed; say which places with --idle MINUTES or --rater.")
    store = open_store(study, database)
    freed = store.release(idle=idle, only=[_check_id(one) for one in rater or ()])
    store.close()
    if json:
        print_json({"released": freed})
        return
    out.print(f"{len(freed)} places are free again.", markup=False)


def withdraw(
    study: StudyFolder,
    platform_id: Annotated[
        str | None, typer.Option("--platform-id", help="Platform id of the rater who asked for it.")
    ] = None,
    rater: Annotated[str | None, typer.Option(help="Or the rater's random id.")] = None,
    database: Database = None,
) -> None:
    """Delete all answers of a rater who asks for it.

    Raters can do so themselves, in the browser in which they consented. This is for those who write to you
    instead; make sure that they are who they say.

    \b
    Examples:
      felicity rate withdraw my-study --platform-id 5f8d0a1b2c3d4e5f6a7b8c9d
      felicity rate withdraw my-study --rater 3f9c1a52b7d0
    """
    if (platform_id is None) == (rater is None):
        raise NotPossible("Nothing was deleted; say whose answers with --platform-id or --rater.")
    store = open_store(study, database)
    from felicity.humans import RaterRefused, hash_platform_id, load_keys

    _check_id(platform_id or rater or "")
    try:
        if platform_id is not None:
            rater = store.find_rater(hash_platform_id(load_keys(store.study.folder), platform_id))
        store.withdraw(rater or "")
    except RaterRefused as error:
        raise BadInput(
            f"No rater of {study} came with this id; `felicity rate status {study} --json` lists random ids."
        ) from error
    if store.database.sqlite:
        store.erase(patience=ERASE_PATIENCE)
    store.close()
    out.print(f"All answers of rater {rater} are deleted.", markup=False)


def links(
    study: StudyFolder,
    ids: Annotated[Path, typer.Argument(metavar="IDS", help="File with one platform id per line.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Table to write; it contains the ids.")],
    url: Annotated[str, typer.Option(help="Address of the site.")],
) -> None:
    """Write a signed link for each of some platform ids.

    With `signed = true` under [platform] only these links are let in: nobody can invent an id, or open the
    study as somebody else whose id they know.

    \b
    Examples:
      felicity rate links my-study ids.txt --url https://ratings.example.org -o links.csv
    """
    need_web()
    from urllib.parse import urlencode, urlsplit

    import polars as pl

    from felicity.core.files import replacing
    from felicity.humans import load_keys, read_ids, read_rating_study, sign_platform_id

    checked = read_rating_study(study)
    if not checked.platform.signed:
        raise NotPossible(f"Links of {study} need no signature; set `signed = true` under [platform] first.")
    if urlsplit(url).scheme not in ("https", "http") or not url.isprintable():
        raise BadInput(f"'{url[:80]}' is no address of a site; write --url https://ratings.example.org.")
    keys = load_keys(checked.folder)
    rows = []
    for platform_id in read_ids(ids):
        query = {checked.platform.parameter: platform_id, "signature": sign_platform_id(keys, platform_id)}
        rows.append({"platform_id": platform_id, "link": f"{url.rstrip('/')}/?{urlencode(query)}"})
    with replacing(output, private=True) as part:
        pl.DataFrame(rows, schema={"platform_id": pl.String, "link": pl.String}).write_csv(part)
    out.print(f"{len(rows)} links: {output}", soft_wrap=True, markup=False)
