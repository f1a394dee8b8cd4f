"""What a study is: settings and three functions, registered once under a name.

    plan(settings, models, folder)   what is scored: tables to keep, and jobs for the pipeline
    analyse(folder)                  {name: frame}, from what the folder holds; needs no model
    sections(study)                  what the page shows, answer first

A study is a package, or a module, that exports these functions; its settings stand in a module of their own
that imports nothing heavy, so that `felicity --help` can list the options of every study at once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

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
    named; None if the study can do without one. forecasts: whether its jobs predict how long they take, so
    that the command has `--forecast`. checkpoints: whether a model names a training, each of whose
    checkpoints is a model of the study. instead: the setting that takes the place of models, so that none is
    opened by default where it is given.
    """

    name: str
    title: str
    settings: type
    code: str
    default_model: str | None = "smollm2"
    forecasts: bool = False
    checkpoints: bool = False
    instead: str | None = None

    def choose_default(self, settings: Mapping[str, Any]) -> list[str]:
        """The models of a study with these settings if none is named."""
        replaced = self.instead is not None and bool(settings.get(self.instead))
        return [self.default_model] if self.default_model and not replaced else []

    def load(self, function: str) -> Callable[..., Any]:
        """One of the functions of the study."""
        found: Callable[..., Any] = getattr(import_module(self.code), function)
        return found


@dataclass(frozen=True, kw_only=True)
class NamedModel:
    """A model of a study: its name in tables and folders, and how it is opened.

    info: what it is; None for a tokenizer without weights. tokenizer: the local model whose tokens a served
    one has, if it was given. policy: the policy that was asked for; None for a
    model that was given opened, which is scored as it is.
    """

    name: str
    spec: str
    opener: Callable[["Policy | None"], "Model"]
    info: "EngineInfo | None" = None
    tokenizer: str | None = None
    policy: "Policy | None" = None

    def open(self, policy: "Policy | None" = None) -> "Model":
        """The model, with the policy of the command or another."""
        return self.opener(policy)


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """How long a job will take.

    texts: still to be scored. tokens: how many the model must process for them. scored: texts that were
    scored to find out.
    """

    texts: int = 0
    tokens: int = 0
    seconds: float = 0.0
    scored: int = 0

    def __str__(self) -> str:
        work = f"{self.texts:,} texts to score, {self.tokens:,} tokens to process"
        return f"{work}: about {format_duration(self.seconds)}."


def format_duration(seconds: float) -> str:
    """Seconds in words.

    >>> format_duration(40), format_duration(300), format_duration(9000)
    ('40 seconds', '5 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"


@dataclass(frozen=True, kw_only=True)
class Job:
    """One plan for the pipeline, carried out with an opened model in a folder of its own.

    model: the model's name. part: what distinguishes the jobs of one model, such as a dataset. forecast:
    predicts how long the job takes from the prompts that are still to be scored, stage by stage; it scores
    some of them.
    """

    model: str
    lm: "Model"
    plan: "Plan"
    part: str = ""
    forecast: Callable[[Mapping[str, "pl.DataFrame"]], Forecast] | None = None

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
