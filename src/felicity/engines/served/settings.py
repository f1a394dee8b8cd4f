"""Settings of served models: address, rate limits, retries, price."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from urllib.parse import urlsplit

from felicity.core.errors import BadInput, NotPossible
from felicity.engines.runtime import Compute

PREFIX = "openai:"
URLS = ("FELICITY_URL", "OPENAI_BASE_URL")
KEYS = ("FELICITY_API_KEY", "OPENAI_API_KEY")
MILLION = 1_000_000
LONGEST_URL = 2000


@dataclass(frozen=True, kw_only=True)
class CostEstimate:
    """What a run will send, shown in advance. `cost` is in the currency of the price."""

    requests: int
    tokens: int
    cost: float | None


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Settings of a served model; the API key is not among them but stays in the environment.

    url: the address that ends in /v1; if empty, `$FELICITY_URL` or `$OPENAI_BASE_URL`.
    tokenizer: a local model with the server's tokenizer; without one the server is queried.
    revision: a name for the weights; servers give none, and scores of two revisions are kept separate.
    concurrency: simultaneous requests. timeout: seconds for one request.
    patience: seconds to keep retrying a request, from its first failure.
    backoff: seconds before the first retry; doubled each time.
    requests_per_minute, tokens_per_minute: rate limits; None for no limit.
    price_per_million: per million tokens sent, for the cost estimate.
    announce: called with the cost estimate before anything is scored.
    """

    url: str = ""
    tokenizer: str | None = None
    revision: str | None = None
    concurrency: int = 8
    timeout: float = 120.0
    patience: float = 300.0
    backoff: float = 0.5
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    price_per_million: float | None = None
    announce: Callable[[CostEstimate], None] | None = None

    def __post_init__(self) -> None:
        for name, wrong, wanted in (
            ("concurrency", self.concurrency < 1, "at least 1"),
            ("timeout", not 0 < self.timeout < inf, "above 0"),
            ("patience", not 0 <= self.patience < inf, "0 or more"),
            ("backoff", not 0 < self.backoff < inf, "above 0"),
            (
                "requests_per_minute",
                self.requests_per_minute is not None and not 0 < self.requests_per_minute < inf,
                "above 0",
            ),
            (
                "tokens_per_minute",
                self.tokens_per_minute is not None and not 0 < self.tokens_per_minute < inf,
                "above 0",
            ),
            ("price_per_million", not 0 <= (self.price_per_million or 0) < inf, "0 or more"),
        ):
            if wrong:
                raise BadInput(f"--{name.replace('_', '-')} is {getattr(self, name)}; it must be {wanted}.")

    def bill(self, *, requests: int, tokens: int) -> CostEstimate:
        """The cost of this many tokens.

        >>> Serving(price_per_million=2.0).bill(requests=10, tokens=500).cost
        0.001
        """
        price = self.price_per_million
        return CostEstimate(
            requests=requests, tokens=tokens, cost=None if price is None else tokens * price / MILLION
        )


def is_served(spec: str) -> bool:
    """Whether `-m` names a served model.

    >>> is_served("openai:Qwen/Qwen3-8B")
    True
    """
    return spec.startswith(PREFIX)


def find_url(serving: Serving) -> str:
    """The server's address, without a trailing slash.

    Raises BadInput if there is none, or one with a password or key in it, which would be recorded.
    """
    url = serving.url or next((os.environ[name] for name in URLS if os.environ.get(name)), "")
    if not url:
        raise BadInput("A served model needs the server's address: give --url http://HOST:PORT/v1.")
    if not url.isascii() or not url.isprintable() or " " in url or len(url) > LONGEST_URL:
        raise BadInput("The server's address must be plain ASCII without spaces; see --url.")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise BadInput("The server's address must look like http://HOST:PORT/v1; see --url.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput("The server's address must look like http://HOST:PORT/v1; see --url.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadInput(
            f"The server's address must be bare, as http://{parts.hostname}/v1 is; put the key into the "
            f"environment variable {KEYS[1]}, where it is not recorded."
        )
    return url.rstrip("/")


def read_key() -> str | None:
    """The API key, from the environment only.

    Raises BadInput if it contains characters that a header cannot; the message does not show the key.
    """
    for name in KEYS:
        key = os.environ.get(name, "").strip()
        if key and not (key.isascii() and key.isprintable()):
            raise BadInput(
                f"The key in {name} contains a line break, a control character or a letter outside ASCII; "
                "copy it again."
            )
        if key:
            return key
    return None


def refuse_for_local(spec: str, serving: Serving | None) -> None:
    """Refuse server settings for a local model, which would have no effect.

    Raises NotPossible.
    """
    if serving is not None:
        raise NotPossible(
            f"'{spec}' is not a served model, so server options have no effect; write "
            f"-m {PREFIX}NAME, or omit the option."
        )


def refuse_compute(spec: str, compute: Compute) -> None:
    """Refuse compute options for a served model, which the server decides.

    Raises NotPossible.
    """
    usual = Compute()
    for field in ("device", "dtype", "device_map", "allow_code"):
        if getattr(compute, field) != getattr(usual, field):
            raise NotPossible(
                f"'{spec}' runs on its server, which decides the {field.replace('_', ' ')}; "
                f"omit --{field.replace('_', '-')}."
            )
