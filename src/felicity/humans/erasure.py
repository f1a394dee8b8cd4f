"""Erasing in the background what raters have withdrawn, without making those who answer wait for it."""

import logging
import threading
import time

from felicity.core.errors import FelicityError
from felicity.humans.store import Store

# Nothing can be stored while the database is written anew: that is to be a twentieth of the time at most,
# however many raters withdraw.
REST = 19
RETRY_SECONDS = 5.0
LAST_PATIENCE = 2.0

log = logging.getLogger(__name__)


class Eraser:
    """A thread that writes the database anew after withdrawals, once for all that came meanwhile."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._due = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="eraser", daemon=True)
        self._told = False

    def start(self) -> None:
        """Begin, with what an earlier process has left to do."""
        if self.store.database.sqlite:
            self._due.set()
            self._thread.start()

    def wake(self) -> None:
        """Somebody has withdrawn."""
        self._due.set()

    def stop(self) -> None:
        """Erase what is left, if that is possible now, and end."""
        if not self._thread.is_alive():
            return
        self._stopping.set()
        self._due.set()
        self._thread.join()
        self._erase(patience=LAST_PATIENCE)

    def _run(self) -> None:
        while True:
            self._due.wait()
            if self._stopping.is_set():
                return
            self._due.clear()
            began = time.monotonic()
            done = self._erase()
            took = time.monotonic() - began
            if not done:
                self._due.set()
            self._stopping.wait(REST * took if done else max(RETRY_SECONDS, REST * took))

    def _erase(self, patience: float = 0.0) -> bool:
        """Whether nothing is left to erase."""
        try:
            if self.store.unerased():
                self.store.erase(patience=patience)
        except FelicityError as error:
            if not self._told:
                log.warning("Withdrawn answers are deleted, but may still be in a file. %s", error)
            self._told = True
            return False
        self._told = False
        return True
