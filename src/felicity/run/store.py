"""Token scores and words for blanks on disk, shared between runs: what is asked once is never asked again.

One SQLite file per engine key (weights, tokenizer, policy, dtype), so that no model is ever given
another's numbers. Each batch is one transaction: a kill at any moment loses the batch in flight and
nothing else. The journal is SQLite's plain one, which also holds on network file systems.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl

from felicity.core.engine import EngineInfo
from felicity.core.errors import FelicityError
from felicity.core.files import cache_folder
from felicity.core.schemas import FILLERS, TOKENS

KEY_BYTES = 16
QUERY_KEYS = 500
BUSY_SECONDS = 60.0

CREATE = """
CREATE TABLE IF NOT EXISTS engine (info TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS score (
    key BLOB PRIMARY KEY, tokens TEXT NOT NULL, start BLOB NOT NULL, end BLOB NOT NULL, logprob BLOB NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS filler (key BLOB PRIMARY KEY, fillers TEXT NOT NULL) WITHOUT ROWID;
"""


def prompt_keys(prompts: pl.DataFrame) -> list[bytes]:
    """What each prompt's score is found by: a digest of its context and text."""
    contexts = prompts["context_text"].fill_null("").to_list()
    return [
        hashlib.sha256(f"{len(context)}\0{context}{text}".encode("utf-8", "surrogatepass")).digest()[
            :KEY_BYTES
        ]
        for context, text in zip(contexts, prompts["text"].to_list(), strict=True)
    ]


def frame_keys(frames: Sequence[str], *, k: int) -> list[bytes]:
    """What the k likeliest words for each frame are found by."""
    return [
        hashlib.sha256(f"{k}\0{frame}".encode("utf-8", "surrogatepass")).digest()[:KEY_BYTES]
        for frame in frames
    ]


class ScoreStore:
    """Scores of one engine by prompt, and its words for blanks by frame."""

    def __init__(self, path: Path | None, info: EngineInfo) -> None:
        """Open or make the store at `path`; without a path it lives in memory."""
        self._path = path
        with self._errors():
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
            self._database = sqlite3.connect(path or ":memory:", timeout=BUSY_SECONDS)
            self._database.executescript(CREATE)
            with self._database:
                if not self._database.execute("SELECT 1 FROM engine").fetchone():
                    self._database.execute("INSERT INTO engine VALUES (?)", [json.dumps(info.as_dict())])

    @classmethod
    def shared(cls, info: EngineInfo) -> "ScoreStore":
        """The user's store for this engine, shared between runs."""
        return cls(cache_folder() / "scores" / f"{info.key}.sqlite", info)

    def has(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of the keys that are scored already."""
        return self._has("score", keys)

    def has_fillers(self, keys: Sequence[bytes]) -> set[bytes]:
        """Those of the keys whose frames are filled already."""
        return self._has("filler", keys)

    def _has(self, table: str, keys: Sequence[bytes]) -> set[bytes]:
        found: set[bytes] = set()
        with self._errors():
            for part in _parts(keys):
                query = f"SELECT key FROM {table} WHERE key IN ({_marks(part)})"
                found.update(key for (key,) in self._database.execute(query, part))
        return found

    def add_fillers(self, keys: Sequence[bytes], frames: Sequence[str], fillers: pl.DataFrame) -> None:
        """Keep the words for a batch of frames, in one transaction; what is there already stays."""
        by_frame = fillers.partition_by("frame", as_dict=True)
        rows = [
            (key, json.dumps(by_frame[(frame,)].drop("frame").to_dict(as_series=False)))
            for key, frame in zip(keys, frames, strict=True)
        ]
        with self._errors(), self._database:
            self._database.executemany("INSERT OR IGNORE INTO filler VALUES (?, ?)", rows)

    def read_fillers(self, keys: Sequence[bytes], frames: Sequence[str]) -> pl.DataFrame:
        """Rows of FILLERS for these frames, in their order; all keys must be in the store."""
        found: dict[bytes, str] = {}
        with self._errors():
            for part in _parts(list(dict.fromkeys(keys))):
                query = f"SELECT key, fillers FROM filler WHERE key IN ({_marks(part)})"
                found.update(self._database.execute(query, part))
        tables = [
            pl.DataFrame({"frame": frame} | json.loads(found[key]), schema=FILLERS)
            for key, frame in zip(keys, frames, strict=True)
        ]
        return pl.concat(tables) if tables else pl.DataFrame(schema=FILLERS)

    def add(self, keys: Sequence[bytes], tokens: pl.DataFrame) -> None:
        """Keep a scored batch, in one transaction; what is there already stays."""
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
        with self._errors(), self._database:
            self._database.executemany("INSERT OR IGNORE INTO score VALUES (?, ?, ?, ?, ?)", rows)

    def read(self, requests: Sequence[str], keys: Sequence[bytes]) -> pl.DataFrame:
        """Rows of TOKENS for these requests, in their order; all keys must be in the store."""
        found: dict[bytes, tuple[str, bytes, bytes, bytes]] = {}
        with self._errors():
            for part in _parts(list(dict.fromkeys(keys))):
                query = f"SELECT key, tokens, start, end, logprob FROM score WHERE key IN ({_marks(part)})"
                found.update((row[0], row[1:]) for row in self._database.execute(query, part))
        rows = [found[key] for key in keys]
        return pl.DataFrame(
            {
                "request": list(requests),
                "tokens": pl.Series([row[0] for row in rows], dtype=pl.String).str.json_decode(
                    TOKENS["tokens"]
                ),
                "start": _unpack([row[1] for row in rows], "<u4"),
                "end": _unpack([row[2] for row in rows], "<u4"),
                "logprob": _unpack([row[3] for row in rows], "<f4").list.eval(pl.element().fill_nan(None)),
            },
            schema=TOKENS,
        )

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise FelicityError(
                f"Cannot use the score cache {self._path}: {str(error).lower()}; free the disk, remove that "
                "file, or set FELICITY_CACHE to another folder."
            ) from error


def _parts(keys: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    for begin in range(0, len(keys), QUERY_KEYS):
        yield keys[begin : begin + QUERY_KEYS]


def _marks(part: Sequence[bytes]) -> str:
    return ",".join("?" * len(part))


def _unpack(blobs: list[bytes], dtype: str) -> pl.Series:
    """Blobs of numbers as one list column, without a Python object per number."""
    import pyarrow as pa

    width = np.dtype(dtype).itemsize
    offsets = np.concatenate([[0], np.cumsum([len(blob) // width for blob in blobs])]).astype(np.int64)
    values = np.frombuffer(b"".join(blobs), dtype=dtype)
    return pl.Series(pl.from_arrow(pa.LargeListArray.from_arrays(offsets, values)))
