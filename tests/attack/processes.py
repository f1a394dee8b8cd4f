"""Commands in processes that can be killed at any moment, forked from one that has loaded everything.

Starting Python with torch takes seconds; a fork takes milliseconds, so that many kills are affordable.
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

PRELOADED = [
    "torch",
    "transformers.models.gpt2.modeling_gpt2",
    "transformers.models.auto.modeling_auto",
    "felicity.cli.app",
    "felicity.run.evaluate",
    "felicity.studies.context.sweep_plan",
    "felicity.engines.causal.engine",
    "felicity.engines.trained.training",
    "httpx",
]
LONGEST = 300.0


def call(arguments: Sequence[str], environment: Mapping[str, str], said: str) -> None:
    """The command line in this process, with what it says in a file."""
    os.environ.update(environment)
    handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(handle, 1)
    os.dup2(handle, 2)
    sys.argv = ["felicity", *arguments]
    import torch

    from felicity.cli.app import main

    torch.set_num_threads(1)
    main()


class Attacked:
    """One command that is run again and again, whole or until it is killed."""

    def __init__(self, arguments: Sequence[str], *, cache: Path, said: Path) -> None:
        self.arguments, self.said = list(arguments), said
        self.environment = {"FELICITY_CACHE": str(cache), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)

    def finish(self) -> float:
        """Run it to its end; the seconds that took."""
        began = time.monotonic()
        process = self._start()
        process.join(LONGEST)
        assert process.exitcode == 0, (process.exitcode, self.said.read_text())
        return time.monotonic() - began

    def disturb_after(self, seconds: float, disturb: Callable[[], None]) -> int:
        """Run it, do something to what it uses after so long, and let it end; its exit code."""
        process = self._start()
        process.join(seconds)
        disturb()
        process.join(LONGEST)
        text = self.said.read_text()
        assert "Traceback" not in text, text
        assert process.exitcode in (0, 2), (process.exitcode, text)
        return process.exitcode

    def kill_after(self, seconds: float) -> bool:
        """Run it and kill it after so long; whether it was still running."""
        process = self._start()
        process.join(seconds)
        running = process.exitcode is None
        process.kill()
        process.join()
        text = self.said.read_text()
        assert "Traceback" not in text, text
        assert running or process.exitcode == 0, (process.exitcode, text)
        return running

    def _start(self) -> "multiprocessing.process.BaseProcess":
        process = self._context.Process(
            target=call, args=(self.arguments, self.environment, str(self.said)), daemon=True
        )
        process.start()
        return process
