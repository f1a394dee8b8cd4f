"""What bounds the speed on BLiMP: how much is left to compute, and at what rate it is computed.

    python benchmarks/bounds.py             # after compare.py --work "blimp whole"

Needs $FELICITY_DATA. Counts the tokens of the texts and the nodes of their trie, and sets the products
that both ways need against the seconds that felicity and the better peer took.
"""

import json
from pathlib import Path

import numpy as np
import polars as pl

import felicity as fe
import report
import works
from felicity.core.schemas import PROMPTS
from felicity.engines.causal.trie import Shape, build_trie, plan_units
from felicity.engines.runtime.batches import split_chunks

# Operations of GPT-2 small for one token: its twelve layers, and its vocabulary.
LAYERS = 2 * 12 * 12 * 768**2
VOCABULARY = 2 * 768 * 50_257


def main() -> None:
    """Write a section of RESULTS.md."""
    entries = json.loads((report.FOLDER / "rounds.json").read_text())
    entry = next(one for one in entries if one["model"] == works.GPT2)
    told = next(one for one in entry["rounds"] if one["work"] == "blimp whole")
    peer = max((name for name in entry["programs"] if name != "felicity" and name in told), key=told.get)
    texts = works.blimp_whole(told["texts"] // (2 * 67)).texts
    tokens, read, asked = count(texts)
    ours, theirs = read * LAYERS + asked * VOCABULARY, tokens * (LAYERS + VOCABULARY)
    rates = {
        name: work / (len(texts) / told[name]) / 1e9 for name, work in (("felicity", ours), (peer, theirs))
    }
    products = ", ".join(f"{name} {rate:.0f} GFLOP/s" for name, rate in report.product_rates().items())
    lines = [
        f"- {len(texts):,} texts are {tokens:,} tokens with their begin tokens; laid in a trie, {read:,} are "
        f"read, trunks and padding included: {theirs / ours:.2f} times less to compute",
        f"- felicity computes at {rates['felicity']:.0f} GFLOP/s, {peer} at {rates[peer]:.0f} (padding not "
        f"counted); the matrix products alone run at: {products}",
        f"- the ratio of {told['felicity'] / told[peer]:.2f} in that round is {theirs / ours:.2f} for what "
        f"sentences share times {rates['felicity'] / rates[peer]:.2f} for the rate, which the products bound",
    ]
    print("\n".join(lines))
    report.write_section("What bounds BLiMP", lines)


def count(texts: list[str]) -> tuple[int, int, int]:
    """Tokens, tokens read through the trie, and positions that the vocabulary is asked at."""
    lm = fe.model(str(Path(__file__).parents[1] / "runs" / "bench-gpt2"), cache=False)
    names = [str(place) for place in range(len(texts))]
    prompts = pl.DataFrame(
        {"request": names, "context_text": [None] * len(texts), "text": texts}, schema=PROMPTS
    )
    tokens = read = asked = 0
    for chunk in split_chunks(prompts, join=" "):
        encoded = lm.engine.encoder.encode(chunk)
        trie = build_trie(encoded)
        tokens += len(encoded.ids)
        asked += len(np.unique(trie.predicted_at[trie.predicted_at >= 0]))
        read += sum(len(unit) * max(map(len, unit)) for unit in plan_units(trie, Shape()))
    return tokens, read, asked


if __name__ == "__main__":
    main()
