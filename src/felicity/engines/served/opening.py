"""Opening a served model: find its tokenizer and protocol, and identify it by its answer to a probe."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.engine import EngineInfo
from felicity.core.errors import FelicityError, NotPossible
from felicity.core.ids import fingerprint
from felicity.core.policy import Policy
from felicity.core.schemas import PROMPTS
from felicity.core.watched import WatchedFiles
from felicity.engines.runtime import load_tokenizer
from felicity.engines.served.connection import Connection
from felicity.engines.served.engine import PromptJob, ServedEngine, read_prompt
from felicity.engines.served.probing import (
    PROBE,
    SAME,
    Server,
    describe_server,
    find_dialect,
    find_next,
    find_tokenizer,
    identify,
    measure_distance,
    measure_noise,
    refuse_other_tokenizer,
    request_tokenization,
)
from felicity.engines.served.prompts import (
    find_forced,
    ids_of,
    refuse_other_tokens,
    resolve_text_policy,
)
from felicity.engines.served.protocols import Dialect, Prompt
from felicity.engines.served.settings import PREFIX, Serving, find_url
from felicity.engines.served.tokenizer import RemoteTokenizer
from felicity.engines.sources import (
    cached_digest,
    fingerprint_tokenizer,
    resolve_source,
    short_name,
    tokenizer_files,
)
from felicity.engines.tokenizing import BeginToken, Encoder, choose_begin_token

FAMILY = "served"
# Tokens per sentence of the probe that identify a server without prompt log-probabilities.
PROBE_TOP = 5
SIDE_BY_SIDE = 8
FORCED_TOKENS = 8
# Sentences scored after each candidate for the begin token, a request each.
BEGIN_SENTENCES = 8


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """The tokenizer whose ids are sent, its digest, and its origin."""

    tokenizer: Any
    digest: str
    origin: str


def open_served(spec: str, *, policy: Policy, serving: Serving) -> ServedEngine:
    """The engine of a served model.

    Raises FelicityError if the server does not answer or does not match the options, NotPossible if it gives
    no log-probabilities at all.
    """
    connection = Connection(find_url(serving), spec.removeprefix(PREFIX), serving)
    server = describe_server(connection, connection.model)
    connection = connection.replace(model=server.model)
    query = choose_query_format(connection, server, policy)
    declared = query.encoder.policy if query.encoder else resolve_text_policy(policy)
    server_record = {
        "url": connection.url,
        "model": server.model,
        "entry": server.entry,
        "version": server.version,
        "revision": serving.revision,
    }
    probe, noise = run_probe(connection, query)
    # The server is identified, and later recognized, by the probe under the declared begin token.
    verify = partial(refuse_other_model, query=query, before=probe)
    asked = {"policy": declared.key, "tokenizer": query.digest}
    identity = identify(server_record | asked, list(chain(*probe)), noise=noise)
    weights = fingerprint([server_record, identity.digest])
    begin = measure_begin(connection, query, policy, weights=weights)
    if begin and query.encoder:
        query = replace(query, encoder=replace(query.encoder, policy=declared.replace(bos=begin.token)))
    info = EngineInfo(
        name=short_name(server.model),
        family=FAMILY,
        kind="left-to-right",
        weights=weights,
        tokenizer=query.digest,
        policy=(query.encoder.policy if query.encoder else declared).as_dict(),
        dtype=FAMILY,
        parameters=0,
        vocabulary=len(query.encoder.tokenizer) if query.encoder else 0,
        window=query.encoder.window if query.encoder and server.window else server.window,
        noise=identity.noise,
        can=("score", "fill", "generate") if query.dialect else ("fill", "generate"),
        notes=server_record
        | {"asked": query.dialect.method if query.dialect else "top", "tokens": query.origin}
        | (begin.note if begin else {}),
    )
    return ServedEngine(connection, info, encoder=query.encoder, dialect=query.dialect, verify=verify)


def measure_begin(
    connection: Connection, query: "QueryFormat", policy: Policy, *, weights: str
) -> BeginToken | None:
    """The begin token of `auto`, by a few short requests to a server that is met for the first time.

    None if the policy names one, if texts are sent, to which the server adds its own, or if each token would
    be a request.
    """
    dialect, encoder = query.dialect, query.encoder
    if policy.bos != "auto" or not encoder or not dialect or dialect.method == "forced":
        return None

    def score(sequences: list[list[int]]) -> list[float]:
        work = partial(read_prompt, model=connection.model, dialect=dialect)
        jobs = [PromptJob(place, sequence, len(sequence)) for place, sequence in enumerate(sequences)]
        answers = connection.collect(jobs, work)
        return [sum(value for value in scores.logprobs[1:] if value is not None) for scores in answers]

    return choose_begin_token(
        encoder.tokenizer,
        score,
        key={"weights": weights, "tokenizer": query.digest},
        window=encoder.window,
        sentences=BEGIN_SENTENCES,
    )


@dataclass(frozen=True, kw_only=True)
class QueryFormat:
    """How a server is queried.

    encoder: None if texts are sent. dialect: None if the server gives only next-token probabilities.
    digest, origin: of the tokenizer whose ids are sent.
    """

    encoder: Encoder | None
    dialect: Dialect | None
    digest: str = "server"
    origin: str = "of the server, from texts"


def choose_query_format(connection: Connection, server: Server, policy: Policy) -> QueryFormat:
    """Token ids if there is a tokenizer and the server accepts ids, else texts.

    Raises NotPossible if a tokenizer is named and the server accepts no ids.
    """
    tokens = find_tokens(connection, server)
    if tokens is None:
        return QueryFormat(encoder=None, dialect=find_dialect(connection, PROBE[0]))
    limit = server.window or sys.maxsize
    encoder = Encoder.build(tokens.tokenizer, policy, window=limit, name=server.model)
    dialect = find_dialect(connection, encode_probe(encoder)[0])
    if dialect is None:
        plain = find_dialect(connection, PROBE[0])
        if plain and connection.serving.tokenizer:
            raise NotPossible(f"The server at {connection.url} accepts no token ids; omit --tokenizer.")
        dialect = None if plain else find_forced(connection, encode_probe(encoder)[0])
        if plain or (not dialect and not find_next(connection, encode_probe(encoder)[0], PROBE_TOP)):
            return QueryFormat(encoder=None, dialect=plain)
    room = limit - (dialect.new if dialect else 1)
    encoder = Encoder(tokens.tokenizer, encoder.policy, room)
    return QueryFormat(encoder=encoder, dialect=dialect, digest=tokens.digest, origin=tokens.origin)


def find_tokens(connection: Connection, server: Server) -> Tokens | None:
    """The named tokenizer, compared with the server's, or the server's own, or None."""
    named = connection.serving.tokenizer
    if named:
        folder = Path(named).expanduser()
        if not (folder / "tokenizer.json").is_file():
            folder = resolve_source(named).folder
        files = WatchedFiles(partial(tokenizer_files, folder), digest=cached_digest)
        digest = fingerprint_tokenizer(folder, files.digest)
        with files.reading():
            tokenizer = load_tokenizer(folder, name=named)
        checked = refuse_other_tokenizer(connection, tokenizer, PROBE, named)
        origin = f"of {named}, {'the same as' if checked else 'not compared with'} the server's"
        return Tokens(tokenizer=tokenizer, digest=digest, origin=origin)
    kind = find_tokenizer(connection, PROBE[0])
    if kind is None:
        return None
    tokenizer = RemoteTokenizer(
        partial(request_tokenization, connection, kind=kind),
        name=server.model,
        bos_token=server.bos or _find_begin(connection, kind),
        eos_token=server.eos,
    )
    digest = fingerprint([ids for ids, _pieces in request_tokenization(connection, PROBE, False, kind=kind)])
    return Tokens(tokenizer=tokenizer, digest=digest, origin=f"of the server's /tokenize ({kind})")


def _find_begin(connection: Connection, kind: str) -> str | None:
    """The begin token, if the tokenizer puts one before an empty text."""
    ((ids, pieces),) = request_tokenization(connection, [""], True, kind=kind, tolerant=True)
    piece = pieces[0] if len(ids) == 1 else None
    return piece.decode("utf-8", "replace") if isinstance(piece, bytes) else piece


def encode_probe(encoder: Encoder) -> list[list[int]]:
    """The probe's sentences as ids under the policy."""
    rows = {"request": list(PROBE), "context_text": [None] * len(PROBE), "text": list(PROBE)}
    encoded = encoder.encode(pl.DataFrame(rows, schema=PROMPTS))
    return [ids_of(encoded, place)[: encoder.window] for place in range(len(encoded))]


def build_probe(query: QueryFormat) -> list[Prompt]:
    """The sentences of the probe as they are sent."""
    prompts: list[Prompt] = list(encode_probe(query.encoder)) if query.encoder else list(PROBE)
    if query.dialect is not None and query.dialect.method == "forced":
        # One request per token: a few tokens are enough.
        return [prompt[:FORCED_TOKENS] for prompt in prompts]
    return prompts


def ask_probe(connection: Connection, query: QueryFormat, prompts: Sequence[Prompt]) -> list[list[float]]:
    """The server's scores of some sentences of the probe, one after the other.

    Raises NotPossible if it gives none.
    """
    dialect = query.dialect
    if dialect is None:
        return _request_next(connection, prompts)
    work = partial(read_prompt, model=connection.model, dialect=dialect)
    answers = connection.collect(_as_jobs(prompts), work, width=1)
    if query.encoder:
        for prompt, scores in zip(prompts, answers, strict=True):
            if isinstance(prompt, list):
                refuse_other_tokens(prompt, scores, query.encoder.tokenizer, url=connection.url)
    return [[value for value in scores.logprobs if value is not None] for scores in answers]


def _as_jobs(prompts: Sequence[Prompt]) -> list[PromptJob]:
    return [PromptJob(place, prompt, len(prompt)) for place, prompt in enumerate(prompts)]


def refuse_other_model(
    connection: Connection, turn: int, *, query: QueryFormat, before: list[list[float]]
) -> None:
    """Check that the server still answers as it did before: one sentence, in turn, and if in doubt all.

    Raises FelicityError.
    """
    prompts = build_probe(query)
    one = turn % len(prompts)
    for part in (slice(one, one + 1), slice(None)):
        now = ask_probe(connection, query, prompts[part])
        if measure_distance(list(chain(*before[part])), list(chain(*now))) <= SAME:
            return
    raise FelicityError(
        f"The server at {connection.url} answers as another model than the '{connection.model}' of the "
        "beginning, and nothing computed since is stored; run the command again when it keeps its model."
    )


def run_probe(connection: Connection, query: QueryFormat) -> tuple[list[list[float]], float]:
    """The server's scores of the probe, and how far a sentence's sum moves under concurrent requests.

    Raises NotPossible if it gives none.
    """
    prompts = build_probe(query)
    alone = ask_probe(connection, query, prompts)
    if query.dialect is None:
        return alone, 0.0
    work = partial(read_prompt, model=connection.model, dialect=query.dialect)
    jobs = _as_jobs(prompts)
    company = list(islice(cycle(jobs), max(len(jobs), min(connection.serving.concurrency, SIDE_BY_SIDE))))
    sums = [sum(values) for values in alone]
    together = [
        sum(value for value in scores.logprobs if value is not None)
        for scores in connection.collect(company, work)
    ]
    noise = measure_noise([sums[job.index] for job in company], [together])
    return alone, noise


def _request_next(connection: Connection, prompts: Sequence[Prompt]) -> list[list[float]]:
    answers = [find_next(connection, prompt, PROBE_TOP) for prompt in prompts]
    if not all(answers):
        raise NotPossible(
            f"The server at {connection.url} gives no log-probabilities for '{connection.model}', neither of "
            "a prompt nor of the next token; serve it with vLLM, or give its files to -m."
        )
    return [[value for _token, value in rows[:PROBE_TOP]] for rows in answers if rows]
