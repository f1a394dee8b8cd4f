"""Progress as a notebook shows it."""

import builtins
import io

import pytest

from felicity.core.progress import notebook_progress, write_line


class ZMQInteractiveShell:
    """What IPython calls the shell of a notebook."""


def test_a_line_counts_up_and_is_ended_at_a_hundred_per_cent() -> None:
    stream = io.StringIO()
    tell = write_line(stream)
    for done in (0, 1, 1, 2):
        tell("Scoring", done, 2)
    assert stream.getvalue() == ("\rScoring: 0% (0 of 2)\rScoring: 50% (1 of 2)\rScoring: 100% (2 of 2)\n")


def test_only_a_notebook_gets_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert notebook_progress() is None
    monkeypatch.setattr(builtins, "get_ipython", ZMQInteractiveShell, raising=False)
    assert notebook_progress() is not None
