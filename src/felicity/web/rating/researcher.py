"""The researcher's page: how the study is going, pause and resume, and the tables as they are now."""

import io
import zipfile

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from felicity.core.files import escape_formulas
from felicity.humans import Store, build_rating_tables, describe_progress
from felicity.web.rating.pages import Pages
from felicity.web.rating.session import Signer
from felicity.web.site import FormFields, html, make_templates, same_token


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
        page = templates.get_template("rating/researcher.html.j2")
        return html(
            page.render(
                study=store.study,
                progress_of=describe_progress(store),
                csrf=signer.sign_researcher(f"form {token}"),
                test_link=test_link,
                lang="en",
                direction="ltr",
            )
        )

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
