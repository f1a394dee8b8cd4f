"""felicity models topics: what the topics of a TDLM are about."""

from pathlib import Path
from typing import Annotated

import typer

from felicity.cli.options import Json
from felicity.cli.terminal import print_json, print_rows


def topics(
    folder: Annotated[Path, typer.Argument(metavar="MODEL", help="A folder of `felicity train tdlm`.")],
    k: Annotated[int, typer.Option("--words", "-k", help="Words to show of each topic.")] = 10,
    json: Json = False,
) -> None:
    """Print the topics of a TDLM, each as its most probable words.

    \b
    Examples:
      felicity models topics models/tdlm -k 20
    """
    from felicity.engines.trained.topics import list_topics

    found = list_topics(folder, k=k)
    if json:
        print_json([[{"word": word, "probability": p} for word, p in words] for words in found])
        return
    print_rows(
        [
            {"topic": place + 1, "words": " ".join(word for word, _ in words)}
            for place, words in enumerate(found)
        ],
        right=("topic",),
    )
