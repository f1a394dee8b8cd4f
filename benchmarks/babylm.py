"""The whole of `babylm` beside minicons and lm-evaluation-harness: SmolLM2, task by task, in turns.

    python benchmarks/babylm.py                  # every item of every task by felicity, a share by the peers
    python benchmarks/babylm.py --sample 25      # so many items of every suite: ten minutes

Needs $FELICITY_DATA. felicity carries out the benchmark as its command does: all items, verdicts, intervals,
tests and tables in a study folder, scores kept in a cache that was empty before; words of the reading task
twice, with their space and without. A peer only scores, each word once, in a process and an environment of
its own, at its best batch size, with texts of like length together. All of its scores would take hours: it
gets every nth item of a task, half of them before felicity's turn and half after, and its time is multiplied
by the tokens of the whole over those of its share. Before a ratio is printed the programs must agree on every
sum that both have.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import felicity as fe
import report
from acceptability import timed
from compare import PEERS, TOLERANCE, Worker, install_peers
from felicity.core.files import cache_folder, data_folder
from felicity.data import find_benchmark, read_dataset, sample_items
from felicity.design.requests import build_prompts, build_requests
from felicity.engines.sources import resolve_source
from felicity.run import list_runs
from works import Work

# The tasks whose data the pipeline publishes; the peers get every nth item.
TASKS = {"blimp": 40, "blimp_supplement": 8, "entity_tracking": 80, "wug_adj": 1, "self_paced": 2}
BATCHES = (4, 8, 16, 32, 64)
PROBE = 128
TARGET = 1.8


def main() -> None:
    """Print seconds and ratio of every task and of all together, and keep them in RESULTS.md."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--sample", type=int, help="items per suite")
    options.add_argument("--output", type=Path, help="keep the study of all tasks here")
    chosen = options.parse_args()
    if data_folder() is None:
        sys.exit(
            "Set FELICITY_DATA to the folder of published data; the tasks are in babylm2025/ and blimp/."
        )
    install_peers()
    with tempfile.TemporaryDirectory() as scratch:
        empty_scores(Path(scratch) / "cache")
        lm = fe.model("smollm2")
        lm.score("It rains.")
        model = resolve_source("smollm2").folder
        peers = [Worker.start(name, model, begin=str(lm.info.policy["bos"])) for name in PEERS]
        shares = {task: max(1, every // 10) if chosen.sample else every for task, every in TASKS.items()}
        rows = [
            compare(task, lm, peers, Path(scratch) / task, every, chosen.sample)
            for task, every in shares.items()
        ]
        for peer in peers:
            peer.stop()
        if chosen.output:
            fe.benchmark("babylm", models=lm, out=chosen.output, sample=chosen.sample)
    lines = tell(rows, list(PEERS))
    print("\n".join(lines))
    part = f"{chosen.sample} items of every suite" if chosen.sample else "all items"
    report.write_section(f"BabyLM, SmolLM2: {part}", lines)


def empty_scores(folder: Path) -> None:
    """Make `folder` the cache: all that the user's has, but no scores."""
    folder.mkdir()
    for part in cache_folder().iterdir():
        if part.name != "scores":
            (folder / part.name).symlink_to(part)
    os.environ["FELICITY_CACHE"] = str(folder)


def compare(
    task: str, lm: Any, peers: list[Worker], folder: Path, every: int, sample: int | None
) -> dict[str, Any]:
    """Requests of a task, and seconds by the clock and of the processor that each program takes for all."""
    requests = read_requests(task, sample)
    begin = str(lm.info.policy["bos"])
    items = requests["item"].unique(maintain_order=True)
    chosen = [items[half * every :: 2 * every].implode() for half in (0, 1)]
    shares = [requests.filter(pl.col("item").is_in(each)) for each in chosen]
    own = pl.concat(shares)
    factor = count_tokens(lm, requests) / count_tokens(lm, own)
    size = min(len(own), PROBE if own["context_text"][0] is None else PROBE // 2)
    probe = as_work(task, own.sample(size, shuffle=True, seed=1), begin)
    spent = {peer.name: np.zeros(2) for peer in peers}
    sums: dict[str, list[float]] = {peer.name: [] for peer in peers}

    def take_turns(share: pl.DataFrame, order: list[Worker]) -> None:
        for peer in order:
            clock, used, found = peer.score(as_work(task, share, begin), peer.batch[task])
            spent[peer.name] += clock * factor, used * factor
            sums[peer.name] += found

    for peer in peers:
        peer.find_batch(probe, BATCHES, size=len(probe.texts))
    take_turns(shares[0], peers)
    seconds, _ = timed(
        lambda: fe.benchmark("babylm", models=lm, out=folder, tasks=(task,), sample=sample, report=False)
    )
    take_turns(shares[1], peers[::-1])
    scored = fe.read_run(list_runs(folder)[0])["scores"].filter(measure="lp").select("request", "value")
    ours = own.join(scored, on="request", how="left", maintain_order="left")["value"].to_numpy()
    for name, theirs in sums.items():
        apart = np.abs(ours - np.array(theirs))
        if not apart.max() <= TOLERANCE:
            text = own["text"][int(apart.argmax())]
            sys.exit(f"felicity and {name} differ by {apart.max():.2g} nats on {text!r} ({task}); no ratio.")
    row = {"task": task, "requests": len(requests), "own": len(own), "felicity": np.array(seconds)} | spent
    print({name: str(value) for name, value in row.items()}, flush=True)
    return row


def read_requests(task: str, sample: int | None) -> pl.DataFrame:
    """What is scored for a task: item, context and text; words that begin a text are left to felicity."""
    found = next(each for each in find_benchmark("babylm").tasks if each.name == task)
    size = sample if found.score == "macro" else None
    requests, contexts = build_requests(sample_items(read_dataset(found.dataset).items, size, seed=0))
    named = requests.select("request", "item").join(build_prompts(requests, contexts), on="request")
    return named.filter(
        pl.col("context_text").is_not_null() | (pl.len() == pl.col("context_text").null_count())
    )


def count_tokens(lm: Any, requests: pl.DataFrame) -> int:
    """What a program reads that does not know what texts share."""
    return int(lm.engine.encoder.encode(requests.select("request", "context_text", "text")).lengths.sum())


def as_work(task: str, requests: pl.DataFrame, begin: str) -> Work:
    """For the peers, which put a begin token before a text of its own, but none before a context."""
    contexts = (begin + requests["context_text"]).to_list()
    return Work(task, requests["text"].to_list(), None if None in contexts else contexts)


def tell(rows: list[dict[str, Any]], names: list[str]) -> list[str]:
    """A table of tasks, the last line for all of them."""
    programs = ["felicity", *names]
    together = {name: sum(row[name] for row in rows) for name in ("requests", "own", *programs)}
    header = ["task", "texts", "the peers' share", *programs, "ratio to the better peer", "of processor time"]
    lines = [
        "Seconds by the clock (of the processor). A peer's are those of its share of the texts, times the",
        f"tokens of all texts over those of the share. Target: {TARGET:g} for all tasks together.",
        "",
        f"| {' | '.join(header)} |",
        "|---" * len(header) + "|",
    ]
    for row in [*rows, {"task": "all", **together}]:
        best = min((row[name] for name in names), key=lambda spent: float(spent[1]))
        clock, processor = best / row["felicity"]
        spent = [f"{row[name][0]:,.0f} ({row[name][1]:,.0f})" for name in programs]
        cells = [row["task"], f"{row['requests']:,}", f"{row['own']:,}", *spent]
        lines.append(f"| {' | '.join(cells)} | {clock:.2f} | {processor:.2f} |")
    return lines


if __name__ == "__main__":
    main()
