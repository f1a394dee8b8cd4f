"""Rounds of a comparison as Markdown: machine, versions, medians, spread, and what bounds them."""

import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

FOLDER = Path(__file__).parent
TARGETS = {"blimp": 2.0, "blimp whole": 2.0, "sweep": 8.0, "one context": 20.0, "study": 8.0}
TILE_LEAF = 0x1D  # of CPUID: the sizes of matrix tiles
REPEATS = 5


def write(rounds: Sequence[dict[str, Any]], workers: Sequence[Any], *, model: str) -> None:
    """Keep the rounds beside RESULTS.md, in place of older ones of the same work, and write that."""
    kept = FOLDER / "rounds.json"
    entries = json.loads(kept.read_text()) if kept.exists() else []
    before: dict[str, Any] = next((entry for entry in entries if entry["model"] == model), {"rounds": []})
    again = {each["work"] for each in rounds}
    told = {
        worker.name: {"version": worker.version, "batch": worker.batch, "peak_gb": worker.peak / 1e9}
        for worker in workers
    }
    for name, old in before.get("programs", {}).items():
        new = told.setdefault(name, old)
        new["batch"] = old["batch"] | new["batch"]
        new["peak_gb"] = max(old["peak_gb"], new["peak_gb"])
    entry = before | {
        "model": model,
        "rounds": [each for each in before["rounds"] if each["work"] not in again] + list(rounds),
        "programs": told,
    }
    entries = [other for other in entries if other["model"] != model] + [entry]
    kept.write_text(json.dumps(entries, indent=1) + "\n")
    (FOLDER / "RESULTS.md").write_text(render(entries), encoding="utf-8")


def write_section(title: str, lines: Sequence[str]) -> None:
    """Keep a section of its own at the page's end, in place of an older one of this title."""
    kept = FOLDER / "sections.json"
    sections = json.loads(kept.read_text()) if kept.exists() else {}
    kept.write_text(json.dumps(sections | {title: list(lines)}, indent=1) + "\n")
    rounds = FOLDER / "rounds.json"
    entries = json.loads(rounds.read_text()) if rounds.exists() else []
    (FOLDER / "RESULTS.md").write_text(render(entries), encoding="utf-8")


def write_growth(rows: Sequence[dict[str, Any]], *, model: str) -> None:
    """Keep what more lengths cost beside the rounds, and write the page again."""
    kept = FOLDER / "rounds.json"
    entries = json.loads(kept.read_text())
    for entry in entries:
        if entry["model"] == model:
            entry["growth"] = list(rows)
    kept.write_text(json.dumps(entries, indent=1) + "\n")
    (FOLDER / "RESULTS.md").write_text(render(entries), encoding="utf-8")


def grown(rows: Sequence[dict[str, Any]]) -> list[str]:
    """What a context study costs by the number of lengths, relative to one length."""
    lines = ["", "The same contexts of up to 900 tokens, cut at more and more lengths (felicity alone):", ""]
    lines += ["| lengths | texts | seconds | times as long | times as many texts |", "|---|---|---|---|---|"]
    first = rows[0]
    for row in rows:
        more = row["seconds"] / first["seconds"], row["texts"] / first["texts"]
        lines.append(
            f"| {row['lengths']} | {row['texts']} | {row['seconds']:.1f} | {more[0]:.2f} | {more[1]:.1f} |"
        )
    return lines


def render(entries: Sequence[dict[str, Any]]) -> str:
    """The page."""
    import torch
    import transformers

    lines = ["# Side by side", ""]
    lines += [
        "Written by `benchmarks/compare.py`; texts scored per second, float32. The programs take turns,"
    ]
    lines += [
        "and ratios are medians over rounds. Where others share the machine, the ratio of processor time"
    ]
    lines += ["tells more than that of the clock. A peer that was clearly the slower one in the first round"]
    lines += ["took part in that round only.", ""]
    lines += [f"- machine: {processor()}, {torch.get_num_threads()} threads, {platform.system()}"]
    lines += [f"- load when written: {os.getloadavg()[0]:.1f} processes wanting to run"]
    lines += [f"- torch {torch.__version__}, transformers {transformers.__version__}"]
    lines += [f"- matrix products: {', '.join(f'{k} {v:.0f} GFLOP/s' for k, v in product_rates().items())}"]
    for entry in entries:
        lines += ["", f"## {entry['model']}", ""]
        for name, told in entry["programs"].items():
            batches = ", ".join(f"{work} {size}" for work, size in told["batch"].items() if size)
            best = f", batch: {batches}" if batches else ""
            lines.append(f"- {name} {told['version']}: peak memory {told['peak_gb']:.2f} GB{best}")
        lines += ["", *table(entry), *(grown(entry["growth"]) if "growth" in entry else [])]
    kept = FOLDER / "sections.json"
    for title, section in (json.loads(kept.read_text()) if kept.exists() else {}).items():
        lines += ["", f"## {title}", "", *section]
    return "\n".join(lines) + "\n"


def table(entry: dict[str, Any]) -> list[str]:
    """Medians over rounds, and of the ratios to the better peer within each round."""
    programs = list(entry["programs"])
    head = ["work", "texts a round", "rounds", *programs]
    head += ["ratio to the better peer", "lowest to highest", "ratio of processor time", "reach"]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for work in dict.fromkeys(each["work"] for each in entry["rounds"]):
        rounds = [each for each in entry["rounds"] if each["work"] == work]
        known = {name: [each[name] for each in rounds if name in each] for name in programs}
        speeds = [f"{median(values):.1f}" if values else "" for values in known.values()]
        peers = [name for name in programs if name != "felicity"]
        ratios = divide(rounds, peers, "")
        middle = f"{median(ratios):.2f}" if ratios else ""
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}" if ratios else ""
        used = f"{median(divide(rounds, peers, ' cpu')):.2f}" if ratios else ""
        row = [work, str(rounds[0]["texts"]), str(len(rounds)), *speeds, middle, spread, used]
        row.append(f"{TARGETS[work]:.1f}")
        lines.append("| " + " | ".join(row) + " |")
    return lines


def divide(rounds: Sequence[dict[str, Any]], peers: Sequence[str], kind: str) -> list[float]:
    """felicity's speed over the better peer's, round by round; by the clock, or by processor time."""
    if not peers:
        return []
    best = [max(each[f"{name}{kind}"] for name in peers if name in each) for each in rounds]
    return [each[f"felicity{kind}"] / better for each, better in zip(rounds, best, strict=True)]


def processor() -> str:
    """The processor's name where the system tells it."""
    path = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in path.read_text().split("\n") if "model name" in line]
    return f"{names[0]} x {len(names)}" if names else platform.processor()


def describe_tiles(path: Path = Path("/proc/cpuinfo")) -> list[str]:
    """Why matrix tiles that the processor announces are not used, where that can be told."""
    facts = dict(
        (part.strip() for part in line.split(":", 1))
        for line in (path.read_text().splitlines() if path.exists() else ())
        if ":" in line
    )
    level = int(facts.get("cpuid level", TILE_LEAF))
    if "amx_tile" not in facts.get("flags", "").split() or level >= TILE_LEAF:
        return []
    return [
        f"- this processor announces matrix tiles (amx_tile), but the virtual machine's CPUID ends at leaf "
        f"{level:#x} and so hides leaf {TILE_LEAF:#x}, which tells how large tiles are: oneDNN, and with it "
        "torch, configures none and dies of an illegal instruction; felicity switches them off"
    ]


def product_rates(dtype: str = "float32") -> dict[str, float]:
    """GFLOP/s of the two products that dominate: a layer's and the vocabulary's."""
    import torch

    from felicity.engines.runtime import choose_linear

    rates, linear = {}, choose_linear(getattr(torch, dtype))
    for name, (rows, inner, columns) in {
        "layer": (1024, 768, 3072),
        "vocabulary": (1024, 768, 50257),
    }.items():
        left, right = (torch.randn(size, inner).to(getattr(torch, dtype)) for size in (rows, columns))
        seconds = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            linear(left, right)
            seconds.append(time.perf_counter() - begin)
        rates[name] = 2e-9 * rows * inner * columns / min(seconds)
    return rates
