"""The routes of the rating site: every answer is one POST, stored before the next page is shown."""

import hashlib
import hmac
import ipaddress
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from anyio import to_thread
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from felicity.core.errors import FelicityError
from felicity.humans import (
    PLATFORM_ID,
    POOL,
    Eraser,
    ExpectedIds,
    Keys,
    PlatformIds,
    RaterRefused,
    StorageFailed,
    Store,
    Unanswered,
    hash_platform_id,
    read_step,
    sign_platform_id,
)
from felicity.web.rating.addresses import AddressLimit
from felicity.web.rating.pages import Pages
from felicity.web.rating.researcher import add_researcher_pages
from felicity.web.rating.session import Session, Signer, owns_rater, start_session, with_rater
from felicity.web.site import (
    Form,
    FormFields,
    Guard,
    RateLimit,
    SeldomLog,
    make_site,
    make_templates,
    same_token,
)

SIGNATURE = "signature"
log = SeldomLog(logging.getLogger(__name__))


@dataclass(frozen=True)
class RatingOptions:
    """How the site is run; without `addresses`, one address may take any number of places."""

    token: str
    preview: bool = False
    secure: bool = False
    requests_per_second: float = 100.0
    addresses: AddressLimit | None = None


def make_test_token(keys: Keys) -> str:
    """The word in a link that makes a session a test run."""
    return hmac.new(keys.signing, b"test run", hashlib.sha256).hexdigest()[:20]


def create_rating_site(store: Store, keys: Keys, ids: PlatformIds, options: RatingOptions) -> FastAPI:
    """The application for one study."""
    site = make_site()
    signer = Signer(keys.signing, secure=options.secure)
    pages = Pages(store.study, make_templates(), signer)
    expected = store.study.platform.ids
    eraser = Eraser(store)
    shared = _Shared(
        store, keys, ids, options, signer, pages, eraser, ExpectedIds(expected) if expected else None
    )
    _add_arrival(site, shared)
    _add_study(site, shared)
    _add_leaving(site, shared)
    link = f"/?test={make_test_token(keys)}"
    add_researcher_pages(site, store, signer, pages, options.token, test_link=link)
    _add_errors(site, shared)
    site.add_middleware(
        Guard,
        limit=RateLimit(options.requests_per_second),
        secure=options.secure,
        refuse=pages.refuse_request,
    )

    @asynccontextmanager
    async def hold_store(_site: FastAPI) -> AsyncIterator[None]:
        # A thread without a connection of its own would only wait for one.
        to_thread.current_default_thread_limiter().total_tokens = POOL
        eraser.start()
        yield
        await to_thread.run_sync(eraser.stop)
        store.close()

    site.router.lifespan_context = hold_store
    return site


@dataclass(frozen=True)
class _Shared:
    """What every route needs."""

    store: Store
    keys: Keys
    ids: PlatformIds
    options: RatingOptions
    signer: Signer
    pages: Pages
    eraser: Eraser
    expected: ExpectedIds | None

    def admits(self, platform_id: str, signature: str) -> bool:
        """Whether a platform id may come in: one that is expected, with a signature if links have one."""
        signed = same_token(signature, sign_platform_id(self.keys, platform_id))
        if self.store.study.platform.signed and not signed:
            return False
        return self.expected is None or platform_id in self.expected

    def has_place_for(self, request: Request, session: Session, *, take: bool = False) -> bool:
        """Whether the address of a request may have a place; nobody whose id is verified is counted."""
        platform = self.store.study.platform
        verified = session.key_hash is not None and (platform.signed or platform.ids is not None)
        limit = self.options.addresses
        if limit is None or session.test or verified:
            return True
        address = request.client.host if request.client else ""
        if limit.allows(address, session.sid, take=take):
            return True
        proxy = " Its raters come through a proxy; name it with --proxy." if _is_loopback(address) else ""
        log.warning(
            f"One address has {limit.most} places of the last half hour and gets no more; "
            f"places_per_address in study.toml sets how many.{proxy}"
        )
        return False

    def note_presence(self, session: Session) -> None:
        """A place that somebody is answering stays one of those of the address that took it."""
        if self.options.addresses is not None:
            self.options.addresses.renew(session.sid)

    def rater(self, request: Request) -> tuple[Session, str]:
        """The session and rater of a request.

        Raises RaterRefused if there is none.
        """
        session = self.signer.read(request)
        if session is None or session.rater is None:
            raise RaterRefused("unknown")
        return session, session.rater


def _add_arrival(site: FastAPI, shared: _Shared) -> None:
    parameter = shared.store.study.platform.parameter

    @site.get("/")
    def arrive(request: Request) -> Response:
        old = shared.signer.read(request)
        given = request.query_params.get(parameter, "") if parameter else ""
        test = shared.options.preview or same_token(
            request.query_params.get("test", ""), make_test_token(shared.keys)
        )
        if request.query_params:
            signature = request.query_params.get(SIGNATURE, "")
            return _take_parameters(shared, old, given, signature, test=test)
        session = old if old and (old.test or not test) else start_session(None, key_hash=None, test=test)
        if session.rater is not None and not shared.store.knows(session.rater):
            session = start_session(None, key_hash=session.key_hash, test=session.test)
        if session.rater is None and session.key_hash:
            earlier = shared.store.find_rater(session.key_hash)
            session = with_rater(session, earlier) if earlier else session
        if session.rater is not None:
            return _go_as(session, "/study", shared)
        if not session.test and session.key_hash is None and shared.store.study.platform.required:
            return shared.pages.message("needs_link", "", 403)
        shut = None if session.test else shared.store.has_room()
        if shut:
            return shared.pages.message(shut, f"{shut}_text")
        if not shared.has_place_for(request, session):
            return shared.pages.message("crowded", "crowded_text", 429)
        response = shared.pages.consent(session)
        shared.signer.write(response, session)
        return response

    @site.post("/consent")
    def consent(request: Request, form: FormFields) -> Response:
        session = shared.signer.read(request)
        if session is None:
            return shared.pages.message("error", "cookies", 400)
        if shared.signer.read_form(form.get("token", ""), session) is None:
            return shared.pages.message("forbidden", "forbidden_text", 403)
        if session.rater is not None:
            return _go_as(session, "/study", shared)
        if shared.store.study.timed and not form.get("script"):
            # Nobody agrees to a study that they then cannot do.
            return shared.pages.message("error", "needs_script", 403)
        if not form.get("agree"):
            return shared.pages.consent(session, error="agree_needed")
        if not shared.has_place_for(request, session, take=True):
            return shared.pages.message("crowded", "crowded_text", 429)
        keep = partial(shared.ids.add, session.platform_id) if session.platform_id else None
        rater = shared.store.enter(
            key_hash=session.key_hash, test=session.test, session=session.sid, keep=keep
        )
        return _go_as(with_rater(session, rater), "/study", shared)


def _take_parameters(
    shared: _Shared, old: Session | None, given: str, signature: str, *, test: bool
) -> Response:
    """Replace a platform id by its hash and send the browser to an address without it."""
    if test:
        return _go_as(start_session(old, key_hash=None, test=True), "/", shared)
    if not given:
        return RedirectResponse("/", status_code=303)
    if not PLATFORM_ID.fullmatch(given):
        return shared.pages.message("needs_link", "", 400)
    if shared.store.closed():
        return shared.pages.message("full", "full_text")
    if not shared.admits(given, signature):
        return shared.pages.message("needs_link", "", 403)
    session = start_session(
        old,
        key_hash=hash_platform_id(shared.keys, given),
        test=False,
        platform_id=given,
        signed=shared.store.study.platform.signed,
    )
    return _go_as(session, "/", shared)


def _add_study(site: FastAPI, shared: _Shared) -> None:
    store, pages = shared.store, shared.pages

    @site.get("/study")
    def show(request: Request, step: int | None = None) -> Response:
        session, rater = shared.rater(request)
        position = store.find_position(rater)
        if position.step is None or position.rater_state == "finished":
            more = (
                position.rater_state == "active" and position.lists_done < store.study.design.lists_per_rater
            )
            if position.rater_state == "active" and not (more and store.can_continue(rater)):
                store.complete(rater)
                position = store.find_position(rater)
            return pages.done(session, position)
        if position.state != "live" or position.lease <= store.clock():
            try:
                store.check_lease(rater)
            except RaterRefused as lost:
                return _settle(shared, rater, lost)
        # Nobody who merely knows a platform id sees or changes what its rater has answered.
        may_go_back = store.study.back and owns_rater(session, rater)
        earlier = step is not None and may_go_back and 0 <= step < position.position
        if earlier and step is not None and position.steps[step].kind == "trial":
            return pages.step(session, position, step, stored=store.stored(position.slot, step))
        return pages.step(session, position, position.position)

    @site.post("/answer")
    def answer(request: Request, form: FormFields) -> Response:
        session, rater = shared.rater(request)
        token = shared.signer.read_form(form.get("token", ""), session)
        if token is None:
            return pages.message("forbidden", "forbidden_text", 403)
        steps = store.steps(token.slot)
        if token.step >= len(steps):
            return _go("/study")
        try:
            given = read_step(store.study, steps[token.step], form)
        except Unanswered as missing:
            position = store.find_position(rater)
            if (token.slot, token.step) != (position.slot, position.position):
                return _go("/study")
            return pages.step(session, position, token.step, error=missing.message, form=form)
        shared.note_presence(session)
        owner = owns_rater(session, rater)
        try:
            outcome = store.record(
                rater, token.slot, token.step, token.key, given, shown=token.shown, revise=owner
            )
        except RaterRefused as lost:
            return _settle(shared, rater, lost)
        if outcome == "try_again":
            return pages.step(session, store.find_position(rater), token.step, error="quiz_wrong")
        return _go("/study")

    @site.post("/alive")
    def keep_alive(request: Request, form: FormFields) -> Response:
        session, rater = shared.rater(request)
        if shared.signer.read_form(form.get("token", ""), session) is None:
            return Response(status_code=403)
        shared.note_presence(session)
        store.extend(rater)
        return Response(status_code=204)


def _settle(shared: _Shared, rater: str, lost: RaterRefused) -> Response:
    """Show the completion code to a rater who has lost a list but finished one before.

    Raises RaterRefused for everybody else.
    """
    if lost.reason == "expired" and shared.store.settle(rater):
        return _go("/study")
    raise lost


def _add_leaving(site: FastAPI, shared: _Shared) -> None:
    store, pages = shared.store, shared.pages

    def confirmed(request: Request, form: Form) -> tuple[Session, str]:
        session, rater = shared.rater(request)
        if shared.signer.read_form(form.get("token", ""), session) is None:
            raise HTTPException(403)
        return session, rater

    @site.post("/more")
    def more(request: Request, form: FormFields) -> Response:
        _, rater = confirmed(request, form)
        store.next_list(rater)
        return _go("/study")

    @site.post("/finish")
    def finish(request: Request, form: FormFields) -> Response:
        _, rater = confirmed(request, form)
        store.complete(rater)
        return _go("/study")

    @site.get("/withdraw")
    def ask(request: Request) -> Response:
        session, rater = shared.rater(request)
        store.find_position(rater)
        if not owns_rater(session, rater):
            return pages.message("withdraw", "withdraw_elsewhere", 403)
        return pages.withdraw(session)

    @site.post("/withdraw")
    def withdraw(request: Request, form: FormFields) -> Response:
        session, rater = confirmed(request, form)
        if not owns_rater(session, rater):
            return pages.message("withdraw", "withdraw_elsewhere", 403)
        store.withdraw(rater)
        shared.eraser.wake()
        return pages.message("withdrawn", "withdrawn_text")


def _add_errors(site: FastAPI, shared: _Shared) -> None:
    pages = shared.pages

    async def refused(_request: Request, error: Exception) -> Response:
        reason = getattr(error, "reason", "unknown")
        if reason == "unknown":
            return pages.message("forbidden", "forbidden_text", 403)
        return pages.message(reason, f"{reason}_text", 409 if reason == "expired" else 200)

    async def not_stored(_request: Request, error: Exception) -> Response:
        log.error(str(error))
        response = pages.message("not_stored", "not_stored_text", 503)
        response.headers["retry-after"] = "10"
        return response

    async def failed(_request: Request, error: Exception) -> Response:
        status = getattr(error, "status_code", 500)
        names = {403: ("forbidden", "forbidden_text"), 404: ("not_found", ""), 405: ("not_found", "")}
        return pages.message(*names.get(status, ("error", "")), status)

    site.add_exception_handler(RaterRefused, refused)
    site.add_exception_handler(StorageFailed, not_stored)
    site.add_exception_handler(FelicityError, not_stored)
    site.add_exception_handler(HTTPException, failed)
    from fastapi.exceptions import RequestValidationError

    async def invalid(_request: Request, _error: Exception) -> Response:
        return pages.message("not_found", "", 404)

    site.add_exception_handler(RequestValidationError, invalid)


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _go(path: str) -> Response:
    """Redirect, so that reloading the next page never sends the form again."""
    return RedirectResponse(path, status_code=303)


def _go_as(session: Session, path: str, shared: _Shared) -> Response:
    """Redirect, with the cookie of a session that has just changed."""
    response = _go(path)
    shared.signer.write(response, session)
    return response
