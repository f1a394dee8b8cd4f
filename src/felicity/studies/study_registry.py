"""STUDIES: every study by name, of this room and of outside packages."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

from felicity.core.registry import Registry
from felicity.studies.definition import StudyDefinition


def _accept(given: object) -> StudyDefinition:
    """What an entry point provides.

    Raises TypeError for anything else.
    """
    if isinstance(given, StudyDefinition):
        return given
    raise TypeError(f"a study is a StudyDefinition, not {type(given).__name__}")


STUDIES: Registry[StudyDefinition] = Registry("study", accept=_accept)


def _find_studies() -> Iterator[StudyDefinition]:
    """The studies of this room: of every package, the STUDY in its module `settings`."""
    room = import_module("felicity.studies")
    for module in iter_modules(room.__path__, "felicity.studies."):
        if module.ispkg and find_spec(f"{module.name}.settings"):
            yield import_module(f"{module.name}.settings").STUDY


for study in _find_studies():
    STUDIES.register(study.name, study)
