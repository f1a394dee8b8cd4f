"""Texts into tokens under a policy: what stands before, what is scored, where it is in the text."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.core.schemas import PROMPTS
from felicity.engines.runtime.pretrained import load_tokenizer
from felicity.engines.tokenizing.encoding import Encoded, Encoder

END = "<|endoftext|>"


@pytest.fixture(scope="module")
def tokenizer(tiny_model: Path) -> Any:
    return load_tokenizer(tiny_model, name="tiny")


def encode(
    tokenizer: Any,
    texts: list[str],
    contexts: list[str | None] | None = None,
    *,
    window: int = 64,
    **policy: str,
) -> Encoded:
    encoder = Encoder.build(tokenizer, Policy(**policy), window=window, name="tiny")  # type: ignore[arg-type]
    names = [str(place) for place in range(len(texts))]
    columns = {"request": names, "context_text": contexts or [None] * len(texts), "text": texts}
    return encoder.encode(pl.DataFrame(columns, schema=PROMPTS))


def pieces(tokenizer: Any, encoded: Encoded, sequence: int = 0, *, own: bool = False) -> list[str]:
    span = slice(encoded.bounds[sequence], encoded.bounds[sequence + 1])
    ids = encoded.ids[span][encoded.of_text[span]] if own else encoded.ids[span]
    return list(tokenizer.convert_ids_to_tokens(ids.tolist()))


def test_one_begin_token_stands_before_the_text(tokenizer: Any) -> None:
    encoded = encode(tokenizer, ["The cats annoy Tim."])
    assert pieces(tokenizer, encoded).count(END) == 1
    assert pieces(tokenizer, encoded)[0] == END
    assert encoded.wanted.tolist() == [False] + [True] * (len(encoded.ids) - 1)


def test_a_tokenizer_that_adds_its_own_begin_token_does_not_make_two(tokenizer: Any, tmp_path: Path) -> None:
    from tokenizers import processors

    tokenizer.save_pretrained(tmp_path)
    adding = load_tokenizer(tmp_path, name="adding")
    adding.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{END} $A", pair=f"{END} $A $B", special_tokens=[(END, 0)]
    )
    for bos in ("auto", "tokenizer"):
        encoded = encode(adding, ["The cats"], bos=bos)
        assert pieces(adding, encoded)[0] == END
        assert pieces(adding, encoded).count(END) == 1
        assert pieces(adding, encoded, own=True) == pieces(adding, encoded)[1:]


def test_without_a_begin_token_the_first_token_is_the_text_s_own_and_unscored(tokenizer: Any) -> None:
    encoded = encode(tokenizer, ["The cats"], bos="none")
    assert pieces(tokenizer, encoded)[0] == "The"
    assert encoded.of_text.all()
    assert encoded.wanted.tolist() == [False, *[True] * (len(encoded.ids) - 1)]


def test_no_space_is_put_before_a_text(tokenizer: Any) -> None:
    assert pieces(tokenizer, encode(tokenizer, ["The cats"]), own=True)[0] == "The"


def test_a_first_token_that_cannot_be_scored_is_refused_where_the_policy_says_so(tokenizer: Any) -> None:
    with pytest.raises(NotPossible, match="first token of '0' cannot be scored"):
        encode(tokenizer, ["The cats"], bos="none", first="refuse")


def test_context_and_text_are_tokenized_together(tokenizer: Any) -> None:
    encoded = encode(tokenizer, ["cats annoy Tim."], ["The"])
    whole = encode(tokenizer, ["The cats annoy Tim."])
    assert encoded.ids.tolist() == whole.ids.tolist()
    assert "".join(pieces(tokenizer, encoded, own=True)) == "Ġcats" + "Ġannoy" + "ĠTim" + "."
    assert not encoded.wanted[: len(encoded.ids) - int(encoded.of_text.sum())].any()


def test_a_token_that_holds_context_and_text_belongs_to_the_text_and_is_counted(tokenizer: Any) -> None:
    # "The" is one token; the seam runs through it.
    encoded = encode(tokenizer, ["e cats"], ["Th"], join="")
    assert pieces(tokenizer, encoded, own=True)[0] == "The"
    assert encoded.n_across.tolist() == [1]
    assert encoded.start[encoded.of_text][0] == 0
    assert encoded.end[encoded.of_text][0] == 1


def test_by_count_the_seam_is_where_the_context_alone_would_end(tokenizer: Any) -> None:
    # minicons takes as many tokens off the front as the context has by itself: "Th" alone is 2 tokens.
    alone = len(tokenizer("Th")["input_ids"])
    encoded = encode(tokenizer, ["e cats annoy Tim."], ["Th"], join="", seam="count", bos="tokenizer")
    whole = tokenizer("The cats annoy Tim.")["input_ids"]
    assert alone == 2
    assert int(encoded.of_text.sum()) == len(whole) - alone


def test_an_empty_context_is_no_context(tokenizer: Any) -> None:
    for context in ("", None):
        assert (
            encode(tokenizer, ["The cats"], [context]).ids.tolist()
            == encode(tokenizer, ["The cats"]).ids.tolist()
        )


def test_the_end_token_is_scored_and_stands_behind_the_text(tokenizer: Any) -> None:
    encoded = encode(tokenizer, ["The cats"], eos="auto")
    assert pieces(tokenizer, encoded)[-1] == END
    assert encoded.wanted[-1]
    assert encoded.start[-1] == encoded.end[-1] == len("The cats")


def test_casing_is_changed_only_where_asked(tokenizer: Any) -> None:
    lowered = encode(tokenizer, ["The Cats"], casing="lower")
    assert lowered.ids.tolist() == encode(tokenizer, ["the cats"]).ids.tolist()
    assert lowered.ids.tolist() != encode(tokenizer, ["The Cats"]).ids.tolist()


def test_oldest_sentences_are_dropped_as_few_as_make_it_fit(tokenizer: Any) -> None:
    context = "One dog. Two dogs. The cat annoys Tim."
    whole = encode(tokenizer, ["She saw."], [context], window=999)
    window = len(whole.ids) - 1
    cut = encode(tokenizer, ["She saw."], [context], window=window, overflow="drop")
    assert cut.n_dropped.tolist() == [1]
    expected = encode(tokenizer, ["She saw."], ["Two dogs. The cat annoys Tim."], window=999)
    assert cut.ids.tolist() == expected.ids.tolist()
    assert encode(tokenizer, ["She saw."], [context], window=window).lengths[0] > window


def test_a_text_without_a_token_is_refused(tokenizer: Any) -> None:
    with pytest.raises(BadInput, match="'1' has no token"):
        encode(tokenizer, ["The cats", ""])


def test_a_begin_token_outside_the_vocabulary_is_refused(tokenizer: Any) -> None:
    with pytest.raises(NotPossible, match=r"'<s>' is not a token of 'tiny'"):
        encode(tokenizer, ["The cats"], bos="<s>")


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet="The cat’s “né” 😀中文.\n", min_size=1, max_size=30).filter(str.strip))
def test_offsets_cover_the_text_whatever_is_in_it(tokenizer: Any, text: str) -> None:
    encoded = encode(tokenizer, [text])
    own = encoded.of_text
    covered = {
        place
        for start, end in zip(encoded.start[own], encoded.end[own], strict=True)
        for place in range(start, end)
    }
    assert covered == set(range(len(text)))
    assert (encoded.end[own] <= len(text)).all()
