"""felicity generate: continue texts."""

from typing import Annotated

import typer

from felicity.cli.model_options import ModelOptions, takes_groups
from felicity.cli.options import Bos, Casing, Json, ModelName, Quiet, build_policy
from felicity.cli.terminal import plain_text, print_json


@takes_groups
def generate(
    prompts: Annotated[list[str], typer.Argument(metavar="PROMPT...", help="A text to continue.")],
    model: ModelName = "smollm2",
    tokens: Annotated[int, typer.Option(help="Maximum number of tokens to generate.")] = 50,
    temperature: Annotated[
        float, typer.Option(help="0 always takes the most probable token; above 0, tokens are sampled.")
    ] = 0.0,
    top_p: Annotated[
        float, typer.Option(help="Sample from the most probable tokens with this much probability in total.")
    ] = 1.0,
    stop: Annotated[list[str] | None, typer.Option(help="End at this text; repeatable.")] = None,
    samples: Annotated[int, typer.Option(help="Continuations per prompt.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples.")] = 0,
    bos: Bos = None,
    casing: Casing = None,
    *,
    opening: ModelOptions,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Continue texts: with the most probable tokens, or sampled at a temperature.

    An encoder-decoder (T5, BART) reads the prompt and writes an answer. The same seed gives the same texts.

    \b
    Examples:
      felicity generate "The keys to the cabinet" --tokens 10
      felicity generate "Sally frightened Mary because she" --temperature 1 --samples 5 --stop .
    """
    import sys

    from felicity.api import generate as continue_texts

    lm = opening.open(model, build_policy(None, bos=bos, casing=casing), quiet=quiet or json)
    table = continue_texts(
        prompts,
        lm,
        tokens=tokens,
        temperature=temperature,
        top_p=top_p,
        stop=stop or (),
        samples=samples,
        seed=seed,
    )
    if json:
        print_json(table.to_dicts())
        return
    joint = "" if lm.info.kind == "left-to-right" else "\n  "
    for row in table.iter_rows(named=True):
        sys.stdout.write(plain_text(f"{row['prompt']}{joint}{row['continuation']}\n"))
