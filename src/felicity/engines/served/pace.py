"""Rate limits and waiting: never faster than allowed, never knocking in step with others."""

import asyncio
import random
import time
from email.utils import parsedate_to_datetime

MINUTE = 60.0
LONGEST_WAIT = 30.0


class Pace:
    """Spaces requests so that no minute holds more of them, or of their tokens, than allowed."""

    def __init__(self, *, requests_per_minute: float | None, tokens_per_minute: float | None) -> None:
        self._rates = (requests_per_minute, tokens_per_minute)
        self._free = 0.0

    async def wait(self, tokens: int) -> None:
        """Return when a request of so many tokens may be sent."""
        now = time.monotonic()
        start = max(now, self._free)
        self._free = start + self.spacing(tokens)
        if start > now:
            await asyncio.sleep(start - now)

    def spacing(self, tokens: int) -> float:
        """Seconds between a request of so many tokens and the next.

        >>> Pace(requests_per_minute=60, tokens_per_minute=1200).spacing(100)
        5.0
        """
        requests_rate, tokens_rate = self._rates
        each = MINUTE / requests_rate if requests_rate else 0.0
        long = MINUTE * tokens / tokens_rate if tokens_rate else 0.0
        return max(each, long)


def back_off(failures: int, first: float, rng: random.Random) -> float:
    """Seconds to wait after so many failures: doubled each time, up to half a minute, and jittered.

    >>> 0.25 <= back_off(1, 0.5, random.Random(0)) <= 0.5
    True
    """
    longest = min(LONGEST_WAIT, first * 2.0 ** min(failures - 1, 30))
    return longest * rng.uniform(0.5, 1.0)


def read_retry_after(value: str | None, *, now: float) -> float:
    """Seconds that a server asks for, given in seconds or as a date; 0 where it asks for nothing.

    >>> read_retry_after("2.5", now=0.0)
    2.5
    >>> read_retry_after("Thu, 01 Jan 1970 00:00:10 GMT", now=4.0)
    6.0
    """
    if not value:
        return 0.0
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except ValueError:
        return 0.0
