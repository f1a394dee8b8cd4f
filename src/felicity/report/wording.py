"""How bits, names and units are written on pages; the numbers themselves are written by `core.wording`."""

from collections.abc import Mapping
from typing import Any

from felicity.core.units import to_bits
from felicity.core.wording import MINUS as MINUS
from felicity.core.wording import MISSING as MISSING
from felicity.core.wording import count as count
from felicity.core.wording import counted as counted
from felicity.core.wording import decimal as decimal
from felicity.core.wording import format_date as format_date
from felicity.core.wording import format_digits as format_digits
from felicity.core.wording import format_interval as format_interval
from felicity.core.wording import format_p as format_p
from felicity.core.wording import percent as percent
from felicity.core.wording import percent_interval as percent_interval
from felicity.core.wording import points as points
from felicity.core.wording import signed as signed

# Measures with a unit; for others only the number is shown.
UNITS = {
    "lp": "nats",
    "word_pmi": "nats",
    "surprisal_bits": "bits",
    "mean_lp": "nats per token",
    "slor": "nats per token",
}


def bits(nats: float | None, places: int = 2) -> str:
    """Nats converted to bits."""
    return decimal(None if nats is None else to_bits(nats), places)


def signed_bits(nats: float | None, places: int = 2) -> str:
    """Nats converted to bits, always with a sign."""
    return signed(None if nats is None else to_bits(nats), places)


def spaced(name: str | None) -> str:
    """A dataset's name with spaces for underscores.

    >>> spaced("subject_verb_agreement")
    'subject verb agreement'
    """
    return (name or "").replace("_", " ").strip() or "unnamed"


def unit(measure: str) -> str:
    """The unit of a measure's values; empty if it has none."""
    return UNITS.get(measure, "")


def write_value(value: Any) -> str:
    """A setting or a fact of a manifest, in words.

    >>> write_value([1, None, True]), write_value({"bos": "<s>"})
    ('1, none, yes', 'bos <s>')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        # Years and seeds are harder to read with a comma; only long counts are easier.
        return f"{value:,}" if abs(value) >= 100_000 else str(value)
    if isinstance(value, str):
        return value if value.strip() else repr(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {write_value(content)}" for key, content in value.items()) or "none"
    if isinstance(value, (list, tuple)):
        return ", ".join(write_value(content) for content in value) or "none"
    return str(value)
