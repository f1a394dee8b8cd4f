"""Options that several commands share, said once."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from felicity.core.engine import EngineInfo
    from felicity.core.policy import Policy
    from felicity.engines.served.settings import Serving
    from felicity.run.ray_pool import Workers

ModelName = Annotated[
    str,
    typer.Option(
        "--model", "-m", help="smollm2, a folder, a hub name, a .gguf or .arpa file, or openai:NAME."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no advice.")]
Bos = Annotated[
    str | None, typer.Option(help="Begin token: auto, none, tokenizer, or a token.  [default: auto]")
]
Eos = Annotated[str | None, typer.Option(help="End token to score: none, auto, or a token.  [default: none]")]
Join = Annotated[str | None, typer.Option(help="What stands between context and text.  [default: a space]")]
Overflow = Annotated[
    str | None,
    typer.Option(help="Inputs longer than the window: error, or drop old context.  [default: error]"),
]
Casing = Annotated[str | None, typer.Option(help="Casing: keep or lower.  [default: keep]")]
Compat = Annotated[str | None, typer.Option(help="Give another program's numbers exactly: minicons.")]
PolicyFields = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", metavar="FIELD=VALUE", help="Set a field of the policy, as pll=original; repeatable."
    ),
]
Device = Annotated[str, typer.Option(help="Where to compute: auto, cpu, cuda, mps.")]
Dtype = Annotated[
    str,
    typer.Option(
        help="Numbers to compute with: float32, bfloat16, float16; of the latter two, contrasts too close to "
        "call are scored again in float32, and other rules refuse them."
    ),
]
DeviceMap = Annotated[
    str | None, typer.Option(help="Spread the model as transformers does: auto, balanced, ...")
]
Url = Annotated[
    str | None,
    typer.Option(
        help="Address of openai:NAME's server, ending in /v1.  [default: $FELICITY_URL or $OPENAI_BASE_URL]"
    ),
]
Tokenizer = Annotated[
    str | None, typer.Option(help="Model on this machine that has the server's tokenizer: a folder or name.")
]
Revision = Annotated[
    str | None, typer.Option(help="What the server's weights are called, to tell them apart.")
]
Concurrency = Annotated[int | None, typer.Option(help="Requests to the server at once.  [default: 8]")]
Timeout = Annotated[float | None, typer.Option(help="Seconds for one request.  [default: 120]")]
Patience = Annotated[
    float | None, typer.Option(help="Seconds to go on trying a request that fails.  [default: 300]")
]
RequestsPerMinute = Annotated[float | None, typer.Option(help="Send the server no more requests than these.")]
TokensPerMinute = Annotated[float | None, typer.Option(help="Send the server no more tokens than these.")]
PricePerMillion = Annotated[
    float | None, typer.Option(help="Price of a million tokens sent, to be told the cost beforehand.")
]
WorkerCount = Annotated[
    str | None,
    typer.Option("--workers", help="Spread scoring with Ray: a number, or `ray` for all the cluster has."),
]
RayAddress = Annotated[
    str | None,
    typer.Option(help="Ray cluster: ray://HOST:10001, auto.  [default: $RAY_ADDRESS, this machine]"),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor write the shared score cache.")]
Good = Annotated[str, typer.Option(help="Column of acceptable sentences, in a file.")]
Bad = Annotated[str, typer.Option(help="Column of unacceptable sentences, in a file.")]
Suite = Annotated[
    str | None, typer.Option(help="In a file: column of suites. In a dataset: only this suite.")
]
Phenomenon = Annotated[
    str | None, typer.Option(help="In a file: column of phenomena. In a dataset: only this phenomenon.")
]
RuleName = Annotated[
    str | None,
    typer.Option("--rule", help="Another rule that the dataset knows (`felicity data show` lists them)."),
]
From = Annotated[
    Path | None, typer.Option("--from", metavar="DIR", help="A folder that holds a copy of the dataset.")
]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")]


def build_policy(
    compat: str | None,
    *,
    bos: str | None = None,
    eos: str | None = None,
    join: str | None = None,
    overflow: str | None = None,
    casing: str | None = None,
    fields: list[str] | None = None,
) -> "Policy":
    """The policy that the options ask for: another program's where one is named, then what is given.

    Raises UnknownName for a field that no policy has, BadInput where one is not written FIELD=VALUE.
    """
    from felicity.core.errors import BadInput, UnknownName
    from felicity.core.policy import Policy

    start = Policy.compat(compat) if compat else Policy()
    given = {"bos": bos, "eos": eos, "join": join, "overflow": overflow, "casing": casing}
    changes = {name: value for name, value in given.items() if value is not None}
    for text in fields or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise BadInput(f"--policy {text} is not written FIELD=VALUE, as in pll=original.")
        if name not in start.as_dict():
            raise UnknownName("policy field", name, start.as_dict())
        changes[name] = value
    return start.but(**changes)


def refuse_unused(info: "EngineInfo", fields: list[str] | None) -> None:
    """Stop where a field of the policy was set that this model has no use for.

    Raises NotPossible.
    """
    from felicity.core.errors import NotPossible

    for text in fields or ():
        name, _, value = text.partition("=")
        if value != "auto" and info.policy[name] == "auto":
            raise NotPossible(
                f"'{info.name}' is of the family {info.family}, for which --policy {name} means nothing; "
                "leave it out."
            )


def build_serving(**given: Any) -> "Serving | None":
    """How the server is asked, where any option says something of it."""
    from felicity.engines.served.settings import Serving

    told = {name: value for name, value in given.items() if value is not None}
    return Serving(**told) if told else None


def build_workers(workers: str | None, address: str | None) -> "Workers | None":
    """How the run is spread, where it is to be.

    Raises BadInput where a cluster is named and no workers.
    """
    from felicity.core.errors import BadInput
    from felicity.run.ray_pool import Workers

    if workers is None and address is not None:
        raise BadInput("--ray-address names a cluster but no workers are asked for; add --workers ray.")
    return None if workers is None else Workers.parse(workers, address=address or "")
