"""Which engine a model gets: the function behind `-m`."""

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from felicity.core.engine import Engine
from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.memo import recall, remember, versions
from felicity.core.policy import Policy
from felicity.core.progress import Progress
from felicity.core.registry import Registry
from felicity.engines.runtime import Compute, choose_device, load_tokenizer, prepare_dtype
from felicity.engines.served import Serving, is_served, refuse_compute, refuse_for_local
from felicity.engines.sources import (
    ModelDescription,
    ModelSource,
    describe_model,
    permit_code,
    resolve_source,
)

if TYPE_CHECKING:
    from felicity.engines.words import WordTokenizer


def describe_words(path: Path) -> ModelDescription:
    """What a word model is, without loading it.

    Raises BadInput if its files are damaged.
    """
    from felicity.engines.ngram import describe_ngram
    from felicity.engines.trained import describe_trained

    return describe_trained(path) if path.is_dir() else describe_ngram(path)


def load_word_tokenizer(path: Path) -> "WordTokenizer":
    """The tokenizer of a word model.

    Raises BadInput if its files are damaged.
    """
    from felicity.engines.ngram import load_ngram_tokenizer
    from felicity.engines.trained import load_trained_tokenizer

    return load_trained_tokenizer(path) if path.is_dir() else load_ngram_tokenizer(path)


# Families in order of precedence: some models are in several of transformers' lists, as BART is.
LISTS = {
    "seq2seq": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "causal": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "masked": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
}
# The families tried for a model type whose class is not in the lists or not named in the configuration.
BY_TYPE = ("seq2seq", "masked", "causal")
# How the class name of a model with its own code shows its family.
ENDINGS = {"ForCausalLM": "causal", "LMHeadModel": "causal", "ForMaskedLM": "masked"}
# Policy fields that only some families use; for others they are reset to `auto`.
USES = {
    "masked": ("pll",),
    "xlnet": ("pll", "order", "lead"),
    "seq2seq": ("seq2seq",),
    "ngram": ("unknown",),
    "lstm": ("unknown",),
    "tdlm": ("unknown",),
}
# Families whose begin token is measured; for the others `auto` is the declared one.
MEASURED = ("causal", "served")
# One class for masked models and causal ones; the configuration says which, and without a word it is masked.
EITHER = ("xlm", "flaubert")
# Predicts in any order: among transformers' causal models, but a family of its own.
PERMUTED = "xlnet"


class OpenEngine(Protocol):
    """Builds the engine of one family without loading weights."""

    def __call__(
        self, source: ModelSource, description: ModelDescription, *, policy: Policy, compute: Compute
    ) -> Engine: ...


class OpenNamed(Protocol):
    """Makes an outside package's engine for `-m NAME:REST`; it receives the REST."""

    def __call__(self, rest: str, *, policy: Policy, compute: Compute) -> Engine: ...


def as_opener(given: Any) -> OpenNamed:
    """What an entry point provides.

    Raises TypeError for what cannot be called.
    """
    if not callable(given):
        raise TypeError(f"an engine is a function or class, not {type(given).__name__}")
    opener: OpenNamed = given
    return opener


# Engines of outside packages, by the name before the colon.
NAMED: Registry[OpenNamed] = Registry("engine", accept=as_opener)


def _import_later(package: str, engine: str, *, family: str | None = None) -> OpenEngine:
    """An engine whose package is imported when a model of its family is opened, not before."""

    def open_it(
        source: ModelSource, description: ModelDescription, *, policy: Policy, compute: Compute
    ) -> Engine:
        door = import_module(f"felicity.engines.{package}")
        further = {} if family is None else {"family": getattr(door, family)}
        made: Engine = getattr(door, engine)(source, description, policy=policy, compute=compute, **further)
        return made

    return open_it


ENGINES: Registry[OpenEngine] = Registry("family")
ENGINES.register("causal", _import_later("causal", "CausalEngine"))
ENGINES.register("masked", _import_later("masked", "ClozeEngine", family="MASKED"))
ENGINES.register("seq2seq", _import_later("seq2seq", "Seq2SeqEngine"))
ENGINES.register("xlnet", _import_later("masked", "ClozeEngine", family="XLNET"))
ENGINES.register("ngram", _import_later("ngram", "NgramEngine"))
ENGINES.register("lstm", _import_later("trained", "TrainedEngine"))
ENGINES.register("tdlm", _import_later("trained", "TrainedEngine"))


def open_engine(
    spec: str,
    *,
    policy: Policy,
    compute: Compute | None = None,
    serving: Serving | None = None,
    progress: Progress | None = None,
) -> Engine:
    """The engine for the value of `-m`; `serving` is for a model behind a server.

    Raises FelicityError if there is no such model, NotPossible if no engine supports its family.
    """
    compute = compute or Compute()
    if is_served(spec):
        from felicity.engines.served import FAMILY, open_served

        refuse_compute(spec, compute)
        return open_served(spec, policy=reset_unused_fields(policy, FAMILY), serving=serving or Serving())
    refuse_for_local(spec, serving)
    if named := _find_named(spec):
        return named(policy=policy, compute=compute)
    prepare_dtype(compute.dtype, compute.device)
    if compute.device not in ("auto", "cpu"):
        choose_device(compute.device)
    source = permit_code(_resolve(spec, progress), compute.allow_code)
    if source.origin == "words":
        description = describe_words(source.folder)
        family = description.model_type
    else:
        description = describe_model(source.folder)
        family = find_family(description)
    if family not in ENGINES:
        raise NotPossible(
            f"The architecture of '{source.name}' is {description.architecture}; felicity scores "
            f"{', '.join(ENGINES)} models, so choose another with -m."
        )
    return ENGINES[family](source, description, policy=reset_unused_fields(policy, family), compute=compute)


def open_tokenizer(spec: str, *, progress: Progress | None = None) -> Any:
    """The tokenizer for the value of `-m`.

    Raises NotPossible for a model behind a server.
    """
    if is_served(spec):
        raise NotPossible(f"The tokenizer of '{spec}' is behind a server; give -m the model's files.")
    if named := _find_named(spec):
        tokenizer = getattr(named(policy=Policy(), compute=Compute()), "tokenizer", None)
        if tokenizer is None:
            raise NotPossible(f"'{spec}' has no tokenizer of its own; name another model's with -m.")
        return tokenizer
    source = _resolve(spec, progress)
    if source.origin == "words":
        return load_word_tokenizer(source.folder)
    return load_tokenizer(source.folder, name=source.name)


def _find_named(spec: str) -> Callable[..., Engine] | None:
    """What opens a model with another package's engine; None if `spec` names no such engine.

    Raises BrokenPlugin if that package cannot be loaded.
    """
    name, colon, rest = spec.partition(":")
    return partial(NAMED[name], rest) if colon and name in NAMED else None


def _resolve(spec: str, progress: Progress | None) -> ModelSource:
    """The model's files; if there are none, a misspelt engine of another package is pointed out.

    Raises FelicityError.
    """
    try:
        return resolve_source(spec, progress=progress)
    except FelicityError as error:
        near = get_close_matches(spec.partition(":")[0], list(NAMED), n=1)
        if not near or Path(spec).exists():
            raise
        raise BadInput(f"{error} For the engine '{near[0]}', write -m {near[0]}:ARGUMENT.") from error


def reset_unused_fields(policy: Policy, family: str) -> Policy:
    """The policy without the fields of other families, so that they do not affect the cache key.

    >>> reset_unused_fields(Policy.compat("minicons"), "causal").pll
    'auto'
    """
    others = {field for fields in USES.values() for field in fields} - set(USES.get(family, ()))
    if family not in MEASURED and policy.bos == "declared":
        others.add("bos")
    return policy.replace(**dict.fromkeys(others, "auto"))


def find_family(description: ModelDescription) -> str:
    """The family of a model by the class that its configuration names, else by its model type."""
    if description.model_type == PERMUTED:
        return PERMUTED
    if description.model_type in EITHER and description.architecture.endswith("WithLMHeadModel"):
        return "causal" if description.causal else "masked"
    key = [description.architecture, description.model_type, versions("transformers", "felicity")]
    recalled = recall("families", key)
    if recalled is None:
        recalled = {"family": _look_up_family(description)}
        remember("families", key, recalled)
    return str(recalled["family"])


def _look_up_family(description: ModelDescription) -> str:
    """The family by transformers' own lists, which take seconds to import."""
    from transformers.models.auto import modeling_auto

    lists = {family: getattr(modeling_auto, name) for family, name in LISTS.items()}
    for family, classes in lists.items():
        if description.architecture in classes.values():
            return family
    for ending, family in ENDINGS.items():
        if description.architecture.endswith(ending):
            return family
    usual = [family for family in BY_TYPE if description.model_type in lists[family]]
    return usual[0] if usual else description.architecture
