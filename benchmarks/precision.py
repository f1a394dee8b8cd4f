"""What half precision saves: a BLiMP run in bfloat16 with float32's verdicts beside one in float32.

    python benchmarks/precision.py               # 5 pairs of each paradigm, GPT-2 small's shape

Needs $FELICITY_DATA. The two take turns; the matrix products of this machine, measured beside them, are what
bounds the gain.
"""

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median

import felicity as fe
import report
import works
from felicity.data.catalogue import read_items
from felicity.data.sample import sample_items
from felicity.engines.devices import prepare_dtype

DTYPES = ("float32", "bfloat16")


def main() -> None:
    """Write a section of RESULTS.md."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    options.add_argument("--pairs", type=int, default=5)
    options.add_argument("--rounds", type=int, default=3)
    chosen = options.parse_args()
    # Before torch is loaded, which reads once what the processor is said to do.
    prepare_dtype("bfloat16", "cpu")
    model = works.build_gpt2(Path(__file__).parents[1] / "runs" / "bench-gpt2")
    items = sample_items(read_items("blimp"), chosen.pairs, seed=3)
    seconds: dict[str, list[float]] = {dtype: [] for dtype in DTYPES}
    verdicts, told = {}, {}
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "pairs.csv"
        table = items.pivot(on="condition", index=["item", "suite"], values="text")
        table.select("good", "bad", "suite").write_csv(path)
        models = {dtype: fe.model(str(model), dtype=dtype, cache=False) for dtype in DTYPES}
        for lm in models.values():
            lm.score("Ready.")
            lm.exact.score("Ready.")
        for _ in range(chosen.rounds):
            for dtype, lm in models.items():
                for one in (lm, lm.exact):
                    one.store = type(one.store)(None, one.info)
                begin = time.perf_counter()
                run = fe.evaluate(str(path), lm)
                seconds[dtype].append(time.perf_counter() - begin)
                verdicts[dtype] = run["judgements"]["passed"].to_list()
                told = run.manifest.get("precision", told)
    ratios = [one / other for one, other in zip(*seconds.values(), strict=True)]
    rates = {dtype: report.product_rates(dtype) for dtype in DTYPES}
    lines = [
        f"- a run of {len(table):,} pairs: float32 {median(seconds['float32']):.1f} s, bfloat16 with "
        f"float32's verdicts {median(seconds['bfloat16']):.1f} s, {median(ratios):.2f} times as fast "
        f"({min(ratios):.2f} to {max(ratios):.2f} in {len(ratios)} rounds)",
        f"- {told['rescored']:,} of {told['items']:,} pairs scored again in float32; verdicts "
        + ("equal on every pair" if verdicts["float32"] == verdicts["bfloat16"] else "DIFFERENT"),
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
