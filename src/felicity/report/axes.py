"""A straight scale: where a value stands, and round numbers to write beside it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from felicity.report.wording import MINUS

STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A straight scale with its ticks; `signed` writes a plus before what is above zero."""

    title: str
    low: float
    high: float
    ticks: tuple[float, ...]
    signed: bool = False

    @classmethod
    def around(
        cls, values: Sequence[float], *, title: str, ticks: int = 5, signed: bool = False, room: float = 0.0
    ) -> "Axis":
        """A scale that holds all values, its ends on round ticks, or `room` (a share) beyond the values."""
        low, high = min(values, default=0.0), max(values, default=1.0)
        if high <= low:
            low, high = low - 1.0, high + 1.0
        step = round_step((high - low) / ticks)
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        if room:
            low, high = low - room * (high - low), high + room * (high - low)
        else:
            low, high = first * step, last * step
        marks = [round(place * step, 10) for place in range(first, last + 1)]
        kept = tuple(mark for mark in marks if low - 1e-9 <= mark <= high + 1e-9)
        return cls(title=title, low=low, high=high, ticks=kept, signed=signed)

    def share(self, value: float) -> float:
        """Where a value stands between the ends, from 0 to 1."""
        return (value - self.low) / (self.high - self.low)

    def write(self, value: float) -> str:
        """A tick as a reader sees it."""
        text = f"{value:,g}" if abs(value) < 1e5 else f"{value:.0e}"
        return text.replace("-", MINUS) if value <= 0 or not self.signed else f"+{text}"


def round_step(rough: float) -> float:
    """The next number of the form 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in STEPS if factor * power >= rough * 0.999)
