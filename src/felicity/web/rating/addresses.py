"""How many places one internet address may take within half an hour.

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
ENTRY = np.dtype([("address", np.uint64), ("session", np.uint64), ("until", np.float64)])
# Of so many places in half an hour, whoever took them, the newest are remembered.
ENTRIES = 1 << 15


class AddressLimit:
    """Counts the places that each address has taken; to be made before worker processes are forked."""

    def __init__(self, most: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self.clock = clock
        self._key = secrets.token_bytes(16)
        self._entries = np.frombuffer(mmap.mmap(-1, ENTRIES * ENTRY.itemsize), dtype=ENTRY)
        self._next = np.frombuffer(mmap.mmap(-1, 8), dtype=np.int64)
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
            own = self._entries[(self._entries["address"] == where) & (self._entries["until"] > now)]
            if who in own["session"]:
                return True
            if len(own) >= self.most:
                return False
            if take:
                # Two processes at the same moment may overwrite each other's entry, which then counts once.
                place = int(self._next[0])
                self._next[0] = (place + 1) % ENTRIES
                self._entries[place] = (where, who, now + WINDOW_SECONDS)
            return True

    def _hash(self, text: str) -> np.uint64:
        return np.uint64(int.from_bytes(hmac.digest(self._key, text.encode(), "sha256")[:8]))


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
