"""A command carried out by a background process, so that killing the foreground loses no paid answer.

The process that the user started only waits. It starts the same command in a session of its own, with a
pipe as standard input that nothing is ever written to: when the pipe ends, the foreground process is gone,
and the background process stops as soon as the answer under way is stored.
"""

import os
import select
import signal
import subprocess
import sys

MARK = "FELICITY_IN_BACKGROUND"
STANDARD_INPUT = 0


def in_background() -> bool:
    """Whether this process is a background process of another felicity."""
    return MARK in os.environ


def find_foreground() -> int:
    """The process that the user started: this one, or the foreground process that it belongs to."""
    return int(os.environ.get(MARK, os.getpid()))


def lost_foreground() -> bool:
    """Whether the foreground process of this background process is gone."""
    return in_background() and bool(select.select([STANDARD_INPUT], [], [], 0)[0])


def carry_out_in_background() -> int:
    """Run the same command line in a background process and wait for it; gives its exit code.

    An interrupt or SIGTERM is passed on, and the wait continues until the background process has stopped.
    """
    ending, held = os.pipe()
    command = [sys.executable, "-m", "felicity", *sys.argv[1:]]
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    process = subprocess.Popen(
        command, stdin=ending, env=os.environ | {MARK: str(os.getpid())}, start_new_session=True
    )
    os.close(ending)
    try:
        for number in before:
            signal.signal(number, lambda *_: process.send_signal(signal.SIGTERM))
        return process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(held)
