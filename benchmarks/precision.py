"""What half precision saves: a BLiMP run in bfloat16 with float32's verdicts beside one in float32.

    python benchmarks/precision.py               # 20 pairs of each paradigm, SmolLM2
    python benchmarks/precision.py --pairs 100   # 6,700 pairs

Needs $FELICITY_DATA. The two take turns; the matrix products of this machine, measured beside them, are what
bounds the gain. The ratio of processor time tells more than that of the clock where others share the machine.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import felicity as fe
import report
import works
from felicity.data.catalogue import read_dataset, sample_items
from felicity.engines.runtime.devices import prepare_dtype

DTYPES = ("float32", "bfloat16")


def main() -> None:
    """Write a section of RESULTS.md."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--model", default="smollm2", help="a model, or gpt2 for GPT-2 small's shape")
    options.add_argument("--pairs", type=int, default=20)
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    # Before torch is loaded, which reads once what the processor is said to do.
    prepare_dtype("bfloat16", "cpu")
    model = chosen.model
    if model == "gpt2":
        model = str(works.build_gpt2(Path(__file__).parents[1] / "runs" / "bench-gpt2"))
    items = sample_items(read_dataset("blimp").items, chosen.pairs, seed=3)
    seconds: dict[str, list[float]] = {dtype: [] for dtype in DTYPES}
    processor: dict[str, list[float]] = {dtype: [] for dtype in DTYPES}
    verdicts, told = {}, {}
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "pairs.csv"
        table = items.pivot(on="condition", index=["item", "suite"], values="text")
        table.select("good", "bad", "suite").write_csv(path)
        models = {dtype: fe.model(model, dtype=dtype, cache=False) for dtype in DTYPES}
        for lm in models.values():
            lm.score("Ready.")
            lm.in_float32.score("Ready.")
        for _ in range(chosen.rounds):
            for dtype, lm in models.items():
                for one in (lm, lm.in_float32):
                    one.store = type(one.store)(None, one.info)
                begin, used = time.perf_counter(), time.process_time()
                run = fe.evaluate(str(path), lm)
                seconds[dtype].append(time.perf_counter() - begin)
                processor[dtype].append(time.process_time() - used)
                verdicts[dtype] = run["judgements"]["passed"].to_list()
                told = run.manifest.get("precision", told)
    ratios = [one / other for one, other in zip(*seconds.values(), strict=True)]
    shares = [one / other for one, other in zip(*processor.values(), strict=True)]
    differing = sum(one != other for one, other in zip(*verdicts.values(), strict=True))
    rates = {dtype: report.product_rates(dtype) for dtype in DTYPES}
    slow, fast = median(seconds["float32"]), median(seconds["bfloat16"])
    lines = [
        f"- {chosen.model}, a run of {len(table):,} pairs: float32 {slow:.1f} s, bfloat16 with float32's "
        f"verdicts {fast:.1f} s, {median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f} "
        f"in {len(ratios)} rounds; {median(shares):.2f} in processor time)",
        f"- {told['rescored']:,} of {told['items']:,} pairs ({told['rescored'] / told['items']:.0%}) scored "
        f"again in float32, margins above {2 * told['error_bound']:.2f} nats trusted, largest shift found "
        f"{2 * told['largest_error']:.2f}; verdicts "
        + (f"DIFFERENT on {differing}" if differing else "equal on every pair"),
        *(
            f"- matrix products in {dtype}: "
            + ", ".join(f"{name} {rate:.0f} GFLOP/s" for name, rate in found.items())
            for dtype, found in rates.items()
        ),
    ]
    if rates["bfloat16"]["layer"] < 1.5 * rates["float32"]["layer"]:
        lines.append(
            "- bfloat16 products are no faster than float32's on this machine, so that half precision cannot "
            "save time here; it does where the processor's matrix tiles (AMX) or a GPU run them"
        )
        lines += report.describe_tiles()
    print("\n".join(lines))
    report.write_section("bfloat16 with float32's verdicts", lines)


if __name__ == "__main__":
    main()
