"""LSTM language models: better than frequencies, scored as torch would by hand."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
import torch

from felicity.core.errors import NotPossible
from felicity.core.policy import Policy
from felicity.engines.families import open_engine
from felicity.engines.trained.engine import NOISE, load_trained
from felicity.engines.trained.settings import TrainingSettings
from felicity.engines.trained.training import train
from felicity.engines.trained.training_data import prepare
from felicity.run.model import open_model
from tests.conftest import Answer
from tests.engines.corpora import agreeing_lines, unigram_perplexity

SETTINGS = TrainingSettings(
    embedding=16, hidden=24, batch=16, steps=12, epochs=14, rate=0.02, dropout=0.1, min_count=2
)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """Small products are quicker on one thread, above all where others want the processor too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def lstm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An LSTM trained on sentences whose verbs agree with their subjects."""
    folder = tmp_path_factory.mktemp("lstm")
    (folder / "corpus.txt").write_text("\n".join(agreeing_lines(1, 300)))
    (folder / "held.txt").write_text("\n".join(agreeing_lines(2, 60)))
    prepared = prepare(folder / "corpus.txt", SETTINGS, valid=folder / "held.txt")
    train(prepared, folder / "model", SETTINGS)
    return folder / "model"


def prompts(texts: list[str], contexts: list[str | None] | None = None) -> pl.DataFrame:
    names = [str(place) for place in range(len(texts))]
    columns = {"request": names, "context_text": contexts or [None] * len(texts), "text": texts}
    return pl.DataFrame(columns, schema_overrides={"context_text": pl.String})


def test_held_out_perplexity_is_far_below_a_unigram_models(lstm: Path) -> None:
    held = agreeing_lines(2, 60)
    tokens = open_model(str(lstm), policy=Policy(eos="auto"), cache=False).tokens(held)
    nats = tokens["logprob"].explode()
    assert nats.null_count() == 0
    assert -nats.mean() < 0.6 * torch.tensor(unigram_perplexity(agreeing_lines(1, 300), held)).log()


def test_agreement_is_learned_across_a_phrase(lstm: Path) -> None:
    scores = open_model(str(lstm), cache=False).score(
        ["The dogs behind the old house run here .", "The dogs behind the old house runs here ."]
    )
    assert scores["lp"][0] > scores["lp"][1] + 1


def test_scores_are_those_of_a_plain_forward_pass(lstm: Path) -> None:
    # Word by word, each from a state carried by hand.
    model = load_trained(lstm, device="cpu")
    text = "The cat near the river sleeps here ."
    lm = open_model(str(lstm), policy=Policy(eos="auto"), cache=False)
    words = [line.split("\t")[0] for line in (lstm / "vocabulary.tsv").read_text().splitlines()]
    ids = [words.index(word) for word in ["<s>", *text.lower().split(), "</s>"]]
    state, by_hand = None, []
    with torch.inference_mode():
        for before, after in pairwise(ids):
            embedded = model.embedding.weight[before][None, None]
            hidden, state = model.lstm(embedded, state)
            logits = hidden[0, 0] @ model.output.weight.T + model.output.bias
            by_hand.append(float(torch.log_softmax(logits, dim=0)[after]))
    assert lm.tokens(text)["logprob"].to_list()[0] == pytest.approx(by_hand, abs=1e-5)
    assert lm.tokens(text)["tokens"].to_list()[0] == [*text.lower().split(), "</s>"]


def test_ranks_and_likeliest_words_come_from_the_same_predictions(lstm: Path) -> None:
    lm = open_model(str(lstm), cache=False)
    row = lm.tokens("The cats run here .", rank=True, entropy=True, top=3).row(0, named=True)
    for place, token in enumerate(row["tokens"]):
        assert (row["rank"][place] == 1) == (row["top_tokens"][place][0] == token)
        assert row["top_logprob"][place][0] >= row["logprob"][place] - 1e-6
    assert lm.words("The cats run here .")["lp"].sum() == pytest.approx(sum(row["logprob"]), abs=1e-5)


def test_a_context_is_read_before_the_text(lstm: Path) -> None:
    lm = open_model(str(lstm), cache=False)
    whole = lm.tokens("The dogs run here .")["logprob"].to_list()[0]
    rest = lm.tokens("run here .", context="The dogs")["logprob"].to_list()[0]
    assert rest == pytest.approx(whole[2:], abs=1e-5)


def test_a_score_does_not_depend_on_what_else_is_scored(lstm: Path) -> None:
    texts = [*agreeing_lines(5, 30), "Cats .", " ".join(agreeing_lines(6, 20))]
    engine = open_engine(str(lstm), policy=Policy())
    together = pl.concat(engine.score(prompts(texts))).sort(pl.col("request").cast(pl.Int32))
    for place, text in enumerate(texts):
        alone = pl.concat(engine.score(prompts([text])))
        assert alone["logprob"][0].sum() == pytest.approx(together["logprob"][place].sum(), abs=NOISE)


def test_batches_that_are_done_are_passed_over_and_the_rest_is_equal(lstm: Path) -> None:
    texts = [" ".join(agreeing_lines(seed, 12)) for seed in range(40)]
    engine = open_engine(str(lstm), policy=Policy())
    frames = list(engine.score(prompts(texts)))
    assert len(frames) > 1
    done = set(frames[0]["request"])
    assert pl.concat(engine.score(prompts(texts), done=done)).equals(pl.concat(frames[1:]))


def test_its_card_tells_family_size_and_policy(cli: Callable[..., Answer], lstm: Path) -> None:
    info = open_model(str(lstm), cache=False).info
    n = info.vocabulary
    # Embeddings, four gates with two biases each, and the output layer.
    assert info.parameters == n * 16 + 4 * 24 * (16 + 24 + 2) + n * 24 + n
    assert (info.family, info.kind, info.window, info.policy["casing"]) == (
        "lstm",
        "left-to-right",
        None,
        "lower",
    )
    said = cli("models", "info", lstm)
    assert said.code == 0, said.err
    assert "lstm" in said.out


def test_a_device_map_is_refused(lstm: Path) -> None:
    with pytest.raises(
        NotPossible, match="LSTM and TDLM models compute on one device only; omit --device-map"
    ):
        open_model(str(lstm), device_map="auto")


def test_other_weights_have_another_key(lstm: Path, tmp_path: Path) -> None:
    settings = replace(SETTINGS, seed=7, epochs=1)
    corpus = lstm.parent / "corpus.txt"
    train(prepare(corpus, settings), tmp_path / "model", settings)
    assert open_model(str(tmp_path / "model")).info.key != open_model(str(lstm)).info.key


def test_a_run_takes_it_like_any_model(cli: Callable[..., Answer], lstm: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs.csv").write_text(
        "good,bad\nThe cats run here .,The cats runs here .\nThe dog sleeps here .,The dog sleep here .\n"
    )
    answer = cli(
        "run", tmp_path / "pairs.csv", "-m", lstm, "-o", tmp_path / "run", "--no-report", "-q", "--json"
    )
    assert answer.code == 0, answer.err
    tokens = pl.read_parquet(tmp_path / "run" / "tokens.parquet")
    assert len(tokens) == 4
