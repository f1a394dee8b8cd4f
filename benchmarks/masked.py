"""Masked models beside minicons: random BERT-base weights, BERT's vocabulary, pairs of BLiMP, in turns.

    python benchmarks/masked.py                  # 300 pairs, both ways of hiding
    python benchmarks/masked.py --pairs 20       # a quick look

Needs $FELICITY_DATA. Each round gives a part of the pairs to each program in turn, so that whatever else
the machine does falls on both. Before a ratio is printed the two must agree
on every sum. With bfloat16 the verdicts are those of float32, and what that costs is counted.
"""

import argparse
import gzip
import tempfile
import time
from pathlib import Path

import numpy as np

import felicity as fe
import report
from felicity.core.files import data_folder
from felicity.core.policy import Policy
from felicity.data.catalogue import read_dataset, sample_items
from felicity.engines.runtime.devices import prepare_dtype

TOLERANCE = 1e-3  # nats on the sum over a sentence
WAYS = {"original": "original", "word_l2r": "within_word_l2r"}
BATCHES = (4, 8, 16, 32)  # sentences that minicons takes at once; the fastest on the first part is kept
PART = 30  # pairs a turn


def main() -> None:
    """Print one line a way of hiding and a dtype."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pairs", type=int, default=300)
    options.add_argument("--layers", type=int, default=12)
    options.add_argument("--bfloat16", action="store_true", help="also in bfloat16, verdicts in float32")
    chosen = options.parse_args()
    # Before torch is loaded, which reads once what the processor is said to do.
    prepare_dtype("bfloat16" if chosen.bfloat16 else "float32", "cpu")
    with tempfile.TemporaryDirectory() as place:
        folder = make_bert(Path(place) / "bert", layers=chosen.layers)
        items = sample_pairs(chosen.pairs)
        lines = [compare(folder, items["text"].to_list(), ours, theirs) for ours, theirs in WAYS.items()]
        if chosen.bfloat16:
            lines.append(settle(folder, items, chosen.pairs))
    print("\n".join(lines))
    report.write_section(
        f"Masked: BERT-base's shape, random weights, {chosen.layers} layers", [f"- {line}" for line in lines]
    )


def make_bert(folder: Path, *, layers: int) -> Path:
    """Random weights in BERT-base's shape, with its vocabulary."""
    import torch
    import transformers

    data = data_folder()
    if data is None:
        raise SystemExit(
            "Set FELICITY_DATA to the folder of published data; BERT's vocabulary is taken from it."
        )
    vocabulary = data / "tokenizers" / "bert-base-uncased-vocab.txt.gz"
    with gzip.open(vocabulary, "rt", encoding="utf-8") as lines:
        words = {line.rstrip("\n"): place for place, line in enumerate(lines)}
    torch.manual_seed(0)
    config = transformers.BertConfig(num_hidden_layers=layers, initializer_range=0.05)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    transformers.BertTokenizerFast(vocab=words, do_lower_case=True).save_pretrained(folder)
    return folder


def sample_pairs(pairs: int):
    """Pairs from all suites of BLiMP, both sentences of each side by side."""
    items = sample_items(read_dataset("blimp").items, 5, seed=0)
    names = items["item"].unique(maintain_order=True)
    kept = names.sample(pairs, seed=0)
    return items.filter(items["item"].is_in(kept.implode()))


def compare(folder: Path, texts: list[str], ours: str, theirs: str) -> str:
    """Both programs in turns, float32."""
    import torch

    lm = fe.model(str(folder), policy=Policy(pll=ours), cache=False)
    peer = open_minicons(folder)
    lm.score(texts[:2])
    parts = [texts[begin : begin + 2 * PART] for begin in range(0, len(texts), 2 * PART)]
    batch = min(BATCHES, key=lambda size: score_minicons(peer, parts[0], theirs, size)[0])
    spent, used, apart = np.zeros(2), np.zeros(2), 0.0
    for part in parts:
        begin, busy = time.perf_counter(), time.process_time()
        scores = lm.score(part)["lp"].to_numpy()
        spent[0], used[0] = spent[0] + time.perf_counter() - begin, used[0] + time.process_time() - busy
        begin = time.perf_counter()
        seconds, peers = score_minicons(peer, part, theirs, batch)
        spent[1], used[1] = spent[1] + time.perf_counter() - begin, used[1] + seconds
        apart = max(apart, float(np.abs(scores - peers).max()))
    if apart > TOLERANCE:
        raise SystemExit(f"{ours}: the two differ by {apart:.2g} nats; no ratio.")
    return (
        f"{ours}, float32: felicity {spent[0]:.1f} s, minicons {spent[1]:.1f} s (its best batch, {batch}), "
        f"ratio {spent[1] / spent[0]:.2f} by the clock, {used[1] / used[0]:.2f} in processor time; sums "
        f"agree within {apart:.1g} nats; {len(texts)} sentences, {torch.get_num_threads()} threads"
    )


def open_minicons(folder: Path):
    """minicons' scorer, with the tokenizer's method that transformers 5 has dropped given back."""
    import transformers
    from minicons.scorer import MaskedLMScorer

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    type(tokenizer).batch_encode_plus = lambda self, *args, **options: self(*args, **options)
    return MaskedLMScorer(
        transformers.AutoModelForMaskedLM.from_pretrained(folder), "cpu", tokenizer=tokenizer
    )


def score_minicons(peer, texts: list[str], way: str, batch: int) -> tuple[float, np.ndarray]:
    """Processor seconds and sums; sentences of like length together, as a careful user would."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    scores = np.empty(len(texts))
    begin = time.process_time()
    for first in range(0, len(order), batch):
        part = order[first : first + batch]
        scores[part] = peer.sequence_score(
            [texts[place] for place in part], reduction=lambda x: x.sum(0).item(), PLL_metric=way
        )
    return time.process_time() - begin, scores


def settle(folder: Path, items, pairs: int) -> str:
    """A whole run in bfloat16 with float32's verdicts beside one in float32."""
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "pairs.csv"
        items.pivot(on="condition", index="item", values="text").select("good", "bad").write_csv(path)
        seconds, verdicts, rescored = {}, {}, 0
        for dtype in ("float32", "bfloat16"):
            lm = fe.model(str(folder), dtype=dtype, cache=False)
            lm.score("Cats.")
            begin = time.perf_counter()
            run = fe.evaluate(str(path), lm)
            seconds[dtype] = time.perf_counter() - begin
            verdicts[dtype] = run["judgements"]["passed"].to_list()
            rescored = run.manifest.get("precision", {}).get("rescored", 0)
    same = verdicts["float32"] == verdicts["bfloat16"]
    rates = {name: report.product_rates(name)["layer"] for name in ("float32", "bfloat16")}
    return (
        f"run of {pairs} pairs: float32 {seconds['float32']:.1f} s, bfloat16 {seconds['bfloat16']:.1f} s, "
        f"{rescored} pairs scored again in float32, verdicts {'equal' if same else 'DIFFERENT'}; "
        f"matrix products here: float32 {rates['float32']:.0f}, bfloat16 {rates['bfloat16']:.0f} GFLOP/s"
    )


if __name__ == "__main__":
    main()
