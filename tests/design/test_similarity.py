"""F1 between texts: worked by hand, and the same in a batch as one by one."""

from random import Random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicity.design.similarity import bag_f1, count_labels, measure_similarity, token_f1

WORDS = st.lists(st.sampled_from(["the", "cat", "Dog", "saw", "."]), max_size=8).map(" ".join)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # the 2, cat 1, saw 1, dog 1 against the 1, dog 1, slept 1: overlap 2, 2 * 2 / (5 + 3).
        ("The cat saw the dog.", "The dog slept.", 0.5),
        ("the the the", "the", 0.5),
        ("Cats!", "cats?", 1.0),
        ("cats", "dogs", 0.0),
        ("He didn't.", "He didn’t", 1.0),
        ("ex-husband", "husband", 0.0),
        ("", "", 1.0),
        ("", "cats", 0.0),
    ],
)
def test_words_by_hand(a: str, b: str, expected: float) -> None:
    assert token_f1(a, b) == pytest.approx(expected)


def test_labels_by_hand() -> None:
    # det nsubj ROOT det dobj against det nsubj ROOT: overlap 3, 2 * 3 / (5 + 3); full stops do not count.
    assert count_labels(["The cats chased a mouse."])[0] == {"det": 2, "nsubj": 1, "ROOT": 1, "dobj": 1}
    assert bag_f1(*count_labels(["The cats chased a mouse.", "The dog slept."])) == pytest.approx(0.75)


@given(WORDS, WORDS)
def test_f1_is_symmetric_bounded_and_one_with_itself(a: str, b: str) -> None:
    assert token_f1(a, b) == token_f1(b, a)
    assert 0 <= token_f1(a, b) <= 1
    assert token_f1(a, a) == 1


def test_a_batch_equals_pairs_one_by_one() -> None:
    rng = Random(1)
    vocabulary = ["the", "cats", "dog", "saw", "Tim", "slept", "who", "green"]
    texts = [" ".join(rng.choices(vocabulary, k=rng.randint(0, 6))) for _ in range(30)]
    contexts = pl.DataFrame(
        {"context": [f"c{i}" for i in range(12)], "sentences": [rng.choices(texts, k=i) for i in range(12)]},
        schema={"context": pl.String, "sentences": pl.List(pl.String)},
    )
    pairs = pl.DataFrame(
        [(f"c{rng.randrange(12)}", rng.choice(texts), i) for i in range(200)],
        schema=["context", "text", "other"],
        orient="row",
    )
    scored = measure_similarity(pairs, contexts)
    assert scored.select("context", "text", "other").equals(pairs)
    of = dict(contexts.iter_rows())
    for context, text, _, tokens, labels in scored.iter_rows():
        assert tokens == pytest.approx(token_f1(" ".join(of[context]), text))
        bags = count_labels([*of[context], text])
        assert labels == pytest.approx(bag_f1(sum(bags[:-1], type(bags[0])()), bags[-1]))


def test_by_sentence_is_the_mean_over_the_sentences_of_the_context() -> None:
    contexts = pl.DataFrame({"context": ["c", "empty"], "sentences": [["The cat saw the dog.", "Cats!"], []]})
    pairs = pl.DataFrame({"context": ["c", "empty"], "text": ["The dog slept.", "The dog slept."]})
    scored = measure_similarity(pairs, contexts, by="sentence", labels=False)
    # 0.5 and 0, as above.
    assert scored["token_f1"].to_list() == [0.25, 0.0]


def test_by_sentence_does_not_grow_or_shrink_with_repetition() -> None:
    contexts = pl.DataFrame({"context": ["one", "many"], "sentences": [["It rains."], ["It rains."] * 50]})
    pairs = pl.DataFrame({"context": ["one", "many"], "text": ["It snows.", "It snows."]})
    assert measure_similarity(pairs, contexts, by="sentence")["token_f1"].to_list() == [0.5, 0.5]
    assert measure_similarity(pairs, contexts)["token_f1"].to_list() == pytest.approx([0.5, 2 / 102])


def test_no_pairs_no_rows() -> None:
    contexts = pl.DataFrame({"context": ["c"], "sentences": [["It rains."]]})
    pairs = pl.DataFrame(schema={"context": pl.String, "text": pl.String})
    assert measure_similarity(pairs, contexts).columns == ["context", "text", "token_f1", "dependency_f1"]
    assert measure_similarity(pairs, contexts, by="sentence").is_empty()


def test_labels_can_be_left_out() -> None:
    contexts = pl.DataFrame({"context": ["c"], "sentences": [["It rains."]]})
    scored = measure_similarity(
        pl.DataFrame({"context": ["c"], "text": ["It snows."]}), contexts, labels=False
    )
    assert scored.columns == ["context", "text", "token_f1"]
    assert scored["token_f1"].to_list() == [0.5]
