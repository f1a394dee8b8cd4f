"""Sentences sent through other languages and back, with what was lost on the way counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from felicity.core.errors import BadInput
from felicity.core.progress import Progress
from felicity.stimuli.round_trip.sentences import Original
from felicity.stimuli.round_trip.translators import Translator


@dataclass(frozen=True)
class Route:
    """Where a sentence goes: round trips one after another, each through one or several languages.

    `spa` is there and back; `spa+cat` is through Spanish and back, then through Catalan and back; `spa-cat`
    goes from Spanish into Catalan and only then back.
    """

    name: str

    @property
    def trips(self) -> list[list[str]]:
        """The languages of each round trip."""
        return [trip.split("-") for trip in self.name.split("+")]

    @property
    def languages(self) -> list[str]:
        """All languages of the route, each once."""
        return list(dict.fromkeys(one for trip in self.trips for one in trip))

    def hops(self, home: str) -> list[tuple[str, str]]:
        """Every translation of the route.

        >>> Route("spa-cat+gl").hops("en")
        [('en', 'spa'), ('spa', 'cat'), ('cat', 'en'), ('en', 'gl'), ('gl', 'en')]
        """
        found = []
        for trip in self.trips:
            stops = [home, *trip, home]
            found += list(pairwise(stops))
        return found


@dataclass(frozen=True, kw_only=True)
class Degraded:
    """What came back: texts by route and item; by route, how many came back unchanged or empty and were
    dropped."""

    texts: dict[str, dict[str, str]]
    unchanged: dict[str, int]
    empty: dict[str, int]


def parse_routes(text: str) -> list[Route]:
    """Routes separated by commas.

    Raises BadInput for an empty or repeated one.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not name or not all(stop for trip in name.split("+") for stop in trip.split("-")):
            raise BadInput(f"'{text}' is not a list of routes such as spa,cat,spa+cat.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise BadInput(f"The route '{twice}' is given twice.")
    return [Route(name) for name in names]


def degrade_sentences(
    originals: Sequence[Original],
    routes: Sequence[Route],
    translator: Translator,
    *,
    home: str = "en",
    lower: bool = False,
    progress: Progress | None = None,
) -> Degraded:
    """Send every sentence along every route; those that come back unchanged, but for case, are dropped.

    lower: put what comes back into lower case, since translators capitalize where their rules say so.
    """
    texts: dict[str, dict[str, str]] = {}
    unchanged: dict[str, int] = {}
    empty: dict[str, int] = {}
    total = sum(len(route.hops(home)) for route in routes)
    done = 0
    for route in routes:
        current = [original.text for original in originals]
        for source, target in route.hops(home):
            if progress:
                progress(f"{route.name}: {source} to {target}", done, total)
            current = [_flat(text) for text in translator.translate(current, source, target)]
            done += 1
        kept = {}
        lost = same = 0
        for original, back in zip(originals, current, strict=True):
            if not back:
                lost += 1
            elif _flat(back).lower() == _flat(original.text).lower():
                same += 1
            else:
                kept[original.item] = back.lower() if lower else back
        texts[route.name], unchanged[route.name], empty[route.name] = kept, same, lost
    if progress:
        progress("done", total, total)
    return Degraded(texts=texts, unchanged=unchanged, empty=empty)


def _flat(text: str) -> str:
    return " ".join(text.split())
