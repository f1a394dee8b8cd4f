"""What a study is: settings and three functions, registered once under a name.

    plan(settings, models, folder)   what is scored: tables to keep, and jobs for the pipeline
    analyse(folder)                  {name: frame}, from what the folder holds; needs no model
    sections(study)                  what the page shows, answer first

A study is a package, or a module, that exports these functions; its settings stand in a module of their own
that imports nothing heavy, so that `felicity --help` can list the options of every study at once.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from felicity.core.registry import Registry

if TYPE_CHECKING:
    import polars as pl

    from felicity.core.engine import EngineInfo
    from felicity.core.policy import Policy
    from felicity.run import Model, Plan


@dataclass(frozen=True, kw_only=True)
class StudyDefinition:
    """A kind of study.

    settings: its frozen dataclass (`felicity.core.settings`), whose docstring is the help of the command.
    code: the module that exports plan, analyse and sections. default_model: what is scored if no model is
    named; None if the study can do without one. forecasts: whether `code` also exports `forecast(job)`, which
    predicts how long a job takes. checkpoints: whether a model names a training, each of whose checkpoints
    is a model of the study.
    """

    name: str
    title: str
    settings: type
    code: str
    default_model: str | None = "smollm2"
    forecasts: bool = False
    checkpoints: bool = False

    def load(self, function: str) -> Callable[..., Any]:
        """One of the functions of the study."""
        found: Callable[..., Any] = getattr(import_module(self.code), function)
        return found


@dataclass(frozen=True, kw_only=True)
class NamedModel:
    """A model of a study: its name in tables and folders, and how it is opened.

    info: what it is; None for a tokenizer without weights. policy: the policy that was asked for; None for a
    model that was given opened, which is scored as it is.
    """

    name: str
    spec: str
    opener: Callable[["Policy | None"], "Model"]
    info: "EngineInfo | None" = None
    policy: "Policy | None" = None

    def open(self, policy: "Policy | None" = None) -> "Model":
        """The model, with the policy of the command or another."""
        return self.opener(policy)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One plan for the pipeline, carried out with an opened model in a folder of its own.

    model: the model's name. part: what distinguishes the jobs of one model, such as a dataset. on_pending:
    as in `carry_out`.
    """

    model: str
    lm: "Model"
    plan: "Plan"
    part: str = ""
    on_pending: Callable[[Mapping[str, "pl.DataFrame"]], int] | None = None

    @property
    def label(self) -> str:
        """How its progress is shown."""
        return f"{self.model} on {self.part}" if self.part else self.model


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What a study scores.

    jobs: taken one after another, each carried out before the next is asked for, so that a generator opens
    one model at a time. tables: kept in the folder as Parquet. facts: what analysis and page need besides,
    kept in the record. inputs: a digest of everything that was read; a study resumes only with the same.
    notes: what a reader must know.
    """

    jobs: Iterable[Job] = ()
    tables: Mapping[str, "pl.DataFrame"] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    inputs: str = ""
    notes: tuple[str, ...] = ()


Models = Sequence[NamedModel]


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
        # The settings of the context study are not light yet.
        if module.name.endswith(".context"):
            continue
        if module.ispkg and find_spec(f"{module.name}.settings"):
            yield import_module(f"{module.name}.settings").STUDY


for study in _find_studies():
    STUDIES.register(study.name, study)
