"""A real vLLM server: its scores are the local engine's, and stopping it in the middle ends nothing."""

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from felicity.data.catalogue import read_dataset
from felicity.engines.served.settings import Serving
from felicity.engines.sources.resolve import resolve_source
from felicity.run.evaluate import evaluate
from felicity.run.model import open_model

PYTHON = os.environ.get("FELICITY_VLLM")
NAME = "smollm2"
N_PAIRS = 100
START_SECONDS = 600
# Nats a token: kernels and their order of summing differ, in float32 far less than this.
CLOSE = 0.02

pytestmark = [
    pytest.mark.slow,
    pytest.mark.data,
    pytest.mark.timeout(2400),
    pytest.mark.skipif(not PYTHON, reason="FELICITY_VLLM names no Python that has vLLM"),
]


class VLLM:
    """A server in a process group of its own, started and stopped at will, always at the same port."""

    def __init__(self, folder: Path, log: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.command = [str(PYTHON), "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
        self.command += ["--host", "127.0.0.1", "--port", str(self.port), "--served-model-name", NAME]
        self.command += ["--dtype", "float32"]
        self.command += ["--max-model-len", "1024", "--enforce-eager"]
        self.log = log
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        told = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_NO_USAGE_STATS": "1", "HF_HUB_OFFLINE": "1"}
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | told
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command, env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def wait(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and self.process and self.process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return
            except OSError:
                time.sleep(1)
        pytest.fail(f"vLLM did not start: {self.log.read_text()[-2000:]}")

    def stop(self) -> None:
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VLLM]:
    server = VLLM(resolve_source("smollm2").folder, tmp_path_factory.mktemp("vllm") / "log.txt")
    server.start()
    server.wait()
    yield server
    server.stop()


def test_a_hundred_pairs_of_blimp_survive_a_restart_and_are_the_local_engine_s(
    vllm: VLLM, published: Callable[[str], Path], tmp_path: Path
) -> None:
    published("blimp")
    items = read_dataset("blimp", None).items
    chosen = items["item"].unique(maintain_order=True).gather_every(items["item"].n_unique() // N_PAIRS)
    wide = items.filter(items["item"].is_in(chosen.head(N_PAIRS).implode()))
    pairs = wide.pivot(on="condition", index=["item", "suite"], values="text")
    pairs.write_csv(tmp_path / "pairs.csv")
    stopped: list[int] = []

    def stop_once(_: str, done: int, total: int) -> None:
        if done > total // 3 and not stopped:
            stopped.append(done)
            vllm.stop()
            vllm.start()

    serving = Serving(url=vllm.url, tokenizer="smollm2", patience=START_SECONDS)
    served = open_model(f"openai:{NAME}", serving=serving, cache=False)
    begun = time.monotonic()
    found = evaluate(str(tmp_path / "pairs.csv"), served, out=tmp_path / "run", progress=stop_once)
    took = time.monotonic() - begun
    assert stopped
    assert stopped[0] < 2 * N_PAIRS
    wanted = evaluate(str(tmp_path / "pairs.csv"), open_model("smollm2", cache=False))
    assert found["tokens"].drop("logprob").equals(wanted["tokens"].drop("logprob"))
    difference = (found["tokens"]["logprob"].explode() - wanted["tokens"]["logprob"].explode()).abs()
    turned = (found["judgements"]["passed"] != wanted["judgements"]["passed"]).sum()
    with (tmp_path / "figures.txt").open("w") as figures:
        figures.write(
            f"{len(difference)} tokens, mean {difference.mean():.2g}, largest {difference.max():.2g} nats; "
            f"{turned} verdicts turned; noise {served.info.noise}; {took:.0f} s with a restart\n"
        )
    assert difference.max() < CLOSE
    assert turned == 0
