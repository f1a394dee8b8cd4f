"""Which engine a model gets: the one door behind `-m`."""

from typing import Any, Protocol

from felicity.core.engine import Engine
from felicity.core.errors import NotPossible
from felicity.core.policy import Policy
from felicity.core.registry import Registry
from felicity.engines.causal import CausalEngine
from felicity.engines.describe import ModelDescription, describe_model
from felicity.engines.devices import Compute, choose_device, prepare_dtype
from felicity.engines.loading import load_tokenizer
from felicity.engines.ngram.engine import NgramEngine
from felicity.engines.progress import Progress
from felicity.engines.sources import ModelSource, resolve_source
from felicity.engines.trained.engine import TrainedEngine
from felicity.engines.words.opening import describe_words, load_word_tokenizer

# How the class that a configuration names tells its family.
ENDINGS = {"ForCausalLM": "causal", "LMHeadModel": "causal", "ForMaskedLM": "masked"}


class OpenEngine(Protocol):
    """Makes the engine of one family; loads no weights yet."""

    def __call__(
        self, source: ModelSource, description: ModelDescription, *, policy: Policy, compute: Compute
    ) -> Engine: ...


ENGINES: Registry[OpenEngine] = Registry("engine")
ENGINES.register("causal", CausalEngine)
ENGINES.register("ngram", NgramEngine)
ENGINES.register("lstm", TrainedEngine)
ENGINES.register("tdlm", TrainedEngine)


def open_engine(
    spec: str, *, policy: Policy, compute: Compute | None = None, progress: Progress | None = None
) -> Engine:
    """The engine for what `-m` was given.

    Raises FelicityError where there is no such model, NotPossible where no engine takes its family.
    """
    compute = compute or Compute()
    prepare_dtype(compute.dtype, compute.device)
    if compute.device not in ("auto", "cpu"):
        choose_device(compute.device)
    source = resolve_source(spec, progress=progress)
    described = describe_words if source.origin == "words" else describe_model
    description = described(source.folder)
    family = find_family(description)
    if family not in ENGINES:
        raise NotPossible(
            f"'{source.name}' is a {description.architecture}; felicity scores {', '.join(ENGINES)} models."
        )
    return ENGINES[family](source, description, policy=policy, compute=compute)


def open_tokenizer(spec: str, *, progress: Progress | None = None) -> Any:
    """The tokenizer of what `-m` was given."""
    source = resolve_source(spec, progress=progress)
    if source.origin == "words":
        return load_word_tokenizer(source.folder)
    return load_tokenizer(source.folder, name=source.name)


def find_family(description: ModelDescription) -> str:
    """The family of a model by the class its configuration names, else by its type's usual class."""
    for ending, family in ENDINGS.items():
        if description.architecture.endswith(ending):
            return family
    return description.architecture
