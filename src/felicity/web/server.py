"""Starting a server: no access log, workers that share one socket, warnings about an open address."""

import asyncio
import ipaddress
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from felicity.core.errors import BadInput, NotPossible

DRAIN_SECONDS = 5
IDLE_SECONDS = 10
RESTART_SECONDS = 0.5
BACKLOG = 4096
LAST_PORT = 65535


def serve_app(
    make: Callable[[], FastAPI],
    *,
    host: str,
    port: int,
    proxy: str | None = None,
    workers: int = 1,
    started: Callable[[], None] | None = None,
) -> None:
    """Serve until interrupted. Requests are not logged, neither their addresses nor their parameters.

    make: builds the site; called in each worker, which shares nothing with the others but the address.
    proxy: address of the reverse proxy whose X-Forwarded headers are believed.

    Raises NotPossible if the port is taken, BadInput if there is no such port.
    """
    with _listen(host, port) as listening:
        _allow_connections()
        if workers > 1:
            _serve_forked(make, listening, workers, proxy, started)
            return
        # uvicorn has shut down in order when it hands on the interrupt.
        with suppress(KeyboardInterrupt):
            _Server(_configure(make(), proxy=proxy), started).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    if not 0 <= port <= LAST_PORT:
        raise BadInput(f"There is no port {port}; choose a --port from 0 to {LAST_PORT}.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # With the protocol left open, asyncio would not switch off Nagle's algorithm, and a page that comes after
    # a redirect would wait 40 ms for the browser's acknowledgement.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        reason = (error.strerror or str(error)).lower()
        raise NotPossible(f"Cannot listen on {host}:{port}: {reason}; choose another --port.") from error
    listening.listen(BACKLOG)
    return listening


def _allow_connections() -> None:
    """Every rater holds a connection, and many systems allow a process 1,024 unless it asks for more."""
    # Not on Windows, which has no such limit.
    with suppress(ImportError, ValueError, OSError):
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _serve_forked(
    make: Callable[[], FastAPI],
    listening: socket.socket,
    workers: int,
    proxy: str | None,
    started: Callable[[], None] | None,
) -> None:
    """Processes that accept from one socket; one that dies is replaced until the parent is told to stop."""

    def fork() -> int:
        child = os.fork()
        if child:
            return child
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        status = 1
        try:
            with suppress(KeyboardInterrupt):
                _Server(_configure(make(), proxy=proxy), None).run(sockets=[listening])
            status = 0
        finally:
            os._exit(status)

    stopping = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal stopping
        stopping = True
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGTERM)

    children = {fork() for _ in range(workers)}
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    if started is not None:
        started()
    while children:
        child, _ = os.wait()
        children.discard(child)
        if not stopping:
            time.sleep(RESTART_SECONDS)
            children.add(fork())


def _configure(site: FastAPI, *, proxy: str | None = None) -> uvicorn.Config:
    """No request is logged; of uvicorn's own messages only errors are, which name no client."""
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return uvicorn.Config(
        site,
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=False,
        proxy_headers=proxy is not None,
        forwarded_allow_ips=proxy or "",
        timeout_graceful_shutdown=DRAIN_SECONDS,
        timeout_keep_alive=IDLE_SECONDS,
        http=_ClosingProtocol,
    )


class _ClosingProtocol(H11Protocol):
    """HTTP/1.1 that also closes a connection on which no whole request begins within `IDLE_SECONDS`.

    uvicorn itself waits for ever for a first request, and for the rest of one that has begun.
    """

    _since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A connection was opened."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """A part of a request has arrived."""
        super().data_received(data)
        self._watch()

    def _watch(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            self._since = None
        elif self.timeout_keep_alive_task is None and not self.transport.is_closing():
            now = self.loop.time()
            self._since = self._since or now
            wait = max(0.0, self._since + self.timeout_keep_alive - now)
            self.timeout_keep_alive_task = self.loop.call_later(wait, self.timeout_keep_alive_handler)


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, started: Callable[[], None] | None) -> None:
        super().__init__(config)
        self._announce = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started and self._announce:
            self._announce()


@contextmanager
def running(site: FastAPI) -> Iterator[str]:
    """Serve from a thread, on a free port of this machine, while the block lasts; gives the address."""
    listening = _listen("127.0.0.1", 0)
    port = listening.getsockname()[1]
    ready = threading.Event()
    server = _Server(_configure(site), ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    if not ready.wait(30):
        raise NotPossible("The server did not start within 30 seconds.")
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        # What runs when a site ends, such as closing a database, has happened when the block is left.
        thread.join()
        listening.close()


def find_port() -> int:
    """A port on this machine that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def warn_about(host: str, *, proxy: str | None) -> str | None:
    """What is wrong with listening on this address, if anything."""
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if loopback or proxy is not None:
        return None
    return (
        f"Warning: {host} can be reached from other machines and answers would travel unencrypted. Listen on "
        "127.0.0.1 behind a proxy that terminates TLS, and say so with --proxy 127.0.0.1."
    )
