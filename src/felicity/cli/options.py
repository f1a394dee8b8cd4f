"""Options that several commands share."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from felicity.core.engine import EngineInfo
    from felicity.core.policy import Policy
    from felicity.engines.served import Serving
    from felicity.run import Workers

ModelName = Annotated[
    str,
    typer.Option(
        "--model", "-m", help="smollm2, a folder, a hub name, a .gguf or .arpa file, or openai:NAME."
    ),
]
ModelNames = Annotated[
    list[str],
    typer.Option(
        "--model",
        "-m",
        help="smollm2, a folder, a hub name, a .gguf or .arpa file, or openai:NAME; repeatable.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither progress nor advice.")]
OverItems = Annotated[
    bool,
    typer.Option(
        "--items/--suites",
        help="Intervals (and p) over items, or over suites: about further items of these suites, or suites.",
    ),
]
PriorTexts = Annotated[
    Path | None,
    typer.Option(
        help="Text file whose sentences are word_pmi's neutral contexts.  [default: built-in prose]"
    ),
]
PriorContexts = Annotated[int, typer.Option(min=2, help="Number of neutral contexts of word_pmi.")]
PriorPower = Annotated[
    float, typer.Option(help="Power of word_pmi's mean over neutral contexts; 1 is the arithmetic mean.")
]
PriorWeight = Annotated[float, typer.Option(help="Weight of word_pmi's log-priors, above 0 and at most 1.")]
SllnExponent = Annotated[float, typer.Option(help="Exponent of slln_lp, between 0 and 1.")]
Ratings = Annotated[
    str | None,
    typer.Option(
        metavar="DATASET", help="Rated sentences, other than those of the run, that morcela is fitted to."
    ),
]
Unit = Annotated[str, typer.Option(help="Print nats or bits.")]
Bos = Annotated[
    str | None,
    typer.Option(
        help="Begin token: auto (the one after which plain sentences are most probable), declared, none, "
        "tokenizer, alone, or a token.  [default: auto]"
    ),
]
Eos = Annotated[str | None, typer.Option(help="End token to score: none, auto, or a token.  [default: none]")]
Join = Annotated[str | None, typer.Option(help="Separator of context and text.  [default: a space]")]
Overflow = Annotated[
    str | None,
    typer.Option(
        help="Inputs longer than the window: error; drop old context; or, for surprisal, slide: windows that "
        "advance by half a window, or slide:N by N tokens.  [default: error]"
    ),
]
Casing = Annotated[str | None, typer.Option(help="Casing: keep or lower.  [default: keep]")]
Compat = Annotated[
    str | None, typer.Option(help="Reproduce another program's numbers exactly: minicons or lau2020.")
]
PolicyFields = Annotated[
    list[str] | None,
    typer.Option(
        "--policy", metavar="FIELD=VALUE", help="Set a field of the policy, such as pll=original; repeatable."
    ),
]
Device = Annotated[str, typer.Option(help="Device: auto, cpu, cuda, mps.")]
Dtype = Annotated[
    str,
    typer.Option(
        help="Numbers to compute with: float32, bfloat16, float16, or auto: bfloat16 where it saves time. In "
        "half precision, contrasts too close to call are scored again in float32; other rules refuse it."
    ),
]
AllowCode = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        help="Run the Python code that comes with the model, if it is this version: the commit on the "
        "hub, or of a folder the digest that felicity names when it refuses.",
    ),
]
DeviceMap = Annotated[
    str | None, typer.Option(help="Distribute the model as transformers does: auto, balanced, ...")
]
Url = Annotated[
    str | None,
    typer.Option(
        help="Address of openai:NAME's server, ending in /v1.  [default: $FELICITY_URL or $OPENAI_BASE_URL]"
    ),
]
Tokenizer = Annotated[
    str | None, typer.Option(help="Local model with the server's tokenizer: a folder or name.")
]
Revision = Annotated[
    str | None,
    typer.Option(help="A name for the server's weights; scores of different revisions are kept separate."),
]
Concurrency = Annotated[int | None, typer.Option(help="Simultaneous requests to the server.  [default: 8]")]
Timeout = Annotated[float | None, typer.Option(help="Seconds for one request.  [default: 120]")]
Patience = Annotated[
    float | None, typer.Option(help="Seconds to keep retrying a failed request.  [default: 300]")
]
RequestsPerMinute = Annotated[float | None, typer.Option(help="Limit of requests per minute.")]
TokensPerMinute = Annotated[float | None, typer.Option(help="Limit of tokens per minute.")]
PricePerMillion = Annotated[
    float | None, typer.Option(help="Price of a million tokens sent, for a cost estimate in advance.")
]
WorkerCount = Annotated[
    str | None,
    typer.Option("--workers", help="Distribute scoring with Ray: a number, or `ray` for the whole cluster."),
]
RayAddress = Annotated[
    str | None,
    typer.Option(help="Ray cluster: ray://HOST:10001, auto.  [default: $RAY_ADDRESS, this machine]"),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Neither read nor write the shared score cache.")]
Affirmative = Annotated[
    str | None,
    typer.Option(
        metavar="CONDITION",
        help="Condition of a cloze file whose targets are looked for.  [default: all conditions]",
    ),
]
Good = Annotated[str, typer.Option(help="Column of acceptable sentences, in a file.")]
Bad = Annotated[str, typer.Option(help="Column of unacceptable sentences, in a file.")]
Suite = Annotated[
    str | None, typer.Option(help="In a file: column of suites. In a dataset: only this suite.")
]
Phenomenon = Annotated[
    str | None, typer.Option(help="In a file: column of phenomena. In a dataset: only this phenomenon.")
]
Language = Annotated[
    str | None,
    typer.Option(
        metavar="LANGUAGE",
        help="Only this language, by tag (de), code (deu) or name (German); `all` for every one.",
    ),
]
Factors = Annotated[
    list[str] | None,
    typer.Option("--factor", help="In a file: a column that names the condition, with others; repeatable."),
]
RuleName = Annotated[
    str | None,
    typer.Option("--rule", help="Another judging rule of the dataset (`felicity data show` lists them)."),
]
From = Annotated[
    Path | None, typer.Option("--from", metavar="DIR", help="A folder with your own copy of the dataset.")
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
    """The policy given by the options: that of another program if one is named, then the other options.

    Raises UnknownName for a field that no policy has, BadInput if one is not written FIELD=VALUE.
    """
    from felicity.core.errors import BadInput, UnknownName
    from felicity.core.policy import Policy

    start = Policy.compat(compat) if compat else Policy()
    given = {"bos": bos, "eos": eos, "join": join, "overflow": overflow, "casing": casing}
    changes = {name: value for name, value in given.items() if value is not None}
    for text in fields or ():
        name, equals, value = text.partition("=")
        if not equals:
            raise BadInput(f"--policy {text} is not FIELD=VALUE, such as pll=original.")
        if name not in start.as_dict():
            raise UnknownName("policy field", name, start.as_dict())
        changes[name] = value
    return start.replace(**changes)


def refuse_unused(infos: "Sequence[EngineInfo]", fields: list[str] | None) -> None:
    """Refuse policy fields that none of these models uses.

    Raises NotPossible.
    """
    from felicity.core.errors import NotPossible

    for text in fields or ():
        name, _, value = text.partition("=")
        if value != "auto" and all(info.policy[name] == "auto" for info in infos):
            first, *others = infos
            who = (
                f"None of the models uses --policy {name}"
                if others
                else f"'{first.name}' is of the family {first.family}, which does not use --policy {name}"
            )
            raise NotPossible(f"{who}; omit it.")


def build_serving(**given: Any) -> "Serving | None":
    """The server settings, if any server option is given."""
    from felicity.engines.served import Serving

    told = {name: value for name, value in given.items() if value is not None}
    return Serving(**told) if told else None


def build_workers(workers: str | None, address: str | None) -> "Workers | None":
    """The Ray settings, if workers are requested.

    Raises BadInput if a cluster is named and no workers.
    """
    from felicity.core.errors import BadInput
    from felicity.run import Workers

    if workers is None and address is not None:
        raise BadInput("--ray-address needs --workers; add --workers ray.")
    return None if workers is None else Workers.parse(workers, address=address or "")
