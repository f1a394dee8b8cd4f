"""What a server offers, found by requests: its models, its tokenizer, its log-probabilities, its identity."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from felicity.core.errors import BadInput, FelicityError, UnknownName
from felicity.core.files import cache_folder, disk_errors, replacing
from felicity.core.ids import fingerprint
from felicity.engines.served.client import KEY_REFUSED, UNEXPECTED, Client, RequestRefused
from felicity.engines.served.connection import Connection
from felicity.engines.served.protocols import Dialect, Prompt, Tokenized, next_body, read_next
from felicity.engines.served.tokenizer import llama_body, read_llama, read_vllm, vllm_body

# Two probes are of one model if they differ by less than this (mean absolute difference in nats): rounding in
# bfloat16 makes about 0.01, the most similar other checkpoints several times as much.
SAME = 0.02
# The noise of float32; a measurement on a few sentences cannot show less.
LEAST_NOISE = 1e-4
SAFETY = 2.0
DIGITS = 4

# Short, to fit any window, and plain, so that any server's tokens can be placed.
PROBE = (
    "The keys to the old cabinet were on the table.",
    "Nobody had ever heard of Zanzibar or quarks.",
    "In 1911 she won it a second time.",
    '"No", he said; naive as ever, he didn\'t mind.',
)
T = TypeVar("T")
# A wrong address should be reported soon; a server that has answered once is waited for.
FIRST_PATIENCE = 15.0
ENTRY = ("id", "root", "parent", "max_model_len")
DIALECTS = (Dialect(method="prompt_logprobs"), Dialect(method="echo", new=0), Dialect(method="echo"))
TOKENIZERS = {"vllm": (vllm_body, read_vllm), "llama.cpp": (llama_body, read_llama)}


@dataclass(frozen=True, kw_only=True)
class Identity:
    """What identifies the model, and how far its scores move with the server's load."""

    digest: str
    noise: float


def identify(server: dict[str, Any], values: list[float], *, noise: float) -> Identity:
    """The identity given to this server's model before, or a new one.

    server: its description of itself, with its address and the model's name.
    """
    folder = cache_folder() / "served" / fingerprint(server)
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        records = [_read_identity(path) for path in sorted(folder.glob("*.json"))]
    complete = [record for record in records if record is not None]
    same = [(measure_distance(record["probe"], values), record) for record in complete]
    near = [(distance, record) for distance, record in same if distance <= SAME]
    if near:
        record = min(near, key=lambda pair: pair[0])[1]
        return Identity(digest=record["digest"], noise=record["noise"])
    digest = fingerprint([server, [round(value, DIGITS) for value in values]])
    record = {"digest": digest, "noise": noise, "server": server, "probe": values}
    record["check"] = fingerprint(record)
    with replacing(folder / f"{digest}.json") as part:
        part.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return Identity(digest=digest, noise=noise)


def _read_identity(path: Path) -> dict[str, Any] | None:
    """What was remembered of a server's model, unless the file is damaged."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        checked = {name: value for name, value in record.items() if name != "check"}
        numbers = [float(value) for value in [record["noise"], *record["probe"]]]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    whole = record.get("check", fingerprint(checked)) == fingerprint(checked)
    return record if whole and isinstance(record.get("digest"), str) and np.isfinite(numbers).all() else None


def measure_noise(alone: list[float], together: list[list[float]]) -> float:
    """Nats by which the sum of a sentence moves with concurrent requests, from sums measured both ways.

    >>> measure_noise([-10.0, -20.0], [[-10.0, -20.25], [-10.0, -20.0]])
    0.5
    """
    shifts = np.abs(np.array(together) - np.array(alone)) if together else np.zeros(1)
    return max(LEAST_NOISE, float(f"{SAFETY * shifts.max():.1e}"))


def measure_distance(before: list[float], now: list[float]) -> float:
    """The mean absolute difference of two answers to the same sentences, in nats."""
    if len(before) != len(now):
        return np.inf
    return float(np.mean(np.abs(np.array(before) - np.array(now)))) if now else 0.0


@dataclass(frozen=True, kw_only=True)
class Server:
    """A server's description of itself and of the model.

    entry: the model's row in its list. version: the program's, if known.
    bos, eos: the model's begin and end token, if known.
    """

    model: str
    entry: dict[str, Any] = field(default_factory=dict)
    version: str | None = None
    window: int | None = None
    bos: str | None = None
    eos: str | None = None


def describe_server(connection: Connection, name: str) -> Server:
    """The server's list of models, version and properties.

    Raises UnknownName if it lists other models only, FelicityError if it does not answer.
    """
    first = connection.replace(patience=min(FIRST_PATIENCE, connection.serving.patience))
    (listed,) = first.collect(["models"], lambda client, path: _try(client, f"{client.url}/{path}"))
    version, props, tokens = connection.collect(
        ["version", "props", "tokenizer_info"], lambda client, path: _try(client, f"{client.root}/{path}")
    )
    props, tokens = props or {}, tokens or {}
    rows = (listed or {}).get("data")
    entries = [row for row in rows if isinstance(row, dict) and "id" in row] if isinstance(rows, list) else []
    model = _choose(name, [str(row["id"]) for row in entries], strict=not props, url=connection.url)
    entry = next((row for row in entries if row["id"] == model), {})
    defaults = props.get("default_generation_settings")
    settings = defaults if isinstance(defaults, dict) else {}
    return Server(
        model=model,
        entry={key: entry[key] for key in ENTRY if entry.get(key) is not None},
        version=(version or {}).get("version") or props.get("build_info"),
        window=_count(entry.get("max_model_len")) or _count(settings.get("n_ctx")),
        bos=_text(tokens.get("bos_token")) or _text(props.get("bos_token")),
        eos=_text(tokens.get("eos_token")) or _text(props.get("eos_token")),
    )


def _count(value: Any) -> int | None:
    """A number of tokens, if the server gave one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _choose(name: str, listed: list[str], *, strict: bool, url: str) -> str:
    if name:
        if strict and listed and name not in listed:
            raise UnknownName(f"model at {url} called", name, listed)
        return name
    if len(listed) != 1:
        raise BadInput(
            f"The server at {url} lists {len(listed)} models ({', '.join(listed)}); write -m openai:NAME."
        )
    return listed[0]


def find_tokenizer(connection: Connection, text: str) -> str | None:
    """The server's tokenizing API, if it has one."""
    for kind in TOKENIZERS:
        ((ids, pieces),) = request_tokenization(connection, [text], False, kind=kind, tolerant=True)
        if ids and pieces:
            return kind
    return None


def request_tokenization(
    connection: Connection, texts: Sequence[str], special: bool, *, kind: str, tolerant: bool = False
) -> list[Tokenized]:
    """Ids and pieces of each text by the server's tokenizer; nothing if a tolerant caller is refused."""
    body, read = TOKENIZERS[kind]

    async def ask(client: Client, text: str) -> Tokenized:
        url = f"{client.root}/tokenize"
        posted = body(connection.model, text, special=special)
        if tolerant:
            return await _try(client, url, posted, read=read) or ([], [])
        return await client.ask(url, posted, read=read)

    return connection.collect(list(texts), ask)


def find_dialect(connection: Connection, prompt: Prompt) -> Dialect | None:
    """How the server gives the log-probabilities of a prompt, if it does."""
    for dialect in DIALECTS:
        posted = dialect.body(connection.model, prompt)
        read = partial(dialect.read, prompt=prompt)
        if try_one(connection, posted, read) is not None:
            return dialect
    return None


def find_next(connection: Connection, prompt: Prompt, k: int) -> list[tuple[str, float]] | None:
    """The k most probable next tokens, if the server gives them."""
    return try_one(connection, next_body(connection.model, prompt, k), read_next)


def try_one(connection: Connection, body: dict[str, Any], read: Callable[[Any], T]) -> T | None:
    """The server's answer to one completion, None if it refuses the request."""

    def work(client: Client, posted: dict[str, Any]) -> Any:
        return _try(client, f"{client.url}/completions", posted, read=read)

    answer: T | None = connection.collect([body], work)[0]
    return answer


def _as_is(payload: Any) -> Any:
    return payload if isinstance(payload, dict) else None


async def _try(
    client: Client, url: str, body: dict[str, Any] | None = None, *, read: Callable[[Any], Any] = _as_is
) -> Any:
    """The server's answer, None if it does not know the endpoint; a refused key is an error."""

    def tolerant(payload: Any) -> Any:
        try:
            return read(payload)
        except UNEXPECTED:
            return None

    try:
        return await client.ask(url, body, read=tolerant)
    except RequestRefused as refused:
        if refused.status in KEY_REFUSED:
            raise
        return None


def refuse_other_tokenizer(connection: Connection, tokenizer: Any, texts: Sequence[str], name: str) -> bool:
    """Whether the named tokenizer equals the server's; False if the server has none to compare.

    Raises FelicityError if they differ.
    """
    kind = find_tokenizer(connection, texts[0])
    if kind is None:
        return False
    theirs = [ids for ids, _pieces in request_tokenization(connection, texts, False, kind=kind)]
    ours = [list(ids) for ids in tokenizer(list(texts), add_special_tokens=False)["input_ids"]]
    for text, mine, its in zip(texts, ours, theirs, strict=True):
        if mine != its:
            raise FelicityError(
                f"The tokenizer of '{name}' is not that of {connection.url}: it splits '{text}' into "
                f"{len(mine)} tokens, the server into {len(its)} or others; correct --tokenizer."
            )
    return True
