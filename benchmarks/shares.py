"""Where the time of a BLiMP run goes: reading by the model, and all that is around it.

python benchmarks/shares.py --pairs 10        # writes docs/explanation/profile.md
"""

import argparse
import cProfile
import pstats
import tempfile
import time
from pathlib import Path
from typing import Any

import felicity as fe
import works

HERE = Path(__file__).parent
# What a step is, and the functions in which it begins.
STEPS = {
    "the model's passes": ("passes.py:_forward",),
    "log-probabilities from logits": ("reading.py:read",),
    "tokenizing": ("encoding.py:encode",),
    "scheduling": ("trie.py:build_trie", "spans.py:plan_units", "chunks.py:split_chunks"),
    "tables of tokens": ("records.py:build_tokens",),
    "score cache": ("store.py:add", "store.py:read", "store.py:has"),
    "run folder": ("folder.py:write", "folder.py:write_parts", "folder.py:read", "folder.py:write_manifest"),
}
# Reading the dataset and loading the model are paid once, however large the run.
ONCE = (
    "catalogue.py:read_dataset",
    "loading.py:load_causal",
    "loading.py:load_tokenizer",
    "checking.py:check_tree",
)


def measure(pairs: int) -> tuple[dict[str, float], float, int]:
    """Seconds of each step, of the whole run, and its sentences."""
    model = works.build_gpt2(HERE.parent / "runs" / "bench-gpt2")
    lm = fe.model(str(model), cache=False)
    lm.score("Ready.")
    with tempfile.TemporaryDirectory() as place:
        profile = cProfile.Profile(time.process_time)
        run = profile.runcall(fe.evaluate, "blimp", lm, sample=pairs, out=Path(place) / "run")
    found: Any = pstats.Stats(profile)
    seconds: dict[str, float] = {}
    for (file, _, function), (_, _, _, cumulative, _) in found.stats.items():
        seconds[f"{Path(file).name}:{function}"] = cumulative
    whole = seconds["evaluate.py:evaluate"] - sum(seconds.get(name, 0.0) for name in ONCE)
    steps = {step: sum(seconds.get(name, 0.0) for name in names) for step, names in STEPS.items()}
    steps["all else"] = whole - sum(steps.values())
    return steps, whole, len(run["requests"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--pairs", type=int, default=100, help="pairs of each BLiMP paradigm")
    steps, whole, sentences = measure(parser.parse_args().pairs)
    lines = ["# Where the time of a BLiMP run goes", ""]
    lines += [f"{sentences:,} sentences, GPT-2 small's shape in float32, on the processor; written by"]
    lines += [
        "`benchmarks/shares.py`. Processor seconds; loading the model and the data set not counted.",
        "",
    ]
    lines += ["| step | seconds | share |", "|---|---|---|"]
    lines += [f"| {step} | {seconds:.1f} | {seconds / whole:.1%} |" for step, seconds in steps.items()]
    (HERE.parent / "docs" / "explanation" / "profile.md").write_text(
        "\n".join(lines) + "\n", encoding="utf-8"
    )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
