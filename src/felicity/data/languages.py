"""Languages of datasets by BCP 47 tag: their names, scripts, direction of writing, and which to read."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache

from felicity.core.documents import read_packaged_toml
from felicity.core.errors import BadInput, UnknownName

# What asks for every language of a dataset at once; their averages are then macro over languages.
ALL_LANGUAGES = "all"


@dataclass(frozen=True)
class Language:
    """A language as it is written: BCP 47 tag, English name, ISO 639-3 code, ISO 15924 script, direction."""

    tag: str
    name: str
    code: str
    script: str
    direction: str

    def as_dict(self) -> dict[str, str]:
        """All fields, for JSON."""
        return asdict(self)


@cache
def load_languages() -> dict[str, Language]:
    """Every language that a dataset of the catalogue may have, by tag."""
    listed = read_packaged_toml("felicity.data", "languages.toml")
    return {tag: Language(tag, *fields) for tag, fields in listed.items()}


def find_language(asked: str) -> Language:
    """A language by its tag, its ISO 639-3 code or its English name, in any case.

    >>> find_language("nld").tag, find_language("Hebrew").direction, find_language("fr-ca").tag
    ('nl', 'rtl', 'fr-CA')

    Raises UnknownName suggesting the nearest.
    """
    known = load_languages()
    wanted = asked.strip().lower()
    for names in (lambda one: (one.tag.lower(), one.name.lower()), lambda one: (one.code,)):
        for language in known.values():
            if wanted in names(language):
                return language
    raise UnknownName(
        "language",
        asked,
        [*known, *(one.name for one in known.values())],
        hint="give a tag such as 'de', a code such as 'deu' or a name such as 'German'",
    )


def match_languages(asked: str, tags: Sequence[str]) -> list[str]:
    """The tags that a language asks for: itself and its varieties (RFC 4647, basic filtering).

    >>> match_languages("French", ["fr-CA", "en"]), match_languages("fr-CA", ["fr"])
    (['fr-CA'], [])
    """
    if asked == ALL_LANGUAGES:
        return list(tags)
    wanted = asked if asked in tags else find_language(asked).tag
    return [tag for tag in tags if tag == wanted or tag.startswith(f"{wanted}-")]


def describe_languages(tags: Sequence[str]) -> str:
    """Names and tags in one phrase.

    >>> describe_languages(["de", "fr-CA"])
    'German (de), Canadian French (fr-CA)'
    """
    known = load_languages()
    return ", ".join(f"{known[tag].name} ({tag})" if tag in known else tag for tag in tags)


def describe_tags(tags: Sequence[str]) -> list[dict[str, str]]:
    """Tag, name, code, script and direction of each; a tag that is not in the table is its own name."""
    unknown = {"code": "", "script": "unknown", "direction": "ltr"}
    known = load_languages()
    return [known[tag].as_dict() if tag in known else {"tag": tag, "name": tag} | unknown for tag in tags]


def choose_languages(name: str, tags: Sequence[str], asked: str | None) -> list[str]:
    """The languages of a dataset to read.

    Raises BadInput if it has several and none is asked for, or lacks the one asked for.
    """
    if asked is None:
        if len(tags) > 1:
            raise BadInput(
                f"{name} has {len(tags)} languages, which are not averaged together: "
                f"{describe_languages(tags)}; choose one with --language, or `--language "
                f"{ALL_LANGUAGES}` for each and their macro average."
            )
        return list(tags)
    chosen = match_languages(asked, tags)
    if not chosen:
        raise BadInput(
            f"{name} is not in '{asked}' but in {describe_languages(tags)}; `felicity data ls --language "
            f"{asked}` lists datasets that are."
        )
    return chosen
