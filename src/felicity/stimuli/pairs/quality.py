"""The quality of a set of pairs: repeats, lexical diversity, balance, and whether a parser accepts it."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Collection, Sequence

import polars as pl

from felicity.core.errors import NotPossible

PARSER = "link-parser"
PARSER_OPTIONS = ("-graphics=0", "-verbosity=1", "-null=0", "-echo=1", "-timeout=10", "-limit=100")
FOUND = re.compile(r"Found \d+ linkages? \((\d+) ")
PARSED_AT_ONCE = 500
FIXED_SHARE = 0.3
WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|')*")


def describe_suites(pairs: pl.DataFrame, *, function_words: Collection[str] = ()) -> pl.DataFrame:
    """One row per suite: pairs, repeats, distinct words of the good sentences, the most frequent one.

    `repeated` counts the sentences that occur elsewhere in the set. `top_share` is the share of good
    sentences with the most frequent word; function words, and words that every sentence has, do not count.
    """
    rows = []
    seen: Counter[str] = Counter(pairs["good"].to_list()) + Counter(pairs["bad"].to_list())
    ignored = {word.lower() for word in function_words}
    for (suite,), part in pairs.group_by("suite", maintain_order=True):
        goods, bads = part["good"].to_list(), part["bad"].to_list()
        words = Counter(word for text in goods for word in {w.lower() for w in WORD.findall(text)})
        fixed = {word for word, times in words.items() if times > FIXED_SHARE * len(goods)}
        contents = Counter({word: times for word, times in words.items() if word not in ignored | fixed})
        top, times = contents.most_common(1)[0] if contents else ("", 0)
        rows.append(
            {
                "suite": suite,
                "n": len(goods),
                "identical": sum(good == bad for good, bad in zip(goods, bads, strict=True)),
                "repeated": sum(seen[text] > 1 for text in (*goods, *bads)),
                "distinct_words": len(words),
                "words_per_sentence": sum(len(WORD.findall(text)) for text in goods) / len(goods),
                "top_word": top,
                "top_share": times / len(goods),
            }
        )
    return pl.DataFrame(rows)


def parse_sentences(texts: Sequence[str], language: str = "en") -> list[bool]:
    """Whether link-grammar finds a complete linkage for each sentence; language: which of its dictionaries.

    Raises NotPossible if the parser is not installed, or does not answer as it should.
    """
    program = shutil.which(PARSER)
    if program is None:
        raise NotPossible(f"{PARSER} is not installed; install Debian's package link-grammar.")
    found: list[bool] = []
    for begin in range(0, len(texts), PARSED_AT_ONCE):
        part = list(texts[begin : begin + PARSED_AT_ONCE])
        answer = subprocess.run(
            [program, language, *PARSER_OPTIONS],
            input="\n".join(part) + "\n",
            capture_output=True,
            text=True,
            check=False,
            encoding="utf-8",
        )
        found += _read_verdicts(answer.stdout, part)
    return found


def _read_verdicts(answer: str, texts: Sequence[str]) -> list[bool]:
    """The parser repeats each sentence before what it found; it may report a linkage more than once."""
    lines = iter(answer.splitlines())
    blocks: list[list[str]] = []
    for line in lines:
        if len(blocks) < len(texts) and line.strip() == texts[len(blocks)]:
            blocks.append([])
        elif blocks:
            blocks[-1].append(line)
    if len(blocks) != len(texts):
        raise NotPossible(
            f"{PARSER} answered about {len(blocks)} of {len(texts)} sentences; version 5.12 is known to work."
        )
    return [any((match := FOUND.match(line)) and int(match[1]) > 0 for line in block) for block in blocks]
