"""How numbers and names are written in reports."""

import math

from felicity.core.units import to_bits

MINUS = "−"
MISSING = "–"

# Measures with a unit; for others only the number is shown.
UNITS = {
    "lp": "nats",
    "word_pmi": "nats",
    "surprisal_bits": "bits",
    "mean_lp": "nats per token",
    "slor": "nats per token",
}


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal, without the sign.

    >>> percent(0.7249)
    '72.5'
    """
    return MISSING if _missing(share) else f"{100 * float(share or 0.0):.1f}"


def percent_interval(share: float | None, low: float | None, high: float | None) -> str:
    """A share with its interval, as percentages.

    >>> percent_interval(0.7249, 0.7, 0.75)
    '72.5 (70.0–75.0)'
    """
    return f"{percent(share)} ({percent(low)}–{percent(high)})"


def decimal(value: float | None, places: int = 2) -> str:
    """A number with a typographic minus; NaN is a dash.

    >>> decimal(-3.14159)
    '−3.14'
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    text = f"{value:.{places}f}"
    return text.replace("-", MINUS) if float(text) else text.lstrip("-")


def signed(value: float | None, places: int = 2) -> str:
    """A number that always shows its sign, except for a plain zero.

    >>> signed(0.5), signed(-0.5), signed(0.0)
    ('+0.50', '−0.50', '0.00')
    """
    text = decimal(value, places)
    return f"+{text}" if value is not None and value > 0 and float(f"{value:.{places}f}") else text


def bits(nats: float | None, places: int = 2) -> str:
    """Nats converted to bits."""
    return decimal(None if nats is None else to_bits(nats), places)


def signed_bits(nats: float | None, places: int = 2) -> str:
    """Nats converted to bits, always with a sign."""
    return signed(None if nats is None else to_bits(nats), places)


def count(number: int | None) -> str:
    """A whole number with thousands separators.

    >>> count(67000)
    '67,000'
    """
    return MISSING if number is None else f"{number:,}"


def counted(number: int, singular: str, plural: str = "") -> str:
    """A count with its noun.

    >>> counted(1, "tie"), counted(2, "tie"), counted(2, "suite")
    ('1 tie', '2 ties', '2 suites')
    """
    return f"{count(number)} {singular if number == 1 else plural or singular + 's'}"


def spaced(name: str | None) -> str:
    """A dataset's name with spaces for underscores.

    >>> spaced("subject_verb_agreement")
    'subject verb agreement'
    """
    return (name or "").replace("_", " ").strip() or "unnamed"


def unit(measure: str) -> str:
    """The unit of a measure's values; empty if it has none."""
    return UNITS.get(measure, "")


def _missing(value: float | None) -> bool:
    return value is None or math.isnan(value)
