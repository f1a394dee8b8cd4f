"""Which engine a model gets: the one door behind `-m`."""

from functools import partial
from typing import Any, Protocol

from felicity.core.engine import Engine
from felicity.core.errors import NotPossible
from felicity.core.policy import Policy
from felicity.core.registry import Registry
from felicity.engines.causal import CausalEngine
from felicity.engines.cloze import ClozeEngine
from felicity.engines.describe import ModelDescription, describe_model
from felicity.engines.devices import Compute, choose_device, prepare_dtype
from felicity.engines.loading import load_tokenizer
from felicity.engines.masked import MASKED
from felicity.engines.ngram.engine import NgramEngine
from felicity.engines.progress import Progress
from felicity.engines.seq2seq import Seq2SeqEngine
from felicity.engines.served.opening import FAMILY, open_served
from felicity.engines.served.settings import Serving, is_served, refuse_compute, refuse_for_local
from felicity.engines.sources import ModelSource, resolve_source
from felicity.engines.trained.engine import TrainedEngine
from felicity.engines.words.opening import describe_words, load_word_tokenizer
from felicity.engines.xlnet import XLNET

# Families in the order in which they claim a model: some are in several of transformers' lists, as BART is.
LISTS = {
    "seq2seq": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "causal": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "masked": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
}
# A type whose class is not in the lists, or whose configuration names none, has most likely these.
BY_TYPE = ("seq2seq", "masked", "causal")
# How the class of a model that brings its own code tells its family.
ENDINGS = {"ForCausalLM": "causal", "LMHeadModel": "causal", "ForMaskedLM": "masked"}
# Fields of the policy that only some families have a use for; for others they are `auto`.
USES = {
    "masked": ("pll",),
    "xlnet": ("pll", "order", "lead"),
    "seq2seq": ("seq2seq",),
    "ngram": ("unknown",),
    "lstm": ("unknown",),
    "tdlm": ("unknown",),
}
# Predicts in any order, so it is with transformers' causal models but of no such family.
PERMUTED = "xlnet"


class OpenEngine(Protocol):
    """Makes the engine of one family; loads no weights yet."""

    def __call__(
        self, source: ModelSource, description: ModelDescription, *, policy: Policy, compute: Compute
    ) -> Engine: ...


ENGINES: Registry[OpenEngine] = Registry("engine")
ENGINES.register("causal", CausalEngine)
ENGINES.register("masked", partial(ClozeEngine, way=MASKED))
ENGINES.register("seq2seq", Seq2SeqEngine)
ENGINES.register("xlnet", partial(ClozeEngine, way=XLNET))
ENGINES.register("ngram", NgramEngine)
ENGINES.register("lstm", TrainedEngine)
ENGINES.register("tdlm", TrainedEngine)


def open_engine(
    spec: str,
    *,
    policy: Policy,
    compute: Compute | None = None,
    serving: Serving | None = None,
    progress: Progress | None = None,
) -> Engine:
    """The engine for what `-m` was given; `serving` is for a model behind a server.

    Raises FelicityError where there is no such model, NotPossible where no engine takes its family.
    """
    compute = compute or Compute()
    if is_served(spec):
        refuse_compute(spec, compute)
        return open_served(spec, policy=keep_own(policy, FAMILY), serving=serving or Serving())
    refuse_for_local(spec, serving)
    prepare_dtype(compute.dtype, compute.device)
    if compute.device not in ("auto", "cpu"):
        choose_device(compute.device)
    source = resolve_source(spec, progress=progress)
    if source.origin == "words":
        description = describe_words(source.folder)
        family = description.model_type
    else:
        description = describe_model(source.folder)
        family = find_family(description)
    if family not in ENGINES:
        raise NotPossible(
            f"'{source.name}' is a {description.architecture}; felicity scores {', '.join(ENGINES)} models."
        )
    return ENGINES[family](source, description, policy=keep_own(policy, family), compute=compute)


def open_tokenizer(spec: str, *, progress: Progress | None = None) -> Any:
    """The tokenizer of what `-m` was given.

    Raises NotPossible for a model behind a server.
    """
    if is_served(spec):
        raise NotPossible(f"The tokenizer of '{spec}' is behind a server; give -m the model's files.")
    source = resolve_source(spec, progress=progress)
    if source.origin == "words":
        return load_word_tokenizer(source.folder)
    return load_tokenizer(source.folder, name=source.name)


def keep_own(policy: Policy, family: str) -> Policy:
    """The policy without what is for other families, so that it decides no cache key.

    >>> keep_own(Policy.compat("minicons"), "causal").pll
    'auto'
    """
    others = {field for fields in USES.values() for field in fields} - set(USES.get(family, ()))
    return policy.but(**dict.fromkeys(others, "auto"))


def find_family(description: ModelDescription) -> str:
    """The family of a model by the class its configuration names, else by its type's usual class."""
    if description.model_type == PERMUTED:
        return PERMUTED
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
