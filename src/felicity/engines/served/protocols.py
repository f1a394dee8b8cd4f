"""The protocols by which servers give the log-probabilities of a prompt and of the next token.

`prompt_logprobs` is vLLM's own and names the ids it scored, so that nothing can be mistaken; `echo` is
the old OpenAI protocol, which several servers keep. Both are used at temperature 1, so that no server divides
the logits by anything.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

from felicity.engines.served.client import BadResponse

HEX = re.compile(r"<0x([0-9A-Fa-f]{2})>")
BYTES = "bytes:"
Span = tuple[int, int]
Tokenized = tuple[list[int], list[str | bytes]]
Tokenize = Callable[[Sequence[str], bool], list[Tokenized]]
Prompt = str | list[int]
Method = Literal["prompt_logprobs", "echo", "forced"]
# What vLLM writes because JSON has no infinity.
NO_NUMBER = -9999.0


def find_spans(text: str, pieces: Sequence[str | bytes]) -> list[Span] | None:
    r"""The characters of the text that each piece covers; None if the pieces do not make up the text.

    A piece with part of a character covers the whole character, as in the tokenizers library.

    >>> find_spans("é a", ["Ã", "©", "Ġa"])
    [(0, 1), (0, 1), (1, 3)]
    >>> find_spans("a b", ["▁a", "▁b"])
    [(0, 1), (1, 3)]
    >>> find_spans("é", ["bytes:\\xc3", "bytes:\\xa9"])
    [(0, 1), (0, 1)]
    """
    raw = text.encode("utf-8", "surrogatepass")
    for write in (_from_marks, _from_byte_letters, _from_text):
        written = [piece if isinstance(piece, bytes) else write(piece) for piece in pieces]
        if any(part is None for part in written):
            continue
        parts = [part for part in written if part is not None]
        whole = b"".join(parts)
        if whole == raw:
            return list(_spans(text, parts, 0))
        if whole == b" " + raw:
            return list(_spans(text, parts, 1))
    return None


def _from_marks(piece: str) -> bytes | None:
    """SentencePiece: a mark for a space, bytes in hexadecimal."""
    match = HEX.fullmatch(piece)
    return bytes([int(match[1], 16)]) if match else piece.replace("▁", " ").encode("utf-8")


def _from_byte_letters(piece: str) -> bytes | None:
    """Byte-level BPE: a letter for each byte."""
    try:
        return bytes(LETTERS[letter] for letter in piece)
    except KeyError:
        return None


def _from_text(piece: str) -> bytes | None:
    """Plain text, with OpenAI's notation for part of a character."""
    if piece.startswith(BYTES) and len(piece) > len(BYTES):
        return bytes(int(code, 16) for code in piece.removeprefix(BYTES).split("\\x")[1:])
    return piece.encode("utf-8", "surrogatepass")


def _byte_letters() -> dict[str, int]:
    """The letters that stand for bytes in GPT-2's tokenizer and its descendants."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in set(plain)]
    return {chr(byte): byte for byte in plain} | {chr(256 + n): byte for n, byte in enumerate(others)}


LETTERS = _byte_letters()


def _spans(text: str, parts: Sequence[bytes], before: int) -> Iterator[Span]:
    """Byte counts as character offsets; `before` bytes precede the text."""
    char_at: list[int] = []
    for at, char in enumerate(text):
        char_at += [at] * len(char.encode("utf-8", "surrogatepass"))
    last = len(char_at)
    position = -before
    for part in parts:
        begin, end = max(position, 0), max(position + len(part), 0)
        position += len(part)
        start = char_at[begin] if begin < last else len(text)
        # A piece with no characters of its own belongs to the next one.
        yield start, char_at[end - 1] + 1 if end > begin else min(start + 1, len(text))


def same_tokens(sent: Sequence[str | bytes], echoed: Sequence[str]) -> bool:
    """Whether the tokens that a server names are those it was sent, however each writes them.

    Some servers write part of a character as a replacement mark, or with the token that ends it, so texts
    are compared, not token by token.

    >>> same_tokens(["<s>", "▁The", "▁cat"], ["<s>", "The", " cat"])
    True
    >>> same_tokens(["<s>", "▁The", "▁cat"], ["<s>", "<s>", "The"])
    False
    """
    for write in (_from_marks, _from_byte_letters, _from_text):
        written = [piece if isinstance(piece, bytes) else write(piece) for piece in sent]
        if any(part is None for part in written):
            continue
        ours = b"".join(part for part in written if part is not None).decode("utf-8", "replace")
        for other in (_from_marks, _from_byte_letters, _from_text):
            named = [other(piece) for piece in echoed]
            if any(part is None for part in named):
                continue
            theirs = b"".join(part for part in named if part is not None).decode("utf-8", "replace")
            # A word after a special token is written with or without a space.
            pattern = ".*?".join(re.escape(part) for part in re.split("�+", theirs.replace(" ", "")))
            if re.fullmatch(pattern, ours.replace(" ", ""), re.DOTALL):
                return True
    return False


@dataclass(frozen=True, kw_only=True)
class PromptScores:
    """The server's scores of a prompt; null for a token with nothing before it.

    tokens: the server's own, as texts, if it gives them.
    """

    logprobs: list[float | None]
    tokens: list[str]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """How this server is queried for the log-probabilities of a prompt.

    new: tokens to generate after the prompt; some servers require one, which is ignored.
    """

    method: Method
    new: int = 1

    def body(self, model: str, prompt: Prompt) -> dict[str, Any]:
        """The body of a request to /completions."""
        asked = {"prompt_logprobs": 0} if self.method == "prompt_logprobs" else {"echo": True, "logprobs": 1}
        return {"model": model, "prompt": prompt, "max_tokens": self.new, "temperature": 1.0} | asked

    def read(self, payload: Any, prompt: Prompt) -> PromptScores:
        """The log-probabilities in an answer.

        Raises BadResponse if it is not about this prompt.
        """
        choice = find_choice(payload)
        if self.method == "prompt_logprobs":
            return _read_rows(choice.get("prompt_logprobs"), prompt)
        return _read_echo(choice.get("logprobs"), prompt, new=self.new)


def find_choice(payload: Any) -> dict[str, Any]:
    """The one completion in an answer.

    Raises BadResponse.
    """
    choices = payload.get("choices") if isinstance(payload, dict) else None
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], dict):
        raise BadResponse("no completion in the answer")
    return choices[0]


def _read_rows(rows: Any, prompt: Prompt) -> PromptScores:
    if not isinstance(rows, list) or not rows:
        raise BadResponse("no log-probabilities of the prompt in the answer")
    if isinstance(prompt, str):
        raise BadResponse("log-probabilities by id, but a text was sent")
    if len(rows) != len(prompt):
        raise BadResponse(f"{len(rows)} log-probabilities for {len(prompt)} tokens")
    logprobs: list[float | None] = [None]
    for row, token in zip(rows[1:], prompt[1:], strict=True):
        if not isinstance(row, dict) or str(token) not in row:
            raise BadResponse(f"token {token} is not among those it scored")
        logprobs.append(read_number(row[str(token)]["logprob"]))
    return PromptScores(logprobs=logprobs, tokens=[])


def _read_echo(logprobs: Any, prompt: Prompt, *, new: int) -> PromptScores:
    values = logprobs.get("token_logprobs") if isinstance(logprobs, dict) else None
    tokens = logprobs.get("tokens") if isinstance(logprobs, dict) else None
    if not isinstance(values, list) or not isinstance(tokens, list) or len(values) != len(tokens):
        raise BadResponse("no log-probabilities of the prompt in the answer")
    length = len(prompt) if isinstance(prompt, list) else _count_echoed(tokens, prompt)
    # A server may stop at once and then generates no token although one was requested.
    if not length <= len(values) <= length + new:
        raise BadResponse(f"{len(values)} log-probabilities for {length} tokens")
    numbers = [None if value is None else read_number(value) for value in values[:length]]
    if any(value is None for value in numbers[1:]):
        raise BadResponse("a token of the prompt without a log-probability")
    return PromptScores(logprobs=numbers, tokens=[str(token) for token in tokens[:length]])


def _count_echoed(tokens: list[Any], text: str) -> int:
    """How many tokens belong to the text, including a begin token before it."""
    pieces = [str(token) for token in tokens]
    for end in range(len(pieces), max(0, len(pieces) - 2), -1):
        if any(find_spans(text, pieces[begin:end]) for begin in (0, 1)):
            return end
    raise BadResponse("its tokens do not make up the text that was sent; name its tokenizer with --tokenizer")


def read_number(value: Any) -> float:
    """A log-probability in an answer.

    Raises BadResponse if it is not a number.
    """
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise BadResponse(f"{value!r} for a log-probability")
    if not isfinite(value) or value <= NO_NUMBER or value > 1e-3:
        raise BadResponse(f"{value} for a log-probability")
    return min(0.0, float(value))


def next_body(model: str, prompt: Prompt, k: int) -> dict[str, Any]:
    """The body of a request for the k most probable next tokens."""
    return {"model": model, "prompt": prompt, "max_tokens": 1, "temperature": 1.0, "logprobs": k}


def read_next(payload: Any) -> list[tuple[str, float]]:
    """The most probable next tokens, in order.

    Two formats occur: OpenAI's list of mappings, and llama.cpp's list of entries. Raises BadResponse.
    """
    logprobs = find_choice(payload).get("logprobs")
    if not isinstance(logprobs, dict):
        raise BadResponse("no log-probabilities of the next token in the answer")
    if isinstance(logprobs.get("content"), list) and logprobs["content"]:
        rows = [(entry["token"], entry["logprob"]) for entry in logprobs["content"][0]["top_logprobs"]]
    elif isinstance(logprobs.get("top_logprobs"), list) and logprobs["top_logprobs"]:
        rows = list(logprobs["top_logprobs"][0].items())
    else:
        raise BadResponse("no log-probabilities of the next token in the answer")
    candidates = [(str(token), read_number(value)) for token, value in rows if value > NO_NUMBER]
    return sorted(candidates, key=lambda row: -row[1])
