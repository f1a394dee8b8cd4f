"""felicity stimuli extend: a small set made larger by a language model."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import typer

from felicity.cli.background import carry_out_in_background, find_foreground, in_background, lost_foreground
from felicity.cli.model_options import RATES, SERVER, ModelOptions, takes_groups
from felicity.cli.options import (
    Json,
    ModelName,
    Patience,
    PricePerMillion,
    Quiet,
    RequestsPerMinute,
    Timeout,
    TokensPerMinute,
    build_policy,
)
from felicity.cli.terminal import err, out, print_json, print_rows, progress_bar
from felicity.core.wording import decimal

if TYPE_CHECKING:
    from felicity.run import Model
    from felicity.stimuli import Pair
    from felicity.stimuli.extension import Extension, Form

SERVED = "openai:"
ASKING, STOPPING = "Prompts and answers", "When to stop"


@dataclass(frozen=True, kw_only=True)
class AskOptions:
    """How a model is asked for more pairs."""

    panels: ClassVar = dict.fromkeys(
        ("examples", "instruction", "tokens", "temperature", "top_p", "samples"), ASKING
    )

    examples: Annotated[int, typer.Option(min=1, help="Example pairs in each prompt.")] = 4
    instruction: Annotated[str | None, typer.Option(help="What to ask for.  [default: the paper's]")] = None
    tokens: Annotated[int, typer.Option(min=1, help="Maximum number of tokens in an answer.")] = 100
    temperature: Annotated[float, typer.Option(help="Sampling temperature.")] = 0.64
    top_p: Annotated[
        float, typer.Option(help="Sample from the most probable tokens with this much probability in total.")
    ] = 1.0
    samples: Annotated[int, typer.Option(min=1, help="Answers to each prompt.")] = 1
    seed: Annotated[int, typer.Option(min=0, help="Seed of the examples and of the sampling.")] = 0

    @property
    def parameters(self) -> dict[str, Any]:
        """How a text is continued."""
        return {
            "tokens": self.tokens,
            "temperature": self.temperature,
            "top_p": self.top_p,
            "samples": self.samples,
        }


@dataclass(frozen=True, kw_only=True)
class StopOptions:
    """When to stop asking."""

    panels: ClassVar = dict.fromkeys(("least_yield", "window", "most_requests"), STOPPING)

    n: Annotated[int, typer.Option("-n", min=1, help="Stop when this many pairs await review.")] = 100
    least_yield: Annotated[
        float, typer.Option(help="Stop when recent requests gave fewer new pairs per request than this.")
    ] = 0.05
    window: Annotated[
        int, typer.Option(min=1, help="Number of recent requests that --least-yield considers.")
    ] = 20
    most_requests: Annotated[int, typer.Option(min=1, help="Send at most this many requests.")] = 10_000


@dataclass(frozen=True, kw_only=True)
class GeneratorOptions(ModelOptions):
    """Where the generator computes, or how its server is asked."""

    panels: ClassVar = ModelOptions.panels | dict.fromkeys(RATES, SERVER)

    timeout: Timeout = None
    patience: Patience = None
    requests_per_minute: RequestsPerMinute = None
    tokens_per_minute: TokensPerMinute = None
    price_per_million: PricePerMillion = None


@takes_groups
def extend(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="A cloze dataset's name, or a file of pairs, as seeds.")
    ],
    out_folder: Annotated[Path, typer.Option("--output", "--out", "-o", help="Folder to write.")],
    model: ModelName = "smollm2",
    *,
    asking: AskOptions,
    stopping: StopOptions,
    opening: GeneratorOptions,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the first prompt and the forecast.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Ask a language model for more pairs like those of DATASET, and queue what passes the rules.

    Each prompt shows an instruction and a few pairs drawn without replacement. Every raw answer is stored
    before it is parsed; the same command resumes where it stopped and sends no request twice. What passes
    the rules awaits review: `felicity stimuli review FOLDER`.

    \b
    Examples:
      felicity stimuli extend role_88 -o role_extended --dry-run
      felicity stimuli extend role_88 -n 750 -o role_extended
      felicity stimuli extend neg_136_simp -m openai:my-model --url http://127.0.0.1:8000/v1 -o neg_extended
    """
    import tempfile

    if model.startswith(SERVED) and not dry_run and not in_background() and os.name == "posix":
        raise typer.Exit(carry_out_in_background())

    from felicity.stimuli.checks import read_wordnet
    from felicity.stimuli.extension import Extension, ExtensionTask, Limits

    seeds, form = _read_seeds(dataset)
    lm = opening.open(model, build_policy(None), quiet=quiet or json)
    task = ExtensionTask(
        dataset=dataset,
        form=form.name,
        instruction=asking.instruction or form.instruction,
        k=asking.examples,
        seed=asking.seed,
        parameters=asking.parameters,
        model={"spec": model, "name": lm.info.name, "family": lm.info.family, "key": lm.info.key},
        seeds=[[pair.item, *pair.sentences] for pair in seeds],
    )
    if dry_run:
        with tempfile.TemporaryDirectory(prefix="felicity-") as place:
            begun = Extension(Path(place))
            begun.begin(task)
            out.print(task.prompt(1).text, markup=False, soft_wrap=True, end="")
            _tell_forecast(begun, stopping.n, lm, opening.price_per_million)
        return
    extension = Extension(out_folder)
    extension.begin(task)
    if not quiet and not json:
        _tell_forecast(extension, stopping.n, lm, opening.price_per_million)
    words = read_wordnet()
    limits = Limits(stopping.n, stopping.least_yield, stopping.window, stopping.most_requests)
    with progress_bar("Pairs", quiet=quiet or json) as progress, waiting_for_answers() as interrupted:
        outcome = extension.run(
            _generator(lm, asking.parameters),
            limits,
            words=words,
            progress=progress,
            stop_now=lambda: interrupted() or lost_foreground(),
            starter=find_foreground(),
        )
    extension.write_dataset()
    _tell_outcome(extension, vars(outcome), json=json)


def _read_seeds(dataset: str) -> "tuple[list[Pair], Form]":
    """The pairs to show as examples, and their form.

    Raises BadInput if they have none that felicity knows.
    """
    from felicity.core.errors import BadInput
    from felicity.stimuli import read_sentence_pairs
    from felicity.stimuli.extension import guess_form, unique_pairs
    from felicity.studies.cloze import read_cloze_pairs

    path = Path(dataset)
    pairs = unique_pairs(read_sentence_pairs(path) if path.suffix else read_cloze_pairs(dataset))
    form = guess_form(pairs)
    if form is None:
        raise BadInput(
            f"The pairs of {dataset} have no form that felicity knows; see docs/studies/probes.md."
        )
    return pairs, form


def _generator(lm: "Model", parameters: dict[str, Any]) -> Any:
    from felicity.stimuli.extension import ModelAnswer

    def generate(prompt: str, seed: int) -> list[ModelAnswer]:
        table = lm.generate(prompt, seed=seed, **parameters)
        return [
            ModelAnswer(row["continuation"], row["n_tokens"], row["ended"])
            for row in table.iter_rows(named=True)
        ]

    return generate


@contextmanager
def waiting_for_answers() -> Iterator[Any]:
    """Let an interrupt or SIGTERM wait for the answer under way; a second one does not wait."""
    asked = False

    def note(_number: int, _frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        err.print("Stopping when the answer under way is stored.", soft_wrap=True)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell_forecast(extension: "Extension", n: int, lm: "Model", price: float | None) -> None:
    def count(text: str) -> int | None:
        found = lm.engine.encode(_as_prompts(text))["n_tokens"][0]
        return None if found is None else int(found)

    forecast = extension.forecast(n, count=count, price_per_million=price)
    cost = "" if forecast.cost is None else f", which cost {forecast.cost:,.4g}"
    about = "" if forecast.exact else ", at four characters per token"
    err.print(
        f"About {forecast.requests:,} more requests: {forecast.tokens_sent:,} tokens sent and at most "
        f"{forecast.tokens_received:,} written{about}{cost}.",
        soft_wrap=True,
    )


def _as_prompts(text: str) -> Any:
    import polars as pl

    from felicity.core.schemas import PROMPTS

    return pl.DataFrame({"request": ["1"], "context_text": [None], "text": [text]}, schema=PROMPTS)


def _tell_outcome(extension: "Extension", outcome: dict[str, Any], *, json: bool) -> None:
    from felicity.stimuli.review import tabulate_rejections

    table = tabulate_rejections(extension.state())
    if json:
        print_json(outcome | {"fates": table.to_dicts()})
        return
    rows = [row | {"percent": decimal(row["percent"], 1)} for row in table.to_dicts()]
    print_rows(rows, right=("sentences", "percent"))
    err.print(
        f"Stopped: {outcome['stopped']}. {outcome['requests']:,} requests are stored, "
        f"{outcome['asked']:,} of "
        f"them asked now. Next: felicity stimuli review {extension.folder}",
        soft_wrap=True,
        markup=False,
    )
    if outcome["repeated"]:
        err.print(
            f"{outcome['repeated']:,} requests were under way when a process was killed; they were sent "
            "again.",
            soft_wrap=True,
        )
