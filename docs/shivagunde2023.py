"""Write docs/studies/shivagunde2023.md from the predictions, or check it (--check)."""

import os
import sys
from pathlib import Path

import polars as pl

from felicity.papers.replay.shivagunde import VERDICTS, compare_cells, explain_cell

PAGE = Path(__file__).parent / "studies" / "shivagunde2023.md"
HEAD = """\
# Shivagunde et al. (2023): published cells and what the predictions give

Written by `python docs/shivagunde2023.py` from the authors' released predictions
(`$FELICITY_DATA/shivagunde2023`) and tables 2 to 5 of the paper ("Larger Probes Tell a Different
Story", EMNLP 2023). Do not edit.

A cell *comes out* when it differs by less than one in its last printed digit, since some figures are
rounded and some are cut. *As published* is the authors' own reading of their files: for GPT-2 and
RoBERTa the list of predictions begins with an empty string, because the 20 likeliest tokens were decoded
together, and their program takes place 2 as the first, places 1 to 6 as the first five, places 1 to 10 as
the first ten. *Corrected* drops empty strings and takes the first k words. `felicity replay` gives both,
side by side:

    felicity replay $FELICITY_DATA/shivagunde2023/predictions/ROLE-1500 -o runs/role-1500-published

Two further things are in the files: one sentence of ROLE-1500 has a space before its comma, so that its
target is the empty string to the authors' program (it is a word here), and every sentence of NEG-136-SIMP
is listed twice, which changes no percentage but makes intervals too narrow.

"""


def main() -> int:
    """Write the page, or compare it."""
    named = os.environ.get("FELICITY_DATA")
    if not named:
        sys.stderr.write("Set FELICITY_DATA to the folder that holds shivagunde2023/predictions.\n")
        return 2
    text = render(compare_cells(Path(named) / "shivagunde2023" / "predictions"))
    if "--check" not in sys.argv:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{PAGE} is out of date; run `python docs/shivagunde2023.py` and commit it.\n")
    return 1


def render(cells: pl.DataFrame) -> str:
    """The whole page."""
    others = cells.filter(~pl.col("model").str.starts_with("gpt3"))
    gpt3 = cells.filter(pl.col("model").str.starts_with("gpt3"))
    parts = [
        HEAD,
        "## In sum\n\n| | cells | as published | off by one | not at all |\n|---|--:|--:|--:|--:|\n",
    ]
    for name, part in (("21 models with weights", others), ("GPT-3, with and without instruction", gpt3)):
        counts = [part.filter(comes_out=verdict).height for verdict in VERDICTS]
        parts.append(f"| {name} | {len(part)} | {counts[0]} | {counts[1]} | {counts[2]} |\n")
    parts += ["\n## Every cell that differs\n\n", table(cells)]
    parts += ["\n## Every cell, corrected\n\n", corrected(cells)]
    return "".join(parts)


def table(cells: pl.DataFrame) -> str:
    """The cells that do not come out, with the reason."""
    lines = ["| dataset | model | figure | published | authors' reading | corrected | why |\n"]
    lines.append("|---|---|---|--:|--:|--:|---|\n")
    differing = cells.filter(pl.col("comes_out") != VERDICTS[0])
    for row in differing.sort("dataset", "model", "figure").iter_rows(named=True):
        lines.append(
            f"| {row['dataset']} | {row['model']} | {row['figure']} | {row['published']:.1f} | "
            f"{row['as_published']:.1f} | {row['corrected']:.1f} | {explain_cell(row, cells)} |\n"
        )
    return "".join(lines)


def corrected(cells: pl.DataFrame) -> str:
    """All corrected figures, published ones in brackets."""
    figures = ("top1", "top5", "top10", "top20", "sensitivity")
    parts = []
    for (dataset,), part in cells.group_by("dataset", maintain_order=True):
        parts.append(f"\n### {dataset}\n\n| model | {' | '.join(figures)} |\n|---|{'--:|' * len(figures)}\n")
        for (model,), row in part.group_by("model", maintain_order=True):
            found = {
                r["figure"]: f"{r['corrected']:.1f} ({r['published']:.1f})" for r in row.iter_rows(named=True)
            }
            parts.append(f"| {model} | {' | '.join(found.get(name, '') for name in figures)} |\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.exit(main())
