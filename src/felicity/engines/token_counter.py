"""Token counts from a tokenizer alone, without a model's weights."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from felicity.core.errors import BadInput
from felicity.core.files import read_bytes
from felicity.engines.families import open_tokenizer
from felicity.engines.runtime import load_tokenizer

# The number of tokens of each text, without special tokens.
CountTokens = Callable[[Sequence[str]], list[int]]
BPE = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
WEIGHTS = ("*.safetensors", "*.bin", "*.index.json")
TEXTS_AT_ONCE = 5000


def has_weights(spec: str) -> bool:
    """Whether `-m` names a model that can score, not a folder with only a tokenizer."""
    folder = Path(spec).expanduser()
    if not folder.is_dir():
        return True
    return any(True for pattern in WEIGHTS for _ in folder.glob(pattern))


def open_counter(spec: str) -> CountTokens:
    """A function that counts tokens, for a model or for a folder that holds only a tokenizer.

    A folder may hold tokenizer.json, vocab.json with merges.txt (or OpenAI's names for the two), or
    BERT's vocab.txt, each plain or gzipped.

    Raises BadInput if there is no tokenizer.
    """
    folder = Path(spec).expanduser()
    if not folder.is_dir() or has_weights(spec):
        return _count_with_transformers(open_tokenizer(spec))
    if (folder / "tokenizer.json").is_file():
        from tokenizers import Tokenizer

        return _count_with_tokenizers(
            _load(lambda: Tokenizer.from_file(str(folder / "tokenizer.json")), folder)
        )
    for vocabulary, merges in BPE:
        if _find(folder, vocabulary) and _find(folder, merges):
            return _count_with_tokenizers(_load(partial(_open_bpe, folder, vocabulary, merges), folder))
    if _find(folder, "vocab.txt"):
        return _count_with_tokenizers(_load(lambda: _open_wordpiece(folder), folder))
    if (folder / "tokenizer_config.json").is_file():
        return _count_with_transformers(load_tokenizer(folder, name=folder.name))
    raise BadInput(
        f"{folder} has no tokenizer: neither tokenizer.json, nor vocab.json with merges.txt, nor vocab.txt."
    )


def _count_with_tokenizers(tokenizer: Any) -> CountTokens:
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(texts: Sequence[str]) -> list[int]:
        counts: list[int] = []
        for begin in range(0, len(texts), TEXTS_AT_ONCE):
            part = list(texts[begin : begin + TEXTS_AT_ONCE])
            counts += [len(encoded.ids) for encoded in tokenizer.encode_batch(part, add_special_tokens=False)]
        return counts

    return count


def _count_with_transformers(tokenizer: Any) -> CountTokens:
    def count(texts: Sequence[str]) -> list[int]:
        counts: list[int] = []
        for begin in range(0, len(texts), TEXTS_AT_ONCE):
            part = list(texts[begin : begin + TEXTS_AT_ONCE])
            encoded = tokenizer(part, add_special_tokens=False, return_attention_mask=False, verbose=False)
            counts += [len(ids) for ids in encoded["input_ids"]]
        return counts

    return count


def _open_bpe(folder: Path, vocabulary: str, merges: str) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers

    pieces = json.loads(_text(folder, vocabulary))
    lines = [line.split(" ") for line in _text(folder, merges).split("\n") if line and line[:8] != "#version"]
    tokenizer = Tokenizer(models.BPE(vocab=pieces, merges=[(left, right) for left, right in lines]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return tokenizer


def _open_wordpiece(folder: Path) -> Any:
    from tokenizers import BertWordPieceTokenizer

    pieces = _text(folder, "vocab.txt").split("\n")
    vocabulary = {piece: place for place, piece in enumerate(pieces) if piece}
    lower = _is_lower(folder, pieces)
    return BertWordPieceTokenizer(vocabulary, lowercase=lower)._tokenizer


def _is_lower(folder: Path, pieces: list[str]) -> bool:
    """Whether texts are lower-cased: as the configuration says, else if no piece has a capital letter."""
    config = folder / "tokenizer_config.json"
    if config.is_file():
        said = json.loads(config.read_text(encoding="utf-8")).get("do_lower_case")
        if isinstance(said, bool):
            return said
    return not any(piece != piece.lower() for piece in pieces if not piece.startswith("["))


def _find(folder: Path, name: str) -> Path | None:
    return next((p for p in (folder / name, folder / f"{name}.gz") if p.is_file()), None)


def _text(folder: Path, name: str) -> str:
    path = _find(folder, name)
    if path is None:
        raise BadInput(f"{folder} lacks {name}.")
    return read_bytes(path).decode("utf-8")


def _load(open_it: Callable[[], Any], folder: Path) -> Any:
    try:
        return open_it()
    except BadInput:
        raise
    except Exception as error:  # tokenizers raises plain Exception for whatever it cannot read
        reason = " ".join(str(error).split())[:200]
        raise BadInput(f"The tokenizer in {folder} cannot be read: {reason}") from error
