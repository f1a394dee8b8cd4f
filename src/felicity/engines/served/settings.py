"""How a served model is reached: where, how fast, how patiently, at what price."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from felicity.core.errors import BadInput, NotPossible
from felicity.engines.devices import Compute

PREFIX = "openai:"
URLS = ("FELICITY_URL", "OPENAI_BASE_URL")
KEYS = ("FELICITY_API_KEY", "OPENAI_API_KEY")
MILLION = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Bill:
    """What a run will send: shown before it is sent. `cost` is in the currency of the price."""

    requests: int
    tokens: int
    cost: float | None


@dataclass(frozen=True, kw_only=True)
class Serving:
    """Settings of a served model; the key is not among them, it stays in the environment.

    url: the address that ends in /v1; empty is `$FELICITY_URL`, else `$OPENAI_BASE_URL`.
    tokenizer: a model on this machine whose tokenizer is the server's; without one the server is asked.
    revision: what the weights are called; no server tells, and scores of two revisions are kept apart.
    concurrency: requests under way at once. timeout: seconds for one request.
    patience: seconds to go on trying a request that fails, from its first failure.
    backoff: seconds before the first repetition; doubled each time.
    requests_per_minute, tokens_per_minute: limits to keep; None is none.
    price_per_million: of tokens sent, for the bill.
    announce: is told the bill before anything is scored.
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
    announce: Callable[[Bill], None] | None = None

    def __post_init__(self) -> None:
        for name, wrong, wanted in (
            ("concurrency", self.concurrency < 1, "at least 1"),
            ("timeout", self.timeout <= 0, "above 0"),
            ("patience", self.patience < 0, "0 or more"),
            ("backoff", self.backoff <= 0, "above 0"),
            (
                "requests_per_minute",
                self.requests_per_minute is not None and self.requests_per_minute <= 0,
                "above 0",
            ),
            (
                "tokens_per_minute",
                self.tokens_per_minute is not None and self.tokens_per_minute <= 0,
                "above 0",
            ),
            ("price_per_million", (self.price_per_million or 0) < 0, "0 or more"),
        ):
            if wrong:
                raise BadInput(f"--{name.replace('_', '-')} is {getattr(self, name)}; it must be {wanted}.")

    def bill(self, *, requests: int, tokens: int) -> Bill:
        """What so many tokens will cost.

        >>> Serving(price_per_million=2.0).bill(requests=10, tokens=500).cost
        0.001
        """
        price = self.price_per_million
        return Bill(
            requests=requests, tokens=tokens, cost=None if price is None else tokens * price / MILLION
        )


def is_served(spec: str) -> bool:
    """Whether `-m` names a model behind a server.

    >>> is_served("openai:Qwen/Qwen3-8B")
    True
    """
    return spec.startswith(PREFIX)


def find_url(serving: Serving) -> str:
    """The server's address, without a slash at its end.

    Raises BadInput where there is none, or one with a password or key in it, which would be written down.
    """
    url = serving.url or next((os.environ[name] for name in URLS if os.environ.get(name)), "")
    if not url:
        raise BadInput("A served model needs the server's address: give --url http://HOST:PORT/v1.")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput("The server's address must look like http://HOST:PORT/v1; see --url.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise BadInput(
            f"The server's address must be bare, as http://{parts.hostname}/v1 is; put the key into the "
            f"environment variable {KEYS[1]}, where it is not written down."
        )
    return url.rstrip("/")


def read_key() -> str | None:
    """The key, from the environment and from nowhere else."""
    return next((os.environ[name].strip() for name in KEYS if os.environ.get(name, "").strip()), None)


def refuse_for_local(spec: str, serving: Serving | None) -> None:
    """Stop where a local model is given a server's settings, which would do nothing.

    Raises NotPossible.
    """
    if serving is not None:
        raise NotPossible(
            f"'{spec}' is not behind a server, so an option about the server has no meaning; write "
            f"-m {PREFIX}NAME, or leave the option out."
        )


def refuse_compute(spec: str, compute: Compute) -> None:
    """Stop where a served model is told how to compute, which is the server's affair.

    Raises NotPossible.
    """
    usual = Compute()
    for field in ("device", "dtype", "device_map"):
        if getattr(compute, field) != getattr(usual, field):
            raise NotPossible(
                f"'{spec}' is computed by its server, which does not ask for a {field.replace('_', ' ')}; "
                f"leave --{field.replace('_', '-')} out."
            )
