"""The whole study of acceptability in context beside minicons: SmolLM2, Lau et al.'s sentences, in turns.

    python benchmarks/acceptability.py                  # 250 sentences in three contexts, two rounds
    python benchmarks/acceptability.py --sentences 20   # a quick look

Needs $FELICITY_DATA. felicity carries out the study: 3 contexts, all measures, correlations with intervals,
tests and tables, everything kept in a run folder, nothing from the cache. minicons only scores the same
requests, in a process and an environment of its own as in compare.py, at its best batch size, with sentences
of like length together. The two take turns, and each begins every other round. Before a ratio is printed they
must agree on every sum.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import felicity as fe
import report
from compare import Worker, install_peers
from felicity.core.files import data_folder
from felicity.core.policy import Policy
from felicity.engines.causal.trie import build_trie
from felicity.engines.sources import resolve_source
from felicity.engines.tokenizing import count_pieces
from felicity.measures import write_unigram
from felicity.studies.acceptability import read_ratings
from felicity.studies.acceptability.scoring import build_stimuli
from works import Work

TOLERANCE = 1e-2  # nats on the sum over a sentence
BATCHES = (2, 4, 8, 16)
# Requests on which minicons' best batch is found: some short, some of middle length, some long. Each group is
# as like in length as in the whole study; in a random sample large batches would be mostly padding.
PROBE = 32
TARGET = 2.0
# As minicons scores: a begin token only without a context, the context's tokens counted.
POLICY = Policy(bos="alone", seam="count")


def main() -> None:
    """Print the ratio, and keep it in RESULTS.md."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--sentences", type=int, default=250)
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--without-peers", action="store_true", help="felicity alone; writes nothing")
    options.add_argument("--model", default="smollm2", help="a model folder instead of the default model")
    chosen = options.parse_args()
    if data_folder() is None:
        raise SystemExit("Set FELICITY_DATA to the folder of published data; the ratings are in lau2020/.")
    with tempfile.TemporaryDirectory() as place:
        lines = compare(Path(place), chosen)
    print("\n".join(lines))
    if not chosen.without_peers:
        told = [f"- {line}" for line in lines]
        report.write_section("Acceptability in context: the whole study, SmolLM2", told)


def compare(folder: Path, chosen: argparse.Namespace) -> list[str]:
    """Both programs in turns; what to say of it."""
    import torch

    table = write_table(folder, chosen.sentences)
    stimuli = build_stimuli(read_ratings(str(table)))
    lm = fe.model(chosen.model, policy=POLICY, cache=False)
    lm.score("It rains.")
    counts = write_counts(folder, lm, table)
    peer, batch = None, 0
    if not chosen.without_peers:
        install_peers()
        peer = Worker.start("minicons", resolve_source(chosen.model).folder)
        size = pl.sum_horizontal(pl.col("context_text", "text").str.len_chars())
        ordered = stimuli.sort(size)
        few = pl.concat([ordered[(len(ordered) - PROBE) * part // 10 :][:PROBE] for part in (1, 5, 9)])
        batch = min(BATCHES, key=lambda size: score_minicons(peer, few, size)[0][1])
    # Seconds by the clock and of the processor, of felicity and of minicons.
    spent, ratios, apart = np.zeros((2, 2)), [], 0.0
    for number in range(chosen.rounds):
        run = folder / f"study-{number}"
        turns = [0, 1] if number % 2 == 0 else [1, 0]
        found: dict[int, pl.DataFrame] = {}
        seconds = np.zeros((2, 2))
        for turn in turns:
            if turn == 0:
                seconds[0], found[0] = timed(lambda run=run: carry_out(table, run, lm, counts))
            elif peer is not None:
                seconds[1], found[1] = score_minicons(peer, stimuli, batch)
        spent += seconds / chosen.rounds
        if 1 in found:
            ratios.append(seconds[1, 1] / seconds[0, 1])
            joined = found[0].join(found[1], on=["item", "context"])
            apart = max(apart, float((joined["value"] - joined["value_right"]).abs().max()))
    if peer is not None:
        peer.stop()
    else:
        return [
            f"felicity alone: {spent[0, 0]:.1f} s, {spent[0, 1]:.1f} of the processor, "
            f"{len(stimuli)} requests"
        ]
    if apart > TOLERANCE:
        raise SystemExit(f"The two differ by {apart:.2g} nats; no ratio.")
    clock, processor = spent[1] / spent[0]
    return [
        f"{len(stimuli) // 3} sentences x 3 contexts x 5 measures: felicity's whole study "
        f"{spent[0, 0]:.1f} s ({spent[0, 1]:.1f} of the processor), minicons' scores alone "
        f"{spent[1, 0]:.1f} s ({spent[1, 1]:.1f}; its best batch, {batch}); ratio {clock:.2f} by the clock, "
        f"{processor:.2f} in processor time ({min(ratios):.2f} to {max(ratios):.2f} in {chosen.rounds} "
        f"rounds); target {TARGET:g}",
        f"sums agree within {apart:.1g} nats on {len(stimuli)} requests; {torch.get_num_threads()} threads",
        describe_work(lm, stimuli),
    ]


def describe_work(lm: fe.Model, stimuli: pl.DataFrame) -> str:
    """How much there is to compute for each program, padding not counted, which bounds the ratio."""
    engine = lm.engine
    request = pl.int_range(pl.len()).cast(pl.String).alias("request")
    encoded = engine.encoder.encode(stimuli.select(request, "context_text", "text"))
    tokens, nodes, wanted = int(encoded.lengths.sum()), len(build_trie(encoded)), int(encoded.wanted.sum())
    head = engine.model.get_output_embeddings().weight.numel()
    layers = sum(p.numel() for p in engine.model.parameters()) - head
    whole, own = tokens * (layers + head), nodes * layers + wanted * head
    return (
        f"{tokens:,} tokens, {nodes:,} where what texts share is read once; the vocabulary's products are "
        f"needed at {wanted:,} of them: {whole / 1e12:.1f} against {own / 1e12:.1f} * 10^12 "
        f"multiplications, {whole / own:.2f} times less to compute"
    )


def write_table(folder: Path, sentences: int) -> Path:
    """So many of the published sentences with contexts and ratings, all that share a context or none."""
    stimuli = build_stimuli(read_ratings("lau2020")).rename({"context_text": "context"})
    chosen: list[str] = []
    for group in group_by_context(stimuli):
        if len(chosen) + len(group) <= sentences:
            chosen += group
    path = folder / "sentences.csv"
    stimuli.filter(pl.col("item").is_in(chosen)).write_csv(path)
    return path


def group_by_context(stimuli: pl.DataFrame) -> list[list[str]]:
    """Items that share a context, directly or through others, in a random order of groups."""
    group = {item: [item] for item in stimuli["item"].unique(maintain_order=True)}
    for items in stimuli.drop_nulls("context").group_by("context", maintain_order=True).agg("item")["item"]:
        merged = list(dict.fromkeys(member for item in items for member in group[item]))
        group |= dict.fromkeys(merged, merged)
    groups = list({id(members): members for members in group.values()}.values())
    return [groups[place] for place in np.random.default_rng(0).permutation(len(groups))]


def write_counts(folder: Path, lm: fe.Model, table: Path) -> Path:
    """Unigram counts of the contexts' tokens: not timed, since minicons has none."""
    from felicity.engines import open_tokenizer

    texts = pl.read_csv(table)["context"].drop_nulls()
    path = folder / "counts.tsv"
    write_unigram(count_pieces(open_tokenizer(lm.spec), iter(texts)), path)
    return path


def carry_out(table: Path, run: Path, lm: fe.Model, counts: Path) -> pl.DataFrame:
    """The study; the sums by item and context."""
    lm.store = type(lm.store)(None, lm.info)  # nothing is answered from memory
    study = fe.acceptability(table, models=lm, out=run, report=False, unigram=[str(counts)], unseen=1.0)
    return study["scores"].filter(measure="lp").select("item", "context", "value")


def score_minicons(
    peer: Worker, stimuli: pl.DataFrame, batch: int
) -> tuple[tuple[float, float], pl.DataFrame]:
    """Seconds by the clock and of the processor, and the sums by item and context."""
    spent, rows = np.zeros(2), []
    for bare in (True, False):
        own = stimuli.filter(pl.col("context_text").is_null() == bare)
        contexts = None if bare else own["context_text"].to_list()
        clock, used, sums = peer.score(Work("acceptability", own["text"].to_list(), contexts), batch)
        spent += clock, used
        rows += list(zip(own["item"], own["condition"], sums, strict=True))
    table = pl.DataFrame(rows, schema=["item", "context", "value"], orient="row")
    return (float(spent[0]), float(spent[1])), table


def timed(work):
    """Seconds by the clock and of the processor, and what was made."""
    begin, used = time.perf_counter(), time.process_time()
    found = work()
    return (time.perf_counter() - begin, time.process_time() - used), found


if __name__ == "__main__":
    main()
