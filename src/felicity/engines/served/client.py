"""One HTTP request to a server, with a rate limit, retries, and errors in one sentence."""

import asyncio
import json
import random
import time
import zlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import lru_cache
from html import escape
from http import HTTPStatus
from itertools import groupby
from typing import Any, TypeVar
from urllib.parse import quote

from felicity.core.errors import FelicityError, NotPossible
from felicity.engines.served.settings import KEYS, Serving

MINUTE = 60.0
LONGEST_WAIT = 30.0
T = TypeVar("T")
TRANSIENT = {408, 425, 429, 500, 502, 503, 504, 529}
KEY_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
# BadResponse answers are caused by a glitch or by another protocol; repeating the request shows which.
UNREADABLE_TRIES = 8
SAID_CHARACTERS = 200
MESSAGE_CHARACTERS = 20_000
# The longest answers, log-probabilities of many alternatives to every token of a batch, have some megabytes.
LARGEST_ANSWER = 200_000_000
PACKINGS = ("identity", "gzip", "x-gzip", "deflate")
GZIP_OR_ZLIB = 47
OF_THE_PACKING = ("content-encoding", "content-length", "transfer-encoding")
# This many letters of a key in a row are not a coincidence.
PIECE = 6
RESUME_HINT = "finished scores are saved, and the same command resumes from there"


class RateLimiter:
    """Spaces requests so that no minute exceeds the allowed number of requests or tokens."""

    def __init__(self, *, requests_per_minute: float | None, tokens_per_minute: float | None) -> None:
        self._rates = (requests_per_minute, tokens_per_minute)
        self._free = 0.0

    async def wait(self, tokens: int) -> None:
        """Return when a request of this many tokens may be sent."""
        now = time.monotonic()
        start = max(now, self._free)
        self._free = start + self.spacing(tokens)
        if start > now:
            await asyncio.sleep(start - now)

    def spacing(self, tokens: int) -> float:
        """Seconds between a request of this many tokens and the next.

        >>> RateLimiter(requests_per_minute=60, tokens_per_minute=1200).spacing(100)
        5.0
        """
        requests_rate, tokens_rate = self._rates
        each = MINUTE / requests_rate if requests_rate else 0.0
        long = MINUTE * tokens / tokens_rate if tokens_rate else 0.0
        return max(each, long)


def back_off(failures: int, first: float, rng: random.Random) -> float:
    """Seconds to wait after this many failures: doubled each time, up to half a minute, with jitter.

    >>> 0.25 <= back_off(1, 0.5, random.Random(0)) <= 0.5
    True
    """
    longest = min(LONGEST_WAIT, first * 2.0 ** min(failures - 1, 30))
    return longest * rng.uniform(0.5, 1.0)


def read_retry_after(value: str | None, *, now: float) -> float:
    """Seconds that a server asks to wait, given in seconds or as a date; 0 if it does not.

    >>> read_retry_after("2.5", now=0.0)
    2.5
    >>> read_retry_after("Thu, 01 Jan 1970 00:00:10 GMT", now=4.0)
    6.0
    """
    if not value:
        return 0.0
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except ValueError:
        return 0.0


class BadResponse(Exception):
    """An answer that does not follow the protocol; the message says how."""


# What reading an answer that does not follow the protocol may raise.
UNEXPECTED = (
    *(BadResponse, ValueError, KeyError, IndexError, TypeError, AttributeError),
    *(ArithmeticError, RecursionError),
)


class RequestRefused(Exception):
    """The server refuses the request: an unsupported request, or an unknown path or model."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


@dataclass(eq=False)
class _TransientError(Exception):
    """A failure that may be gone at the next try."""

    what: str
    wait: float = 0.0
    unreadable: bool = False


class Client:
    """Sends requests to one server; used inside the event loop that made it."""

    def __init__(self, url: str, *, serving: Serving, key: str | None, rate_limiter: RateLimiter) -> None:
        import httpx

        self.url = url
        self._serving = serving
        self._key = key
        self._pace = rate_limiter
        self._rng = random.Random()
        self._broken = (
            *(httpx.TransportError, httpx.DecodingError, httpx.InvalidURL, httpx.TooManyRedirects),
            *(TimeoutError, UnicodeError),
        )
        self._http = httpx.AsyncClient(
            headers={"Accept-Encoding": "gzip"} | ({"Authorization": f"Bearer {key}"} if key else {}),
            verify=_trust(),
            timeout=None,
            limits=httpx.Limits(max_connections=serving.concurrency),
        )

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._http.aclose()

    @property
    def root(self) -> str:
        """The server's root, for endpoints outside the protocol."""
        return self.url.removesuffix("/v1")

    async def ask(
        self, url: str, body: dict[str, Any] | None = None, *, read: Callable[[Any], T], tokens: int = 0
    ) -> T:
        """What `read` makes of the answer; POST if there is a body.

        Raises Refused, and FelicityError if the server keeps failing longer than the patience.
        """
        began = None
        failures = 0
        while True:
            await self._pace.wait(tokens)
            try:
                return await self._once(url, body, read)
            except _TransientError as fault:
                failures += 1
                now = time.monotonic()
                began = began or now
                wait = max(fault.wait, back_off(failures, self._serving.backoff, self._rng))
                spent = now - began + wait > self._serving.patience
                if spent or (fault.unreadable and failures >= UNREADABLE_TRIES):
                    raise self._give_up(fault, failures) from fault
                await asyncio.sleep(wait)

    async def _once(self, url: str, body: dict[str, Any] | None, read: Callable[[Any], T]) -> T:
        try:
            async with asyncio.timeout(self._serving.timeout):
                response = await self._fetch("GET" if body is None else "POST", url, body)
        except self._broken as error:
            raise _TransientError(self._name(error)) from error
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            said = _find_message(response, self._scrub)
            if response.status_code in TRANSIENT and "insufficient_quota" not in said:
                asked = read_retry_after(response.headers.get("retry-after"), now=time.time())
                raise _TransientError(f"status {response.status_code}{': ' * bool(said)}{said}", wait=asked)
            raise RequestRefused(response.status_code, said)
        try:
            return read(response.json())
        except UNEXPECTED as error:
            said = str(error) if isinstance(error, BadResponse) else "unexpected JSON"
            raise _TransientError(self._scrub(said), unreadable=True) from error

    async def _fetch(self, method: str, url: str, body: dict[str, Any] | None) -> Any:
        """The answer, unpacked in pieces, so that a small one cannot fill the memory.

        Raises _TransientError if it is too large or packed in an unknown way.
        """
        import httpx

        async with self._http.stream(method, url, json=body) as response:
            packing = response.headers.get("content-encoding", "identity").strip().lower()
            if packing not in PACKINGS:
                raise _TransientError(f"an answer packed as {packing[:40]}", unreadable=True)
            unpack = zlib.decompressobj(GZIP_OR_ZLIB) if packing != "identity" else None
            content = bytearray()
            async for piece in response.aiter_raw():
                room = LARGEST_ANSWER + 1 - len(content)
                try:
                    content += unpack.decompress(piece, room) if unpack else piece
                except zlib.error as error:
                    raise _TransientError("an answer that cannot be unpacked", unreadable=True) from error
                if len(content) > LARGEST_ANSWER:
                    most = LARGEST_ANSWER // 1_000_000
                    raise _TransientError(f"an answer of more than {most} MB", unreadable=True)
            kept = {
                name: value for name, value in response.headers.items() if name.lower() not in OF_THE_PACKING
            }
            return httpx.Response(response.status_code, headers=kept, content=bytes(content))

    def _name(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer within {self._serving.timeout:g} s"
        return self._scrub(" ".join(str(error).split()))[:SAID_CHARACTERS] or type(error).__name__

    def _scrub(self, text: str) -> str:
        return scrub(text, self._key) if self._key else text

    def _give_up(self, fault: _TransientError, failures: int) -> FelicityError:
        tries = f"{failures} {'try' if failures == 1 else 'tries'}"
        if fault.unreadable:
            return FelicityError(
                f"The server at {self.url} sent unusable answers ({fault.what}) in {tries}; check "
                f"that --url is an OpenAI-compatible API; {RESUME_HINT}."
            )
        return FelicityError(
            f"The server at {self.url} failed ({fault.what}) in {tries}; check that it is running, or "
            f"wait longer with --patience; {RESUME_HINT}."
        )


@lru_cache
def _trust() -> Any:
    """The trusted certificates, cached because reading them takes long."""
    import httpx

    return httpx.create_ssl_context()


def explain(refused: RequestRefused, *, url: str, model: str) -> FelicityError:
    """A refusal in one sentence with the next step."""
    said = f" ({refused.said})" if refused.said else ""
    if refused.status in KEY_REFUSED:
        return FelicityError(f"The server at {url} refuses the key{said}; set {KEYS[1]} in the environment.")
    if refused.status == HTTPStatus.NOT_FOUND:
        return FelicityError(
            f"The server at {url} has no completions for '{model}'{said}; check the model's name and --url."
        )
    if refused.status == HTTPStatus.TOO_MANY_REQUESTS:
        return FelicityError(f"The server at {url} has no more quota for this key{said}; {RESUME_HINT}.")
    return NotPossible(f"The server at {url} refuses the request{said}, status {refused.status}.")


def scrub(text: str, key: str) -> str:
    """A text without the key, which some servers repeat in errors, complete, in part or encoded.

    >>> scrub("bad key sk-12345678, sk-123***", "sk-12345678")
    'bad key ***, ******'
    """
    code = key.encode("utf-8", "surrogatepass")
    forms = [key, quote(key, safe=""), json.dumps(key)[1:-1], escape(key), code.hex(), code.hex().upper()]
    forms += [
        b64encode(bytes(shift) + code).decode("ascii")[shift * 4 // 3 + 1 :].rstrip("=")
        for shift in (0, 1, 2)
    ]
    forms += [b64encode(code).decode("ascii")]
    for form in forms:
        if form:
            text = text.replace(form, "***")
    covered = [False] * len(text)
    for form in forms:
        for begin in range(len(form) - PIECE + 1):
            piece = form[begin : begin + PIECE]
            at = text.find(piece)
            while at >= 0:
                covered[at : at + PIECE] = [True] * PIECE
                at = text.find(piece, at + 1)
    parts = groupby(zip(text, covered, strict=True), key=lambda pair: pair[1])
    return "".join("***" if hidden else "".join(letter for letter, _ in part) for hidden, part in parts)


def _find_message(response: Any, clean: Callable[[str], str]) -> str:
    """The message in an error's body, short and on one line; the key is removed before it is cut."""
    try:
        message = response.json()
    except (ValueError, RecursionError):
        message = response.text
    for field in ("error", "message", "detail"):
        if isinstance(message, dict) and field in message:
            message = message[field]
    return clean(" ".join(str(message)[:MESSAGE_CHARACTERS].split()))[:SAID_CHARACTERS]
