"""A server's tokenizer with the interface of a local one, so that all engines share the encoder."""

from collections.abc import Iterable, Sequence
from typing import Any

from felicity.core.errors import NotPossible
from felicity.engines.served.client import BadResponse
from felicity.engines.served.protocols import Tokenize, Tokenized, find_spans

# Texts whose tokens are cached between audit and scoring.
REMEMBERED = 200_000


def vllm_body(model: str, text: str, *, special: bool) -> dict[str, Any]:
    """The body of a request to vLLM's /tokenize."""
    return {"model": model, "prompt": text, "add_special_tokens": special, "return_token_strs": True}


def read_vllm(payload: Any) -> Tokenized:
    """Ids and pieces in vLLM's answer."""
    ids, pieces = payload["tokens"], payload["token_strs"]
    if not isinstance(ids, list) or not isinstance(pieces, list) or len(ids) != len(pieces):
        raise BadResponse("different numbers of ids and pieces")
    return [int(token) for token in ids], [str(piece) for piece in pieces]


def llama_body(model: str, text: str, *, special: bool) -> dict[str, Any]:  # noqa: ARG001 - one model is all it has
    """The body of a request to llama.cpp's /tokenize."""
    return {"content": text, "add_special": special, "with_pieces": True}


def read_llama(payload: Any) -> Tokenized:
    """Ids and pieces in llama.cpp's answer; a piece that is not valid text comes as bytes."""
    rows = payload["tokens"]
    pieces = [row["piece"] for row in rows]
    return [int(row["id"]) for row in rows], [
        bytes(piece) if isinstance(piece, list) else str(piece).encode() for piece in pieces
    ]


class RemoteTokenizer:
    """The part of a tokenizer's interface that the encoder needs, backed by a server."""

    is_fast = True
    unk_token_id = None
    unk_token = None
    pad_token_id = None
    # No server gives its whole vocabulary.
    all_special_ids: tuple[int, ...] = ()

    def __init__(
        self, tokenize: Tokenize, *, name: str, bos_token: str | None = None, eos_token: str | None = None
    ) -> None:
        self._tokenize = tokenize
        self._name = name
        self._known: dict[tuple[str, bool], Tokenized] = {}
        self._pieces: dict[int, str] = {}
        self.bos_token = bos_token
        self.eos_token = eos_token

    def __call__(
        self, texts: Sequence[str], *, add_special_tokens: bool = True, **_: object
    ) -> dict[str, list[Any]]:
        """Ids, character offsets, and which tokens the tokenizer added."""
        bare = self._ask(texts, special=False)
        full = self._ask(texts, special=True) if add_special_tokens else bare
        ids, spans, special = [], [], []
        for text, (bare_ids, pieces), (whole, _pieces) in zip(texts, bare, full, strict=True):
            text_spans = find_spans(text, pieces)
            begin = _find(bare_ids, whole)
            if text_spans is None or begin is None:
                raise NotPossible(
                    f"The server's tokens for '{text[:60]}' do not make up that text, so they "
                    "cannot be placed; name the model's tokenizer with --tokenizer."
                )
            after = len(whole) - begin - len(bare_ids)
            ids.append(whole)
            spans.append([(0, 0)] * begin + text_spans + [(len(text), len(text))] * after)
            special.append([1] * begin + [0] * len(bare_ids) + [1] * after)
        return {"input_ids": ids, "offset_mapping": spans, "special_tokens_mask": special}

    def __len__(self) -> int:
        return 0

    def get_vocab(self) -> "RemoteTokenizer":
        """Itself; it asks the server whether something is a token."""
        return self

    def __contains__(self, token: str) -> bool:
        ((ids, _pieces),) = self._ask([token], special=False)
        return len(ids) == 1

    def convert_tokens_to_ids(self, token: str) -> int:
        """The id of a text that is a single token."""
        ((ids, _pieces),) = self._ask([token], special=False)
        return ids[0]

    def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
        """The pieces of tokens seen so far."""
        return [self._pieces[token] for token in ids]

    def _ask(self, texts: Sequence[str], *, special: bool) -> list[Tokenized]:
        if len(self._known) > REMEMBERED:
            self._known.clear()
        missing = [text for text in dict.fromkeys(texts) if (text, special) not in self._known]
        for text, answer in zip(missing, self._tokenize(missing, special) if missing else [], strict=True):
            self._known[text, special] = answer
            for token, piece in zip(*answer, strict=True):
                shown = piece.decode("utf-8", "backslashreplace") if isinstance(piece, bytes) else piece
                self._pieces[token] = shown
        return [self._known[text, special] for text in texts]


def _find(part: list[int], whole: list[int]) -> int | None:
    """The index at which one list occurs in the other."""
    places = range(len(whole) - len(part) + 1)
    return next((place for place in places if whole[place : place + len(part)] == part), None)
