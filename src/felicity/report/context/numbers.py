"""All numbers over all items, a row a length: what the curves are drawn from."""

import polars as pl

from felicity.core.sweep import BASELINE, UNPERTURBED
from felicity.report.context.growth import times_100
from felicity.report.context.kinds import name_kind
from felicity.report.context.study import ContextPage
from felicity.report.wording import count, decimal, percent, signed, spaced

NUMBERS = (
    *("Model", "Context", "Length", "Tokens", "Items", "Suites", "Accuracy, %", "95% interval"),
    *("Change", "95% interval", "Perplexity margin", "Ties", "Within noise"),
)


def list_numbers(study: ContextPage) -> list[tuple[str, ...]]:
    """Rows of texts under NUMBERS, for every model, kind, source and perturbation."""
    rows = study.curves.filter(pl.col("level") == "overall")
    return [
        (
            row["model"],
            _context(row["kind"], row["source"], row["perturbation"]),
            count(row["length"]),
            decimal(row["tokens"], 0),
            count(row["n"]),
            count(row["suites"]),
            percent(row["accuracy"]),
            f"{percent(row['low'])}–{percent(row['high'])}",
            signed(times_100(row["delta"]), 1),
            " to ".join(signed(times_100(row[end]), 1) for end in ("delta_low", "delta_high")),
            decimal(row["ppl_margin"], 1),
            count(row["ties"]),
            count(row["unstable"]),
        )
        for row in rows.iter_rows(named=True)
    ]


def _context(kind: str, source: str | None, perturbation: str | None) -> str:
    if kind == BASELINE:
        return "no context"
    plain = perturbation in (None, UNPERTURBED)
    return name_kind(kind, source) + ("" if plain else f", {spaced(perturbation)}")
