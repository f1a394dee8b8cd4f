"""The report of a finished study, written again from what its folder holds."""

from collections.abc import Callable
from pathlib import Path

from felicity.core.errors import UnknownName
from felicity.run import read_record, read_study
from felicity.studies.causality import report_causality
from felicity.studies.context import report_context
from felicity.studies.definition import STUDIES
from felicity.studies.study import read_study as read_one

# By the kind of study that its record names.
REPORTS: dict[str, Callable[..., Path]] = {
    "causality": report_causality,
    "context": report_context,
}


def report_study(path: str | Path, *, check: bool = True) -> Path:
    """Write report.html and the figures of a study again, without a model; returns the page's path.

    check: refuse a study whose files have changed since it wrote them.

    Raises BadInput if the folder is not that of a finished study, UnknownName for a study of another kind.
    """
    if str(read_record(Path(path), check=check).get("study")) in STUDIES:
        return read_one(path, check=check).report()
    kind = read_study(path, check=check).kind
    if kind not in REPORTS:
        raise UnknownName("kind of study", kind, REPORTS, where=str(path))
    return REPORTS[kind](Path(path), check=check)
