"""Stimuli for a rating study: originals, their round-trip translations and contexts, in one table with a
record."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from felicity.core.files import replacing
from felicity.core.progress import Progress
from felicity.run import command_line, installed, now
from felicity.stimuli.checks import read_wordnet
from felicity.stimuli.round_trip import (
    Route,
    Translator,
    balance_sources,
    build_rating_stimuli,
    degrade_sentences,
    read_documents,
    read_originals,
)

# What translators call English, for which there is a list of words.
ENGLISH = ("en", "eng", "English")


def make_stimuli(
    source: Path,
    output: Path,
    routes: Sequence[Route],
    translator: Translator,
    *,
    home: str = "en",
    documents: int | None = None,
    balance: int | None = None,
    lower: bool = False,
    keep_flawed: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Write the table and, beside it, a record of how it was made, which is returned.

    documents: how many originals to draw from documents, with contexts. balance: sentences of each source.
    keep_flawed: keep sentences with untranslated words or a space before the full stop.

    Raises BadInput if there are too few sentences.
    """
    found = read_originals(source) if documents is None else read_documents(source, n=documents, seed=seed)
    if lower:
        found = [
            replace(one, text=one.text.lower(), real=one.real.lower(), unrelated=one.unrelated.lower())
            for one in found
        ]
    words = read_wordnet() if home in ENGLISH else None
    degraded = degrade_sentences(
        found,
        routes,
        translator,
        home=home,
        lower=lower,
        knows=words.knows if words else None,
        keep_flawed=keep_flawed,
        progress=progress,
    )
    chosen = None if balance is None else balance_sources(found, degraded, size=balance, home=home, seed=seed)
    table = build_rating_stimuli(found, degraded, home=home, chosen=chosen)
    with replacing(output) as part:
        table.write_csv(part)
    record: dict[str, Any] = {
        "translator": translator.name,
        "version": translator.version,
        "originals": str(source),
        "home": home,
        "lower": lower,
        "seed": seed,
        "balance": balance,
        "created": now(),
        "command": command_line(),
        "felicity": installed("felicity"),
        "items": table["item"].n_unique(),
        "rows": table.height,
        "routes": [
            {
                "route": route.name,
                "hops": " ".join(f"{a}-{b}" for a, b in route.hops(home)),
                "sent": len(found),
                "kept": len(degraded.texts[route.name]),
                "unchanged": degraded.unchanged[route.name],
                "empty": degraded.empty[route.name],
                "flawed": len(degraded.flawed[route.name]),
            }
            for route in routes
        ],
    }
    record["flaws"] = {route: flaws for route, flaws in degraded.flawed.items() if flaws}
    record["words_checked"] = words is not None
    with replacing(output.with_suffix(".json")) as part:
        part.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return record
