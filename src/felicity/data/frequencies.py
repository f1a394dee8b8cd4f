"""How frequent words are, on the Zipf scale, by wordfreq if it is installed."""

from collections.abc import Callable
from functools import cache

from felicity.core.errors import NotPossible

# The Zipf frequency of a word: log10 of its occurrences in a billion words; 0 if it is unknown.
Frequency = Callable[[str], float]
INSTALL = "run `pip install 'felicity[stimuli]'`"


def open_frequency(language: str = "en") -> Frequency:
    """Zipf frequencies of the words of a language.

    Raises NotPossible if wordfreq is not installed, does not know the language, or cannot divide its words.
    """
    try:
        from wordfreq import zipf_frequency
    except ImportError as error:
        raise NotPossible(
            f"Matching by frequency needs wordfreq; {INSTALL}, or match length alone (--match length)."
        ) from error

    @cache
    def zipf(word: str) -> float:
        try:
            return float(zipf_frequency(word, language))
        except LookupError as error:
            raise NotPossible(
                f"wordfreq has no frequencies for the language '{language}'; write its code as `language` in "
                "layout.toml, or match length alone (--match length)."
            ) from error
        except ImportError as error:
            raise NotPossible(
                f"wordfreq cannot divide words of the language '{language}' without "
                f"{error.name or 'a library'}; install it, or do without frequencies."
            ) from error

    return zipf


def find_frequency(language: str = "en") -> Frequency | None:
    """Zipf frequencies of the words of a language; None if wordfreq is not installed or does not know it."""
    try:
        frequency = open_frequency(language)
        frequency("a")
    except NotPossible:
        return None
    return frequency
