"""How many places one internet address may have taken, or still be answering, within half an hour.

Addresses are hashed with a key that exists only while the server runs, and only in memory, which worker
processes share. A verified platform id needs no such limit.
"""

import hmac
import ipaddress
import mmap
import secrets
import threading
import time
from collections.abc import Callable

import numpy as np

WINDOW_SECONDS = 1800.0
# Of so many places in half an hour, whoever took them, the newest are remembered.
ENTRIES = 1 << 14


class AddressLimit:
    """Counts the places that each address has taken; to be made before worker processes are forked."""

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self.clock = clock
        self._key = secrets.token_bytes(16)
        # One entry per place, in columns of memory that forked processes share.
        self._addresses = _share(ENTRIES, np.uint64)
        self._sessions = _share(ENTRIES, np.uint64)
        self._until = _share(ENTRIES, np.float64)
        self._next = _share(1, np.int64)
        self._lock = threading.Lock()

    def allows(self, address: str, session: str, *, take: bool = False) -> bool:
        """Whether somebody at this address may have a place; the same session is counted once.

        take: count it, if so.
        """
        if not self.most:
            return True
        where, who = self._hash(find_network(address)), self._hash(session)
        with self._lock:
            now = self.clock()
            slots = np.flatnonzero(self._addresses == where)
            slots = slots[self._until[slots] > now]
            if who in self._sessions[slots]:
                return True
            if len(slots) >= self.most:
                return False
            if take:
                # Two processes at the same moment may overwrite each other's entry, which then counts once.
                slot = int(self._next[0])
                self._next[0] = (slot + 1) % ENTRIES
                self._addresses[slot], self._sessions[slot] = where, who
                self._until[slot] = now + WINDOW_SECONDS
            return True

    def renew(self, session: str) -> None:
        """Count a place for another half hour, since its rater is there."""
        if not self.most:
            return
        with self._lock:
            held = np.flatnonzero(self._sessions == self._hash(session))
            self._until[held] = self.clock() + WINDOW_SECONDS

    def _hash(self, text: str) -> np.uint64:
        return np.uint64(int.from_bytes(hmac.digest(self._key, text.encode(), "sha256")[:8]))


def _share(size: int, kind: type[np.generic]) -> np.ndarray:
    """Numbers that are 0 at first, in memory that processes forked later see as well."""
    return np.frombuffer(mmap.mmap(-1, size * np.dtype(kind).itemsize), dtype=kind)


def find_network(address: str) -> str:
    """What counts as one address: an IPv4 address, or the /64 network that a household has in IPv6.

    >>> find_network("2001:db8::1") == find_network("2001:db8::ffff:2")
    True
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((int(parsed), 64), strict=False))
