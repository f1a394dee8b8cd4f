"""Errors that a user can fix: one sentence that names the culprit and the next step.

The command line prints only the message and exits with 2. Any other exception is a bug.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class FelicityError(Exception):
    """An error that the user can fix; the message says what and how."""


class BadInput(FelicityError):
    """A file, column or text that cannot be used as it is."""


class NotPossible(FelicityError):
    """A request the model, the policy or this machine cannot carry out."""


class UnknownName(FelicityError, KeyError):
    """An unknown name; the message suggests the most similar known one."""

    def __init__(
        self, kind: str, name: str, known: Iterable[str], *, hint: str = "", where: str = ""
    ) -> None:
        names = sorted(known)
        near = get_close_matches(name, names, n=1, cutoff=0.6)
        if near:
            advice = f"did you mean '{near[0]}'?"
        elif hint:
            advice = hint
        else:
            advice = "known: " + ", ".join(names)
        within = f" in {where}" if where else ""
        super().__init__(f"There is no {kind} '{name}'{within}; {advice}")

    def __str__(self) -> str:
        # KeyError would quote the message.
        return str(self.args[0])
