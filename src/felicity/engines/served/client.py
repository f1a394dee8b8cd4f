"""One request to a server, repeated until it is answered: what can go wrong on the way, in one place."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any, TypeVar

from felicity.core.errors import FelicityError, NotPossible
from felicity.engines.served.pace import Pace, back_off, read_retry_after
from felicity.engines.served.settings import KEYS, Serving

T = TypeVar("T")

PASSING = {408, 425, 429, 500, 502, 503, 504, 529}
KEY_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
# Answers that cannot be read come of a mishap or of another protocol; repeating them tells which.
UNREADABLE_TRIES = 8
SAID_CHARACTERS = 200
KEPT = "what was scored is kept, and the same command goes on from there"


class Unreadable(Exception):
    """An answer that is not what the protocol promises; the message says in what."""


class Refused(Exception):
    """The server understood and will not: a request it does not take, a path or model it does not have."""

    def __init__(self, status: int, said: str) -> None:
        super().__init__(said)
        self.status = status
        self.said = said


@dataclass(frozen=True)
class _Fault(Exception):
    """Something that may be over at the next try."""

    what: str
    wait: float = 0.0
    unreadable: bool = False


class Client:
    """Asks one server; used inside the event loop that made it."""

    def __init__(self, url: str, *, serving: Serving, key: str | None, pace: Pace) -> None:
        import httpx

        self.url = url
        self._serving = serving
        self._key = key
        self._pace = pace
        self._rng = random.Random()
        self._broken = (httpx.TransportError, httpx.DecodingError, TimeoutError)
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else {},
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
        """The address of what servers offer beside the protocol."""
        return self.url.removesuffix("/v1")

    async def ask(
        self, url: str, body: dict[str, Any] | None = None, *, read: Callable[[Any], T], tokens: int = 0
    ) -> T:
        """What `read` makes of the answer; posted where there is a body.

        Raises Refused, and FelicityError where the server's faults outlast the patience.
        """
        began = None
        failures = 0
        while True:
            await self._pace.wait(tokens)
            try:
                return await self._once(url, body, read)
            except _Fault as fault:
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
                response = await self._http.request("GET" if body is None else "POST", url, json=body)
        except self._broken as error:
            raise _Fault(self._name(error)) from error
        if response.status_code >= HTTPStatus.BAD_REQUEST:
            said = self._scrub(_find_message(response))
            if response.status_code in PASSING and "insufficient_quota" not in said:
                asked = read_retry_after(response.headers.get("retry-after"), now=time.time())
                raise _Fault(f"status {response.status_code}{': ' * bool(said)}{said}", wait=asked)
            raise Refused(response.status_code, said)
        try:
            return read(response.json())
        except (Unreadable, ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            said = str(error) if isinstance(error, Unreadable) else "not the JSON that was expected"
            raise _Fault(self._scrub(said), unreadable=True) from error

    def _name(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"no answer within {self._serving.timeout:g} s"
        return self._scrub(" ".join(str(error).split())[:SAID_CHARACTERS] or type(error).__name__)

    def _scrub(self, text: str) -> str:
        """Without the key, which some servers repeat when they refuse it."""
        return text.replace(self._key, "***") if self._key else text

    def _give_up(self, fault: _Fault, failures: int) -> FelicityError:
        tries = f"{failures} {'try' if failures == 1 else 'tries'}"
        if fault.unreadable:
            return FelicityError(
                f"The server at {self.url} gave answers that cannot be used ({fault.what}), {tries}; check "
                f"that --url speaks the OpenAI protocol; {KEPT}."
            )
        return FelicityError(
            f"The server at {self.url} did not do its work ({fault.what}), {tries}; see that it runs, or "
            f"wait longer with --patience; {KEPT}."
        )


@lru_cache
def _trust() -> Any:
    """The certificates that are trusted; reading them takes long, and clients are many."""
    import httpx

    return httpx.create_ssl_context()


def explain(refused: Refused, *, url: str, model: str) -> FelicityError:
    """A refusal in one sentence with the next step."""
    said = f" ({refused.said})" if refused.said else ""
    if refused.status in KEY_REFUSED:
        return FelicityError(f"The server at {url} refuses the key{said}; set {KEYS[1]} in the environment.")
    if refused.status == HTTPStatus.NOT_FOUND:
        return FelicityError(
            f"The server at {url} has no completions for '{model}'{said}; check the model's name and --url."
        )
    if refused.status == HTTPStatus.TOO_MANY_REQUESTS:
        return FelicityError(f"The server at {url} has no more quota for this key{said}; {KEPT}.")
    return NotPossible(f"The server at {url} refuses the request{said}, status {refused.status}.")


def _find_message(response: Any) -> str:
    """What an error's body says, short and on one line."""
    try:
        found = response.json()
    except ValueError:
        found = response.text
    for field in ("error", "message", "detail"):
        if isinstance(found, dict) and field in found:
            found = found[field]
    return " ".join(str(found).split())[:SAID_CHARACTERS]
