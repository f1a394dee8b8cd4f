"""Whether a member belongs to a category, by WordNet's hypernyms, so that frames say nothing false.

"A foot is a vehicle" is false and "A dove is not an animal" too; both can be looked up. A word is taken in
all its senses: what it is in one of them cannot be denied. Categories that WordNet does not arrange by
hypernyms (a doctor is a person there, not a profession) are recognized by most of their members not being
found, and are not checked.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from felicity.core.errors import NotPossible
from felicity.stimuli.templates.categories import Member, find_wordnet
from felicity.stimuli.templates.noun_forms import is_mass, list_mass_categories, singularize

UP = ("@", "@i")
# A category is checked if WordNet finds at least this share of its members under it.
LEAST_FOUND = 0.5
# Words rarer than this on the Zipf scale are not known to most readers.
LEAST_ZIPF = 2.0
Zipf = Callable[[str], float]


@dataclass(frozen=True)
class Taxonomy:
    """The noun synsets of every word, and the synsets above each."""

    senses: dict[str, list[int]]
    above: dict[int, list[int]]
    _closures: dict[int, frozenset[int]] = field(default_factory=dict, repr=False)

    def is_kind_of(self, word: str, category: str, *, usual: bool = False) -> bool:
        """Whether some sense of the word is below some sense of the category, or the same.

        usual: only the first sense of the category counts, so that no disease is a kind of state.
        """
        senses = self._find(category)
        aims = set(senses[:1] if usual else senses)
        return any(aims & self._closure(sense) for sense in self._find(word))

    def is_first_kind_of(self, word: str, category: str) -> bool:
        """The same for the first sense of both, the most frequent one."""
        first, aim = self._find(word)[:1], self._find(category)[:1]
        return bool(first and aim) and aim[0] in self._closure(first[0])

    def _find(self, word: str) -> list[int]:
        lower = word.lower().replace(" ", "_")
        return self.senses.get(lower) or self.senses.get(singularize(lower), [])

    def _closure(self, synset: int) -> frozenset[int]:
        if synset not in self._closures:
            seen, rest = {synset}, [synset]
            while rest:
                new = [one for one in self.above.get(rest.pop(), ()) if one not in seen]
                seen.update(new)
                rest += new
            self._closures[synset] = frozenset(seen)
        return self._closures[synset]


def read_taxonomy(folder: Path | None = None) -> Taxonomy | None:
    """WordNet's nouns; None if WordNet is not installed."""
    try:
        return _read_taxonomy(find_wordnet(folder))
    except NotPossible:
        return None


@cache
def _read_taxonomy(folder: Path) -> Taxonomy:
    senses: dict[str, list[int]] = {}
    for line in (folder / "index.noun").read_text(encoding="utf-8").splitlines():
        if not line.startswith(" "):
            cells = line.split()
            senses[cells[0]] = [int(offset) for offset in cells[-int(cells[2]) :]]
    above: dict[int, list[int]] = {}
    for line in (folder / "data.noun").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            continue
        cells = line.partition("|")[0].split()
        start = 4 + 2 * int(cells[3], 16)
        pointers = [cells[start + 1 + 4 * k : start + 5 + 4 * k] for k in range(int(cells[start]))]
        above[int(cells[0])] = [int(offset) for kind, offset, *_ in pointers if kind in UP]
    return Taxonomy(senses, above)


def keep_true_members(
    members: Sequence[Member], taxonomy: Taxonomy | None, *, zipf: Zipf | None = None
) -> tuple[list[Member], list[str]]:
    """The members that are what their category says and that readers know, and why others are left out."""
    checked = _find_checked(members, taxonomy)
    kept: list[Member] = []
    left_out: list[str] = []
    for member in members:
        if zipf and zipf(member.word) < LEAST_ZIPF:
            left_out.append(f"'{member.word}' is rarer than Zipf {LEAST_ZIPF:g}")
        elif (
            taxonomy and member.category in checked and not taxonomy.is_kind_of(member.word, member.category)
        ):
            left_out.append(f"'{member.word}' is no kind of '{member.category}' in WordNet")
        else:
            kept.append(member)
    return kept, left_out


def _find_checked(members: Sequence[Member], taxonomy: Taxonomy | None) -> set[str]:
    if taxonomy is None:
        return set()
    sizes = Counter(member.category for member in members)
    found = Counter(
        member.category for member in members if taxonomy.is_kind_of(member.word, member.category)
    )
    return {category for category, size in sizes.items() if found[category] >= LEAST_FOUND * size}


def stands_bare(word: str, category: str, taxonomy: Taxonomy | None) -> bool:
    """Whether a member takes no article: a mass noun, by the lists or because its category is a kind of one.

    >>> stands_bare("gold", "metal", None), stands_bare("football", "toy", None)
    (True, False)
    """
    if is_mass(word, category):
        return True
    return taxonomy is not None and any(
        taxonomy.is_first_kind_of(category, one) and is_mass(word, one) for one in list_mass_categories()
    )
