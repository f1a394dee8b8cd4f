"""Every request, noted before it is sent, and every raw answer, stored before it is parsed.

A stored answer is never asked for again. A request that was noted and has no answer was under way when its
process was killed: whether the server received it is unknown, so it is sent again, and counted.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput
from felicity.core.files import disk_errors
from felicity.core.ids import fingerprint
from felicity.stimuli.extension.prompts import Prompt

# The digest of a line, beside what it holds.
DIGEST = "digest"


@dataclass(frozen=True)
class ModelAnswer:
    """What a model said to a prompt; `tokens` is how many it wrote, if known."""

    text: str
    tokens: int | None = None
    ended: str = ""


class Transcript:
    """A file of JSON lines: one per request, with all that was asked and all that came back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.sent_path = path.with_name("sent.jsonl")

    def note_sending(self, prompt: Prompt) -> None:
        """Record on disk that a request is about to be sent."""
        _append(self.sent_path, {"request": prompt.number, "prompt_hash": prompt.digest})

    def count_repeated(self) -> int:
        """How many requests were sent again, because a killed process had left their outcome unknown."""
        lines = _read_lines(self.sent_path)
        return len(lines) - len({line["request"] for line in lines})

    def read(self) -> dict[int, dict[str, Any]]:
        """The stored requests by number; a line that a kill cut short is not there.

        Raises BadInput if a whole line is not JSON.
        """
        return {row["request"]: row for row in _read_lines(self.path)}

    def store(
        self,
        prompt: Prompt,
        answers: list[ModelAnswer],
        *,
        seed: int,
        parameters: Mapping[str, Any],
        model: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Store a request with its answers on disk, completely or not at all."""
        row = {
            "request": prompt.number,
            "prompt_hash": prompt.digest,
            "prompt": prompt.text,
            "examples": list(prompt.examples),
            "seed": seed,
            "parameters": dict(parameters),
            "model": dict(model),
            "answers": [{"text": one.text, "tokens": one.tokens, "ended": one.ended} for one in answers],
        }
        _append(self.path, row)
        return row


def _read_lines(path: Path) -> list[dict[str, Any]]:
    content = path.read_bytes() if path.exists() else b""
    whole = content[: content.rfind(b"\n") + 1]
    found: list[dict[str, Any]] = []
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            row = json.loads(line)
            digest = row.pop(DIGEST, None)
            found.append(row | {"request": int(row["request"])})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadInput(f"{path}, line {number}: not a stored request; restore the file.") from error
        if digest != fingerprint(row):
            raise BadInput(f"{path}, line {number} was changed since it was stored; restore the file.")
    return found


def _append(path: Path, row: Mapping[str, Any]) -> None:
    complete = {**row, DIGEST: fingerprint(row)}
    line = (json.dumps(complete, ensure_ascii=False) + "\n").encode()
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as handle:
            _cut_torn_line(handle)
            handle.write(line)
            handle.flush()
            os.fsync(handle.fileno())


def _cut_torn_line(handle: Any) -> None:
    """Remove the incomplete line that a killed process left."""
    handle.seek(0)
    content = handle.read()
    if content and not content.endswith(b"\n"):
        handle.truncate(content.rfind(b"\n") + 1)
    handle.seek(0, os.SEEK_END)
