"""ARPA files, plain or gzipped: writing n-gram models, and reading those of any program."""

import gzip
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, cast, get_args

import numpy as np
import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import open_bytes
from felicity.engines.ngram.model import NEVER, NgramModel
from felicity.engines.words import UNKNOWN, WordSplitting

ROWS_AT_ONCE = 100_000
# A comment before the data, which other readers skip: how texts are split into words.
COMMENT = "# felicity"
COUNT = re.compile(rb"ngram (\d{1,3}) ?= ?(\d{1,15})")
SECTION = re.compile(rb"\\(\d+)-grams:")
# How some programs write the unknown word.
OTHER_UNKNOWN = "<UNK>"


class NumberedLines:
    """Lines of a file without line ends, and the number of the last line read."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self.number = 0

    def __iter__(self) -> "NumberedLines":
        return self

    def __next__(self) -> bytes:
        line = next(self._lines)
        self.number += 1
        return line.rstrip(b"\r\n")

    def next_filled(self) -> bytes:
        """The next line that is not empty; empty at the end of the file."""
        return next((line for line in self if line.strip()), b"")


@contextmanager
def open_lines(path: Path) -> Iterator[NumberedLines]:
    """The lines of a file, plain or gzipped.

    Raises BadInput if it cannot be read to its end.
    """
    with open_bytes(path) as (_, content):
        yield NumberedLines(iter(content))


def write_part(model: NgramModel, part: Path, *, packed: bool) -> None:
    """Write the model to a temporary file."""
    with part.open("wb") as raw:
        if packed:
            with gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as zipped:
                _write(model, zipped)
        else:
            _write(model, raw)


def _write(model: NgramModel, file: "IO[bytes] | gzip.GzipFile") -> None:
    casing = "lower" if model.lower else "keep"
    file.write(f"{COMMENT} words={model.splitting} casing={casing}\n\\data\\\n".encode())
    for n, values in enumerate(model.logprob, start=1):
        file.write(f"ngram {n}={len(values)}\n".encode())
    for n in range(1, model.order + 1):
        file.write(f"\n\\{n}-grams:\n".encode())
        for lines in _lines(model, n):
            file.write(lines.encode())
    file.write(b"\n\\end\\\n")


def _lines(model: NgramModel, n: int) -> Iterator[str]:
    """The lines of one order, in batches."""
    total = len(model.logprob[n - 1])
    for begin in range(0, total, ROWS_AT_ONCE):
        rows = np.arange(begin, min(begin + ROWS_AT_ONCE, total))
        texts = _spell(model, n, rows)
        logprob = model.logprob[n - 1][rows].tolist()
        if n == model.order:
            pairs = zip(logprob, texts, strict=True)
            yield "".join(f"{value:.7g}\t{text}\n" for value, text in pairs)
        else:
            backoff = model.backoff[n - 1][rows].tolist()
            triples = zip(logprob, texts, backoff, strict=True)
            yield "".join(f"{value:.7g}\t{text}\t{weight:.7g}\n" for value, text, weight in triples)


def _spell(model: NgramModel, n: int, rows: np.ndarray) -> list[str]:
    """The words of n-grams, separated by spaces."""
    columns: list[list[str]] = []
    while n > 1:
        keys = model.keys[n - 2][rows]
        columns.append([model.words[i] for i in (keys % len(model.words)).tolist()])
        rows = keys // len(model.words)
        n -= 1
    columns.append([model.words[i] for i in rows.tolist()])
    return [" ".join(parts) for parts in zip(*reversed(columns), strict=True)]


@dataclass(frozen=True)
class ArpaHeader:
    """What precedes the n-grams: how many there are of each order, and how to split a text."""

    counts: tuple[int, ...]
    splitting: WordSplitting = "vocabulary"
    lower: bool = False


@dataclass(frozen=True)
class _Section:
    """The n-grams of one order: word ids, base-10 logarithms, and the number of the first line."""

    ids: np.ndarray
    logprob: np.ndarray
    backoff: np.ndarray
    first_line: int


def read_header(path: Path) -> tuple[ArpaHeader, list[str]]:
    """The header of a file and its vocabulary, without the longer n-grams.

    Raises BadInput if the file is not an ARPA file, naming the line.
    """
    with open_lines(path) as lines:
        header = _read_counts(lines, path)
        words, _ = _read_words(lines, path, header)
        return header, words


def read_arpa(path: Path) -> NgramModel:
    """The whole model.

    Raises BadInput if the file is damaged, naming the line.
    """
    with open_lines(path) as lines:
        header = _read_counts(lines, path)
        words, unigrams = _read_words(lines, path, header)
        sections = [unigrams]
        for n in range(2, len(header.counts) + 1):
            sections.append(_read_section(lines, path, n, header.counts, words))
        _expect_end(lines, path)
    return _build(words, sections, header, path)


def _read_counts(lines: NumberedLines, path: Path) -> ArpaHeader:
    settings: dict[str, str] = {}
    for line in lines:
        if line.strip() == b"\\data\\":
            break
        if line.startswith(COMMENT.encode()):
            parts = line.decode("utf-8", "replace").split()[2:]
            settings = dict(part.partition("=")[::2] for part in parts)
    else:
        raise BadInput(f"{path} is not an ARPA file: it has no line \\data\\.")
    counts: list[int] = []
    for line in lines:
        if not line.strip():
            if counts:
                break
            continue
        match = COUNT.fullmatch(line.strip())
        if not match or int(match[1]) != len(counts) + 1:
            raise BadInput(f"{path}, line {lines.number}: not 'ngram {len(counts) + 1}=' and a count.")
        counts.append(int(match[2]))
    if not counts or not counts[0]:
        raise BadInput(
            f"{path}, line {lines.number}: the file announces no n-grams; download or write it again."
        )
    splitting: WordSplitting = "vocabulary"
    if settings.get("words") in get_args(WordSplitting):
        splitting = cast(WordSplitting, settings["words"])
    return ArpaHeader(tuple(counts), splitting, settings.get("casing") == "lower")


def _read_words(lines: NumberedLines, path: Path, header: ArpaHeader) -> tuple[list[str], _Section]:
    """The vocabulary in the order of the file, and the unigrams."""
    first, table = _read_table(lines, path, 1, header.counts)
    words = table["1"].to_list()
    if table["1"].is_duplicated().any():
        again = int(np.flatnonzero(~table["1"].is_first_distinct().to_numpy())[0])
        raise BadInput(f"{path}, line {first + again}: '{words[again]}' occurs in the file twice.")
    if UNKNOWN not in words and OTHER_UNKNOWN in words:
        words[words.index(OTHER_UNKNOWN)] = UNKNOWN
    logprob, backoff = _numbers(table, path, first)
    return words, _Section(np.arange(len(words))[:, None], logprob, backoff, first)


def _read_section(
    lines: NumberedLines, path: Path, n: int, counts: tuple[int, ...], words: list[str]
) -> _Section:
    first, table = _read_table(lines, path, n, counts)
    vocabulary = pl.Enum(words)
    ids = np.empty((len(table), n), dtype=np.int64)
    for k in range(n):
        column = (
            table[str(k + 1)].replace({OTHER_UNKNOWN: UNKNOWN}) if UNKNOWN in words else table[str(k + 1)]
        )
        codes = column.cast(vocabulary, strict=False).to_physical()
        if codes.null_count():
            bad = int(codes.is_null().arg_max() or 0)
            raise BadInput(
                f"{path}, line {first + bad}: '{table[str(k + 1)][bad]}' is not among the 1-grams."
            )
        ids[:, k] = codes.to_numpy()
    logprob, backoff = _numbers(table, path, first)
    return _Section(ids, logprob, backoff, first)


def _read_table(
    lines: NumberedLines, path: Path, n: int, counts: tuple[int, ...]
) -> tuple[int, pl.DataFrame]:
    """A section as columns logprob, 1 ... n, backoff, all text, and the number of its first line."""
    head = lines.next_filled().strip()
    match = SECTION.fullmatch(head)
    if not match or int(match[1]) != n:
        raise BadInput(f"{path}, line {lines.number}: not '\\{n}-grams:'; is the file complete?")
    first = lines.number + 1
    rows = list(islice(lines, counts[n - 1]))
    if len(rows) < counts[n - 1]:
        raise BadInput(
            f"{path} ends after {len(rows):,} of its {counts[n - 1]:,} {n}-grams; download or write it again."
        )
    text = _decode(rows, path, first)
    fields = text.str.replace_all(" ", "\t", literal=True).str.split("\t")
    wrong = _misfits(fields, n)
    if wrong.any():
        fields = text.str.strip_chars(" \t").str.replace_all(r"[ \t]+", "\t").str.split("\t")
        wrong = _misfits(fields, n)
    if wrong.any():
        bad = int(wrong.arg_max() or 0)
        raise BadInput(
            f"{path}, line {first + bad}: not a number, {_words(n)} and optionally another number."
        )
    names = ["logprob", *(str(k) for k in range(1, n + 1)), "backoff"]
    columns = {name: fields.list.get(place, null_on_oob=True) for place, name in enumerate(names)}
    return first, pl.DataFrame(columns)


def _misfits(fields: pl.Series, n: int) -> pl.Series:
    length = fields.list.len()
    return (length != n + 1) & (length != n + 2)


def _decode(rows: list[bytes], path: Path, first: int) -> pl.Series:
    try:
        return pl.Series([row.decode() for row in rows], dtype=pl.String)
    except UnicodeDecodeError:
        for number, row in enumerate(rows, start=first):
            try:
                row.decode()
            except UnicodeDecodeError as error:
                raise BadInput(
                    f"{path}, line {number}: not UTF-8; save the file as UTF-8 and try again."
                ) from error
        raise


def _numbers(table: pl.DataFrame, path: Path, first: int) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of probabilities and back-off weights."""
    columns = []
    for name in ("logprob", "backoff"):
        values = table[name].cast(pl.Float64, strict=False)
        bad = (values.is_null() & table[name].is_not_null()) | values.is_nan().fill_null(False)
        if name == "logprob":
            bad |= (values > 0).fill_null(False)
        if bad.any():
            row = int(bad.arg_max() or 0)
            what = "the logarithm of a probability" if name == "logprob" else "a back-off weight"
            raise BadInput(f"{path}, line {first + row}: '{table[name][row]}' is not {what}.")
        columns.append(values.fill_null(0.0).to_numpy())
    return np.maximum(columns[0], NEVER), np.maximum(columns[1], NEVER)


def _expect_end(lines: NumberedLines, path: Path) -> None:
    line = lines.next_filled().strip()
    if line != b"\\end\\":
        raise BadInput(f"{path}, line {lines.number}: not '\\end\\'; is the file complete?")


def _build(words: list[str], sections: list[_Section], header: ArpaHeader, path: Path) -> NgramModel:
    """The trie: at every order the file's n-grams and the prefixes of longer ones, which it may lack."""
    size = len(words)
    rows = [section.ids[:, 0] for section in sections]
    keys, logprob, backoff = [], [sections[0].logprob], [sections[0].backoff]
    for n in range(2, len(sections) + 1):
        wanted = [rows[m] * size + sections[m].ids[:, n - 1] for m in range(n - 1, len(sections))]
        distinct, first = np.unique(wanted[0], return_index=True)
        if len(distinct) < len(wanted[0]):
            again = np.setdiff1d(np.arange(len(wanted[0])), first)[0]
            raise BadInput(f"{path}, line {sections[n - 1].first_line + again}: this n-gram occurs twice.")
        every = np.unique(np.concatenate(wanted)) if len(wanted) > 1 else distinct
        for m, key in zip(range(n - 1, len(sections)), wanted, strict=True):
            rows[m] = np.searchsorted(every, key)
        values, weights = np.full(len(every), np.nan), np.zeros(len(every))
        values[rows[n - 1]], weights[rows[n - 1]] = sections[n - 1].logprob, sections[n - 1].backoff
        keys.append(every)
        logprob.append(values)
        backoff.append(weights)
    return NgramModel(words, tuple(keys), tuple(logprob), tuple(backoff), header.splitting, header.lower)


def _words(n: int) -> str:
    return "a word" if n == 1 else f"{n} words"
