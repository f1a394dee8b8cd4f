"""What a server has and can, found out by asking: its models, its tokenizer, its way of telling scores."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from felicity.core.errors import BadInput, FelicityError, UnknownName
from felicity.engines.served.client import KEY_REFUSED, Client, Refused, Unreadable
from felicity.engines.served.connection import Connection
from felicity.engines.served.dialects import Dialect, Prompt, next_body, read_next
from felicity.engines.served.pieces import Tokenized
from felicity.engines.served.tokenizing import llama_body, read_llama, read_vllm, vllm_body

T = TypeVar("T")

# A wrong address should be told of soon; a server that has answered once is waited for.
FIRST_PATIENCE = 15.0
ENTRY = ("id", "root", "parent", "max_model_len")
DIALECTS = (Dialect(way="prompt_logprobs"), Dialect(way="echo", new=0), Dialect(way="echo"))
TOKENIZERS = {"vllm": (vllm_body, read_vllm), "llama.cpp": (llama_body, read_llama)}


@dataclass(frozen=True, kw_only=True)
class Server:
    """What a server says of itself and of the model.

    entry: the model's row in its list. version: the program's, where it tells.
    bos, eos: the model's begin and end token, where it tells.
    """

    model: str
    entry: dict[str, Any] = field(default_factory=dict)
    version: str | None = None
    window: int | None = None
    bos: str | None = None
    eos: str | None = None


def meet(connection: Connection, name: str) -> Server:
    """The server's list of models, version and properties.

    Raises UnknownName where it lists other models only, FelicityError where it does not answer.
    """
    first = connection.but(patience=min(FIRST_PATIENCE, connection.serving.patience))
    (listed,) = first.ask_all(["models"], lambda client, path: _try(client, f"{client.url}/{path}"))
    version, props, tokens = connection.ask_all(
        ["version", "props", "tokenizer_info"], lambda client, path: _try(client, f"{client.root}/{path}")
    )
    props, tokens = props or {}, tokens or {}
    entries = [row for row in (listed or {}).get("data", []) if isinstance(row, dict) and "id" in row]
    model = _choose(name, [str(row["id"]) for row in entries], strict=not props, url=connection.url)
    entry = next((row for row in entries if row["id"] == model), {})
    settings = props.get("default_generation_settings") or {}
    return Server(
        model=model,
        entry={key: entry[key] for key in ENTRY if entry.get(key) is not None},
        version=(version or {}).get("version") or props.get("build_info"),
        window=entry.get("max_model_len") or settings.get("n_ctx"),
        bos=tokens.get("bos_token") or props.get("bos_token") or None,
        eos=tokens.get("eos_token") or props.get("eos_token") or None,
    )


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
    """Whose way of tokenizing the server has, if any."""
    for kind in TOKENIZERS:
        ((ids, pieces),) = tokenize(connection, [text], False, kind=kind, tolerant=True)
        if ids and pieces:
            return kind
    return None


def tokenize(
    connection: Connection, texts: Sequence[str], special: bool, *, kind: str, tolerant: bool = False
) -> list[Tokenized]:
    """Ids and pieces of each text by the server's tokenizer; nothing where a tolerant caller is refused."""
    body, read = TOKENIZERS[kind]

    async def ask(client: Client, text: str) -> Tokenized:
        url = f"{client.root}/tokenize"
        posted = body(connection.model, text, special=special)
        if tolerant:
            return await _try(client, url, posted, read=read) or ([], [])
        return await client.ask(url, posted, read=read)

    return connection.ask_all(list(texts), ask)


def find_dialect(connection: Connection, prompt: Prompt) -> Dialect | None:
    """How the server tells the log-probabilities of a prompt, if it does."""
    for dialect in DIALECTS:
        posted = dialect.body(connection.model, prompt)
        read = partial(dialect.read, prompt=prompt)
        if try_one(connection, posted, read) is not None:
            return dialect
    return None


def find_next(connection: Connection, prompt: Prompt, k: int) -> list[tuple[str, float]] | None:
    """The k likeliest next tokens, where the server tells them."""
    return try_one(connection, next_body(connection.model, prompt, k), read_next)


def try_one(connection: Connection, body: dict[str, Any], read: Callable[[Any], T]) -> T | None:
    """What the server answers to one completion, None where it does not take the request."""

    def work(client: Client, posted: dict[str, Any]) -> Any:
        return _try(client, f"{client.url}/completions", posted, read=read)

    found: T | None = connection.ask_all([body], work)[0]
    return found


def _as_is(payload: Any) -> Any:
    return payload if isinstance(payload, dict) else None


async def _try(
    client: Client, url: str, body: dict[str, Any] | None = None, *, read: Callable[[Any], Any] = _as_is
) -> Any:
    """What the server answers, None where it does not know the question; a refused key is an error."""

    def tolerant(payload: Any) -> Any:
        try:
            return read(payload)
        except (Unreadable, KeyError, IndexError, TypeError, AttributeError, ValueError):
            return None

    try:
        return await client.ask(url, body, read=tolerant)
    except Refused as refused:
        if refused.status in KEY_REFUSED:
            raise
        return None


def refuse_other_tokenizer(connection: Connection, tokenizer: Any, texts: Sequence[str], name: str) -> bool:
    """Whether the named tokenizer was found to be the server's; False where the server has none to compare.

    Raises FelicityError where it is another one.
    """
    kind = find_tokenizer(connection, texts[0])
    if kind is None:
        return False
    theirs = [ids for ids, _pieces in tokenize(connection, texts, False, kind=kind)]
    ours = [list(ids) for ids in tokenizer(list(texts), add_special_tokens=False)["input_ids"]]
    for text, mine, its in zip(texts, ours, theirs, strict=True):
        if mine != its:
            raise FelicityError(
                f"The tokenizer of '{name}' is not the one behind {connection.url}: of '{text}' it makes "
                f"{len(mine)} tokens, the server {len(its)} or others; name the right one with --tokenizer."
            )
    return True
