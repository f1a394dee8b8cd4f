"""The regressions as a paper prints them."""

from typing import Any

import polars as pl

from felicity.stats.wording import say_p

CODING = "matched: +1 matched, -1 mismatched; acceptable: +1 acceptable, -1 unacceptable"
STARS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))


def print_terms(terms: pl.DataFrame) -> str:
    """Rows of TERMS as text: a table of log-odds a model and analysis, with stars and what to know of it.

    >>> from felicity.studies.context.tables import TERMS
    >>> print_terms(pl.DataFrame(schema=TERMS))
    ''
    """
    tables = [
        _print_table(str(model), str(analysis), part.to_dicts())
        for (model, analysis), part in terms.group_by("model", "analysis", maintain_order=True)
    ]
    return "\n\n".join(tables)


def _print_table(model: str, analysis: str, rows: list[dict[str, Any]]) -> str:
    lines = [f"{model}, {analysis}: {rows[0]['formula']}"]
    fitted = [row for row in rows if row["term"] is not None]
    if fitted:
        width = max(len(row["term"]) for row in fitted)
        lines.append(f"{'':{width}}  {'b':>8}  {'SE':>7}  {'z':>8}  {'95% CI':^18}  p")
        lines += [_print_row(row, width) for row in fitted]
        coded = any("matched" in row["term"] or "acceptable" in row["term"] for row in fitted)
        facts = [f"{rows[0]['n']} judgements", str(rows[0]["groups"]), "log-odds, Wald z"]
        lines.append(
            "; ".join([*facts, CODING] if coded else facts) + ". * p < .05, ** p < .01, *** p < .001"
        )
    if rows[0]["note"]:
        lines.append(rows[0]["note"])
    return "\n".join(lines)


def _print_row(row: dict[str, Any], width: int) -> str:
    stars = next((mark for limit, mark in STARS if row["p"] < limit), "")
    interval = f"[{row['low']:.3f}, {row['high']:.3f}]"
    text = (
        f"{row['term']:{width}}  {row['estimate']:8.3f}  {row['se']:7.3f}  {row['z']:8.2f}  {interval:^18}  "
        f"{say_p(row['p'])} {stars}"
    )
    return text.rstrip()
