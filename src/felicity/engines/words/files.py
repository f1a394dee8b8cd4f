"""Which files are models of words: ARPA and KenLM files, and folders that `felicity train` wrote."""

import gzip
from pathlib import Path

from felicity.engines.ngram.kenlm_file import is_kenlm

TRAINED = "trained.json"
ENDINGS = (".arpa", ".arpa.gz", ".klm", ".binlm", ".binary", ".bin")
HEAD_LINES = 20


def names_ngram(name: str) -> bool:
    """Whether a file of this name would be an n-gram model, were it there."""
    return name.lower().endswith(ENDINGS)


def word_model_name(path: Path) -> str:
    """What the file or folder is called, without what its ending says.

    >>> word_model_name(Path("models/news.arpa.gz"))
    'news'
    """
    name = path.resolve().name
    return next((name[: -len(end)] for end in sorted(ENDINGS, key=len)[::-1] if name.endswith(end)), name)


def is_word_model(path: Path) -> bool:
    """Whether a file or folder is one of these; the content decides, whatever the name.

    Raises OSError where it cannot be read.
    """
    if path.is_dir():
        return (path / TRAINED).is_file()
    return names_arpa(path.name) or is_kenlm(path) or _begins_as_arpa(path)


def names_arpa(name: str) -> bool:
    """Whether a file's name says ARPA."""
    return name.lower().endswith((".arpa", ".arpa.gz"))


def _begins_as_arpa(path: Path) -> bool:
    try:
        with path.open("rb") as raw, gzip.open(raw) if path.suffix == ".gz" else raw as handle:
            return any(handle.readline(200).strip() == b"\\data\\" for _ in range(HEAD_LINES))
    except (gzip.BadGzipFile, EOFError):
        return False
