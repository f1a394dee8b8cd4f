"""A language: a folder with its words, its grammar and its paradigms.

layout.toml   which tables hold which words, and how words are joined
*.tsv         the words
grammar.toml  phrase rules, and what sentences should avoid
paradigms/    minimal pairs
designs/      factorial designs, if there are any
"""

from dataclasses import dataclass
from pathlib import Path

from felicity.core.errors import UnknownName
from felicity.stimuli.grammar import Grammar, read_grammar
from felicity.stimuli.lexicon import LANGUAGES, Lexicon, read_lexicon
from felicity.stimuli.pairs.paradigm import Paradigm, read_builtin


@dataclass(frozen=True)
class Language:
    """The words and rules of a language, and the folder that they were read from."""

    folder: Path
    lexicon: Lexicon
    grammar: Grammar

    def read_paradigms(self) -> dict[str, Paradigm]:
        """The paradigms of the folder, by UID."""
        return read_builtin(self.grammar, self.folder)


def list_languages() -> list[str]:
    """The names of the languages that come with felicity."""
    return sorted(folder.name for folder in LANGUAGES.iterdir() if (folder / "layout.toml").is_file())


def find_language(code: str) -> str | None:
    """The built-in language that has a code (`en`), if there is one."""
    codes = {read_lexicon(LANGUAGES / name).language: name for name in list_languages()}
    return codes.get(code)


def read_language(spec: str = "english") -> Language:
    """A language by its name, or from a folder of your own.

    Raises UnknownName for a name that is neither, BadInput with file and line for what cannot be read.
    """
    folder = LANGUAGES / spec if spec in list_languages() else Path(spec)
    if not folder.is_dir():
        raise UnknownName("language", spec, list_languages(), hint="or name a folder with layout.toml")
    lexicon = read_lexicon(folder)
    return Language(folder, lexicon, read_grammar(lexicon.vocabulary, folder))
