"""The report of a finished study, written again from what its folder holds."""

from collections.abc import Callable
from pathlib import Path

from felicity.core.errors import UnknownName
from felicity.run import read_study
from felicity.studies.bias import report_bias
from felicity.studies.causality import report_causality
from felicity.studies.cloze import report_cloze
from felicity.studies.context import report_context

# By the kind of study that its record names.
REPORTS: dict[str, Callable[..., Path]] = {
    "bias": report_bias,
    "causality": report_causality,
    "cloze": report_cloze,
    "context": report_context,
}


def report_study(path: str | Path, *, check: bool = True) -> Path:
    """Write report.html and the figures of a study again, without a model; returns the page's path.

    check: refuse a study whose files have changed since it wrote them.

    Raises BadInput if the folder is not that of a finished study, UnknownName for a study of another kind.
    """
    kind = read_study(path, check=check).kind
    if kind not in REPORTS:
        raise UnknownName("kind of study", kind, REPORTS, where=str(path))
    return REPORTS[kind](Path(path), check=check)
