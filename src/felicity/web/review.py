"""The review queue in the browser: one pair at a time, decided by key or by button.

The page is for people on this machine, or behind a proxy of the researcher's; the link that the command
prints carries a key. A reviewer types a name, which is recorded in the log.
"""

import secrets
from html import escape
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from felicity.core.errors import FelicityError
from felicity.core.wording import decimal
from felicity.stats import cohen_kappa
from felicity.stimuli import split_target
from felicity.stimuli.extension import BY_PEOPLE, Extension
from felicity.stimuli.review import (
    PAPER_ROWS,
    Decided,
    Queue,
    State,
    balance_targets,
    list_second_readings,
    tabulate_rejections,
)
from felicity.web.server import find_port, serve_app
from felicity.web.site import Guard, RateLimit, html, make_site, make_templates, same_token

KEY = "felicity_review_key"
REVIEWER = "felicity_reviewer"
LONGEST_NAME = 40
TARGETS_SHOWN = 12
REQUESTS_PER_SECOND = 50.0
Form = dict[str, str]


async def _read_form(request: Request) -> Form:
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise HTTPException(415)
    form = await request.form(max_fields=20)
    return {name: value for name, value in form.items() if isinstance(value, str)}


FormFields = Annotated[Form, Depends(_read_form)]


def create_review_site(extension: Extension, queue: Queue, *, key: str) -> FastAPI:
    """The application for the queue of one extension; `key` opens it."""
    site = make_site()
    review = _ReviewState(extension, queue, key)
    _add_entrance(site, review)
    _add_queue(site, review)
    site.add_exception_handler(FelicityError, _tell)
    site.add_middleware(
        Guard,
        limit=RateLimit(REQUESTS_PER_SECOND),
        secure=False,
        refuse=lambda status: html("<p>Too many requests, or a request that is too large.</p>", status),
    )
    return site


async def _tell(_: Request, error: Exception) -> Response:
    """A log that was changed, or cannot be written, is said on a page."""
    return html(f"<p>{escape(str(error))}</p>", 409)


def serve_review(extension: Extension, queue: Queue, *, port: int = 0, quiet: bool = False) -> None:
    """Serve the queue until interrupted, then write the dataset from the log."""
    import sys

    key = secrets.token_urlsafe(16)
    chosen = port or find_port()

    def announce() -> None:
        if not quiet:
            sys.stderr.write("Review at this address; end with Ctrl-C:\n")
        sys.stdout.write(f"http://127.0.0.1:{chosen}/?key={key}\n")
        sys.stdout.flush()

    try:
        site = create_review_site(extension, queue, key=key)
        serve_app(lambda: site, host="127.0.0.1", port=chosen, started=announce)
    finally:
        extension.write_dataset()


class _ReviewState:
    """What every route needs."""

    def __init__(self, extension: Extension, queue: Queue, key: str) -> None:
        self.queue = queue
        self.key = key
        self.task = extension.task()
        self.templates = make_templates()

    def admit(self, request: Request) -> str:
        """The reviewer of a request; empty if no name was given yet.

        Raises HTTPException if the key is missing or wrong.
        """
        if not same_token(request.cookies.get(KEY, ""), self.key):
            raise HTTPException(403, "Open the link that `felicity stimuli review` printed.")
        return request.cookies.get(REVIEWER, "")[:LONGEST_NAME]

    def check(self, request: Request, form: Form) -> str:
        """The reviewer who sent one of this site's forms.

        Raises HTTPException if the form is not from this site or has no name.
        """
        reviewer = self.admit(request)
        if not same_token(form.get("token", ""), self.key) or not reviewer:
            raise HTTPException(403, "This form was not made here; open the page again.")
        return reviewer

    def page(self, name: str, **content: Any) -> Response:
        """A page of the queue."""
        shared = {
            "lang": "en",
            "direction": "ltr",
            "token": self.key,
            "dataset": Path(self.task.dataset).stem,
        }
        return html(self.templates.get_template(f"review/{name}.html.j2").render(shared | content))


def _add_entrance(site: FastAPI, review: _ReviewState) -> None:
    @site.get("/")
    def enter(request: Request) -> Response:
        given = request.query_params.get("key", "")
        if given and same_token(given, review.key):
            response = RedirectResponse("/", 303)
            response.set_cookie(KEY, review.key, httponly=True, samesite="strict")
            return response
        reviewer = review.admit(request)
        return RedirectResponse("/queue", 303) if reviewer else review.page("name", error="")

    @site.post("/name")
    def name(request: Request, form: FormFields) -> Response:
        review.admit(request)
        given = " ".join(form.get("reviewer", "").split())[:LONGEST_NAME]
        if not same_token(form.get("token", ""), review.key):
            raise HTTPException(403)
        if not given or not given.isascii() or not given.replace(" ", "").isalnum():
            return review.page("name", error="Write a name or initials: letters and digits.")
        response = RedirectResponse("/queue", 303)
        response.set_cookie(REVIEWER, given, httponly=True, samesite="strict")
        return response


def _add_queue(site: FastAPI, review: _ReviewState) -> None:
    queue = review.queue

    @site.get("/queue")
    def show(request: Request, note: str = "") -> Response:
        reviewer = review.admit(request)
        if not reviewer:
            return RedirectResponse("/", 303)
        shown = queue.show_next(reviewer)
        state = queue.state
        content = _standing(state) | {
            "reviewer": reviewer,
            "note": note[:300],
            "reasons": list(BY_PEOPLE.items()),
        }
        if shown is None:
            return review.page("empty", **content)
        targets = [split_target(text)[1].lower() for text in shown.proposal.texts]
        return review.page("queue", shown=shown, targets=targets, **content)

    @site.post("/decide")
    def decide(request: Request, form: FormFields) -> Response:
        reviewer = review.check(request, form)
        number = form.get("round", "")
        texts = [form.get("first", ""), form.get("second", "")]
        try:
            queue.decide(
                form.get("item", ""),
                form.get("action", ""),
                reviewer=reviewer,
                round=int(number) if number in ("1", "2") else 1,
                reason=form.get("reason", ""),
                texts=texts if form.get("action") == "edit" else None,
            )
        except Decided as error:
            return _back(f"{error} The next pair is shown.")
        except FelicityError as error:
            return _back(str(error))
        return _back("")

    @site.post("/undo")
    def undo(request: Request, form: FormFields) -> Response:
        reviewer = review.check(request, form)
        try:
            last = queue.undo(reviewer)
        except FelicityError as error:
            return _back(str(error))
        return _back(f"Taken back: {last.action} of pair {last.item}.")

    @site.get("/summary")
    def summary(request: Request) -> Response:
        review.admit(request)
        state = queue.state
        table = tabulate_rejections(state, PAPER_ROWS.get(review.task.form))
        balance = balance_targets(state)
        return review.page(
            "summary", rows=table.to_dicts(), agreement=_agreement(state), balance=balance.to_dicts()
        )


def _back(note: str) -> Response:
    return RedirectResponse(f"/queue?note={quote(note)}" if note else "/queue", 303)


def _standing(state: State) -> dict[str, Any]:
    decided = len(state.proposals) - len(state.waiting)
    balance = balance_targets(state)
    return {
        "decided": decided,
        "total": len(state.proposals),
        "accepted": len(state.accepted),
        "balance": balance.head(TARGETS_SHOWN).to_dicts(),
        "counts": dict(balance.select("target", "both").iter_rows()),
    }


def _agreement(state: State) -> str:
    both = list_second_readings(state)
    if not both.height:
        return "Nobody has read a pair a second time yet."
    agreed = int((both["first"] == both["second"]).sum())
    sentence = f"Two readers agree on {agreed} of {both.height} pairs"
    if both["first"].n_unique() + both["second"].n_unique() > 2:
        row = cohen_kappa(both["first"], both["second"]).row(0, named=True)
        sentence += f"; Cohen's kappa is {decimal(row['kappa'])}"
    return f"{sentence}."
