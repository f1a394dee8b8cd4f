"""A fast tokenizer without transformers: the Rust backend alone, as transformers had set it up.

Importing transformers takes longer than scoring two sentences, and a run whose scores are all in the cache
needs no more than token ids and offsets. When transformers first loads a tokenizer, its backend and the
names of its special tokens are remembered in the cache; from then on they are loaded with `tokenizers`.
Any other call is passed on to transformers' tokenizer.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from felicity.core.memo import recall, remember, versions
from felicity.engines.sources import fingerprint_tokenizer, read_object

KIND = "tokenizers"
# What is remembered of the tokenizer besides its backend.
NAMED = (
    "bos_token",
    "eos_token",
    "unk_token",
    "pad_token",
    "mask_token",
    "bos_token_id",
    "eos_token_id",
    "unk_token_id",
    "pad_token_id",
    "mask_token_id",
    "all_special_tokens",
    "all_special_ids",
    "split_special_tokens",
    "model_input_names",
)
# A tokenizer is remembered only if its backend alone gives these texts the tokens that transformers gives.
PROBES = (
    "The keys to the cabinet are on the table.",
    " Two  spaces, a tab\tand\na line; don't, 3.14 — “naïve” 東京 🙂 ",
    "",
)
# Options of a call that the backend answers by itself.
UNDERSTOOD = {
    "add_special_tokens",
    "return_offsets_mapping",
    "return_special_tokens_mask",
    "return_attention_mask",
    "return_token_type_ids",
    "verbose",
}


class Encodings(dict[str, Any]):
    """What a call gives: lists by name, as transformers names them."""

    def __init__(self, encodings: list[Any], columns: dict[str, Any]) -> None:
        super().__init__(columns)
        self._encodings = encodings

    def word_ids(self, row: int) -> list[int | None]:
        """The word that each token of a text belongs to."""
        return list(self._encodings[row].word_ids)


class BackendTokenizer:
    """The backend of a fast tokenizer; `whole` loads the tokenizer of transformers when it is needed."""

    is_fast = True

    def __init__(self, backend: Any, named: dict[str, Any], whole: Callable[[], Any]) -> None:
        self.backend_tokenizer = backend
        self._named = named
        self._load = whole

    @cached_property
    def whole(self) -> Any:
        """The tokenizer of transformers."""
        return self._load()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        named = self.__dict__.get("_named", {})
        return named[name] if name in named else getattr(self.whole, name)

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size(with_added_tokens=True))

    def __call__(self, texts: str | Sequence[str], *rest: Any, **options: Any) -> Any:
        """Token ids, and what else is requested, as transformers' tokenizer gives them."""
        if rest or not options.keys() <= UNDERSTOOD:
            return self.whole(texts, *rest, **options)
        if isinstance(texts, str):
            one = self([texts], **options)
            return Encodings(one._encodings, {name: rows[0] for name, rows in one.items()})
        encodings = self.backend_tokenizer.encode_batch(
            list(texts), add_special_tokens=options.get("add_special_tokens", True)
        )
        inputs = self._named["model_input_names"]
        wanted = {
            "ids": ("input_ids", True),
            "type_ids": ("token_type_ids", options.get("return_token_type_ids", "token_type_ids" in inputs)),
            "attention_mask": (
                "attention_mask",
                options.get("return_attention_mask", "attention_mask" in inputs),
            ),
            "special_tokens_mask": ("special_tokens_mask", options.get("return_special_tokens_mask", False)),
            "offsets": ("offset_mapping", options.get("return_offsets_mapping", False)),
        }
        columns = {
            name: [getattr(one, field) for one in encodings]
            for field, (name, asked) in wanted.items()
            if asked
        }
        return Encodings(encodings, columns)

    def get_vocab(self) -> dict[str, int]:
        """Ids of all tokens, including added ones."""
        return dict(self.backend_tokenizer.get_vocab(with_added_tokens=True))

    def get_added_vocab(self) -> dict[str, int]:
        """Ids of the added tokens."""
        added = self.backend_tokenizer.get_added_tokens_decoder()
        return {token.content: number for number, token in sorted(added.items(), key=lambda pair: pair[0])}

    def convert_tokens_to_ids(self, tokens: str | Sequence[str]) -> Any:
        """The id of a token, or of each; an unknown one has the unknown token's."""
        if not isinstance(tokens, str):
            return [self.convert_tokens_to_ids(token) for token in tokens]
        token_id = self.backend_tokenizer.token_to_id(tokens)
        return self._named["unk_token_id"] if token_id is None else token_id

    def convert_ids_to_tokens(self, ids: int | Sequence[int], **options: Any) -> Any:
        """The token of an id, or of each."""
        if options:
            return self.whole.convert_ids_to_tokens(ids, **options)
        if isinstance(ids, int):
            return self.backend_tokenizer.id_to_token(ids)
        return [self.backend_tokenizer.id_to_token(int(number)) for number in ids]


def recall_tokenizer(key: dict[str, Any], whole: Callable[[], Any]) -> BackendTokenizer | None:
    """The tokenizer that was remembered under this key, else None."""
    fact = recall(KIND, key)
    if fact is None or not {"backend", "named"} <= fact.keys():
        return None
    return _build(fact, whole)


def remember_tokenizer(key: dict[str, Any], tokenizer: Any) -> None:
    """Keep the backend of a tokenizer that transformers has loaded, if it is all that cuts a text."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if not getattr(tokenizer, "is_fast", False) or backend is None:
        return
    named = {name: getattr(tokenizer, name, None) for name in NAMED}
    fact = {"backend": backend.to_str(), "named": named}
    alone = _build(fact, lambda: tokenizer)
    if alone is not None and all(_cut(alone, itself) == _cut(tokenizer, itself) for itself in (True, False)):
        remember(KIND, key, fact)


def _cut(tokenizer: Any, itself: bool) -> list[Any]:
    output = tokenizer(
        list(PROBES),
        add_special_tokens=itself,
        return_offsets_mapping=True,
        return_special_tokens_mask=True,
        verbose=False,
    )
    return [sorted(output.keys()), *(output[name] for name in sorted(output.keys()))]


def _build(fact: dict[str, Any], whole: Callable[[], Any]) -> BackendTokenizer | None:
    from tokenizers import Tokenizer

    try:
        backend = Tokenizer.from_str(fact["backend"])
    except Exception:  # noqa: BLE001 - tokenizers raises plain Exception for whatever it cannot read
        return None
    backend.no_truncation()
    backend.no_padding()
    backend.encode_special_tokens = bool(fact["named"].get("split_special_tokens"))
    return BackendTokenizer(backend, fact["named"], whole)


def identify_tokenizer(folder: Path, digest: Callable[[Path], str]) -> dict[str, Any]:
    """What decides how transformers sets a tokenizer up: its files, the kind of model, the versions."""
    config = folder / "config.json"
    kind = str(read_object(config).get("model_type")) if config.is_file() else ""
    return {
        "files": fingerprint_tokenizer(folder, digest),
        "model_type": kind,
        "versions": versions("transformers", "tokenizers", "felicity"),
    }
