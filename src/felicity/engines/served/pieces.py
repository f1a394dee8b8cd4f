"""Where a server's tokens stand in the text, told from the tokens themselves and then checked.

A server that tokenizes gives ids and pieces, no offsets. Pieces are put back into bytes in each of the
known ways of writing them; the way whose bytes are the text's is right, and where none is, nothing is
guessed.
"""

import re
from collections.abc import Callable, Iterator, Sequence

HEX = re.compile(r"<0x([0-9A-Fa-f]{2})>")
BYTES = "bytes:"
Span = tuple[int, int]


def find_spans(text: str, pieces: Sequence[str | bytes]) -> list[Span] | None:
    r"""Characters of the text that each piece covers; None where the pieces do not make up the text.

    A piece that holds part of a character covers the whole of it, as in the tokenizers library.

    >>> find_spans("é a", ["Ã", "©", "Ġa"])
    [(0, 1), (0, 1), (1, 3)]
    >>> find_spans("a b", ["▁a", "▁b"])
    [(0, 1), (1, 3)]
    >>> find_spans("é", ["bytes:\\xc3", "bytes:\\xa9"])
    [(0, 1), (0, 1)]
    """
    raw = text.encode("utf-8", "surrogatepass")
    for write in (_from_marks, _from_byte_letters, _from_text):
        written = [piece if isinstance(piece, bytes) else write(piece) for piece in pieces]
        if any(part is None for part in written):
            continue
        parts = [part for part in written if part is not None]
        whole = b"".join(parts)
        if whole == raw:
            return list(_spans(text, parts, 0))
        if whole == b" " + raw:
            return list(_spans(text, parts, 1))
    return None


def _from_marks(piece: str) -> bytes | None:
    """SentencePiece: a mark for a space, bytes in hexadecimal."""
    found = HEX.fullmatch(piece)
    return bytes([int(found[1], 16)]) if found else piece.replace("▁", " ").encode("utf-8")


def _from_byte_letters(piece: str) -> bytes | None:
    """Byte-level BPE: a letter for each byte."""
    try:
        return bytes(LETTERS[letter] for letter in piece)
    except KeyError:
        return None


def _from_text(piece: str) -> bytes | None:
    """Texts, with OpenAI's way of writing part of a character."""
    if piece.startswith(BYTES) and len(piece) > len(BYTES):
        return bytes(int(code, 16) for code in piece.removeprefix(BYTES).split("\\x")[1:])
    return piece.encode("utf-8", "surrogatepass")


def _byte_letters() -> dict[str, int]:
    """The letters by which GPT-2's tokenizer and its descendants write bytes."""
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in set(plain)]
    return {chr(byte): byte for byte in plain} | {chr(256 + n): byte for n, byte in enumerate(others)}


LETTERS = _byte_letters()


def _spans(text: str, parts: Sequence[bytes], before: int) -> Iterator[Span]:
    """Byte counts as character offsets; `before` bytes stand before the text."""
    char_at: list[int] = []
    for place, char in enumerate(text):
        char_at += [place] * len(char.encode("utf-8", "surrogatepass"))
    last = len(char_at)
    position = -before
    for part in parts:
        begin, end = max(position, 0), max(position + len(part), 0)
        position += len(part)
        start = char_at[begin] if begin < last else len(text)
        # A piece without characters of its own is part of the one that comes next.
        yield start, char_at[end - 1] + 1 if end > begin else min(start + 1, len(text))


Tokenized = tuple[list[int], list[str | bytes]]
Tokenize = Callable[[Sequence[str], bool], list[Tokenized]]
