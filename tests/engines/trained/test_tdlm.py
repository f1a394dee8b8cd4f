"""TDLM: an LSTM whose words follow the topics of a document."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from felicity.core.errors import NotPossible
from felicity.core.policy import Policy
from felicity.engines.families import open_engine
from felicity.engines.trained.engine import list_topics, load_trained
from felicity.engines.trained.networks import TdlmModel
from felicity.engines.trained.settings import TopicSettings, TrainingSettings
from felicity.engines.trained.training import train
from felicity.engines.trained.training_data import prepare
from felicity.run.model import Model, open_model
from tests.conftest import Answer
from tests.engines.corpora import TOPICS, topical_documents, unigram_perplexity, write_documents

SETTINGS = TrainingSettings(
    embedding=16,
    hidden=24,
    batch=16,
    epochs=6,
    rate=0.01,
    dropout=0.1,
    min_count=1,
    topic=TopicSettings(topics=6, size=10, filters=8, frequent=0.0, dropout=0.2),
)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Small products are quicker on one thread, above all where others want the processor too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tdlm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A TDLM trained on documents of three topics."""
    folder = tmp_path_factory.mktemp("tdlm")
    corpus = write_documents(folder / "corpus.txt", topical_documents(1, 150))
    train(prepare(corpus, SETTINGS), folder / "model", SETTINGS)
    return folder / "model"


@pytest.fixture(scope="module")
def held() -> list[tuple[str, list[str]]]:
    """Documents that the model has not seen."""
    return topical_documents(2, 30)


def mean_nats(lm: Model, texts: list[str], contexts: list[str] | None) -> float:
    return float(lm.tokens(texts, context=contexts)["logprob"].explode().mean())


def test_the_right_document_beats_another_and_none(tdlm: Path, held: list[tuple[str, list[str]]]) -> None:
    lm = open_model(str(tdlm), policy=Policy(eos="auto"), cache=False)
    texts = [sentences[0] for _, sentences in held]
    right = [" ".join(sentences[1:]) for _, sentences in held]
    # The documents' topics take turns, so the next one is always of another topic.
    other = [*right[1:], right[0]]
    with_right, with_other = mean_nats(lm, texts, right), mean_nats(lm, texts, other)
    assert with_right > with_other + 1
    assert with_right > mean_nats(lm, texts, None)


def test_the_document_follows_the_policys_casing(tdlm: Path, held: list[tuple[str, list[str]]]) -> None:
    sentence, *rest = held[0][1]
    document = " ".join(rest).lower()
    lm = open_model(str(tdlm), policy=Policy(casing="lower"), cache=False)
    read = lm.score([sentence] * 2, context=[document, document.upper()])["lp"]
    assert read[0] == pytest.approx(read[1], abs=1e-6)
    assert abs(read[0] - lm.score(sentence)["lp"][0]) > 0.01


def test_it_beats_a_unigram_model(tdlm: Path, held: list[tuple[str, list[str]]]) -> None:
    lm = open_model(str(tdlm), policy=Policy(eos="auto"), cache=False)
    texts = [sentence for _, sentences in held for sentence in sentences]
    seen = [sentence for _, sentences in topical_documents(1, 150) for sentence in sentences]
    others = [
        " ".join(sentences[:place] + sentences[place + 1 :])
        for _, sentences in held
        for place in range(len(sentences))
    ]
    assert np.exp(-mean_nats(lm, texts, others)) < 0.6 * unigram_perplexity(seen, texts)


def test_its_topics_are_those_of_the_corpus(cli: Callable[..., Answer], tdlm: Path) -> None:
    pure = [
        {word for word, _ in words} <= set(TOPICS[name])
        for words in list_topics(tdlm, k=4)
        for name in TOPICS
    ]
    # Every topic of the corpus may have several of the model; most are of one alone.
    assert sum(pure) >= 3
    said = cli("models", "info", tdlm, "-k", 4)
    assert said.code == 0, said.err
    rows = [line.split() for line in said.out.splitlines() if line.startswith("topic ")]
    assert [row[2:] for row in rows] == [[word for word, _ in words] for words in list_topics(tdlm, k=4)]


def test_topics_are_ordered_by_probability(tdlm: Path) -> None:
    for words in list_topics(tdlm, k=5):
        values = [value for _, value in words]
        assert values == sorted(values, reverse=True)
        assert 0 < sum(values) <= 1


def test_scores_follow_the_papers_equations(tdlm: Path) -> None:
    model = load_trained(tdlm, device="cpu")
    assert isinstance(model, TdlmModel)
    words = [line.split("\t")[0] for line in (tdlm / "vocabulary.tsv").read_text().splitlines()]
    text, context = "The whale saw the ship with a wave .", "A sailor with the captain . Storm !"
    document = torch.tensor([words.index(word) for word in ("sailor", "captain", "storm")])
    ids = torch.tensor([words.index(word) for word in ["<s>", *text.lower().split()]])
    topic, gate = model.topic, model.gates
    with torch.inference_mode():
        embedded = topic.embedding.weight[document]
        filters = topic.convolution.weight  # filter, embedding, width
        windows = torch.stack([embedded[i : i + 2].T for i in range(2)])
        features = torch.einsum("wed,fed->wf", windows, filters) + topic.convolution.bias
        d = features.max(dim=0).values
        s = torch.softmax(topic.topic_input @ d, dim=0) @ topic.topic_output
        hidden = model.language.lstm(model.language.embedding.weight[ids[:-1]][None])[0][0]
        weights_s, weights_h = gate.weight[:, : len(s)], gate.weight[:, len(s) :]
        both = torch.sigmoid(weights_s @ s + hidden @ weights_h.T + gate.bias)
        z, r = both[:, :24], both[:, 24:]
        candidate = torch.tanh(
            model.from_topic.weight @ s + model.from_topic.bias + (r * hidden) @ model.from_hidden.weight.T
        )
        gated = (1 - z) * hidden + z * candidate
        logits = gated @ model.language.output.weight.T + model.language.output.bias
        by_hand = torch.log_softmax(logits, dim=1)[torch.arange(len(ids) - 1), ids[1:]]
    found = open_model(str(tdlm), cache=False).tokens(text, context=context)["logprob"].to_list()[0]
    assert found == pytest.approx(by_hand.tolist(), abs=1e-5)


def test_without_a_document_the_topic_vector_is_zero(tdlm: Path) -> None:
    model = load_trained(tdlm, device="cpu")
    lm = open_model(str(tdlm), cache=False)
    text = "The judge saw the jury with a crime ."
    # Function words and unknown ones are no document either.
    assert lm.tokens(text)["logprob"].equals(lm.tokens(text, context="the with a zebra .")["logprob"])
    words = [line.split("\t")[0] for line in (tdlm / "vocabulary.tsv").read_text().splitlines()]
    ids = torch.tensor([[words.index(word) for word in ["<s>", *text.lower().split()]]])
    with torch.inference_mode():
        hidden, _ = model.read(ids[:, :-1], None, torch.zeros(1, 10))
        logprob = torch.log_softmax(model.predict(hidden[0]), dim=1)
    by_hand = logprob[torch.arange(ids.shape[1] - 1), ids[0, 1:]].tolist()
    assert lm.tokens(text)["logprob"].to_list()[0] == pytest.approx(by_hand, abs=1e-5)


def test_short_documents_and_long_ones_in_one_batch_do_not_touch_each_other(tdlm: Path) -> None:
    contexts = ["whale", "judge jury", " ".join(TOPICS["kitchen"] * 50), None]
    texts = ["The cook saw the oven with a spoon ."] * 4
    names = [str(place) for place in range(4)]
    columns = {"request": names, "context_text": contexts, "text": texts}
    prompts = pl.DataFrame(columns, schema_overrides={"context_text": pl.String})
    engine = open_engine(str(tdlm), policy=Policy())
    together = pl.concat(engine.score(prompts)).sort("request")
    for place in range(4):
        alone = pl.concat(engine.score(prompts[place : place + 1]))
        assert alone["logprob"][0].to_list() == pytest.approx(together["logprob"][place].to_list(), abs=1e-5)
    assert engine.encode(prompts)["n_context"].to_list() == [1, 2, 300, 0]


def test_only_a_tdlm_has_topics(tmp_path: Path) -> None:
    with pytest.raises(NotPossible, match="felicity train tdlm"):
        list_topics(tmp_path)
