"""The explorer's page beside a report, which its figures and cells lead to: written where it is small."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.core.errors import FelicityError

Explorer = Annotated[
    bool,
    typer.Option(
        help="Write the items that the report leads to into explore.html, if they are few: at most 3,000 "
        "judgements, or 300,000 numbers of words. Otherwise the page says how to open them."
    ),
]
RECORDS = ("study.json", "manifest.json")


def write_explorer(folder: Path) -> None:
    """Write explore.html into the folder of a run, of several, or of a study, if it is small.

    A larger page that was written on request stays unless the results are newer. Without the extra `web`, or
    where there is nothing to explore or a table was changed since, the note that the report left stays.
    """
    from felicity.explore import is_small, open_collections
    from felicity.report import EXPLORER, leave_note
    from felicity.run import list_runs

    page = folder / EXPLORER
    try:
        from felicity.web import write_offline_page

        with open_collections([folder]) as collections:
            if is_small(collections):
                write_offline_page(collections, page)
                return
    except (ImportError, FelicityError):
        pass
    records = [home / name for home in (folder, *list_runs(folder)) for name in RECORDS]
    written = [path.stat().st_mtime for path in records if path.exists()]
    if page.exists() and written and page.stat().st_mtime < max(written):
        page.unlink()
    leave_note(folder)
