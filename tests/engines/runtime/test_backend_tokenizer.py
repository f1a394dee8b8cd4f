"""A tokenizer without transformers cuts every text as the one of transformers does."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from felicity.engines.runtime.backend_tokenizer import NAMED, BackendTokenizer
from felicity.engines.runtime.pretrained import load_tokenizer
from tests.engines.shapes import make_albert_tokenizer, make_bytelevel, make_wordpiece

MAKERS: dict[str, Callable[[], Any]] = {
    "wordpiece": make_wordpiece,
    "byte-level": make_bytelevel,
    "unigram": make_albert_tokenizer,
}
TEXTS = [
    "The cats annoy Tim.",
    " two  spaces\tand\nlines ",
    "naïve café 東京 🙂",
    "[MASK] <s> </s> <mask> <|endoftext|>",
    "",
]


@pytest.fixture(params=MAKERS)
def both(request: pytest.FixtureRequest, tmp_path: Path, empty_cache: Path) -> tuple[Any, BackendTokenizer]:
    """The tokenizer as transformers loads it, and as it is loaded from then on."""
    MAKERS[request.param]().save_pretrained(tmp_path / "model")
    first = load_tokenizer(tmp_path / "model", name="tiny")
    again = load_tokenizer(tmp_path / "model", name="tiny")
    assert isinstance(again, BackendTokenizer)
    assert not isinstance(first, BackendTokenizer)
    return first, again


@pytest.mark.parametrize("special", [True, False])
def test_ids_offsets_and_words_are_those_of_transformers(
    both: tuple[Any, BackendTokenizer], special: bool
) -> None:
    whole, backend = both
    options = {"return_offsets_mapping": True, "return_special_tokens_mask": True, "verbose": False}
    theirs = whole(TEXTS, add_special_tokens=special, **options)
    ours = backend(TEXTS, add_special_tokens=special, **options)
    assert dict(ours) == dict(theirs)
    assert [ours.word_ids(row) for row in range(len(TEXTS))] == [
        theirs.word_ids(row) for row in range(len(TEXTS))
    ]
    assert backend(TEXTS[0])["input_ids"] == whole(TEXTS[0])["input_ids"]


def test_names_and_vocabulary_are_those_of_transformers(both: tuple[Any, BackendTokenizer]) -> None:
    whole, backend = both
    assert {name: getattr(backend, name) for name in NAMED} == {name: getattr(whole, name) for name in NAMED}
    assert len(backend) == len(whole)
    assert backend.get_vocab() == whole.get_vocab()
    assert backend.get_added_vocab() == whole.get_added_vocab()
    ids = list(range(len(whole)))
    assert backend.convert_ids_to_tokens(ids) == whole.convert_ids_to_tokens(ids)
    tokens = [*whole.get_vocab(), "no such token"]
    assert backend.convert_tokens_to_ids(tokens) == whole.convert_tokens_to_ids(tokens)


def test_what_the_backend_cannot_do_is_passed_on(both: tuple[Any, BackendTokenizer]) -> None:
    whole, backend = both
    ids = whole("The cats annoy Tim.")["input_ids"]
    assert backend.decode(ids) == whole.decode(ids)
    assert backend("The cats", return_tensors="np")["input_ids"].shape[0] == 1


def test_a_changed_or_damaged_tokenizer_is_loaded_anew(tmp_path: Path, empty_cache: Path) -> None:
    folder = tmp_path / "model"
    make_bytelevel().save_pretrained(folder)
    load_tokenizer(folder, name="tiny")
    for file in (empty_cache / "tokenizers").iterdir():
        file.write_text(file.read_text(encoding="utf-8")[:-20], encoding="utf-8")
    assert not isinstance(load_tokenizer(folder, name="tiny"), BackendTokenizer)
    assert isinstance(load_tokenizer(folder, name="tiny"), BackendTokenizer)
    make_wordpiece().save_pretrained(folder)
    assert not isinstance(load_tokenizer(folder, name="tiny"), BackendTokenizer)
    assert "transformers" in sys.modules
