"""Weights read into memory of their own instead of mapped.

The pages of a mapped file are those of the file: a program that writes to it changes the weights of a model
in use, and one that shortens it ends the process with a bus error.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from felicity.core.errors import BadInput

PAGE = 4096
HEADER_SIZE = 8
METADATA = "__metadata__"
# The names that safetensors gives to torch's types.
TYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2": "float8_e5m2",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "U16": "uint16",
    "I16": "int16",
    "F16": "float16",
    "BF16": "bfloat16",
    "U32": "uint32",
    "I32": "int32",
    "F32": "float32",
    "U64": "uint64",
    "I64": "int64",
    "F64": "float64",
    "C64": "complex64",
}


class PrivateTensors:
    """A safetensors file with the methods of safetensors' `safe_open`; each tensor is read when requested.

    Raises BadInput if the file is damaged, also in the methods.
    """

    def __init__(self, path: str | Path, framework: str = "pt", **_options: Any) -> None:
        if framework != "pt":
            raise ValueError(f"tensors of {framework} are not read here")
        self._path = Path(path)
        self._lock = Lock()
        self._handle = self._path.open("rb", buffering=0)
        try:
            size = int.from_bytes(self._read(0, HEADER_SIZE), "little")
            if size > self._path.stat().st_size:
                raise self._damaged()
            header = json.loads(self._read(HEADER_SIZE, size))
            self._metadata: dict[str, str] | None = header.pop(METADATA, None)
            self._entries: dict[str, dict[str, Any]] = header
        except (ValueError, TypeError, AttributeError) as error:
            self._handle.close()
            raise self._damaged() from error
        except BaseException:
            self._handle.close()
            raise
        self._begin = HEADER_SIZE + size

    def __enter__(self) -> "PrivateTensors":
        return self

    def __exit__(self, *_: object) -> None:
        self._handle.close()

    def keys(self) -> list[str]:
        """The names of all tensors."""
        return list(self._entries)

    def metadata(self) -> dict[str, str] | None:
        """What the file says about itself."""
        return self._metadata

    def get_slice(self, name: str) -> "PrivateSlice":
        """A tensor that is read when it is indexed."""
        return PrivateSlice(self, name, self._entries[name])

    def get_tensor(self, name: str) -> Any:
        """A tensor in memory of its own, as far from the beginning of a page as in the file.

        Matrix products may round differently with the alignment; this is that of a mapped file.

        Raises KeyError if there is none of this name.
        """
        import torch

        entry = self._entries[name]
        try:
            dtype, shape = getattr(torch, TYPES[entry["dtype"]]), [int(side) for side in entry["shape"]]
            first, last = (self._begin + int(offset) for offset in entry["data_offsets"])
            if not self._begin <= first <= last <= self._path.stat().st_size:
                raise self._damaged()
            memory = torch.empty(last - first + PAGE, dtype=torch.uint8)
            aligned = first % dtype.itemsize == 0
            start = (first - memory.data_ptr()) % PAGE if aligned else 0
            part = memory[start : start + last - first]
            self._fill(part.numpy().data, first)
            return part.view(dtype).reshape(shape)
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise self._damaged() from error

    def _read(self, first: int, size: int) -> bytes:
        content = bytearray(size)
        self._fill(memoryview(content), first)
        return bytes(content)

    def _fill(self, room: memoryview, first: int) -> None:
        # transformers reads in several threads.
        with self._lock:
            self._handle.seek(first)
            while len(room):
                count = self._handle.readinto(room)
                if not count:
                    raise self._damaged()
                room = room[count:]

    def _damaged(self) -> BadInput:
        return BadInput(f"{self._path} is damaged or not a safetensors file; download or save it again.")


class PrivateSlice:
    """One tensor of a file before it is read, with the methods of safetensors' slices."""

    def __init__(self, file: PrivateTensors, name: str, entry: dict[str, Any]) -> None:
        self._file, self._name, self._entry = file, name, entry

    def get_dtype(self) -> str:
        """The type, by the name that safetensors gives it."""
        return str(self._entry["dtype"])

    def get_shape(self) -> list[int]:
        """The sides."""
        return list(self._entry["shape"])

    def __getitem__(self, index: Any) -> Any:
        return self._file.get_tensor(self._name)[index]


def load_private_tensors(path: Path) -> dict[str, Any]:
    """All tensors of a safetensors file.

    Raises BadInput if it is damaged.
    """
    if sys.byteorder == "big":
        from safetensors.torch import load_file

        return dict(load_file(path))
    with PrivateTensors(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping


@contextmanager
def reading_privately() -> Iterator[None]:
    """Let transformers read weights instead of mapping them."""
    from unittest.mock import patch

    from transformers import modeling_utils

    if sys.byteorder == "big":
        yield
        return
    with (
        patch.object(modeling_utils, "safe_open", PrivateTensors, create=True),
        # Of the files that torch writes, it maps those that are archives.
        patch.object(modeling_utils, "is_zipfile", lambda _: False, create=True),
    ):
        yield
