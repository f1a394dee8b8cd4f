"""Prompts scored a token at a time, by servers that tell the probability of what they write: llama.cpp.

A token is made certain to come next by a bias, and the server tells the log-probability that it had before
the bias: one request a token, exact, and slower than being told all at once. Whether a server tells the
number from before the bias is found out, not assumed.
"""

from functools import partial
from typing import Any

from felicity.core.errors import NotPossible
from felicity.engines.served.client import Client, Unreadable
from felicity.engines.served.connection import Connection
from felicity.engines.served.contact import try_one
from felicity.engines.served.dialects import Dialect, Reading, find_choice, next_body, read_number

# Logits lie within some tens of each other.
BIAS = 100.0
TRIED = 3
# Nats by which the same number may differ between two requests.
SAME = 0.01

FORCED = Dialect(way="forced")


def find_forced(connection: Connection, prompt: list[int]) -> Dialect | None:
    """The dialect of this module, where the server has it: a forced token must keep its log-probability."""
    told = try_one(connection, next_body(connection.model, prompt, TRIED), _read_ids)
    if not told or len(told) < TRIED:
        return None
    token, logprob = told[-1]
    found = try_one(connection, _body(connection.model, prompt, token), partial(_read_forced, token=token))
    return FORCED if found is not None and abs(found - logprob) < SAME else None


async def read_forced(client: Client, model: str, prompt: list[int], first: int) -> Reading:
    """The log-probabilities of a prompt's tokens from the one at `first` on.

    Raises NotPossible where the server keeps one to itself.
    """
    found: list[float | None] = [None] * max(1, first)
    for place in range(len(found), len(prompt)):
        token = prompt[place]
        value = await client.ask(
            f"{client.url}/completions",
            _body(model, prompt[:place], token),
            read=partial(_read_forced, token=token),
            tokens=place + 1,
        )
        found.append(value)
    return Reading(logprobs=found, tokens=[])


def _body(model: str, prompt: list[int], token: int) -> dict[str, Any]:
    return next_body(model, prompt, 1) | {"logit_bias": {str(token): BIAS}}


def _read_forced(payload: Any, *, token: int) -> float:
    told = find_choice(payload)["logprobs"]
    if told is None:
        # llama.cpp holds back what begins a character and does not end it.
        raise NotPossible(
            f"The server does not tell the log-probability of token {token}, which is only part of a "
            "character; serve the model with vLLM, or give its file to -m."
        )
    entry = told["content"][0]
    if entry["id"] != token:
        raise Unreadable(f"token {entry['id']} where {token} was made certain")
    return read_number(entry["logprob"])


def _read_ids(payload: Any) -> list[tuple[int, float]]:
    rows = find_choice(payload)["logprobs"]["content"][0]["top_logprobs"]
    return [(int(row["id"]), read_number(row["logprob"])) for row in rows]
