"""What felicity withstands: kills, flipped bits, hostile command lines, faulty servers."""

import os

# How hard to attack: 1 is what `make test-slow` runs; the sizes grow with it.
FORCE = float(os.environ.get("FELICITY_ATTACK", "1"))


def size(usual: int) -> int:
    """So many tries, times `$FELICITY_ATTACK`."""
    return max(1, round(usual * FORCE))
