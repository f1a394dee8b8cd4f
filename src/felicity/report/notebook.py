"""How results show themselves in a notebook: a heading, a sentence or two, a table and a figure as HTML."""

from html import escape

import polars as pl

from felicity.report.charts import WIDE, Row, Spec, chart_accuracy, draw_svg
from felicity.report.wording import format_digits

MOST_ROWS = 20
STYLE = (
    ".felicity table{border-collapse:collapse;margin:.6em 0}"
    ".felicity th,.felicity td{padding:.2em .8em;text-align:left;border-bottom:1px solid #8884}"
    ".felicity td.number,.felicity th.number{text-align:right;font-variant-numeric:tabular-nums}"
    ".felicity svg{max-width:100%;height:auto;background:#fff}"
)


def render_result(
    title: str, *words: str, table: pl.DataFrame | None = None, figure: Spec | None = None
) -> str:
    """A result as a fragment of HTML, for `_repr_html_`: heading, paragraphs, table, figure.

    >>> render_result("Accuracy", "1 < 2.")[-47:]
    '<strong>Accuracy</strong><p>1 &lt; 2.</p></div>'
    """
    parts = [f"<strong>{escape(title)}</strong>", *(f"<p>{escape(text)}</p>" for text in words if text)]
    if table is not None and table.height:
        parts.append(_render_table(table))
    if figure is not None:
        parts.append(draw_svg(figure))
    return f'<div class="felicity"><style>{STYLE}</style>{"".join(parts)}</div>'


def draw_accuracy(estimates: pl.DataFrame) -> Spec:
    """Accuracies with their intervals, one row per estimate (name, accuracy, low, high, n)."""
    rows = [Row(*row) for row in estimates.select("name", "accuracy", "low", "high", "n").iter_rows()]
    return chart_accuracy(rows, canvas=WIDE, chance=None, noun="items")


def _render_table(table: pl.DataFrame) -> str:
    """The first rows, numbers to four digits, and how many more there are."""
    kinds = {name: ' class="number"' if dtype.is_numeric() else "" for name, dtype in table.schema.items()}
    head = "".join(f"<th{kind}>{escape(name)}</th>" for name, kind in kinds.items())
    rows = [
        "".join(f"<td{kinds[name]}>{escape(_cell(value))}</td>" for name, value in row.items())
        for row in table.head(MOST_ROWS).iter_rows(named=True)
    ]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    rest = f"<p>{table.height - MOST_ROWS:,} more rows.</p>" if table.height > MOST_ROWS else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return format_digits(value) if isinstance(value, float) else str(value)
