"""A study as one file to click through: every page of a list as a rater sees it, without a server."""

import json
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from felicity.core.files import replacing
from felicity.humans import RaterPosition, RatingStudy, build_lists, draw_order, plan_steps
from felicity.web.rating.pages import Pages
from felicity.web.rating.session import Session, Signer
from felicity.web.site import make_templates

BODY = re.compile(r"(<body.*</body>)", re.DOTALL)
CODE = "PREVIEW"


def write_preview_page(study: RatingStudy, path: Path, *, trials: int | None = None) -> int:
    """Write the pages of the first list; gives how many there are.

    trials: show at most so many. Raises FelicityError if the file cannot be written.
    """
    pages = render_pages(study, trials=trials)
    static = files("felicity.web") / "static"
    scripts = ["rating.js", *(["timed.js"] if study.timed else [])]
    content = {
        "pages": pages,
        "style": (static / "site.css").read_text(encoding="utf-8"),
        "script": "\n".join((static / name).read_text(encoding="utf-8") for name in scripts),
        "lang": study.language,
        "direction": study.direction,
    }
    # A sentence that ends a script element must not end this one.
    data = json.dumps(content, ensure_ascii=False).replace("<", "\\u003c")
    template = make_templates().get_template("rating/static_preview.html.j2")
    player = (static / "preview.js").read_text(encoding="utf-8")
    text = template.render(
        study=study,
        lang="en",
        direction="ltr",
        total=len(pages),
        data=Markup(data.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")),
        style=Markup(content["style"]),
        player=Markup(player),
    )
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")
    return len(pages)


def render_pages(study: RatingStudy, *, trials: int | None = None) -> list[str]:
    """The body of every page from consent to completion code, in an order that a rater may see."""
    pages = Pages(study, make_templates(), Signer(b"preview", secure=False))
    drawn = build_lists(study)[0]
    order = draw_order(study, drawn, seed=0, turn=0)
    practice = [trial for trial in order if study.stimuli[trial.row].role == "practice"]
    main = [trial for trial in order if study.stimuli[trial.row].role != "practice"][:trials]
    steps = tuple(plan_steps(study, [*practice, *main], first=True))
    session = Session("preview")
    position = RaterPosition(
        rater="preview",
        test=False,
        rater_state="active",
        code=None,
        slot="preview",
        list_name=drawn.name,
        state="live",
        position=0,
        steps=steps,
        lists_done=0,
        lease=0.0,
    )
    rendered = [pages.consent(session)]
    rendered += [pages.step(session, position, number) for number in range(len(steps))]
    code = study.platform.completion_code or CODE
    rendered.append(pages.done(session, replace(position, rater_state="finished", code=code)))
    return [_take_body(bytes(response.body).decode()) for response in rendered]


def _take_body(page: str) -> str:
    found = BODY.search(page)
    if found is None:
        raise ValueError("a page without a body")
    return found[1]
