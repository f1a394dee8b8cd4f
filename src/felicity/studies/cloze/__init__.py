"""Larger probes (Shivagunde et al. 2023): cloze sets and their extensions, models compared at both sizes."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from felicity.studies.cloze.plan import ClozeSet as ClozeSet
    from felicity.studies.cloze.plan import read_cloze_pairs as read_cloze_pairs
    from felicity.studies.cloze.plan import read_cloze_set as read_cloze_set
    from felicity.studies.cloze.report import report_cloze as report_cloze
    from felicity.studies.cloze.report import write_cloze_report as write_cloze_report
    from felicity.studies.cloze.study import ClozeStudy as ClozeStudy
    from felicity.studies.cloze.study import study_cloze as study_cloze

_MODULES = {
    "plan": "ClozeSet read_cloze_pairs read_cloze_set",
    "report": "report_cloze write_cloze_report",
    "study": "ClozeStudy study_cloze",
}
_PUBLIC = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'felicity.studies.cloze' has no attribute '{name}'")
    return getattr(import_module(f"felicity.studies.cloze.{_PUBLIC[name]}"), name)
