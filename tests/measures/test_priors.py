"""Priors of words: which words are compared, their means, and the error of estimating them."""

import numpy as np
import polars as pl
import pytest

from felicity.core.schemas import BOUNDED_TOKENS, PRIORS, TOKENS
from felicity.core.word_forms import WordForm, find_forms
from felicity.measures.priors import WordPriors, find_compared, sum_word


def requests(*texts: str, item: str = "1") -> pl.DataFrame:
    names = [f"{item}/{place}" for place in range(len(texts))]
    columns = {"request": names, "item": [item] * len(texts), "text": texts}
    return pl.DataFrame(columns).with_columns(pl.lit(None, dtype=pl.String).alias("context_text"))


def compared(*texts: str) -> list[list[str]]:
    found = find_compared(requests(*texts), cancel=True)
    return [[one.word.form for one in words] for words in found.values()]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (("The cats annoy Tim.", "The cats annoys Tim."), [["annoy"], ["annoys"]]),
        # As often as both have it.
        (("The cat saw the cat.", "The cat saw the the cat."), [[], ["the"]]),
        # Before a space here and before a full stop there: the same word.
        (("The dog ran home.", "The dog home ran."), [[], []]),
        # A word that begins the text has other tokens than inside it.
        (("Tim saw Ann.", "Ann saw Tim."), [["Tim", "Ann"], ["Ann", "Tim"]]),
        # Of three sentences, a word is shared if all three have it.
        (("A b c d.", "A b c e.", "A b f e."), [["c", "d"], ["c", "e"], ["f", "e"]]),
    ],
)
def test_shared_words_are_not_compared(texts: tuple[str, ...], expected: list[list[str]]) -> None:
    assert compared(*texts) == expected


def test_single_sentences_are_compared_word_by_word() -> None:
    found = find_compared(requests("The cats annoy Tim."), cancel=False)
    assert [one.word.form for one in found["1/0"]] == ["The", "cats", "annoy", "Tim", "."]
    # An item of one sentence shares nothing either.
    assert find_compared(requests("The cats annoy Tim."), cancel=True) == found


def build(**given: float | list[float]) -> WordPriors:
    """Priors of words inside a sentence, from probabilities in two contexts."""
    words = [WordForm(name, "inside", closed=True) for name in given]
    logs = np.log(np.array(list(given.values()), dtype=np.float64))
    texts = {"a": "x cat dog y", "b": "x dog y"}
    own = {name: [one for one in find_forms(text) if one.word in words] for name, text in texts.items()}
    return WordPriors(words, logs, np.array([1] * len(words)), own)


def tokens(**logprobs: list[float | None]) -> pl.DataFrame:
    texts = {"a": "x cat dog y", "b": "x dog y"}
    rows = []
    for name, values in logprobs.items():
        spans = [(one.begin, one.end) for one in find_forms(texts[name])]
        rows.append((name, texts[name].split(), *map(list, zip(*spans, strict=True)), values))
    return pl.DataFrame(rows, schema=TOKENS, orient="row")


def test_a_prior_is_the_log_of_the_mean_probability() -> None:
    priors = build(cat=[0.1, 0.3], dog=[0.02, 0.04])
    assert priors.log_means == pytest.approx(np.log([0.2, 0.03]))
    sums = priors.sum_priors(tokens(a=[-1.0, -2.0, -3.0, -1.0], b=[-1.0, -2.0, -1.0]))
    assert sums == pytest.approx([np.log(0.2 * 0.03), np.log(0.03)])
    table = priors.table()
    assert table.schema == PRIORS
    assert table["prior"].to_list() == pytest.approx(np.log([0.2, 0.03]))


def test_a_word_that_could_not_be_scored_is_not_compared() -> None:
    priors = build(cat=[0.1, 0.3], dog=[0.02, 0.04])
    assert priors.sum_priors(tokens(a=[-1.0, None, -3.0, -1.0])) == pytest.approx([np.log(0.03)])


def test_leaving_contexts_out_is_done_word_by_word() -> None:
    priors = build(cat=[0.1, 0.3], dog=[0.02, 0.04])
    expected = [[np.log(0.3 * 0.04), np.log(0.1 * 0.02)], [np.log(0.04), np.log(0.02)]]
    assert priors.leave_out(["a", "b"]) == pytest.approx(np.array(expected))


def test_a_word_is_summed_over_its_tokens_with_its_boundaries() -> None:
    # " quok|kas and": the chance that a word begins divides, the chance that it ends multiplies.
    row = {
        "request": ["r"],
        "tokens": [["Ġquok", "kas", "Ġand"]],
        "start": [[0, 4, 8]],
        "end": [[4, 7, 11]],
        "logprob": [[-5.0, -1.0, -2.0]],
        "boundary": [[-0.25, -9.0, -0.5]],
    }
    bounded = pl.DataFrame(row, schema=BOUNDED_TOKENS).row(0, named=True)
    assert sum_word(bounded, 0, 7, text="quokkas and", after_space=True) == (-5.0 - 1.0 + 0.25 - 0.5, 2)
    assert sum_word(bounded, 0, 7, text="quokkas and", after_space=False) == (-6.5, 2)
    plain = {name: value for name, value in bounded.items() if name != "boundary"}
    assert sum_word(plain, 0, 7, text="quokkas and", after_space=True) == (-6.0, 2)


def test_a_line_break_before_a_word_is_not_part_of_it() -> None:
    row = {"start": [0, 1], "logprob": [-3.0, -5.0]}
    assert sum_word(row, 1, 5, text="\nCats", after_space=False) == (-5.0, 1)
