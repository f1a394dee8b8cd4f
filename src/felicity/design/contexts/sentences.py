"""Sentences of running text, for contexts that have nothing to do with the stimuli.

Written for WikiText, whose paragraphs are lines, whose headings stand between equals signs and whose
marks stand apart (` . `), and for plain text files of any kind. The spacing stays as it is in the file.
"""

import gzip
import re
import tomllib
import zlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from felicity.core.errors import BadInput
from felicity.core.files import decode
from felicity.design.contexts.joining import ENDED

HEADING = re.compile(r"^\s*=.*=\s*$")
LETTER = re.compile(r"[^\W\d_]")
# A mark that may end a sentence, the quotes and brackets that close after it, space, and what comes next.
END = re.compile(r"(?P<mark>[.!?…]+)(?P<close>[\"']*(?:\s*[”’»)\]])*)\s+(?=(?P<next>\S+))")
DETACHED_QUOTE = re.compile(r"\"(?=\s|$)\s*")
OPENERS = "\"'“‘«(["
INITIALS = re.compile(r"^(?:[^\W\d_]\.)*[^\W\d_]$")
GZIP_MARK = b"\x1f\x8b"
# With more lines than this share beginning in lower case, line breaks are those of the page's width.
WRAPPED = 0.1
# With more sentences than this share ended by a mark, what is not so ended is no sentence.
ENDS = 0.5


@dataclass(frozen=True)
class Words:
    """What a full stop may stand behind without ending a sentence, and what begins one all the same."""

    abbreviations: frozenset[str]
    before_numbers: frozenset[str]
    starters: frozenset[str]


def read_text_file(path: Path) -> list[str]:
    """The sentences of a text file, gzipped or not.

    Raises BadInput where the file is missing, a folder, not UTF-8, a broken gzip file, or holds no sentence.
    """
    try:
        content = path.read_bytes()
        if content.startswith(GZIP_MARK):
            content = gzip.decompress(content)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput(f"{path} is not a whole gzip file; fetch or write it again.") from error
    except OSError as error:
        raise BadInput(f"Cannot read {path}: {(error.strerror or str(error)).lower()}.") from error
    sentences = split_sentences(decode(content, path))
    if not sentences:
        raise BadInput(f"{path} holds no sentence; give a file of running text.")
    return sentences


def split_sentences(text: str) -> list[str]:
    """The sentences of a text, in order; headings and lines without a letter are dropped.

    So are list entries, captions and the like, which no mark ends; but not where most of the text is such.

    >>> split_sentences(" = Life = \\n\\n Mr. Boulter acts . He sings , too . ")
    ['Mr. Boulter acts .', 'He sings , too .']
    """
    paragraphs = [paragraph for paragraph in _paragraphs(text) if LETTER.search(paragraph)]
    sentences = [sentence for paragraph in paragraphs for sentence in _split(paragraph)]
    sentences = [sentence for sentence in sentences if LETTER.search(sentence)]
    ended = [sentence for sentence in sentences if ENDED.search(sentence)]
    return ended if len(ended) > ENDS * len(sentences) else sentences


def _paragraphs(text: str) -> list[str]:
    """Lines; or the lines between blank ones as one, where the file's lines are cut at a width."""
    lines = [line.strip() for line in text.splitlines()]
    lines = ["" if HEADING.match(line) else line for line in lines]
    held = [line for line in lines if line]
    if sum(line[0].islower() for line in held) <= WRAPPED * len(held):
        return held
    return [" ".join(block.split("\n")) for block in re.split(r"\n{2,}", "\n".join(lines).strip())]


def _split(paragraph: str) -> list[str]:
    sentences = []
    start = place = 0
    while match := END.search(paragraph, place):
        place = match.end()
        if not _is_end(paragraph[start : match.start()], match):
            continue
        stop = match.end("close")
        # ` . " ` closes where a quotation is open in this paragraph, and opens the next one otherwise.
        quote = DETACHED_QUOTE.match(paragraph, match.end())
        if quote and paragraph.count('"', 0, stop) % 2:
            stop = match.end() + 1
            place = quote.end()
            if _goes_on(paragraph[place:]):
                continue
        sentences.append(paragraph[start:stop].strip())
        start = place
    sentences.append(paragraph[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _is_end(before: str, match: re.Match[str]) -> bool:
    """Whether a mark ends the sentence whose words stand before it."""
    after = match["next"]
    if _goes_on(after):
        return False
    if match["mark"] != "." or not before or before[-1].isspace():
        return True
    words = _words()
    word = before.split()[-1].lstrip(OPENERS)
    bare = word.lower().replace(".", "")
    if bare in words.before_numbers and after[0].isdigit():
        return False
    if (INITIALS.match(word) and word != "I") or bare in words.abbreviations:
        # `J. The` is hardly ever an end; `the U.S. The` and `Sons Inc. The` are.
        return len(word) > 1 and after in words.starters
    return True


@cache
def _words() -> Words:
    text = files(__package__).joinpath("sentence_words.toml").read_text(encoding="utf-8")
    return Words(**{name: frozenset(listed.split()) for name, listed in tomllib.loads(text).items()})


def _goes_on(after: str) -> bool:
    """Whether what follows a mark begins like the rest of a sentence: in lower case, or with a mark."""
    bare = after.lstrip(OPENERS + " ")
    return bool(bare) and (bare[0].islower() or bare[0] in ",;:-–—.!?…")
