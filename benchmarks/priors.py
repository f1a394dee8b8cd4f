"""What word_pmi costs beside LP on BLiMP: tokens to compute, and time in turns.

    python benchmarks/priors.py              # three rounds
    python benchmarks/priors.py 0            # only the tokens

All 134,000 sentences and all words in all neutral contexts are laid in tries, as a run does, and their
tokens counted. A part of either is then scored in turns, so that whatever else the machine does falls on
both; time per token times tokens is the time of the whole. Nothing is read from the score cache.
"""

import statistics
import sys
import time

import numpy as np
import polars as pl

import report
from felicity.core.engine import TokenExtras
from felicity.data import read_dataset, sample_items
from felicity.design import build_prompts, build_requests
from felicity.engines.causal.trie import Shape, build_trie, plan_units
from felicity.engines.runtime import split_chunks
from felicity.run import open_model
from felicity.run.priors import PRIOR_CONTEXTS, PRIOR_POWER, plan_priors

PART = 1000
SAMPLES = (None, 100)
BOUNDED = TokenExtras(boundary=True)
# Seconds per token, by the clock and of the processor, in every round.
Times = dict[str, list[tuple[float, float]]]


def main() -> None:
    """Write a section of RESULTS.md."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    lm = open_model("smollm2", cache=False)
    engine = lm.in_float32.engine
    items = read_dataset("blimp").items
    lines = [
        f"SmolLM2, float32, {PRIOR_CONTEXTS} neutral contexts, nothing cached; target: a run by `word_pmi` "
        "takes at most twice the time of one by LP on BLiMP.",
        "",
        "| pairs | tokens of sentences | words | tokens of priors | all to sentences |",
        "|---|---|---|---|---|",
    ]
    whole: dict[str, pl.DataFrame] = {}
    tokens: dict[str, int] = {}
    for size in SAMPLES:
        drawn = sample_items(items, size, seed=0)
        requests, contexts = build_requests(drawn)
        plan = plan_priors(
            lm.in_float32,
            requests,
            contexts,
            path=None,
            size=PRIOR_CONTEXTS,
            seed=0,
            power=PRIOR_POWER,
            cancel=True,
        )
        prompts = {"sentences": build_prompts(requests, contexts), "priors": plan.prompts}
        counts = {name: count_tokens(engine, part) for name, part in prompts.items()}
        if size is None:
            whole, tokens = prompts, counts
        lines.append(
            f"| {drawn.height // 2:,} | {counts['sentences']:,} | {len(plan.words):,} | "
            f"{counts['priors']:,} | {sum(counts.values()) / counts['sentences']:.2f} |"
        )
        print(lines[-1], flush=True)
    if rounds:
        lines += ["", *describe_times(take_turns(engine, whole, rounds), tokens)]
    report.write_section("What word_pmi costs beside LP", lines)


def describe_times(times: Times, tokens: dict[str, int]) -> list[str]:
    """The time of all to that of the sentences, by the clock and of the processor."""
    lines = []
    for name, place in (("by the clock", 0), ("in processor time", 1)):
        ratios = [
            1 + tokens["priors"] * prior[place] / (tokens["sentences"] * sentence[place])
            for sentence, prior in zip(times["sentences"], times["priors"], strict=True)
        ]
        lines.append(
            f"- time of all to that of the sentences, 67,000 pairs, {name}: {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} rounds)"
        )
    return lines


def count_tokens(engine, prompts: pl.DataFrame) -> int:
    """Tokens that the model reads for these prompts, trunks that are computed again included."""
    total = 0
    for chunk in split_chunks(prompts, join=engine.encoder.policy.join):
        trie = build_trie(engine.encoder.encode(chunk))
        total += sum(len(span) for unit in plan_units(trie, Shape()) for span in unit)
    return total


def take_turns(engine, whole: dict[str, pl.DataFrame], rounds: int) -> Times:
    """Seconds per token, by the clock and of the processor, of a part of either in every round."""
    rng = np.random.default_rng(0)
    ordered = {
        name: pl.concat(split_chunks(prompts, join=engine.encoder.policy.join))
        for name, prompts in whole.items()
    }
    times: Times = {name: [] for name in whole}
    for each in engine.score(whole["sentences"][:8]):
        each.clear()  # the model is loaded and warm
    for _ in range(rounds):
        for name, prompts in ordered.items():
            first = int(rng.integers(len(prompts) - PART))
            part = prompts[first : first + PART]
            tokens = count_tokens(engine, part)
            clock, processor = time.perf_counter(), time.process_time()
            for scored in engine.score(part, extras=BOUNDED if name == "priors" else TokenExtras()):
                scored.clear()
            times[name].append(
                ((time.perf_counter() - clock) / tokens, (time.process_time() - processor) / tokens)
            )
    return times


if __name__ == "__main__":
    main()
