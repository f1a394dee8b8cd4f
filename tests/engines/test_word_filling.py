"""Models of words fill blanks: the likeliest words are those that scoring finds likeliest."""

import pytest

from felicity.engines.ngram.training import train_ngram
from felicity.run.model import Model, open_model

CORPUS = (
    "the cat sat on the mat .\nthe dog sat on the rug .\nthe cat saw the dog .\na cat is an animal .\n" * 3
)


@pytest.fixture(scope="module")
def lm(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """A trigram model of a few sentences."""
    folder = tmp_path_factory.mktemp("ngram")
    (folder / "corpus.txt").write_text(CORPUS)
    train_ngram(folder / "corpus.txt", folder / "model.arpa", order=3)
    return open_model(str(folder / "model.arpa"), cache=False)


def test_the_likeliest_words_are_those_that_scoring_ranks_first(lm: Model) -> None:
    frame = "the cat sat on the ___."
    filled = lm.fill(frame, k=8)
    words = list(dict.fromkeys(CORPUS.split()))
    scored = lm.score_candidates(frame, words).sort("logprob", descending=True)
    assert filled["logprob"].to_list() == pytest.approx(scored["logprob"].to_list()[:8], abs=1e-5)
    assert filled["filler"][0] == scored["candidate"][0] == "mat"


def test_marks_of_beginning_and_end_are_no_words(lm: Model) -> None:
    assert not {"<s>", "</s>", "<unk>"} & set(lm.fill("the cat saw the dog ___", k=9)["filler"])


def test_frames_that_end_alike_get_the_same_words(lm: Model) -> None:
    one, two = (lm.fill(frame, k=5) for frame in ("the dog sat on the ___", "a cat is on the ___"))
    assert one["filler"].to_list() == two["filler"].to_list()
