"""Log-probabilities are nats everywhere; this is the one place that turns them into bits."""

from math import log

NATS_PER_BIT = log(2.0)


def to_bits(nats: float) -> float:
    """Nats in bits.

    >>> round(to_bits(1.0), 4)
    1.4427
    """
    return nats / NATS_PER_BIT
