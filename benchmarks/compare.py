"""felicity beside minicons and lm-evaluation-harness: same weights, same texts, same machine, in turns.

    python benchmarks/compare.py                # all works, peers in .venv-bench, RESULTS.md
    python benchmarks/compare.py --smoke        # seconds, a tiny model; only that all agree

Each round gives one part of a work to each program in turn, so that whatever else the machine does
falls on all of them. Before a ratio is printed the three must agree on every score.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import report
import works

HERE = Path(__file__).parent
ENVIRONMENT = HERE.parent / ".venv-bench"
PEERS = {"minicons": "minicons==0.3.39", "lm-eval": "lm-eval==0.4.13"}
# Nats on the sum over a text, float32. Batched products round more than single ones, which a rare token of a
# real model makes thousandths of a nat of (SmolLM2, 'Roger might ever hide away.': felicity 0.005 from
# float64, minicons 0.007).
TOLERANCE = 1e-2
WORKS = ("blimp", "blimp whole", "one context", "sweep", "study")
GRIDS = ((900,), (300, 600, 900), tuple(works.SWEEP), tuple(range(50, 950, 50)))
BATCHES = (8, 16, 32, 64, 128)
PROBE_TEXTS = 256
BEHIND = 0.8  # a peer slower than this part of the better one's speed takes part in the first round only


@dataclass
class Worker:
    """A program under test, started and waiting for work."""

    name: str
    process: subprocess.Popen[str]
    version: str = ""
    peak: int = 0
    batch: dict[str, int] = field(default_factory=dict)

    @classmethod
    def start(cls, name: str, model: Path, *, dtype: str = "float32", begin: str = "") -> "Worker":
        python = sys.executable if name == "felicity" else str(ENVIRONMENT / "bin" / "python")
        command = [python, str(HERE / "workers.py"), name, str(model), dtype, *([begin] if begin else [])]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        worker = cls(name, process)
        worker.version = worker.read()["version"]
        return worker

    def read(self) -> dict[str, Any]:
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            sys.exit(f"{self.name} died; run benchmarks/workers.py {self.name} by hand to see why.")
        return dict(json.loads(line))

    def score(self, work: works.Work, batch: int) -> tuple[float, float, list[float]]:
        """Seconds by the clock, seconds of the processors, and the scores."""
        if self.process.stdin is None:
            sys.exit(f"{self.name} takes no work")
        asked = {"texts": work.texts, "contexts": work.contexts, "batch": batch}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        answer = self.read()
        self.peak = max(self.peak, answer["peak"])
        return answer["seconds"], answer["used"], answer["scores"]

    def find_batch(self, work: works.Work, batches: tuple[int, ...], *, size: int | None = None) -> None:
        """The batch size at which a peer is fastest on the beginning of this work, so many texts of it."""
        if self.name == "felicity":
            self.batch[work.name] = 0
            return
        size = size or (PROBE_TEXTS if work.contexts is None else PROBE_TEXTS // 16)
        tried = [batch for batch in batches if batch <= size] or [min(batches)]
        timed = (
            {batch: self.score(work.head(size), batch)[0] for batch in tried}
            if len(tried) > 1
            else {tried[0]: 0.0}
        )
        self.batch[work.name] = min(timed, key=timed.__getitem__)

    def stop(self) -> None:
        if self.process.stdin:
            self.process.stdin.close()
        self.process.wait()


def install_peers() -> None:
    """The peers in an environment of their own, on the versions of torch and transformers used here."""
    import torch
    import transformers

    if (ENVIRONMENT / ".ready").exists():
        return
    subprocess.run([sys.executable, "-m", "venv", str(ENVIRONMENT)], check=True)
    pinned = [f"torch=={torch.__version__.partition('+')[0]}", f"transformers=={transformers.__version__}"]
    pip = [str(ENVIRONMENT / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, *pinned, *PEERS.values()], check=True)
    (ENVIRONMENT / ".ready").touch()


def compare(
    workers: list[Worker], parts: list[works.Work], *, batches: tuple[int, ...]
) -> list[dict[str, Any]]:
    """Sentences per second of each program, part by part; stops where two disagree."""
    for worker in workers:
        worker.find_batch(parts[0], batches)
    rounds: list[dict[str, Any]] = []
    for number, part in enumerate(parts):
        workers = keep_contenders(workers, rounds)
        speed: dict[str, Any] = {"work": part.name, "texts": len(part.texts)}
        first: tuple[str, list[float]] | None = None
        for turn in range(len(workers)):
            worker = workers[(number + turn) % len(workers)]
            seconds, used, scores = worker.score(part, worker.batch[part.name])
            speed[worker.name] = len(part.texts) / seconds
            speed[f"{worker.name} cpu"] = len(part.texts) / used
            if first is None:
                first = (worker.name, scores)
            else:
                refuse_disagreement(first, (worker.name, scores), part)
        rounds.append(speed)
        print(json.dumps(speed), flush=True)
    return rounds


def keep_contenders(workers: list[Worker], rounds: list[dict[str, Any]]) -> list[Worker]:
    """felicity, and the peers that may be the better one; hours are not spent on the other."""
    peers = [worker.name for worker in workers if worker.name != "felicity"]
    if not rounds or not peers:
        return workers
    best = max(rounds[0][name] for name in peers)
    return [
        worker for worker in workers if worker.name == "felicity" or rounds[0][worker.name] >= BEHIND * best
    ]


def measure_growth(felicity: Worker, asked: argparse.Namespace, count: Any) -> list[dict[str, Any]]:
    """What more lengths of the same contexts cost: felicity alone, each grid a new study."""
    rows = []
    for grid in GRIDS:
        work = works.study_parts(max(1, asked.study // 5), 1, count, lengths=(0, *grid))[0]
        seconds, used, _ = felicity.score(work, 0)
        rows.append({"lengths": len(grid), "texts": len(work.texts), "seconds": seconds, "used": used})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def refuse_disagreement(
    first: tuple[str, list[float]], second: tuple[str, list[float]], work: works.Work
) -> None:
    for text, one, other in zip(work.texts, first[1], second[1], strict=True):
        if not abs(one - other) <= TOLERANCE:
            sys.exit(f"{first[0]} gives {one}, {second[0]} {other} for '{text}'; no ratio is worth printing.")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--smoke", action="store_true", help="a tiny model and few texts; writes nothing")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=100, help="pairs of each BLiMP paradigm")
    parser.add_argument("--sweep", type=int, default=100, help="items of the context sweep")
    parser.add_argument("--study", type=int, default=10, help="items of the context study")
    parser.add_argument("--sweep-rounds", type=int, help="rounds of sweep and study  [default: --rounds]")
    parser.add_argument("--work", action="append", choices=WORKS)
    parser.add_argument("--batch", type=int, action="append", help="batch sizes to try with the peers")
    parser.add_argument("--peer", action="append", choices=tuple(PEERS), help="only this peer; repeatable")
    parser.add_argument("--model", help="a model folder instead of GPT-2 small's shape; `smollm2` works too")
    parser.add_argument("--keep", type=Path, help="where to keep the model  [default: runs/]")
    parser.add_argument("--without-peers", action="store_true", help="felicity alone, as CI has no peers")
    asked = parser.parse_args()
    if asked.smoke:
        asked.pairs, asked.sweep, asked.study, asked.rounds = 1, 1, 1, 1
    run(asked)


def run(asked: argparse.Namespace) -> None:
    from felicity.engines.runtime.pretrained import load_tokenizer
    from felicity.engines.sources.resolve import resolve_source

    size: dict[str, Any] = {"layers": 2, "width": 64, "vocabulary": False} if asked.smoke else {}
    folder = (asked.keep or HERE.parent / "runs") / ("bench-tiny" if asked.smoke else "bench-gpt2")
    model = resolve_source(asked.model).folder if asked.model else works.build_gpt2(folder, **size)
    tokenizer = load_tokenizer(model, name="the benchmark's model")

    def count(text: str) -> int:
        return len(tokenizer(text)["input_ids"]) if text else 0

    chosen = asked.work or WORKS
    plans = {
        "blimp": lambda: works.blimp_parts(asked.pairs, asked.rounds),
        "blimp whole": lambda: [works.blimp_whole(asked.pairs)] * min(3, asked.rounds),
        "sweep": lambda: works.sweep_parts(asked.sweep, asked.sweep_rounds or asked.rounds, count),
        "study": lambda: works.study_parts(asked.study, asked.sweep_rounds or asked.rounds, count),
        "one context": lambda: [works.one_context(20 if asked.smoke else 200, count)] * min(3, asked.rounds),
    }
    names = ["felicity"]
    if not asked.without_peers:
        install_peers()
        names += asked.peer or list(PEERS)
    workers = [Worker.start(name, model) for name in names]
    batches = (8,) if asked.smoke else tuple(asked.batch or BATCHES)
    for name in chosen:
        rounds = compare(workers, plans[name](), batches=batches)
        if not asked.smoke:
            report.write(rounds, workers, model=asked.model or works.GPT2)
            if name == "study":
                report.write_growth(measure_growth(workers[0], asked, count), model=asked.model or works.GPT2)
    for worker in workers:
        worker.stop()


if __name__ == "__main__":
    main()
