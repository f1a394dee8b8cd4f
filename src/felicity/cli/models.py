"""felicity models: which models are at hand, fetch one, say what one is."""

from typing import Annotated

import typer

from felicity.cli.groups import takes_groups
from felicity.cli.opening import PolicyOptions
from felicity.cli.options import Json, Quiet, Tokenizer, Url, build_serving, refuse_unused
from felicity.cli.terminal import out, print_json, print_rows, step_bar

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, fetch and describe models.")
Name = Annotated[
    str, typer.Argument(metavar="MODEL", help="smollm2, a folder, a hub name, a .gguf file, openai:NAME.")
]


@app.command("ls")
def ls(json: Json = False) -> None:
    """List the built-in model and those in the cache.

    \b
    Examples:
      felicity models ls
    """
    from felicity.engines.catalogue import list_models

    rows = [
        {
            "name": entry.spec,
            "origin": entry.origin,
            "source": entry.source,
            "megabytes": round(entry.size / 1e6),
            "folder": str(entry.folder) if entry.folder else None,
        }
        for entry in list_models()
    ]
    if json:
        print_json(rows)
    else:
        shown = [row | {"folder": row["folder"] or "not fetched yet"} for row in rows]
        print_rows(shown, right=("megabytes",))


@app.command()
def get(name: Name, json: Json = False, quiet: Quiet = False) -> None:
    """Fetch a model into the cache, and convert it where that is needed.

    \b
    Examples:
      felicity models get smollm2
      felicity models get ./SmolLM2-135M-Instruct.Q4_1.gguf
    """
    from felicity.engines.sources import resolve_source

    with step_bar(quiet=quiet or json) as progress:
        source = resolve_source(name, progress=progress)
    if json:
        print_json({"name": source.name, "folder": str(source.folder), "origin": source.origin})
    else:
        out.print(f"{source.name}: {source.folder}", soft_wrap=True)


@app.command()
@takes_groups
def info(
    name: Name,
    *,
    scoring: PolicyOptions,
    url: Url = None,
    tokenizer: Tokenizer = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say what a model is: family, parameters, window, what it can do, and the policy it will get.

    \b
    Examples:
      felicity models info smollm2
      felicity models info gpt2 --compat minicons --json
      felicity models info openai:my-model --url http://localhost:8000/v1
    """
    from felicity.engines.families import open_engine

    with step_bar(quiet=quiet or json) as progress:
        serving = build_serving(url=url, tokenizer=tokenizer)
        described = open_engine(name, policy=scoring.build(), serving=serving, progress=progress).info
    refuse_unused(described, scoring.policy)
    told = described.as_dict()
    if json:
        print_json(told)
        return
    rows = [(key, value) for key, value in told.items() if key not in ("policy", "notes", "can")]
    # A server tells neither how many parameters its model has nor all its tokens.
    rows = [
        (key, value or "not told") if key in ("parameters", "vocabulary") else (key, value)
        for key, value in rows
    ]
    rows += [(f"policy.{key}", repr(value)) for key, value in told["policy"].items()]
    rows += [("can", ", ".join(told["can"]))]
    print_rows([{"field": key, "value": value} for key, value in rows])
