"""felicity models: list, download and describe models."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.model_options import PolicyOptions, takes_groups
from felicity.cli.options import Json, Quiet, Tokenizer, Url, build_serving, refuse_unused
from felicity.cli.terminal import out, print_json, print_rows, step_bar
from felicity.core.errors import BadInput

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, download and describe models.")
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
    from felicity.api import models as list_models

    rows = list_models().to_dicts()
    if json:
        print_json(rows)
    else:
        shown = [row | {"folder": row["folder"] or "not downloaded yet"} for row in rows]
        print_rows(shown, right=("megabytes",))


@app.command()
def get(name: Name, json: Json = False, quiet: Quiet = False) -> None:
    """Download a model into the cache, and convert it if necessary.

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
def verify(json: Json = False) -> None:
    """Read every converted model in the cache again and compare it with what was stored.

    A model that was changed since its last use is refused anyway; this also finds damage by a failing disk.
    The exit code is 2 if a file is damaged.

    \b
    Examples:
      felicity models verify
    """
    from felicity.engines.sources import verify_models

    found = verify_models()
    if json:
        print_json([{"name": name, "damaged": files} for name, files in found.items()])
    elif found:
        print_rows([{"name": name, "damaged": ", ".join(files) or "none"} for name, files in found.items()])
    for name, files in found.items():
        if files:
            raise BadInput(
                f"The stored model '{name}' is damaged ({files[0]}); remove its folder, which "
                "`felicity models ls` names, and fetch or convert it again."
            )


@app.command()
@takes_groups
def info(
    name: Name,
    words: Annotated[int, typer.Option("--words", "-k", min=1, help="Words per topic of a TDLM.")] = 10,
    *,
    scoring: PolicyOptions,
    url: Url = None,
    tokenizer: Tokenizer = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Describe a model: family, parameters, window, abilities, and the resolved scoring policy.

    Of a TDLM the topics are shown too, each by its most probable words.

    \b
    Examples:
      felicity models info smollm2
      felicity models info gpt2 --compat minicons --json
      felicity models info openai:my-model --url http://localhost:8000/v1
      felicity models info models/tdlm --words 20
    """
    from felicity.engines import open_engine
    from felicity.engines.trained import list_topics

    with step_bar(quiet=quiet or json) as progress:
        serving = build_serving(url=url, tokenizer=tokenizer)
        described = open_engine(name, policy=scoring.build(), serving=serving, progress=progress).info
    refuse_unused([described], scoring.policy)
    told = described.as_dict()
    topics = list_topics(Path(name), k=words) if described.family == "tdlm" else []
    if json:
        pairs = [[{"word": word, "probability": p} for word, p in topic] for topic in topics]
        print_json(told | ({"topics": pairs} if topics else {}))
        return
    rows = [(key, value) for key, value in told.items() if key not in ("policy", "notes", "can")]
    # A server reports neither its model's number of parameters nor its vocabulary.
    rows = [
        (key, value or "unknown") if key in ("parameters", "vocabulary") else (key, value)
        for key, value in rows
    ]
    rows += [(f"policy.{key}", repr(value)) for key, value in told["policy"].items()]
    rows += [("can", ", ".join(told["can"]))]
    if begin := told["notes"].get("begin_token"):
        rows += [("begin token", begin)]
    rows += [(f"topic {n}", " ".join(word for word, _ in topic)) for n, topic in enumerate(topics, 1)]
    print_rows([{"field": key, "value": value} for key, value in rows])
