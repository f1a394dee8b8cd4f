"""Every raw answer, stored before it is parsed: nothing is asked for, or paid for, twice."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput
from felicity.core.files import disk_errors
from felicity.stimuli.extension.prompts import Prompt


@dataclass(frozen=True)
class Answer:
    """What a model said to a prompt; `tokens` is how many it wrote, where that is known."""

    text: str
    tokens: int | None = None
    ended: str = ""


class Transcript:
    """A file of JSON lines: one per request, with all that was asked and all that came back."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[int, dict[str, Any]]:
        """The stored requests by number; a line that a kill cut short is not there.

        Raises BadInput where a whole line is not JSON.
        """
        if not self.path.exists():
            return {}
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        found: dict[int, dict[str, Any]] = {}
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                row = json.loads(line)
                found[int(row["request"])] = row
            except (ValueError, KeyError, TypeError) as error:
                raise BadInput(f"{self.path}, line {number}: no stored answer; restore the file.") from error
        return found

    def store(
        self,
        prompt: Prompt,
        answers: list[Answer],
        *,
        seed: int,
        parameters: Mapping[str, Any],
        model: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Put a request with its answers on the disk, whole or not at all."""
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
        line = (json.dumps(row, ensure_ascii=False) + "\n").encode()
        with disk_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+") as handle:
                _cut_torn_line(handle)
                handle.write(line)
                handle.flush()
                os.fsync(handle.fileno())
        return row


def _cut_torn_line(handle: Any) -> None:
    """Take off what a kill left of a line."""
    handle.seek(0)
    content = handle.read()
    if content and not content.endswith(b"\n"):
        handle.truncate(content.rfind(b"\n") + 1)
    handle.seek(0, os.SEEK_END)
