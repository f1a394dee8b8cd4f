"""The researcher's pages: how the study is going, what has come in, pause and resume, and the tables."""

import io
import zipfile
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from felicity.core.files import escape_formulas
from felicity.humans import (
    Platform,
    RaterRefused,
    Results,
    Store,
    build_rating_tables,
    describe_progress,
    describe_rater,
    describe_results,
    preview_list,
)
from felicity.web.rating.pages import Pages
from felicity.web.rating.session import Signer
from felicity.web.site import FormFields, html, make_templates, same_token

# What platforms replace by the id of a rater, by the name of the parameter that carries it.
PLACEHOLDERS = {"PROLIFIC_PID": "{{%PROLIFIC_PID%}}", "survey_code": "%SURVEY_CODE%"}
# The drawing of completions, in its own units.
WIDTH, HEIGHT = 600, 120


class NotTheResearcher(Exception):
    """A request for the researcher's pages without their token."""


def add_researcher_pages(
    site: FastAPI, store: Store, signer: Signer, pages: Pages, token: str, *, test_link: str
) -> None:
    """The pages under /researcher, all of which need the token."""
    templates = make_templates()
    cookie = f"{signer.cookie}-researcher"

    def check(request: Request) -> None:
        if not signer.is_researcher(request, token):
            raise NotTheResearcher

    def show(template: str, **content: Any) -> Response:
        page = templates.get_template(f"rating/{template}.html.j2")
        return html(page.render(study=store.study, lang="en", direction="ltr", **content))

    async def refuse(_request: Request, _error: Exception) -> Response:
        text = (
            "Open it with the link that felicity rate serve printed when it started; the link contains the "
            "token. A new token is chosen at every start unless FELICITY_TOKEN is set."
        )
        return pages.render("message", 403, title="The researcher's page", text=text)

    site.add_exception_handler(NotTheResearcher, refuse)

    @site.get("/researcher")
    def overview(request: Request) -> Response:
        given = request.query_params.get("token", "")
        if given:
            if not same_token(given, token):
                raise NotTheResearcher
            response: Response = RedirectResponse("/researcher", status_code=303)
            response.set_cookie(
                cookie,
                signer.sign_researcher(token),
                path="/",
                httponly=True,
                samesite="strict",
                secure=signer.secure,
            )
            return response
        check(request)
        progress_of, results = describe_progress(store), describe_results(store)
        return show(
            "researcher",
            progress_of=progress_of,
            results=results,
            curve=draw_completions(results, progress_of.totals["quota"]),
            share_link=write_share_link(store.study.platform, str(request.base_url)),
            csrf=signer.sign_researcher(f"form {token}"),
            test_link=test_link,
        )

    @site.get("/researcher/rater/{rater}")
    def one_rater(request: Request, rater: str) -> Response:
        check(request)
        try:
            lists, rows = describe_rater(store, rater)
        except RaterRefused as error:
            raise HTTPException(404) from error
        return show("researcher_rater", rater=rater, lists=lists, rows=rows)

    @site.get("/researcher/list/{name:path}")
    def one_list(request: Request, name: str) -> Response:
        check(request)
        rows = preview_list(store, name)
        if rows is None:
            raise HTTPException(404)
        return show("researcher_list", name=name, rows=rows)

    @site.post("/researcher/pause")
    def pause(request: Request, form: FormFields) -> Response:
        check(request)
        if not same_token(form.get("csrf", ""), signer.sign_researcher(f"form {token}")):
            raise HTTPException(403)
        store.pause(form.get("paused") == "yes")
        return RedirectResponse("/researcher", status_code=303)

    @site.get("/researcher/export.zip")
    def export(request: Request) -> Response:
        check(request)
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, frame in build_rating_tables(store).items():
                archive.writestr(f"{name}.csv", escape_formulas(frame).write_csv())
        name = 'attachment; filename="ratings.zip"'
        return Response(
            packed.getvalue(), media_type="application/zip", headers={"content-disposition": name}
        )


def write_share_link(platform: Platform, base: str) -> str:
    """The link that raters get; empty if each gets a signed one of their own."""
    if platform.signed:
        return ""
    if not platform.parameter:
        return base
    return f"{base}?{platform.parameter}={PLACEHOLDERS.get(platform.parameter, '...')}"


def draw_completions(results: Results, quota: int) -> dict[str, Any] | None:
    """The line of finished lists over time, as points of a drawing, with what its axes say."""
    if not results.completions:
        return None
    first, last = results.completions[0][0], results.completions[-1][0]
    most = max(quota, results.completions[-1][1])

    def place(at: float) -> float:
        return WIDTH * (at - first) / (last - first) if last > first else float(WIDTH)

    points = [(0.0, float(HEIGHT))]
    for at, number in results.completions:
        # A step: the number stays what it was until the next list is finished.
        points += [(place(at), points[-1][1]), (place(at), HEIGHT * (1 - number / most))]
    return {
        "points": " ".join(f"{x:.1f},{y:.1f}" for x, y in points),
        "width": WIDTH,
        "height": HEIGHT,
        "wanted": HEIGHT * (1 - quota / most),
        "first": _write_time(first),
        "last": _write_time(last),
        "finished": results.completions[-1][1],
    }


def _write_time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
