"""The score cache: token scores, fillers and continuations on disk, shared between runs.

One SQLite file per engine key (weights, tokenizer, policy, dtype), so that no model ever gets
another's numbers. Each batch is one transaction: a process killed at any moment loses the current batch and
nothing else. The journal is SQLite's default, which also works on network file systems. Every row has a
checksum, in a table of its own so that older files stay readable; a damaged row is detected when it is read.
"""

import hashlib
import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from felicity.core.engine import EngineInfo, Sampling
from felicity.core.errors import FelicityError, NotPossible
from felicity.core.files import cache_folder
from felicity.core.schemas import CONTINUATIONS, FILLERS, TOKENS

KEY_BYTES = 16
QUERY_KEYS = 500
BUSY_SECONDS = 60.0
CHECKSUM_BYTES = 8
# What rounding may leave above the logarithm of 1.
ROUNDING = 1e-3

CREATE = """
CREATE TABLE IF NOT EXISTS engine (info TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS score (
    key BLOB PRIMARY KEY, tokens TEXT NOT NULL, start BLOB NOT NULL, end BLOB NOT NULL, logprob BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS boundary (key BLOB PRIMARY KEY, boundary BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS filler (key BLOB PRIMARY KEY, fillers TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS continuation (key BLOB PRIMARY KEY, written TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS checksum (key BLOB PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID;
"""


def prompt_keys(prompts: pl.DataFrame) -> list[bytes]:
    """The cache key of each prompt: a digest of its context and text."""
    contexts = prompts["context_text"].fill_null("").to_list()
    return [
        hashlib.sha256(f"{len(context)}\0{context}{text}".encode("utf-8", "surrogatepass")).digest()[
            :KEY_BYTES
        ]
        for context, text in zip(contexts, prompts["text"].to_list(), strict=True)
    ]


def boundary_keys(keys: Sequence[bytes]) -> list[bytes]:
    """The cache keys of the word boundaries of prompts with these keys."""
    return [hashlib.sha256(b"boundary\0" + key).digest()[:KEY_BYTES] for key in keys]


def frame_keys(frames: Sequence[str], *, k: int) -> list[bytes]:
    """The cache keys of the k most probable words for each frame."""
    return [
        hashlib.sha256(f"{k}\0{frame}".encode("utf-8", "surrogatepass")).digest()[:KEY_BYTES]
        for frame in frames
    ]


def continuation_keys(prompts: Sequence[str], sampling: Sampling) -> list[bytes]:
    """The cache keys of the continuations of each prompt, all its samples together."""
    how = json.dumps(asdict(sampling), sort_keys=True)
    return [
        hashlib.sha256(f"{how}\0{prompt}".encode("utf-8", "surrogatepass")).digest()[:KEY_BYTES]
        for prompt in prompts
    ]


class DamagedRows(FelicityError):
    """Rows of the score cache that are not what was stored, by their keys."""

    def __init__(self, path: Path | None, keys: Sequence[bytes]) -> None:
        self.keys = frozenset(keys)
        super().__init__(
            f"{len(keys)} rows of the score cache {path} are damaged; remove that file and run again."
        )


class ScoreStore:
    """Scores of one engine by prompt, and its fillers by frame.

    bounded: a score includes the log-probability of a word boundary at each token, kept beside it.
    """

    def __init__(self, path: Path | None, info: EngineInfo) -> None:
        """Open or create the cache at `path`; without a path it is in memory."""
        self.path = path
        self.bounded = False
        # Whether the user has been warned about damaged rows.
        self.told_damage = False
        with self._errors():
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            # A server uses a model from several threads, one at a time.
            self._database = sqlite3.connect(
                path or ":memory:", timeout=BUSY_SECONDS, check_same_thread=False
            )
            # A damaged text is found by its checksum, not by an error of decoding.
            self._database.text_factory = bytes
            self._database.executescript(CREATE)
            with self._database:
                if not self._database.execute("SELECT 1 FROM engine").fetchone():
                    self._database.execute("INSERT INTO engine VALUES (?)", [json.dumps(info.as_dict())])

    @classmethod
    def shared(cls, info: EngineInfo) -> "ScoreStore":
        """The user's cache for this engine, shared between runs."""
        return cls(cache_folder() / "scores" / f"{info.key}.sqlite", info)

    def with_boundaries(self) -> "ScoreStore":
        """The same cache, whose scores include word boundaries."""
        bounded = copy(self)
        bounded.bounded = True
        return bounded

    def has(self, keys: Sequence[bytes]) -> set[bytes]:
        """The keys that are already scored."""
        scored = self._has("score", keys)
        if not self.bounded:
            return scored
        there = self._has("boundary", boundary_keys(keys))
        return {
            key for key, boundary_key in zip(keys, boundary_keys(keys), strict=True) if boundary_key in there
        } & scored

    def has_fillers(self, keys: Sequence[bytes]) -> set[bytes]:
        """The keys whose frames are already filled."""
        return self._has("filler", keys)

    def has_continuations(self, keys: Sequence[bytes]) -> set[bytes]:
        """The keys whose prompts are already continued."""
        return self._has("continuation", keys)

    def add_continuations(self, keys: Sequence[bytes], prompts: Sequence[str], written: pl.DataFrame) -> None:
        """Save the continuations of a batch of prompts, in one transaction; existing entries stay."""
        by_prompt = written.partition_by("prompt", as_dict=True)
        rows = [
            (key, json.dumps(by_prompt[(prompt,)].drop("prompt").to_dict(as_series=False)))
            for key, prompt in zip(keys, prompts, strict=True)
        ]
        self._insert("continuation", rows)

    def read_continuations(self, keys: Sequence[bytes], prompts: Sequence[str]) -> pl.DataFrame:
        """Rows of CONTINUATIONS for these prompts, in their order; all keys must be in the cache.

        Raises DamagedRows.
        """
        rows = self._select("continuation", "written", keys)
        columns: dict[str, list[Any]] = {name: [] for name in CONTINUATIONS}
        try:
            for key, prompt in zip(keys, prompts, strict=True):
                written = json.loads(rows[key][0])
                columns["prompt"] += [prompt] * len(written["sample"])
                for name, values in written.items():
                    columns[name] += values
            return pl.DataFrame(columns, schema=CONTINUATIONS)
        except (ValueError, TypeError, KeyError, pl.exceptions.PolarsError) as error:
            raise DamagedRows(self.path, keys) from error

    def _has(self, table: str, keys: Sequence[bytes]) -> set[bytes]:
        stored: set[bytes] = set()
        with self._errors():
            for part in _parts(keys):
                query = f"SELECT key FROM {table} WHERE key IN ({_marks(part)})"
                stored.update(key for (key,) in self._database.execute(query, part))
        return stored

    def add_fillers(self, keys: Sequence[bytes], frames: Sequence[str], fillers: pl.DataFrame) -> None:
        """Save the fillers of a batch of frames, in one transaction; existing entries stay."""
        by_frame = fillers.partition_by("frame", as_dict=True)
        rows = [
            (key, json.dumps(by_frame[(frame,)].drop("frame").to_dict(as_series=False)))
            for key, frame in zip(keys, frames, strict=True)
        ]
        self._insert("filler", rows)

    def read_fillers(self, keys: Sequence[bytes], frames: Sequence[str]) -> pl.DataFrame:
        """Rows of FILLERS for these frames, in their order; all keys must be in the cache.

        Raises DamagedRows.
        """
        rows = self._select("filler", "fillers", keys)
        try:
            tables = [
                pl.DataFrame({"frame": frame} | json.loads(rows[key][0]), schema=FILLERS)
                for key, frame in zip(keys, frames, strict=True)
            ]
        except (ValueError, TypeError, pl.exceptions.PolarsError) as error:
            raise DamagedRows(self.path, keys) from error
        return pl.concat(tables) if tables else pl.DataFrame(schema=FILLERS)

    def add(self, keys: Sequence[bytes], tokens: pl.DataFrame) -> None:
        """Save a scored batch, in one transaction; existing entries stay."""
        rows = [
            (
                key,
                json.dumps(row["tokens"], ensure_ascii=False),
                np.array(row["start"], dtype="<u4").tobytes(),
                np.array(row["end"], dtype="<u4").tobytes(),
                np.array(row["logprob"], dtype="<f4").tobytes(),
            )
            for key, row in zip(keys, tokens.iter_rows(named=True), strict=True)
        ]
        above = (tokens["logprob"].list.max().fill_null(0.0) > ROUNDING).any()
        if above:
            raise NotPossible(
                "The model gave a log-probability above 0, which is impossible; nothing was stored."
            )
        self._insert("score", rows)
        if self.bounded:
            blobs = [np.array(row, dtype="<f4").tobytes() for row in tokens["boundary"].to_list()]
            self._insert("boundary", list(zip(boundary_keys(keys), blobs, strict=True)))

    def read(self, requests: Sequence[str], keys: Sequence[bytes]) -> pl.DataFrame:
        """Rows of TOKENS, or BOUNDED_TOKENS, for these requests, in their order; all must be in the cache.

        Raises DamagedRows if a row is not what was stored or cannot be a score.
        """
        stored = self._select("score", "tokens, start, end, logprob", keys)
        rows = [stored[key] for key in keys]
        try:
            tokens = self._build(requests, rows)
        except (ValueError, TypeError, UnicodeDecodeError, pl.exceptions.PolarsError) as error:
            raise DamagedRows(self.path, self._find_unreadable(stored)) from error
        impossible = _find_impossible(tokens)
        if impossible.any():
            raise DamagedRows(self.path, [keys[index] for index in impossible.arg_true()])
        return self._add_boundaries(tokens, boundary_keys(keys)) if self.bounded else tokens

    def _add_boundaries(self, tokens: pl.DataFrame, keys: Sequence[bytes]) -> pl.DataFrame:
        rows = self._select("boundary", "boundary", keys)
        lists = _unpack([rows[key][0] for key in keys], "<f4").list.eval(pl.element().fill_nan(None))
        other = lists.list.len() != tokens["tokens"].list.len()
        if other.any():
            raise DamagedRows(self.path, [keys[index] for index in other.arg_true()])
        return tokens.with_columns(lists.alias("boundary"))

    def _build(self, requests: Sequence[str], rows: Sequence[tuple[bytes, ...]]) -> pl.DataFrame:
        texts = pl.Series([row[0].decode() for row in rows], dtype=pl.String)
        return pl.DataFrame(
            {
                "request": list(requests),
                "tokens": texts.str.json_decode(TOKENS["tokens"]),
                "start": _unpack([row[1] for row in rows], "<u4"),
                "end": _unpack([row[2] for row in rows], "<u4"),
                "logprob": _unpack([row[3] for row in rows], "<f4").list.eval(pl.element().fill_nan(None)),
            },
            schema=TOKENS,
        )

    def remove(self, keys: Collection[bytes]) -> None:
        """Forget what is stored by these keys, in one transaction."""
        rows = [[key] for key in keys]
        with self._errors(), self._database:
            for table in ("score", "boundary", "filler", "continuation", "checksum"):
                self._database.executemany(f"DELETE FROM {table} WHERE key = ?", rows)

    def _insert(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Rows that are not there yet, each with its checksum."""
        stored = self._has(table, [row[0] for row in rows])
        fresh = sorted({row[0]: row for row in reversed(rows) if row[0] not in stored}.values())
        if not fresh:
            return
        marks = ", ".join("?" * len(fresh[0]))
        with self._errors(), self._database:
            # Another process may have been quicker; then its row and its checksum stay.
            self._database.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", fresh)
            self._keep_checksums(fresh)

    def _keep_checksums(self, rows: Sequence[tuple[Any, ...]]) -> None:
        checksums = [(row[0], _checksum(row)) for row in rows]
        self._database.executemany("INSERT OR IGNORE INTO checksum VALUES (?, ?)", checksums)

    def _select(self, table: str, columns: str, keys: Sequence[bytes]) -> dict[bytes, tuple[Any, ...]]:
        """The stored columns by key.

        Raises DamagedRows if a row is not what was stored.
        """
        rows: dict[bytes, tuple[Any, ...]] = {}
        damaged: list[bytes] = []
        query = f"SELECT key, {columns}, digest FROM {table} LEFT JOIN checksum USING (key) WHERE key IN"
        with self._errors():
            for part in _parts(list(dict.fromkeys(keys))):
                for row in self._database.execute(f"{query} ({_marks(part)})", part):
                    if row[-1] != _checksum(row[:-1]):
                        damaged.append(row[0])
                    rows[row[0]] = row[1:-1]
        lost = [key for key in keys if key not in rows]
        if damaged or lost:
            raise DamagedRows(self.path, [*damaged, *lost])
        return rows

    def _find_unreadable(self, rows: Mapping[bytes, tuple[Any, ...]]) -> list[bytes]:
        unreadable = []
        for key, row in rows.items():
            try:
                self._build([""], [row])
            except (ValueError, TypeError, AttributeError, pl.exceptions.PolarsError):
                unreadable.append(key)
        return unreadable or list(rows)

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise FelicityError(
                f"Cannot use the score cache {self.path}: {str(error).lower()}; free space, remove that "
                "file, or set FELICITY_CACHE to another folder."
            ) from error


def _parts(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for begin in range(0, len(keys), QUERY_KEYS):
        yield keys[begin : begin + QUERY_KEYS]


def _marks(part: Sequence[bytes]) -> str:
    return ",".join("?" * len(part))


def _checksum(row: Sequence[Any]) -> bytes:
    """A digest of a row's key and content, and of where one column ends and the next begins."""
    cells = [cell.encode() if isinstance(cell, str) else cell for cell in row]
    try:
        content = b"".join([repr(list(map(len, cells))).encode(), *cells])
    except TypeError:  # damage has turned a cell into a number
        return b""
    return hashlib.blake2b(content, digest_size=CHECKSUM_BYTES).digest()


def _find_impossible(tokens: pl.DataFrame) -> pl.Series:
    """Which rows cannot be scores: lists of different length, or log-probabilities above 0."""
    sizes = [pl.col(name).list.len() for name in ("tokens", "start", "end", "logprob")]
    unequal = pl.any_horizontal(*(size != sizes[0] for size in sizes[1:]))
    above = pl.col("logprob").list.max().fill_null(0.0) > ROUNDING
    return tokens.select(unequal | above).to_series()


def _unpack(blobs: list[bytes], dtype: str) -> pl.Series:
    """Blobs of numbers as one list column, without a Python object per number."""
    width = np.dtype(dtype).itemsize
    places = np.arange(len(blobs))
    values = np.frombuffer(b"".join(blobs), dtype=dtype)
    row = np.repeat(places, [len(blob) // width for blob in blobs])
    lists = pl.DataFrame({"row": row, "value": values}).group_by("row", maintain_order=True).agg("value")
    whole = pl.DataFrame({"row": places}).join(lists, on="row", how="left", maintain_order="left")["value"]
    return whole.fill_null(pl.Series([[]], dtype=whole.dtype).first()) if whole.null_count() else whole
