"""Groups of options for data, policy and models, which commands share."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, get_args

from felicity.cli.options import (
    AllowCode,
    Bad,
    Bos,
    Casing,
    Compat,
    Concurrency,
    Device,
    DeviceMap,
    Dtype,
    Eos,
    Factors,
    From,
    Good,
    Join,
    Language,
    NoCache,
    Overflow,
    Patience,
    Phenomenon,
    PolicyFields,
    PricePerMillion,
    PriorContexts,
    PriorPower,
    PriorTexts,
    PriorWeight,
    Ratings,
    RayAddress,
    RequestsPerMinute,
    Revision,
    SllnExponent,
    Suite,
    Timeout,
    Tokenizer,
    TokensPerMinute,
    Url,
    WorkerCount,
    build_policy,
    build_serving,
    build_workers,
    refuse_unused,
)
from felicity.cli.terminal import err, step_bar
from felicity.core.wording import decimal

if TYPE_CHECKING:
    from felicity.core.policy import Policy
    from felicity.data import Columns
    from felicity.engines.served import CostEstimate
    from felicity.run import MeasureSettings, Model, Workers


DATA, POLICY = "Columns and parts of the data", "Scoring policy"
MEASURES = "Single measures"
COMPUTE, SERVER = "Computing", "Served models"
# Limits on the requests to a server, and its price.
RATES = ("timeout", "patience", "requests_per_minute", "tokens_per_minute", "price_per_million")


def takes_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Expand a command's dataclass parameters into options, one per field.

    typer sees the fields instead of the parameter; the command gets the dataclass.
    """
    shown: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command).parameters.values():
        group = parameter.annotation
        if isinstance(group, type) and is_dataclass(group):
            groups[parameter.name] = group
            shown += expand_group(group)
        else:
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = take_group(group, given)
        command(**given)

    run.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    return run


def expand_group(group: Any) -> list[inspect.Parameter]:
    """The fields of an option group as parameters."""
    return [_show(field, getattr(group, "panels", {})) for field in fields(group)]


def take_group(group: Any, given: dict[str, Any]) -> Any:
    """An option group out of the values given, which lose them."""
    return group(**{field.name: given.pop(field.name) for field in fields(group)})


def _show(field: Any, panels: Mapping[str, str]) -> inspect.Parameter:
    """A field as a parameter; `panels` gives the help heading of each option."""
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    annotation = field.type
    if field.name in panels:
        kind, option = get_args(annotation)
        option = copy(option)
        option.rich_help_panel = panels[field.name]
        annotation = Annotated[kind, option]
    return inspect.Parameter(
        field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which part of a dataset, or which columns of a file."""

    panels: ClassVar = dict.fromkeys(
        ("source", "good", "bad", "suite", "phenomenon", "factor", "language"), DATA
    )

    source: From = None
    good: Good = "good"
    bad: Bad = "bad"
    suite: Suite = None
    phenomenon: Phenomenon = None
    factor: Factors = None
    language: Language = None

    @property
    def columns(self) -> "Columns":
        """The columns of a file."""
        from felicity.data import Columns

        return Columns(
            good=self.good,
            bad=self.bad,
            suite=self.suite,
            phenomenon=self.phenomenon,
            factors=tuple(self.factor or ()),
            language=self.language,
        )


@dataclass(frozen=True, kw_only=True)
class MeasureOptions:
    """What single measures are computed with."""

    panels: ClassVar = dict.fromkeys(
        ("prior_texts", "prior_contexts", "prior_power", "prior_weight", "slln_exponent", "ratings"), MEASURES
    )

    prior_texts: PriorTexts = None
    prior_contexts: PriorContexts = 128
    prior_power: PriorPower = 2.0
    prior_weight: PriorWeight = 1.0
    slln_exponent: SllnExponent = 0.5
    ratings: Ratings = None

    def build(self) -> "MeasureSettings":
        """The settings of the measures."""
        from felicity.run import MeasureSettings

        return MeasureSettings(
            prior_texts=self.prior_texts,
            prior_contexts=self.prior_contexts,
            prior_power=self.prior_power,
            prior_weight=self.prior_weight,
            slln_exponent=self.slln_exponent,
            ratings=self.ratings,
        )


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """How texts are scored."""

    panels: ClassVar = dict.fromkeys(("bos", "eos", "join", "overflow", "casing", "compat", "policy"), POLICY)

    bos: Bos = None
    eos: Eos = None
    join: Join = None
    overflow: Overflow = None
    casing: Casing = None
    compat: Compat = None
    policy: PolicyFields = None

    def build(self) -> "Policy":
        """The policy given by the options."""
        return build_policy(
            self.compat,
            bos=self.bos,
            eos=self.eos,
            join=self.join,
            overflow=self.overflow,
            casing=self.casing,
            fields=self.policy,
        )


@dataclass(frozen=True, kw_only=True)
class ModelOptions:
    """Where a model runs, or is served."""

    panels: ClassVar[dict[str, str]] = {
        "device_map": COMPUTE,
        "allow_code": COMPUTE,
        "url": SERVER,
        "tokenizer": SERVER,
    }
    long: ClassVar[bool] = False  # whether a cost estimate is printed first

    device: Device = "auto"
    dtype: Dtype = "float32"
    device_map: DeviceMap = None
    allow_code: AllowCode = None
    url: Url = None
    tokenizer: Tokenizer = None

    def open(
        self,
        spec: str,
        policy: "Policy",
        *,
        quiet: bool,
        fields: list[str] | None = None,
        serve: bool = True,
        announce_begin: bool = True,
    ) -> "Model":
        """The model, with a progress bar while it is downloaded or converted.

        fields: what was set by --policy, refused if the model does not use it. serve: whether the
        server options apply to this model. announce_begin: say which begin token was measured; a study
        says so itself, once its input is accepted.
        """
        from felicity.run import open_model

        announce = print_cost_estimate if self.long and spec.startswith("openai:") and not quiet else None
        with step_bar(quiet=quiet) as steps:
            lm = open_model(
                spec,
                policy=policy,
                device=self.device,
                dtype=self.dtype,
                device_map=self.device_map,
                allow_code=self.allow_code,
                serving=build_serving(**self._server(), announce=announce) if serve else None,
                workers=self._workers(),
                progress=steps,
                cache=self._cached(),
            )
        refuse_unused([lm.info], fields)
        if announce_begin and lm.info.begin_line and not quiet:
            err.print(lm.info.begin_line, markup=False, soft_wrap=True)
        if lm.dtype and lm.dtype.slow:
            err.print(
                f"Products in {lm.dtype.taken} run at {decimal(lm.dtype.speedup)} times the speed of "
                "float32's on this machine, which is too little to save time; leave --dtype out, or use "
                "--dtype auto.",
                soft_wrap=True,
            )
        return lm

    def opener(
        self, specs: Sequence[str], scoring: PolicyOptions, *, quiet: bool
    ) -> Callable[[str], "Model"]:
        """A function that opens one of several models; server options apply to the served ones, if any."""
        policy = scoring.build()
        some_served = any(spec.startswith("openai:") for spec in specs)

        def open_one(spec: str) -> "Model":
            serve = spec.startswith("openai:") or not some_served
            return self.open(spec, policy, quiet=quiet, fields=scoring.policy, serve=serve)

        return open_one

    def _server(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name, panel in self.panels.items() if panel == SERVER}

    def _workers(self) -> "Workers | None":
        return None

    def _cached(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class LongRunOptions(ModelOptions):
    """Options for long runs: rate limits, workers, the cache."""

    panels: ClassVar = (
        ModelOptions.panels
        | dict.fromkeys(("revision", "concurrency", *RATES), SERVER)
        | dict.fromkeys(("workers", "ray_address", "no_cache"), COMPUTE)
    )
    long: ClassVar[bool] = True

    revision: Revision = None
    concurrency: Concurrency = None
    timeout: Timeout = None
    patience: Patience = None
    requests_per_minute: RequestsPerMinute = None
    tokens_per_minute: TokensPerMinute = None
    price_per_million: PricePerMillion = None
    workers: WorkerCount = None
    ray_address: RayAddress = None
    no_cache: NoCache = False

    def _workers(self) -> "Workers | None":
        return build_workers(self.workers, self.ray_address)

    def _cached(self) -> bool:
        return not self.no_cache


def print_cost_estimate(estimate: "CostEstimate") -> None:
    """Print what a server is about to be sent, on standard error."""
    cost = "" if estimate.cost is None else f", at a cost of {estimate.cost:,.4g}"
    err.print(f"Sending {estimate.tokens:,} tokens in {estimate.requests:,} requests{cost}.", soft_wrap=True)
