"""The ways in which servers tell the log-probabilities of a prompt, and of the next token.

`prompt_logprobs` is vLLM's own and names the ids it scored, so that nothing can be taken for something
else; `echo` is the old OpenAI protocol, which several servers keep. Both are asked at temperature 1,
where no server can have divided the logits by anything.
"""

from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from felicity.engines.served.client import Unreadable
from felicity.engines.served.pieces import find_spans

Prompt = str | list[int]
Way = Literal["prompt_logprobs", "echo", "forced"]

# What vLLM writes where JSON has no infinity.
NO_NUMBER = -9999.0


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A prompt as the server read it: null where a token has nothing before it.

    tokens: the server's own, as texts, where it tells them.
    """

    logprobs: list[float | None]
    tokens: list[str]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How this server is asked for the log-probabilities of a prompt.

    new: tokens to be written behind the prompt: some servers insist on one; it is thrown away.
    """

    way: Way
    new: int = 1

    def body(self, model: str, prompt: Prompt) -> dict[str, Any]:
        """What is posted to /completions."""
        asked = {"prompt_logprobs": 0} if self.way == "prompt_logprobs" else {"echo": True, "logprobs": 1}
        return {"model": model, "prompt": prompt, "max_tokens": self.new, "temperature": 1.0} | asked

    def read(self, payload: Any, prompt: Prompt) -> Reading:
        """The log-probabilities in an answer.

        Raises Unreadable where it is not about this prompt.
        """
        choice = find_choice(payload)
        if self.way == "prompt_logprobs":
            return _read_rows(choice.get("prompt_logprobs"), prompt)
        return _read_echo(choice.get("logprobs"), prompt, new=self.new)


def find_choice(payload: Any) -> dict[str, Any]:
    """The one completion in an answer.

    Raises Unreadable.
    """
    choices = payload.get("choices") if isinstance(payload, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise Unreadable("no completion in it")
    return choices[0]


def _read_rows(rows: Any, prompt: Prompt) -> Reading:
    if not isinstance(rows, list) or not rows:
        raise Unreadable("no log-probabilities of the prompt in it")
    if isinstance(prompt, str):
        raise Unreadable("log-probabilities by id, but a text was sent")
    if len(rows) != len(prompt):
        raise Unreadable(f"{len(rows)} log-probabilities for {len(prompt)} tokens")
    found: list[float | None] = [None]
    for row, token in zip(rows[1:], prompt[1:], strict=True):
        if not isinstance(row, dict) or str(token) not in row:
            raise Unreadable(f"token {token} is not among those it scored")
        found.append(read_number(row[str(token)]["logprob"]))
    return Reading(logprobs=found, tokens=[])


def _read_echo(logprobs: Any, prompt: Prompt, *, new: int) -> Reading:
    values = logprobs.get("token_logprobs") if isinstance(logprobs, dict) else None
    tokens = logprobs.get("tokens") if isinstance(logprobs, dict) else None
    if not isinstance(values, list) or not isinstance(tokens, list) or len(values) != len(tokens):
        raise Unreadable("no log-probabilities of the prompt in it")
    length = len(prompt) if isinstance(prompt, list) else _count_echoed(tokens, prompt)
    # A server may end its text at once, and then writes no token where one was asked for.
    if not length <= len(values) <= length + new:
        raise Unreadable(f"{len(values)} log-probabilities for {length} tokens")
    found = [None if value is None else read_number(value) for value in values[:length]]
    if any(value is None for value in found[1:]):
        raise Unreadable("a token of the prompt without a log-probability")
    return Reading(logprobs=found, tokens=[str(token) for token in tokens[:length]])


def _count_echoed(tokens: list[Any], text: str) -> int:
    """How many tokens are the text's, a begin token before it included."""
    pieces = [str(token) for token in tokens]
    for end in range(len(pieces), max(0, len(pieces) - 2), -1):
        if any(find_spans(text, pieces[begin:end]) for begin in (0, 1)):
            return end
    raise Unreadable("its tokens do not make up the text that was sent; name its tokenizer with --tokenizer")


def read_number(value: Any) -> float:
    """A log-probability in an answer.

    Raises Unreadable where it is none.
    """
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise Unreadable(f"{value!r} for a log-probability")
    if not isfinite(value) or value <= NO_NUMBER or value > 1e-3:
        raise Unreadable(f"{value} for a log-probability")
    return min(0.0, float(value))


def next_body(model: str, prompt: Prompt, k: int) -> dict[str, Any]:
    """What is posted to be told the k likeliest next tokens."""
    return {"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 1.0, "logprobs": k}


def read_next(payload: Any) -> list[tuple[str, float]]:
    """The likeliest next tokens, likeliest first.

    Raises Unreadable. Two shapes are met: OpenAI's list of mappings, and llama.cpp's list of entries.
    """
    logprobs = find_choice(payload).get("logprobs")
    if not isinstance(logprobs, dict):
        raise Unreadable("no log-probabilities of the next token in it")
    if isinstance(logprobs.get("content"), list) and logprobs["content"]:
        rows = [(entry["token"], entry["logprob"]) for entry in logprobs["content"][0]["top_logprobs"]]
    elif isinstance(logprobs.get("top_logprobs"), list) and logprobs["top_logprobs"]:
        rows = list(logprobs["top_logprobs"][0].items())
    else:
        raise Unreadable("no log-probabilities of the next token in it")
    found = [(str(token), read_number(value)) for token, value in rows if value > NO_NUMBER]
    return sorted(found, key=lambda row: -row[1])
