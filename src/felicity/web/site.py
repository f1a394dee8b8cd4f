"""The frame of every site: security headers, limits of body and rate, templates and static files."""

import asyncio
import hashlib
import hmac
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from importlib.resources import files
from typing import Annotated, Any
from urllib.parse import parse_qsl

import jinja2
from fastapi import Depends, FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, Response
from starlette.staticfiles import StaticFiles

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

Form = dict[str, str]

LARGEST_BODY = 64 * 1024
BODY_SECONDS = 30.0
MOST_FIELDS = 200
SILENT_SECONDS = 60.0
MOST_REMEMBERED = 100
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # A platform id in the address that a rater came from must not travel on.
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
    "x-robots-tag": "noindex, nofollow",
}


class RateLimit:
    """A token bucket per client, in memory; addresses are hashed with a key that dies with the process."""

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self.burst = max(20.0, 4 * per_second)
        self.clock = clock
        self._key = secrets.token_bytes(16)
        self._buckets: dict[bytes, tuple[float, float]] = {}

    def allows(self, client: str) -> bool:
        """Whether this client may send another request now."""
        if self.per_second <= 0:
            return True
        now = self.clock()
        name = hmac.digest(self._key, client.encode(), "sha256")
        level, last = self._buckets.get(name, (self.burst, now))
        level = min(self.burst, level + (now - last) * self.per_second)
        self._buckets[name] = (max(level - 1.0, 0.0), now)
        if len(self._buckets) > 50_000:
            self._buckets = {key: (left, at) for key, (left, at) in self._buckets.items() if now - at < 60}
        return level >= 1.0


class SeldomLog:
    """Messages for whoever runs a site, on standard error; the same one at most once a minute."""

    def __init__(self, logger: logging.Logger, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.logger = logger
        self.clock = clock
        self._said: dict[str, float] = {}

    def warning(self, message: str) -> None:
        """Something that may be meant to be so."""
        self._say(logging.WARNING, message)

    def error(self, message: str) -> None:
        """Something that raters suffer from."""
        self._say(logging.ERROR, message)

    def _say(self, level: int, message: str) -> None:
        now = self.clock()
        if now - self._said.get(message, -SILENT_SECONDS) < SILENT_SECONDS:
            return
        if len(self._said) >= MOST_REMEMBERED:
            self._said.clear()
        self._said[message] = now
        self.logger.log(level, message)


class Guard:
    """The outermost layer: refuses too many requests and too large bodies, and sets every header."""

    def __init__(
        self, app: App, *, limit: RateLimit, secure: bool, refuse: Callable[[int], Response]
    ) -> None:
        self.app = app
        self.limit = limit
        self.refuse = refuse
        extra = {"strict-transport-security": "max-age=31536000"} if secure else {}
        self.headers = [(name.encode(), value.encode()) for name, value in (HEADERS | extra).items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # An address without a version, as modules import each other by, may change its content.
        static = scope["path"].startswith("/static/") and bool(scope.get("query_string"))

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                caching = b"public, max-age=3600" if static else b"no-store"
                kept = [pair for pair in message["headers"] if pair[0] != b"cache-control"]
                message["headers"] = [*kept, *self.headers, (b"cache-control", caching)]
            await send(message)

        client = scope["client"][0] if scope.get("client") else ""
        if not self.limit.allows(client):
            await self.refuse(429)(scope, receive, guarded)
            return
        if _declared_size(scope) > LARGEST_BODY:
            await self.refuse(413)(scope, receive, guarded)
            return
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _read_body(receive) if scope["method"] not in ("GET", "HEAD") else b""
        except TimeoutError:
            await self.refuse(408)(scope, receive, guarded)
            return
        if body is None:
            await self.refuse(413)(scope, receive, guarded)
            return
        await self.app(scope, _replay(body, receive), guarded)


def _declared_size(scope: Scope) -> int:
    for name, value in scope["headers"]:
        if name == b"content-length":
            return int(value) if value.isdigit() and len(value) < 16 else LARGEST_BODY + 1
    return 0


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or None if it is larger than allowed, whatever its header said."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"".join(parts)
        part = message.get("body", b"")
        size += len(part)
        if size > LARGEST_BODY:
            return None
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


async def read_form(request: Request) -> Form:
    """The fields of a submitted form, all of them short texts."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise HTTPException(415)
    try:
        text = (await request.body()).decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError as error:
        raise HTTPException(400) from error


FormFields = Annotated[Form, Depends(read_form)]


def make_site() -> FastAPI:
    """An application without documentation pages, with the shared static files."""
    # A redirect to the address without a final slash would repeat the Host that a request claims.
    site = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    site.mount("/static", StaticFiles(directory=str(files("felicity.web") / "static")), name="static")
    return site


def make_templates() -> jinja2.Environment:
    """The templates of every site; what goes into them is escaped."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("felicity.web", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # The files do not change while the server runs; checking each of them would slow every page down.
        auto_reload=False,
    )
    environment.globals["version"] = _static_version()
    return environment


def _static_version() -> str:
    """Changes when a static file does, so that no browser mixes an old script with a new page."""
    digest = hashlib.sha256()
    for path in sorted((files("felicity.web") / "static").iterdir(), key=lambda one: one.name):
        if path.is_file():
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def same_token(given: str, expected: str) -> bool:
    """Compare a token in constant time, so that timing does not show how much of it is right."""
    return hmac.compare_digest(given.encode(), expected.encode())


def html(text: str, status: int = 200) -> HTMLResponse:
    """A page."""
    return HTMLResponse(text, status_code=status)
