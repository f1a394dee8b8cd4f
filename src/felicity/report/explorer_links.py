"""How figures and cells lead to the items behind them: addresses of the explorer's page beside a report.

An address names the view and what is selected there: `explore.html#/items?run=models/gpt2&suite=npi`. `run`
is the folder of a run as seen from the page, so that no two runs of a study are confused. The page is
`explore.html` in the folder of the report: the explorer itself where it was written there, or else a note
that says how to open it, so that no link of a report leads nowhere.
"""

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

from felicity.core.files import replacing

EXPLORER = "explore.html"
# What a note has in its head, and the explorer's page has not.
NOTE = '<meta name="felicity" content="note">'
ADDRESS = re.compile(r'\s(?:xlink:)?href="[^"]*explore\.html#[^"]*"')


class Linked(str):
    """A cell of a table that leads somewhere; elsewhere it is the text that it shows."""

    href: str

    def __new__(cls, text: str, href: str) -> Self:
        """The text, with its address; without one it is a plain cell."""
        made = super().__new__(cls, text)
        made.href = href
        return made


def link_items(explorer: str, view: str = "items", **filters: str | Sequence[str]) -> str:
    """The address of the explorer with the items that have these properties; empty if there is no explorer.

    explorer: the page as seen from the report; filters that all links share may follow a # sign. An empty
    filter selects nothing away.

    >>> link_items("explore.html", suite="wh island", verdict="wrong")
    'explore.html#/items?suite=wh+island&verdict=wrong'
    >>> link_items("../explore.html#run=gpt2", suite="npi")
    '../explore.html#/items?run=gpt2&suite=npi'
    """
    if not explorer:
        return ""
    page, _, shared = explorer.partition("#")
    given = {name: value for name, value in filters.items() if value}
    query = "&".join(part for part in (shared, urlencode(given, doseq=True)) if part)
    return f"{page}#/{view}" + (f"?{query}" if query else "")


def name_run(run: Path, folder: Path) -> str:
    """A run as seen from the folder of the explorer's page; of one far away its own name alone.

    >>> name_run(Path("runs/both/gpt2"), Path("runs/both")), name_run(Path("a/b/run"), Path("c/d/pages"))
    ('gpt2', 'run')
    """
    seen = os.path.relpath(run, folder).replace(os.sep, "/")
    return run.resolve().name if seen.startswith("../../") else seen


def holds_run(page: Path, run: Path) -> bool:
    """Whether an explorer's page was written with this run among others."""
    if not page.exists():
        return False
    named = re.escape(json.dumps(name_run(run, page.parent)))
    return re.search(rf'"run":\s*{named}', page.read_text(encoding="utf-8", errors="replace")) is not None


def no_link(*_: object, **__: object) -> str:
    """In place of `Study.link`, for tables without a folder, whose items are nowhere."""
    return ""


def leave_note(folder: Path) -> None:
    """Write a page that says how the explorer is opened, unless there is an explorer's page already."""
    from felicity.report.page import render_template

    page = folder / EXPLORER
    if page.exists() and not is_note(page):
        return
    with replacing(page) as part:
        part.write_text(render_template("explorer_note.html.j2", {"note": NOTE}, {}), encoding="utf-8")


def is_note(page: Path) -> bool:
    """Whether a page only says how to open the explorer."""
    with page.open(encoding="utf-8", errors="replace") as file:
        return NOTE in file.read(1000)


def remove_links(html: str) -> str:
    """HTML whose links to the explorer are none, for what is shown far from the report's folder.

    >>> remove_links('<a href="explore.html#/items?suite=npi">5</a>')
    '<a>5</a>'
    """
    return ADDRESS.sub("", html)


def unlink_spec(spec: Any) -> Any:
    """A Vega-Lite specification without the encoding of links.

    >>> unlink_spec({"encoding": {"x": {"field": "x"}, "href": {"field": "link"}}})
    {'encoding': {'x': {'field': 'x'}}}
    """
    if isinstance(spec, dict):
        return {key: unlink_spec(value) for key, value in spec.items() if key != "href"}
    return [unlink_spec(value) for value in spec] if isinstance(spec, list) else spec
