"""An extension by a served model, killed with SIGKILL: every request is sent once, and nothing is lost."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from felicity.stimuli.extension import Extension
from felicity.stimuli.review import verify_log

pytest.importorskip("httpx", reason="served models need httpx: pip install 'felicity[api]'")

from tests.attack import size
from tests.engines.served.served_server import NAME, Served

KILLS = size(25)
ASKED = "Generate more sentence pairs"
SYLLABLES = [first + second for first in "bdfgklmprt" for second in "aeiou"]


class Writer(Served):
    """A server that writes a new pair for every seed, slowly, and counts what it was asked for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, style="text")
        self.written: Counter[str] = Counter()

    def completion(self, body: dict[str, Any], *, short: bool) -> tuple[int, object]:
        """Pairs for the prompts of an extension; anything else as the tiny model answers it."""
        if not isinstance(body["prompt"], str) or ASKED not in body["prompt"]:
            return super().completion(body, short=short)
        with self.lock:
            self.written[json.dumps(body, sort_keys=True)] += 1
        rng = random.Random(body["seed"])
        time.sleep(rng.uniform(0.0, 0.1))
        word = "".join(rng.choice(SYLLABLES) for _ in range(5))
        text = f"A {word} is a fish,\nA {word} is not a tool,\n"
        return 200, {"choices": [{"text": text, "finish_reason": "stop"}], "usage": {"completion_tokens": 9}}


def start(served: Writer, seeds: Path, out: Path, *, n: int, said: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "felicity", "stimuli", "extend", str(seeds), "-m", f"openai:{NAME}"]
    command += ["--url", served.url, "-n", str(n), "--examples", "2", "-q", "-o", str(out)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COVERAGE_PROCESS_START": ""}
    with said.open("ab") as log:
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


def wait_for(condition: Any, *, seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.005)


def told(extension: Extension) -> list[dict[str, Any]]:
    """The log without what tells the time."""
    timed = ("time", "hash", "previous")
    return [{k: v for k, v in event.items() if k not in timed} for event in extension.log.read()]


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="needs a system with sessions of processes")
@pytest.mark.timeout(900)
def test_hard_kills_send_every_request_once_and_give_the_same_dataset(
    tiny_model: Path, tmp_path: Path
) -> None:
    seeds, said = tmp_path / "seeds.txt", tmp_path / "said"
    seeds.write_text("A robin is a bird,\nA robin is not a tree,\nAn oak is a tree,\nAn oak is not a bird,\n")
    # Enough that no command finishes before it is killed.
    rng, n = random.Random(11), 5 * KILLS
    with Writer(tiny_model) as served:
        for number in range(KILLS):
            before = served.written.total()
            process = start(served, seeds, tmp_path / "killed", n=n, said=said)
            if number % 5:
                # Most kills fall while an answer is under way or is being stored; the others come earlier.
                wanted = before + rng.choice((1, 1, 2))
                wait_for(lambda: served.written.total() >= wanted or process.poll() is not None)  # noqa: B023
                time.sleep(rng.uniform(0.0, 0.1))
            else:
                time.sleep(rng.uniform(0.0, 1.5))
            assert process.poll() is None, said.read_text()
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        assert start(served, seeds, tmp_path / "killed", n=n, said=said).wait() == 0, said.read_text()
        broken, sent = Extension(tmp_path / "killed"), served.written.copy()
        served.written.clear()
        assert start(served, seeds, tmp_path / "unbroken", n=n, said=said).wait() == 0, said.read_text()
        unbroken = Extension(tmp_path / "unbroken")
        assert set(sent.values()) == {1}
        assert sent == served.written
        assert broken.transcript.count_repeated() == 0
        assert broken.transcript.read() == unbroken.transcript.read()
        assert told(broken) == told(unbroken)
        assert verify_log(tmp_path / "killed" / "log.jsonl").whole
    assert "Traceback" not in said.read_text()
