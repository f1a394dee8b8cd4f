"""Sentences sent through other languages and back, with what was lost on the way counted."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from felicity.core.errors import BadInput
from felicity.core.progress import Progress
from felicity.stimuli.round_trip.sentences import Original
from felicity.stimuli.round_trip.translators import Translator

Knows = Callable[[str], bool]
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
SPACED_MARK = re.compile(r"\s[.,;:!?]")


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
    dropped, and by route and item what is wrong with those that a translator did not finish."""

    texts: dict[str, dict[str, str]]
    unchanged: dict[str, int]
    empty: dict[str, int]
    flawed: dict[str, dict[str, str]] = field(default_factory=dict)


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
    knows: Knows | None = None,
    keep_flawed: bool = False,
    progress: Progress | None = None,
) -> Degraded:
    """Send every sentence along every route; those that come back unchanged, but for case, are dropped.

    lower: put what comes back into lower case, since translators capitalize where their rules say so. knows:
    whether the home language has a word; a sentence with one that it does not have, and that the original did
    not have either, was not translated to its end, and is dropped unless `keep_flawed`, as is one with a
    space before its full stop.
    """
    texts: dict[str, dict[str, str]] = {}
    unchanged: dict[str, int] = {}
    empty: dict[str, int] = {}
    flawed: dict[str, dict[str, str]] = {}
    total = sum(len(route.hops(home)) for route in routes)
    done = 0
    for route in routes:
        current = [original.text for original in originals]
        for source, target in route.hops(home):
            if progress:
                progress(f"{route.name}: {source} to {target}", done, total)
            current = [_flat(text) for text in translator.translate(current, source, target)]
            done += 1
        kept, flaws = {}, {}
        lost = same = 0
        for original, back in zip(originals, current, strict=True):
            if not back:
                lost += 1
            elif _flat(back).lower() == _flat(original.text).lower():
                same += 1
            else:
                flaw = find_flaw(back, original.text, knows)
                if flaw:
                    flaws[original.item] = flaw
                if not flaw or keep_flawed:
                    kept[original.item] = back.lower() if lower else back
        texts[route.name], unchanged[route.name], empty[route.name] = kept, same, lost
        flawed[route.name] = flaws
    if progress:
        progress("done", total, total)
    return Degraded(texts=texts, unchanged=unchanged, empty=empty, flawed=flawed)


def find_flaw(back: str, original: str, knows: Knows | None) -> str:
    """What shows that a translator did not finish a sentence; empty if nothing does.

    >>> find_flaw("The kuireja window .", "The kitchen window.", None)
    "a space before '.'"
    >>> find_flaw("The kuireja window.", "The kitchen window.", {"the", "window"}.__contains__)
    "'kuireja' is not a word of the language"
    """
    mark = SPACED_MARK.search(back)
    if mark and not SPACED_MARK.search(original):
        return f"a space before '{mark[0].strip()}'"
    given = {word.lower() for word in WORD.findall(original)}
    strange = [
        word
        for word in WORD.findall(back)
        if word.lower() not in given and knows is not None and not knows(word.lower())
    ]
    return f"'{strange[0]}' is not a word of the language" if strange else ""


def _flat(text: str) -> str:
    return " ".join(text.split())
