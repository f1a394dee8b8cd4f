"""Categories and their members: from a table, or as the hyponyms of a WordNet noun."""

import csv
import io
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from felicity.core.errors import BadInput, NotPossible
from felicity.core.files import read_text

HYPONYM = "~"
INSTANCE = "~i"
# Where Debian, Homebrew and the authors' own installer put WordNet's files.
WORDNET_FOLDERS = (
    "/usr/share/wordnet",
    "/usr/local/share/wordnet",
    "/usr/local/WordNet-3.0/dict",
    "/opt/homebrew/opt/wordnet/dict",
)


@dataclass(frozen=True)
class Member:
    """A word and the category it is listed under."""

    word: str
    category: str


def read_categories(path: Path) -> tuple[list[Member], list[str]]:
    """Members by category, and what was left out: a table of two columns, category first.

    The second column is one member, or several with commas between them. Category names are made lower
    case, since they are common nouns.

    Raises BadInput if there is no second column or no member.
    """
    table = csv.reader(
        io.StringIO(read_text(path), newline=""), delimiter="\t" if path.suffix == ".tsv" else ","
    )
    members: list[Member] = []
    left_out: list[str] = []
    for number, row in enumerate(table, start=1):
        if number == 1 or not any(cell.strip() for cell in row):
            continue
        if len(row) < 2 or not row[0].strip():
            raise BadInput(f"{path}, line {number}: a category and its members are needed, in two columns.")
        category = row[0].strip().lower()
        for cell in row[1].split(","):
            word = " ".join(cell.split())
            if word:
                members.append(Member(word, category))
            else:
                left_out.append(f"line {number}: an empty member of '{category}'")
    if not members:
        raise BadInput(f"{path} has no members; write a category and its members in each line.")
    return members, left_out


def find_wordnet(folder: Path | None = None) -> Path:
    """The folder with WordNet's files: the one given, `$WNSEARCHDIR`, or where systems put it.

    Raises NotPossible if there is none.
    """
    named = os.environ.get("WNSEARCHDIR")
    places = (
        [folder] if folder else [Path(place) for place in ([named] if named else []) + list(WORDNET_FOLDERS)]
    )
    for place in places:
        if place is not None and (place / "index.noun").is_file():
            return place
    raise NotPossible(
        "WordNet's files are not here; install them (Debian: wordnet-base) or set $WNSEARCHDIR."
    )


def read_hyponyms(category: str, *, folder: Path | None = None) -> list[Member]:
    """Every one-word hyponym of the first sense of a noun, at any depth, as its members.

    WordNet's hierarchies need care: names of several words and Latin taxa are left out here, rare species
    are not. Inspect the result before you use it.

    Raises BadInput if WordNet does not know the noun.
    """
    place = find_wordnet(folder)
    index, synsets = _read_index(place), _read_synsets(place)
    start = index.get(category.lower().replace(" ", "_"))
    if start is None:
        raise BadInput(f"WordNet has no noun '{category}'; choose another word for the category.")
    found: dict[str, None] = {}
    seen, rest = {start}, [start]
    while rest:
        for kind, below in synsets[rest.pop()][1]:
            if below in seen:
                continue
            seen.add(below)
            rest.append(below)
            words = [word for word in synsets[below][0] if "_" not in word]
            # A capital belongs to a proper name among instances, and to a Latin taxon elsewhere.
            found |= dict.fromkeys(word for word in words if kind == INSTANCE or word.islower())
    members = sorted(word for word in found if word.lower() != category.lower())
    return [Member(word, category.lower()) for word in members]


@cache
def _read_index(folder: Path) -> dict[str, int]:
    """Noun to the offset of its first sense."""
    index: dict[str, int] = {}
    for line in (folder / "index.noun").read_text(encoding="utf-8").splitlines():
        if not line.startswith(" "):
            cells = line.split()
            index[cells[0]] = int(cells[-int(cells[2])])
    return index


@cache
def _read_synsets(folder: Path) -> dict[int, tuple[list[str], list[tuple[str, int]]]]:
    """Offset to the synset's words and the offsets of its hyponyms and instances."""
    synsets: dict[int, tuple[list[str], list[tuple[str, int]]]] = {}
    for line in (folder / "data.noun").read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            continue
        cells = line.partition("|")[0].split()
        count = int(cells[3], 16)
        words = [cells[4 + 2 * place] for place in range(count)]
        start = 4 + 2 * count
        pointers = [cells[start + 1 + 4 * k : start + 5 + 4 * k] for k in range(int(cells[start]))]
        below = [(kind, int(offset)) for kind, offset, _, _ in pointers if kind in (HYPONYM, INSTANCE)]
        synsets[int(cells[0])] = (words, below)
    return synsets
