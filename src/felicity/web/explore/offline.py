"""The explorer as one file that opens from the disk: style, script and data inside it."""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from felicity.core.files import replacing
from felicity.explore import Collection, TextCollection, gather_everything, plain
from felicity.report import name_run
from felicity.web.site import make_templates

# In the order in which each needs the ones before it.
MODULES = (
    "dom",
    "state",
    "charts",
    "server",
    "offline",
    "items",
    "item",
    "compare",
    "curves",
    "passage",
    "words",
    "live",
    "main",
)
STYLES = ("site.css", "explore.css")
DIGITS = 7
IMPORT = re.compile(r"^import .*?;\n", re.MULTILINE | re.DOTALL)
EXPORT = re.compile(r"^export ", re.MULTILINE)


def write_offline_page(collections: Sequence[Collection | TextCollection], path: Path) -> int:
    """Write the page; gives its size in bytes.

    Raises NotPossible if there is too much for one file, FelicityError if it cannot be written.
    """
    text = render_offline_page(collections, path.parent)
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
    return len(text.encode())


def render_offline_page(collections: Sequence[Collection | TextCollection], folder: Path) -> str:
    """The page as text; equal runs give equal bytes.

    folder: where the page will be; links to it name runs as seen from there.
    """
    gathered = [plain(gather_everything(one)) for one in collections]
    for one, found in zip(collections, gathered, strict=True):
        for source, model in zip(
            one.sources if isinstance(one, Collection) else (), found["about"]["models"], strict=False
        ):
            model["run"] = name_run(source.run.path, folder)
    everything = {"collections": [_round(found) for found in gathered]}
    data = json.dumps(everything, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # A sentence that ends a script element must not end this one.
    data = data.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    script, style = join_modules(), _read_styles()
    policy = (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(style)}'; img-src data:; "
        "form-action 'none'; base-uri 'none'"
    )
    return (
        make_templates()
        .get_template("explore/offline.html.j2")
        .render(
            lang="en",
            direction="ltr",
            title=", ".join(dict.fromkeys(one.dataset for one in collections)),
            policy=policy,
            script=Markup(script),
            style=Markup(style),
            data=Markup(data),
        )
    )


def join_modules() -> str:
    """All modules as one, without their imports and exports: a file on the disk may not import others."""
    folder = files("felicity.web") / "static" / "explore"
    parts = [(folder / f"{name}.js").read_text(encoding="utf-8") for name in MODULES]
    return "".join(EXPORT.sub("", IMPORT.sub("", part)) for part in parts)


def _read_styles() -> str:
    folder = files("felicity.web") / "static"
    return "".join((folder / name).read_text(encoding="utf-8") for name in STYLES)


def _digest(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _round(value: object) -> object:
    """Numbers with as many digits as a single-precision score has."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _round(item) for key, item in value.items()}
    return [_round(item) for item in value] if isinstance(value, list) else value
