"""The options by which a model is opened, in groups that commands take as they need them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from felicity.cli.options import (
    Bad,
    Bos,
    Casing,
    Compat,
    Concurrency,
    Device,
    DeviceMap,
    Dtype,
    Eos,
    From,
    Good,
    Join,
    NoCache,
    Overflow,
    Patience,
    Phenomenon,
    PolicyFields,
    PricePerMillion,
    RayAddress,
    RequestsPerMinute,
    Revision,
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

if TYPE_CHECKING:
    from felicity.core.policy import Policy
    from felicity.data.pairs import Columns
    from felicity.engines.served.settings import Bill
    from felicity.run.model import Model
    from felicity.run.ray_pool import Workers


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which part of a dataset, or which columns of a file."""

    source: From = None
    good: Good = "good"
    bad: Bad = "bad"
    suite: Suite = None
    phenomenon: Phenomenon = None

    @property
    def columns(self) -> "Columns":
        """Which columns of a file hold what."""
        from felicity.data.pairs import Columns

        return Columns(good=self.good, bad=self.bad, suite=self.suite, phenomenon=self.phenomenon)


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """How texts are scored."""

    bos: Bos = None
    eos: Eos = None
    join: Join = None
    overflow: Overflow = None
    casing: Casing = None
    compat: Compat = None
    policy: PolicyFields = None

    def build(self) -> "Policy":
        """The policy that the options ask for."""
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
    """Where a model computes, or is served."""

    long: ClassVar[bool] = False  # whether what a server is sent is told beforehand

    device: Device = "auto"
    dtype: Dtype = "float32"
    device_map: DeviceMap = None
    url: Url = None
    tokenizer: Tokenizer = None

    def open(
        self, spec: str, policy: "Policy", *, quiet: bool, fields: list[str] | None = None, serve: bool = True
    ) -> "Model":
        """The model, with a bar while it is fetched or converted.

        fields: what was set by --policy, refused where the model has no use for it. serve: whether what
        is said of a server is meant for this model.
        """
        from felicity.run.model import open_model

        announce = print_bill if self.long and spec.startswith("openai:") and not quiet else None
        with step_bar(quiet=quiet) as steps:
            lm = open_model(
                spec,
                policy=policy,
                device=self.device,
                dtype=self.dtype,
                device_map=self.device_map,
                serving=build_serving(**self._server(), announce=announce) if serve else None,
                workers=self._workers(),
                progress=steps,
                cache=self._cached(),
            )
        refuse_unused(lm.info, fields)
        return lm

    def _server(self) -> dict[str, Any]:
        return {"url": self.url, "tokenizer": self.tokenizer}

    def _workers(self) -> "Workers | None":
        return None

    def _cached(self) -> bool:
        return True


@dataclass(frozen=True, kw_only=True)
class LongRunOptions(ModelOptions):
    """For work of hours: how a server is asked, who helps, what is kept."""

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

    def _server(self) -> dict[str, Any]:
        return super()._server() | {
            "revision": self.revision,
            "concurrency": self.concurrency,
            "timeout": self.timeout,
            "patience": self.patience,
            "requests_per_minute": self.requests_per_minute,
            "tokens_per_minute": self.tokens_per_minute,
            "price_per_million": self.price_per_million,
        }

    def _workers(self) -> "Workers | None":
        return build_workers(self.workers, self.ray_address)

    def _cached(self) -> bool:
        return not self.no_cache


def print_bill(bill: "Bill") -> None:
    """What a server is about to be sent, on standard error."""
    cost = "" if bill.cost is None else f", which cost {bill.cost:,.4g}"
    err.print(f"Sending {bill.tokens:,} tokens in {bill.requests:,} requests{cost}.", soft_wrap=True)
