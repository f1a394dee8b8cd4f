"""Making all English paradigms with equal token lengths, beside the redraw loop of Ueda et al. (2024).

    python benchmarks/pairs.py               # 1,000 pairs per paradigm
    python benchmarks/pairs.py 100           # fewer

Needs $FELICITY_DATA for the vocabularies of GPT-2 and BERT; SmolLM2's tokenizer comes with the default
model. Writes a section of RESULTS.md: seconds, processor seconds, pairs made and the share dropped.
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

import report
from felicity.api.pairs import PairsPlan, list_paradigms, make_pairs, open_counters

METHODS = {"signatures": "signatures", "redraw": "redraw loop"}


def main() -> None:
    """Write a section of RESULTS.md."""
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        counters = open_counters([*copy_tokenizers(Path(folder)), "smollm2"])
        lines = [
            f"{n:,} pairs for each of {len(list_paradigms())} paradigms, equally long under "
            f"{', '.join(counters)} together; signatures match word frequency as well.",
            "",
            "| method | pairs | dropped | share dropped | short of pairs | seconds | processor seconds |",
            "|---|---|---|---|---|---|---|",
        ]
        for method, name in METHODS.items():
            match = ("length", "frequency") if method == "signatures" else ("length",)
            clock, processor = time.perf_counter(), time.process_time()
            plan = PairsPlan(paradigms=["all"], n=n, method=method, match=match)
            made = make_pairs(plan, counters=counters)
            clock, processor = time.perf_counter() - clock, time.process_time() - processor
            dropped, begun = made.account["dropped"].sum(), made.account["begun"].sum()
            short = made.account.filter(pl.col("n") < n).height
            lines.append(
                f"| {name} | {len(made.pairs):,} | {dropped:,} | {100 * dropped / begun:.2f}% | {short} | "
                f"{clock:.0f} | {processor:.0f} |"
            )
            print(lines[-1], flush=True)
    report.write_section("Minimal pairs of equal token length", lines)


def copy_tokenizers(folder: Path) -> list[str]:
    """Folders with nothing but a tokenizer, from the published vocabularies."""
    source = Path(os.environ["FELICITY_DATA"]) / "tokenizers"
    files = {
        "gpt2": {"gpt2-encoder.json.gz": "encoder.json.gz", "gpt2-vocab.bpe.gz": "vocab.bpe.gz"},
        "bert-base-cased": {"bert-base-cased-vocab.txt.gz": "vocab.txt.gz"},
        "bert-base-uncased": {"bert-base-uncased-vocab.txt.gz": "vocab.txt.gz"},
    }
    for name, names in files.items():
        (folder / name).mkdir()
        for old, new in names.items():
            shutil.copy(source / old, folder / name / new)
    return [str(folder / name) for name in files]


if __name__ == "__main__":
    main()
