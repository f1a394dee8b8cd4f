"""Serve a study and kill the server again and again at random moments; the last one lives until stdin closes.

Run as: python kill_server.py STUDY PORT KILLS SEED [DATABASE]. Prints a line per kill and `last` at the end.
"""

import os
import random
import signal
import socket
import sys
import time
from pathlib import Path

from felicity.core.errors import FelicityError
from felicity.humans import PlatformIds, Store, load_keys, read_rating_study
from felicity.web import RatingOptions, create_rating_site, serve_app


def fork(folder: Path, port: int, database: str | None) -> int:
    """A server in a process of its own."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        study = read_rating_study(folder)
        options = RatingOptions(token="token", requests_per_second=0)
        keys = load_keys(folder)
        site = create_rating_site(Store(study, database), keys, PlatformIds(folder, keys), options)
        serve_app(lambda: site, host="127.0.0.1", port=port)
        status = 0
    except FelicityError as error:
        sys.stderr.write(f"{error}\n")
    finally:
        os._exit(status)


def start(folder: Path, port: int, database: str | None) -> int:
    """Start a server, again if it does not come up; gives its process id once it accepts connections."""
    deadline = time.monotonic() + 120
    child = fork(folder, port, database)
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return child
        if os.waitpid(child, os.WNOHANG)[0]:
            # As a service manager would.
            time.sleep(0.5)
            child = fork(folder, port, database)
        time.sleep(0.01)
    raise TimeoutError("the server did not start")


def main() -> None:
    """Kill so many servers, then keep one."""
    folder, port, kills, seed = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    database = sys.argv[5] if len(sys.argv) > 5 else None
    rng = random.Random(seed)
    for _ in range(kills):
        child = start(folder, port, database)
        time.sleep(rng.uniform(0.02, 0.7))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        sys.stdout.write(f"killed {time.time()}\n")
        sys.stdout.flush()
    child = start(folder, port, database)
    sys.stdout.write("last\n")
    sys.stdout.flush()
    sys.stdin.read()
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)


if __name__ == "__main__":
    main()
