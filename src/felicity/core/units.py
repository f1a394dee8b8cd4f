"""Log-probabilities are in nats everywhere; this is the one place that converts them."""

from math import log

from felicity.core.errors import UnknownName

NATS_PER_BIT = log(2.0)
UNITS = ("nats", "bits")


def to_bits(nats: float) -> float:
    """Nats converted to bits.

    >>> round(to_bits(1.0), 4)
    1.4427
    """
    return nats / NATS_PER_BIT


def convert_nats(nats: float, unit: str) -> float:
    """Nats in the requested unit.

    Raises UnknownName.
    """
    if unit not in UNITS:
        raise UnknownName("unit", unit, UNITS)
    return to_bits(nats) if unit == "bits" else nats
