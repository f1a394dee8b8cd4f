"""What `felicity models info` says of every family, without weights being loaded."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from felicity.engines.ngram.training import train_ngram
from felicity.engines.trained.settings import TopicSettings, TrainingSettings
from felicity.engines.trained.training import train
from felicity.engines.trained.training_data import prepare
from tests.conftest import Answer, make_tiny_model
from tests.engines.corpora import topical_documents, write_documents
from tests.engines.served.served_server import NAME, Served
from tests.engines.shapes import make_masked, make_seq2seq, make_xlnet

Command = tuple[str | Path, ...]


@contextmanager
def at_folder(folder: Path) -> Iterator[Command]:
    yield (folder,)


def make_ngram(folder: Path) -> Path:
    (folder / "corpus.txt").write_text("a b\na c\n")
    train_ngram(folder / "corpus.txt", folder / "tiny.arpa", order=2)
    return folder / "tiny.arpa"


def make_trained(folder: Path, *, topic: TopicSettings | None) -> Path:
    corpus = write_documents(folder / "corpus.txt", topical_documents(1, 10))
    settings = TrainingSettings(embedding=8, hidden=8, batch=8, epochs=1, min_count=1, topic=topic)
    train(prepare(corpus, settings), folder / "model", settings)
    return folder / "model"


@contextmanager
def serve(folder: Path) -> Iterator[Command]:
    pytest.importorskip("httpx", reason="served models need httpx: pip install 'felicity[api]'")
    with Served(make_tiny_model(folder / "tiny", seed=1)) as served:
        yield (f"openai:{NAME}", "--url", served.url)


TOPIC = TopicSettings(topics=3, size=4, filters=4, frequent=0.0)
FAMILIES = {
    "causal": lambda folder: at_folder(make_tiny_model(folder / "m", seed=1)),
    "masked": lambda folder: at_folder(make_masked("bert", folder / "m")),
    "seq2seq": lambda folder: at_folder(make_seq2seq("t5", folder / "m")),
    "xlnet": lambda folder: at_folder(make_xlnet(folder / "m")),
    "ngram": lambda folder: at_folder(make_ngram(folder)),
    "lstm": lambda folder: at_folder(make_trained(folder, topic=None)),
    "tdlm": lambda folder: at_folder(make_trained(folder, topic=TOPIC)),
    "served": serve,
}
KINDS = {"masked": "pseudo", "seq2seq": "seq2seq", "xlnet": "permutation"}
CAN = {
    "causal": {"score", "more", "boundary", "fill", "generate"},
    "masked": {"score", "more", "fill"},
    "seq2seq": {"score", "more", "boundary", "fill", "generate"},
    "xlnet": {"score", "more", "fill"},
    "ngram": {"score", "more", "boundary", "fill", "generate"},
    "lstm": {"score", "more", "boundary", "fill", "generate"},
    "tdlm": {"score", "more", "boundary", "fill", "generate"},
    "served": {"score", "fill", "generate"},
}
# What a field of the policy that is the family's own is settled to.
SETTLED = {
    "masked": ("pll", "word_l2r"),
    "seq2seq": ("seq2seq", "target"),
    "xlnet": ("order", "both"),
    "tdlm": ("casing", "lower"),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_of_every_family_is_described(
    family: str, tmp_path: Path, empty_cache: Path, cli: Callable[..., Answer]
) -> None:
    with FAMILIES[family](tmp_path) as named:
        said = cli("models", "info", *named, "--json")
        assert said.code == 0, said.err
        told = json.loads(said.out)
        table = cli("models", "info", *named)
    assert (told["family"], told["kind"]) == (family, KINDS.get(family, "left-to-right"))
    assert set(told["can"]) == CAN[family]
    assert (told["parameters"] > 0) == (family != "served")
    field, value = SETTLED.get(family, ("join", " "))
    assert told["policy"][field] == value
    assert table.code == 0, table.err
    assert told["key"] in table.out
    assert ", ".join(told["can"]) in table.out
