"""A served model made ready: met, asked the probe, and known by its answer."""

import sys
from dataclasses import dataclass
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.engine import EngineInfo
from felicity.core.errors import NotPossible
from felicity.core.ids import fingerprint
from felicity.core.policy import Policy
from felicity.core.schemas import PROMPTS
from felicity.engines.digests import fingerprint_tokenizer
from felicity.engines.encoding import Encoder
from felicity.engines.loading import load_tokenizer
from felicity.engines.served.connection import Connection
from felicity.engines.served.contact import (
    Server,
    find_dialect,
    find_next,
    find_tokenizer,
    meet,
    refuse_other_tokenizer,
    tokenize,
)
from felicity.engines.served.dialects import Dialect, Prompt
from felicity.engines.served.engine import Job, ServedEngine, read_prompt
from felicity.engines.served.forcing import find_forced
from felicity.engines.served.identity import PROBE, identify, measure_noise
from felicity.engines.served.settings import PREFIX, Serving, find_url
from felicity.engines.served.tables import ids_of
from felicity.engines.served.texts import resolve_text_policy
from felicity.engines.served.tokenizing import RemoteTokenizer
from felicity.engines.sources import resolve_source, short_name

FAMILY = "served"
# Tokens of each sentence of the probe by which a server is known that tells no more.
PROBE_TOP = 5
SIDE_BY_SIDE = 8
FORCED_TOKENS = 8


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """Whose tokens are sent: a tokenizer, its digest, and where it is from."""

    tokenizer: Any
    digest: str
    origin: str


def open_served(spec: str, *, policy: Policy, serving: Serving) -> ServedEngine:
    """The engine of a model behind a server.

    Raises FelicityError where the server does not answer or is not what the options say, NotPossible
    where it tells no log-probabilities at all.
    """
    connection = Connection(find_url(serving), spec.removeprefix(PREFIX), serving)
    server = meet(connection, connection.model)
    connection = connection.but(model=server.model)
    asking = find_asking(connection, server, policy)
    resolved = asking.encoder.policy if asking.encoder else resolve_text_policy(policy)
    told = {
        "url": connection.url,
        "model": server.model,
        "entry": server.entry,
        "version": server.version,
        "revision": serving.revision,
    }
    values, noise = ask_probe(connection, asking)
    asked = {"policy": resolved.key, "tokenizer": asking.digest}
    identity = identify(told | asked, values, noise=noise)
    info = EngineInfo(
        name=short_name(server.model),
        family=FAMILY,
        kind="left-to-right",
        weights=fingerprint([told, identity.digest]),
        tokenizer=asking.digest,
        policy=resolved.as_dict(),
        dtype=FAMILY,
        parameters=0,
        vocabulary=len(asking.encoder.tokenizer) if asking.encoder else 0,
        window=asking.encoder.window if asking.encoder and server.window else server.window,
        noise=identity.noise,
        can=("score", "fill", "generate") if asking.dialect else ("fill", "generate"),
        notes=told | {"asked": asking.dialect.way if asking.dialect else "top", "tokens": asking.origin},
    )
    return ServedEngine(connection, info, encoder=asking.encoder, dialect=asking.dialect)


@dataclass(frozen=True, kw_only=True)
class Asking:
    """How a server will be asked.

    encoder: None where texts are sent. dialect: None where it tells only what comes next.
    digest, origin: of the tokens that are sent.
    """

    encoder: Encoder | None
    dialect: Dialect | None
    digest: str = "server"
    origin: str = "of the server, from texts"


def find_asking(connection: Connection, server: Server, policy: Policy) -> Asking:
    """Token ids where there is a tokenizer and the server takes them, else texts.

    Raises NotPossible where a tokenizer is named and the server takes no ids.
    """
    tokens = find_tokens(connection, server)
    if tokens is None:
        return Asking(encoder=None, dialect=find_dialect(connection, PROBE[0]))
    limit = server.window or sys.maxsize
    encoder = Encoder.build(tokens.tokenizer, policy, window=limit, name=server.model)
    dialect = find_dialect(connection, encode_probe(encoder)[0])
    if dialect is None:
        plain = find_dialect(connection, PROBE[0])
        if plain and connection.serving.tokenizer:
            raise NotPossible(f"The server at {connection.url} takes no token ids; leave --tokenizer out.")
        dialect = None if plain else find_forced(connection, encode_probe(encoder)[0])
        if plain or (not dialect and not find_next(connection, encode_probe(encoder)[0], PROBE_TOP)):
            return Asking(encoder=None, dialect=plain)
    room = limit - (dialect.new if dialect else 1)
    encoder = Encoder(tokens.tokenizer, encoder.policy, room)
    return Asking(encoder=encoder, dialect=dialect, digest=tokens.digest, origin=tokens.origin)


def find_tokens(connection: Connection, server: Server) -> Tokens | None:
    """The tokenizer that was named, checked against the server's, or the server's own, or none."""
    named = connection.serving.tokenizer
    if named:
        folder = Path(named).expanduser()
        if not (folder / "tokenizer.json").is_file():
            folder = resolve_source(named).folder
        tokenizer = load_tokenizer(folder, name=named)
        checked = refuse_other_tokenizer(connection, tokenizer, PROBE, named)
        origin = f"of {named}, {'the same as' if checked else 'not compared with'} the server's"
        return Tokens(tokenizer=tokenizer, digest=fingerprint_tokenizer(folder), origin=origin)
    kind = find_tokenizer(connection, PROBE[0])
    if kind is None:
        return None
    tokenizer = RemoteTokenizer(
        partial(tokenize, connection, kind=kind),
        name=server.model,
        bos_token=server.bos or _find_begin(connection, kind),
        eos_token=server.eos,
    )
    digest = fingerprint([ids for ids, _pieces in tokenize(connection, PROBE, False, kind=kind)])
    return Tokens(tokenizer=tokenizer, digest=digest, origin=f"of the server's /tokenize ({kind})")


def _find_begin(connection: Connection, kind: str) -> str | None:
    """The begin token, where the tokenizer puts one before an empty text."""
    ((ids, pieces),) = tokenize(connection, [""], True, kind=kind, tolerant=True)
    piece = pieces[0] if len(ids) == 1 else None
    return piece.decode("utf-8", "replace") if isinstance(piece, bytes) else piece


def encode_probe(encoder: Encoder) -> list[list[int]]:
    """The probe's sentences as ids under the policy."""
    rows = {"request": list(PROBE), "context_text": [None] * len(PROBE), "text": list(PROBE)}
    encoded = encoder.encode(pl.DataFrame(rows, schema=PROMPTS))
    return [ids_of(encoded, place)[: encoder.window] for place in range(len(encoded))]


def ask_probe(connection: Connection, asking: Asking) -> tuple[list[float], float]:
    """What the server says of the probe, and by how much a sentence's sum moves in company.

    Raises NotPossible where it tells nothing.
    """
    prompts: list[Prompt] = list(encode_probe(asking.encoder)) if asking.encoder else list(PROBE)
    dialect = asking.dialect
    if dialect is not None and dialect.way == "forced":
        # A request a token: fewer of them tell as much.
        prompts = [prompt[:FORCED_TOKENS] for prompt in prompts]
    if dialect is None:
        return _ask_next(connection, prompts), 0.0
    work = partial(read_prompt, model=connection.model, dialect=dialect)
    jobs = [Job(place, prompt, len(prompt)) for place, prompt in enumerate(prompts)]
    alone = [
        [value for value in reading.logprobs if value is not None]
        for reading in connection.ask_all(jobs, work, width=1)
    ]
    company = list(islice(cycle(jobs), max(len(jobs), min(connection.serving.concurrency, SIDE_BY_SIDE))))
    sums = [sum(values) for values in alone]
    together = [
        sum(value for value in reading.logprobs if value is not None)
        for reading in connection.ask_all(company, work)
    ]
    noise = measure_noise([sums[job.place] for job in company], [together])
    return [value for values in alone for value in values], noise


def _ask_next(connection: Connection, prompts: list[Prompt]) -> list[float]:
    found = [find_next(connection, prompt, PROBE_TOP) for prompt in prompts]
    if not all(found):
        raise NotPossible(
            f"The server at {connection.url} tells no log-probabilities for '{connection.model}', neither of "
            "a prompt nor of the next token; serve it with vLLM, or give its files to -m."
        )
    return [value for rows in found if rows for _token, value in rows[:PROBE_TOP]]
