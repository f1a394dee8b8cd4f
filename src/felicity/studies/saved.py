"""The report of a finished study, written again from what its folder holds."""

from collections.abc import Callable
from pathlib import Path

from felicity.core.errors import UnknownName
from felicity.run import read_record
from felicity.studies.causality import report_causality
from felicity.studies.study import read_study
from felicity.studies.study_registry import STUDIES

# Studies that are not among STUDIES, by the kind that their record names.
REPORTS: dict[str, Callable[..., Path]] = {"causality": report_causality}


def report_study(path: str | Path, *, check: bool = True) -> Path:
    """Write report.html and the figures of a study again, without a model; returns the page's path.

    check: refuse a study whose files have changed since it wrote them.

    Raises BadInput if the folder is not that of a finished study, UnknownName for a study of another kind.
    """
    kind = str(read_record(Path(path), check=check).get("study"))
    if kind in STUDIES:
        return read_study(path, check=check).report()
    if kind not in REPORTS:
        raise UnknownName("kind of study", kind, (*STUDIES, *REPORTS), where=str(path))
    return REPORTS[kind](Path(path), check=check)
