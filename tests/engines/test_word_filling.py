"""Models of words fill blanks and continue texts with the words that scoring finds likeliest."""

from pathlib import Path

import numpy as np
import pytest

from felicity.core.errors import NotPossible
from felicity.engines.ngram.training import train_ngram
from felicity.engines.trained.settings import TopicSettings, TrainingSettings
from felicity.engines.trained.training import train
from felicity.engines.trained.training_data import prepare
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


def train_recurrent(folder: Path, *, topic: TopicSettings | None = None) -> Model:
    (folder / "corpus.txt").write_text(CORPUS)
    settings = TrainingSettings(embedding=8, hidden=8, batch=4, epochs=2, rate=0.01, min_count=1, topic=topic)
    train(prepare(folder / "corpus.txt", settings), folder / "model", settings)
    return open_model(str(folder / "model"), cache=False)


def test_the_most_probable_continuation_takes_the_best_filler_each_time(lm: Model) -> None:
    written = lm.generate("the cat", tokens=3).row(0, named=True)
    text = "the cat"
    for _ in range(3):
        text += " " + lm.fill(f"{text} ___", k=1)["filler"][0]
    assert written["prompt"] + written["continuation"] == text
    assert (written["n_tokens"], written["ended"]) == (3, "limit")


def test_a_continuation_ends_with_the_sentence_or_at_a_stop_string(lm: Model) -> None:
    whole = lm.generate("a cat is an", tokens=20).row(0, named=True)
    assert (whole["continuation"], whole["ended"]) == (" animal.", "end")
    stopped = lm.generate("a cat is an", tokens=20, stop=".").row(0, named=True)
    assert (stopped["continuation"], stopped["ended"]) == (" animal", "stop")


def test_samples_follow_the_probabilities_and_the_seed(lm: Model) -> None:
    drawn = lm.generate("the", tokens=1, temperature=1.0, samples=400, seed=3)
    again = lm.generate("the", tokens=1, temperature=1.0, samples=400, seed=3)
    assert drawn.equals(again)
    found = lm.fill("the ___", k=1)
    share = (drawn["continuation"].str.strip_chars() == found["filler"][0]).mean()
    # Of 400 samples the share has a standard error of at most .025.
    assert share == pytest.approx(np.exp(found["logprob"][0]), abs=0.1)


@pytest.mark.parametrize("topic", [None, TopicSettings(topics=2, size=4, filters=4)])
def test_recurrent_models_fill_and_continue_as_they_score(
    tmp_path: Path, topic: TopicSettings | None
) -> None:
    lm = train_recurrent(tmp_path, topic=topic)
    frame = "the cat sat on the ___"
    best = lm.fill(frame, k=1).row(0, named=True)
    scored = lm.score_candidates(frame, [best["filler"]])
    assert scored["logprob"][0] == pytest.approx(best["logprob"], abs=1e-4)
    written = lm.generate("the cat sat on the", tokens=1).row(0, named=True)
    assert written["ended"] == "end" or written["continuation"].strip() == best["filler"]


def test_a_model_that_cannot_list_its_words_says_so() -> None:
    pytest.importorskip("kenlm", reason="the package kenlm is not here: pip install 'felicity[ngram]'")
    lm = open_model(str(Path(__file__).parent / "ngram" / "files" / "tiny.klm"), cache=False)
    with pytest.raises(NotPossible, match="cannot fill a blank"):
        lm.fill("the cat ___")
