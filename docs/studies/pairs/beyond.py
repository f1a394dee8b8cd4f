"""SmolLM2 and word frequency alone on the paradigms beyond BLiMP, on German, and on the designs.

    felicity stimuli pairs --paradigm beyond -n 15 --seed 1 --tokenizer ./gpt2 \\
        --tokenizer ./bert-base-cased --tokenizer ./bert-base-uncased -m smollm2 -o beyond.csv
    felicity stimuli pairs --language german --paradigm all -n 15 --seed 1 -o german.csv
    felicity stimuli design all -n 15 --seed 1 -o designs
    felicity run beyond.csv -o runs/beyond
    felicity run german.csv -o runs/german
    for design in designs/*.json; do felicity run $design -o runs/designs/$(basename $design .json); done
    python docs/studies/pairs/beyond.py runs/beyond runs/german runs/designs

Writes beyond.csv beside this file: one row per paradigm, and one per prediction of a design, with the share
of items that SmolLM2 gets right, its 95% interval, and the share that frequency alone would get right. By
frequency a sentence scores the sum of its words' log frequencies, and a region has that sum, negated, as
its surprisal; a tie counts half.
"""

import math
import sys
from pathlib import Path

import polars as pl

from felicity.api.pairs import open_frequency
from felicity.core.formulas import Region, RegionNumber, RegionOperation, parse_prediction
from felicity.stimuli.pairs import Frequency

FOLDER = Path(__file__).parent
TIE = 1e-9


def main() -> None:
    """Write the table."""
    beyond, german, designs = map(Path, sys.argv[1:4])
    rows = [*judge_pairs("beyond", beyond, "en"), *judge_pairs("german", german, "de")]
    for run in sorted(designs.iterdir()):
        rows += judge_design(run)
    table = pl.DataFrame(rows)
    table.write_csv(FOLDER / "beyond.csv", float_precision=3)
    for (kind,), part in table.group_by("set", maintain_order=True):
        mean = {name: part[name].mean() for name in ("smollm2", "frequency")}
        sys.stdout.write(f"{kind}: {len(part)} rows, {mean}\n")


def judge_pairs(name: str, run: Path, language: str) -> list[dict[str, object]]:
    """One row per paradigm."""
    items = pl.read_parquet(run / "items.parquet")
    estimates = pl.read_csv(run / "estimates.csv").filter(level="suite")
    zipf = open_frequency(language)
    rows = []
    for (suite,), part in items.group_by("suite", maintain_order=True):
        texts: dict[str, dict[str, str]] = {}
        for item, condition, text in part.select("item", "condition", "text").iter_rows():
            texts.setdefault(item, {})[condition] = text
        chance = [_half(_weigh(one["good"], zipf) - _weigh(one["bad"], zipf)) for one in texts.values()]
        rows.append(_row(name, str(suite), "good > bad", estimates.filter(name=suite), chance))
    return rows


def judge_design(run: Path) -> list[dict[str, object]]:
    """One row per prediction."""
    items = pl.read_parquet(run / "items.parquet")
    estimates = pl.read_csv(run / "estimates.csv")
    zipf = open_frequency("en")
    regions: dict[str, dict[tuple[str, str], float]] = {}
    for item, condition, text, spans in items.select("item", "condition", "text", "regions").iter_rows():
        values = regions.setdefault(item, {})
        for span in spans:
            value = -_weigh(text[span["start"] : span["end"]], zipf)
            values[span["name"], condition] = value
            values["*", condition] = values.get(("*", condition), 0.0) + value
    suite, formulas = items["suite"][0], items["predictions"][0].to_list()
    rows = []
    for number, formula in enumerate(formulas, 1):
        level, name = ("prediction", f"{suite}/{number}") if len(formulas) > 1 else ("suite", suite)
        chance = [_half(_evaluate(parse_prediction(formula), values)) for values in regions.values()]
        rows.append(_row("design", suite, formula, estimates.filter(level=level, name=name), chance))
    return rows


def _row(kind: str, suite: str, claim: str, own: pl.DataFrame, chance: list[float]) -> dict[str, object]:
    (estimate,) = own.to_dicts()
    return {
        "set": kind,
        "suite": suite,
        "claim": claim,
        "n": estimate["n"],
        "smollm2": estimate["accuracy"],
        "low": estimate["low"],
        "high": estimate["high"],
        "frequency": sum(chance) / len(chance),
    }


def _weigh(text: str, zipf: Frequency) -> float:
    return sum(zipf(word.strip(".,?!")) for word in text.split()) * math.log2(10)


def _half(margin: float) -> float:
    return 0.5 if abs(margin) < TIE else float(margin > 0)


def _evaluate(part: Region | RegionNumber | RegionOperation, values: dict[tuple[str, str], float]) -> float:
    """The value of a sum, or the margin of a comparison in the direction that it claims."""
    if isinstance(part, Region):
        return values[part.region, part.condition]
    if isinstance(part, RegionNumber):
        return part.value
    left, right = _evaluate(part.left, values), _evaluate(part.right, values)
    if part.mark == "+":
        return left + right
    return right - left if part.mark == "<" else left - right


if __name__ == "__main__":
    main()
