"""Training: the same command goes on where it stopped and ends where an unbroken one does."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from felicity.core.errors import BadInput, FelicityError
from felicity.engines.ngram.estimation import Grams, count_ngrams
from felicity.engines.trained.engine import load_trained
from felicity.engines.trained.settings import TopicSettings, TrainingSettings
from felicity.engines.trained.training import CHECKPOINT, TrainingResult, train
from felicity.engines.trained.training_data import Prepared, build_table, load_stopwords, plan_epoch, prepare
from felicity.engines.words import WordCorpus
from felicity.run.model import open_model
from tests.conftest import Answer
from tests.engines.corpora import agreeing_lines, topical_documents, write_documents

TINY = TrainingSettings(
    embedding=12, hidden=16, batch=8, steps=4, epochs=2, rate=0.01, min_count=1, cut="space", held=0.2
)
TOPIC = TopicSettings(topics=4, size=6, filters=5, frequent=0.0)


class Killed(Exception):
    """Stands for whatever ends a process."""


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Small products are quicker on one thread, above all where others want the processor too."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_documents(tmp_path / "corpus.txt", topical_documents(1, 60))


def train_until(
    prepared: Prepared, folder: Path, settings: TrainingSettings, kill_at: int | None
) -> TrainingResult:
    """Train with a checkpoint behind every batch; stop dead before that of the batch `kill_at` is there."""
    done = 0

    def count(epoch: int, step: int, total: int) -> None:
        nonlocal done
        done += 1
        if done == kill_at:
            raise Killed

    return train(prepared, folder, settings, minutes=0, on_batch=count)


@pytest.mark.parametrize("topic", [None, TOPIC], ids=["lstm", "tdlm"])
def test_broken_off_and_taken_up_again_it_ends_bit_for_bit_alike(
    corpus: Path, tmp_path: Path, topic: TopicSettings | None
) -> None:
    settings = replace(TINY, topic=topic)
    prepared = prepare(corpus, settings)
    unbroken = train(prepared, tmp_path / "unbroken", settings, minutes=1000)
    for kill_at in (1, 4, 5):
        with pytest.raises(Killed):
            train_until(prepared, tmp_path / "broken", settings, kill_at)
    # Another process's chance must not change the way.
    torch.rand(7)
    broken = train_until(prepared, tmp_path / "broken", settings, None)
    for name in ("model.safetensors", "vocabulary.tsv", "trained.json"):
        assert (tmp_path / "unbroken" / name).read_bytes() == (tmp_path / "broken" / name).read_bytes(), name
    saved = [torch.load(tmp_path / name / CHECKPOINT, weights_only=True) for name in ("unbroken", "broken")]
    for name, weight in saved[0]["model"].items():
        assert torch.equal(weight, saved[1]["model"][name]), name
    assert [row["valid"] for row in unbroken.history] == [row["valid"] for row in broken.history]
    assert [row["train"] for row in unbroken.history] == [row["train"] for row in broken.history]


@pytest.mark.slow
def test_killed_by_the_system_it_goes_on(corpus: Path, tmp_path: Path) -> None:
    options = "--epochs 2 --hidden 16 --embedding 12 --batch 8 --steps 4 --rate 0.01 --min-count 1 --held 0.2"
    options += " --words space --device cpu --minutes 0 --quiet"
    folder = tmp_path / "broken"
    command = [
        sys.executable,
        "-m",
        "felicity",
        "train",
        "lstm",
        str(corpus),
        *options.split(),
        "-o",
        str(folder),
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment)
    while not (folder / CHECKPOINT).exists() and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (folder / "history.json").exists()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    train(prepare(corpus, TINY), tmp_path / "unbroken", TINY)
    assert (folder / "model.safetensors").read_bytes() == (
        tmp_path / "unbroken/model.safetensors"
    ).read_bytes()


def test_a_finished_training_is_not_done_again_but_may_be_prolonged(corpus: Path, tmp_path: Path) -> None:
    prepared = prepare(corpus, TINY)
    train(prepared, tmp_path / "model", TINY)
    weights = (tmp_path / "model" / "model.safetensors").read_bytes()
    again = train_until(prepared, tmp_path / "model", TINY, 1)
    assert again.epochs == 2
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == weights
    longer = replace(TINY, epochs=3)
    prolonged = train(prepare(corpus, longer), tmp_path / "model", longer)
    at_once = train(prepare(corpus, longer), tmp_path / "at once", longer)
    assert prolonged.best == at_once.best
    assert len(prolonged.history) == 3


def test_training_ends_when_validation_no_longer_gains(corpus: Path, tmp_path: Path) -> None:
    # A rate far too high: validation perplexity rises from the second epoch on.
    settings = replace(TINY, rate=0.5, epochs=30, patience=2, clip=50.0)
    outcome = train(prepare(corpus, settings), tmp_path / "model", settings)
    valid = [row["valid"] for row in outcome.history]
    assert outcome.stopped
    assert outcome.epochs < 30
    assert outcome.best == min(valid)
    assert min(valid[-2:]) >= min(valid[:-2])


@pytest.mark.parametrize("topic", [None, TOPIC], ids=["lstm", "tdlm"])
def test_a_training_that_loses_its_way_says_so(
    corpus: Path, tmp_path: Path, topic: TopicSettings | None
) -> None:
    # So wide that a mean loss goes beyond 709 nats, whose exponential is no number any more.
    settings = replace(TINY, rate=10.0, hidden=512, topic=topic)
    with pytest.raises(FelicityError, match="has diverged .*; lower --rate"):
        train(prepare(corpus, settings), tmp_path / "model", settings)


def test_an_epoch_has_every_sequence_once_and_follows_from_its_number() -> None:
    lengths = np.random.default_rng(0).integers(1, 50, size=1000)
    first, again, second = (plan_epoch(lengths, 130, batch=16, seed=1, epoch=epoch) for epoch in (1, 1, 2))
    for is_topic, n in ((False, 1000), (True, 130)):
        rows = np.concatenate([step.rows for step in first if step.is_topic == is_topic])
        assert sorted(rows) == list(range(n))
    assert all(np.array_equal(a.rows, b.rows) for a, b in zip(first, again, strict=True))
    assert not all(np.array_equal(a.rows, b.rows) for a, b in zip(first, second, strict=True))


def test_other_settings_or_another_corpus_do_not_go_into_the_same_folder(
    corpus: Path, tmp_path: Path
) -> None:
    train(prepare(corpus, TINY), tmp_path / "model", TINY)
    other = replace(TINY, hidden=8)
    with pytest.raises(BadInput, match="other settings or corpus"):
        train(prepare(corpus, other), tmp_path / "model", other)
    corpus.write_text(corpus.read_text() + "One more line .\n")
    with pytest.raises(BadInput, match="other settings or corpus"):
        train(prepare(corpus, TINY), tmp_path / "model", TINY)


def test_content_words_are_telling_words() -> None:
    words = ["<unk>", "<s>", "</s>", "the", "whale", "1851", "'tis", "captain", "whom"]
    table = build_table(words, np.arange(len(words)), TopicSettings(frequent=0.2))
    # The most frequent fifth of six types is one, `the`; `whom` is a stop word.
    assert [word for word, content in zip(words, table.content, strict=True) if content] == [
        "whale",
        "captain",
    ]
    assert {"the", "whom", "wouldn't"} <= load_stopwords()


DAMAGES = {
    "checkpoint.pt": (b"cut", "checkpoint.pt is damaged; remove it"),
    "trained.json": (b"{", "trained.json is damaged"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_of_a_training_is_named(corpus: Path, tmp_path: Path, name: str) -> None:
    content, said = DAMAGES[name]
    prepared = prepare(corpus, TINY)
    with pytest.raises(Killed):
        train_until(prepared, tmp_path / "model", TINY, 2)
    (tmp_path / "model" / name).write_bytes(content)
    with pytest.raises(BadInput, match=said):
        train(prepared, tmp_path / "model", TINY)


def test_a_damaged_model_is_named(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    train(prepare(corpus, TINY), folder, TINY)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[:-8])
    with pytest.raises(BadInput, match=r"model\.safetensors is damaged"):
        open_model(str(folder), cache=False).score("the ship")
    (folder / "model.safetensors").write_bytes(whole)
    table = (folder / "vocabulary.tsv").read_text()
    (folder / "vocabulary.tsv").write_text(table.replace("\t0\n", "\tno\n", 1))
    with pytest.raises(BadInput, match=r"vocabulary\.tsv, line 1"):
        open_model(str(folder), cache=False)
    (folder / "vocabulary.tsv").write_text(table + "new\t1\t0\n")
    with pytest.raises(BadInput, match="does not match its vocabulary"):
        open_model(str(folder), cache=False).score("the ship")


def test_a_model_before_the_end_of_its_first_epoch_says_so(corpus: Path, tmp_path: Path) -> None:
    with pytest.raises(Killed):
        train_until(prepare(corpus, TINY), tmp_path / "model", TINY, 1)
    with pytest.raises(BadInput, match="no weights yet; run `felicity train` again"):
        open_model(str(tmp_path / "model"))


@pytest.mark.parametrize("family", ["lstm", "tdlm"])
@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (None, (), "no such file"),
        (b"", (), "is empty"),
        (b"fine\n\xff\n", (), "line 2: not UTF-8"),
        (b"one line only\n", (), "too few lines"),
        (b"one two\nthree four\n", (), "no word that occurs 10 times"),
        (b"one two\nthree four\n", ("--hidden", 0), "hidden is 0; give a number at least 1"),
        (b"one two\nthree four\n", ("--casing", "upper"), "no casing 'upper'"),
        (b"one two\nthree four\n", ("--device", "abacus"), "no device 'abacus'"),
    ],
    ids=["missing", "empty", "bad UTF-8", "one line", "rare", "hidden", "casing", "device"],
)
def test_what_cannot_be_trained_on_is_refused(
    cli: Callable[..., Answer],
    tmp_path: Path,
    family: str,
    content: bytes | None,
    options: tuple[object, ...],
    said: str,
) -> None:
    if content is not None:
        (tmp_path / "corpus.txt").write_bytes(content)
    answer = cli("train", family, tmp_path / "corpus.txt", "-o", tmp_path / "model", "-q", *options)
    assert answer.code == 2
    assert said in answer.err.lower() or said in answer.err
    assert len(answer.err.strip().splitlines()) == 1
    assert not (tmp_path / "model").exists()


def test_a_folder_that_cannot_be_used_is_refused(corpus: Path, tmp_path: Path) -> None:
    prepared = prepare(corpus, TINY)
    (tmp_path / "file").write_text("x")
    with pytest.raises(FelicityError, match="Cannot write"):
        train(prepared, tmp_path / "file", TINY)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("x")
    with pytest.raises(BadInput, match="not empty and contains no training"):
        train(prepared, tmp_path / "full", TINY)


def test_two_processes_do_not_train_in_one_folder(corpus: Path, tmp_path: Path) -> None:
    prepared = prepare(corpus, TINY)

    def again(epoch: int, step: int, total: int) -> None:
        train(prepared, tmp_path / "model", TINY)

    with pytest.raises(FelicityError, match="Another process is training"):
        train(prepared, tmp_path / "model", TINY, on_batch=again)


def test_word_vectors_may_be_given_to_begin_with(corpus: Path, tmp_path: Path) -> None:
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("2 12\nship " + " ".join(["0.5"] * 12) + "\nzebra " + " ".join(["1"] * 12) + "\n")
    settings = replace(TINY, topic=TOPIC, rate=1e-9, epochs=1)
    prepared = prepare(corpus, settings, embeddings=vectors)
    assert prepared.key != prepare(corpus, settings).key
    train(prepared, tmp_path / "model", settings)
    model = load_trained(tmp_path / "model", device="cpu")
    row = prepared.table.words.index("ship")
    for embedding in (model.language.embedding, model.topic.embedding):
        assert torch.allclose(embedding.weight[row], torch.full((12,), 0.5), atol=1e-6)
        assert embedding.weight[row + 1].abs().max() < 0.1


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("ship 1 2 3", "line 1: 3 numbers after the word, not 12"),
        ("ship " + "x " * 12, "line 1: not a word and 12 numbers"),
        ("zebra " + "1 " * 12, "no vector for any word"),
    ],
)
def test_word_vectors_that_do_not_fit_are_refused(
    corpus: Path, tmp_path: Path, content: str, said: str
) -> None:
    (tmp_path / "vectors.txt").write_text(content + "\n")
    with pytest.raises(BadInput, match=said):
        prepare(corpus, TINY, embeddings=tmp_path / "vectors.txt")


def test_lines_are_held_out_by_the_seed(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(agreeing_lines(1, 50)))
    one, same, other = (prepare(path, replace(TINY, seed=seed)) for seed in (1, 1, 2))
    assert len(one.valid) == 10
    assert len(one.text) == 40
    assert np.array_equal(one.valid.ids, same.valid.ids)
    assert one.key == same.key != other.key


@pytest.mark.parametrize("family", ["lstm", "tdlm"])
def test_the_command_prints_an_ngram_models_perplexity_on_the_same_text(
    cli: Callable[..., Answer], tmp_path: Path, family: str
) -> None:
    documents = topical_documents(1, 40)
    train_file = write_documents(tmp_path / "train.txt", documents[:30])
    valid_file = write_documents(tmp_path / "valid.txt", documents[30:])
    # A TDLM's sequences are the sentences of its documents, an LSTM's the lines.
    lines = {name: path.read_text() for name, path in (("train", train_file), ("valid", valid_file))}
    for name, text in lines.items():
        sentences = text.replace("\t", "\n") if family == "tdlm" else text.replace("\t", " ")
        (tmp_path / f"{name}-lines.txt").write_text(sentences)
    files = (train_file, "--valid", valid_file, "-o", tmp_path / "model")
    plain = ("--words", "space", "--min-count", 2)
    small = ("--hidden", 8, "--embedding", 8, "--epochs", 1)
    made = cli("train", family, *files, *plain, *small, "--ngram", 3, "--json")
    assert made.code == 0, made.err
    alone = cli(
        *("train", "ngram", tmp_path / "train-lines.txt", "--valid", tmp_path / "valid-lines.txt"),
        *("-n", 3, "--casing", "lower", "-o", tmp_path / "model.arpa", "--json", *plain),
    )
    told = json.loads(made.out)["ngram"]
    assert told == {"order": 3, "perplexity": pytest.approx(json.loads(alone.out)["perplexity"], rel=1e-9)}
    again = cli("train", family, *files, *plain, *small, "--ngram", 3)
    assert f"A 3-gram model (modified Kneser-Ney) has perplexity {told['perplexity']:.1f}" in again.out
    without = cli("train", family, *files, *plain, *small, "--ngram", 0, "--json")
    assert "ngram" not in json.loads(without.out)


def test_a_resumed_training_estimates_no_ngram_model_again(
    cli: Callable[..., Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_documents(tmp_path / "train.txt", topical_documents(1, 40))
    small = ("--min-count", 2, "--hidden", 8, "--embedding", 8, "--epochs", 1, "--json")
    command = ("train", "lstm", corpus, "-o", tmp_path / "model", *small, "--ngram")
    first = json.loads(cli(*command, 3).out)
    orders: list[int] = []

    def count_and_note(text: WordCorpus, order: int) -> list[Grams]:
        orders.append(order)
        return count_ngrams(text, order)

    monkeypatch.setattr("felicity.engines.ngram.training.count_ngrams", count_and_note)
    assert json.loads(cli(*command, 3).out)["ngram"] == first["ngram"]
    assert orders == []
    assert json.loads(cli(*command, 2).out)["ngram"] != first["ngram"]
    assert json.loads(cli(*command, 3).out)["ngram"] == first["ngram"]
    kept = tmp_path / "model" / "ngram.json"
    kept.write_text(kept.read_text().replace('"perplexity": ', '"perplexity": 1'))
    assert json.loads(cli(*command, 3).out)["ngram"] == first["ngram"]
    assert orders == [2, 3, 3]


def test_lines_too_short_for_the_ngram_model_asked_for_are_refused(
    cli: Callable[..., Answer], tmp_path: Path
) -> None:
    (tmp_path / "corpus.txt").write_text("a b\nb a\na a\nb b\n")
    common = ("train", "lstm", tmp_path / "corpus.txt", "--min-count", 1, "--hidden", 4, "--embedding", 4)
    refused = cli(*common, "--ngram", 9, "-o", tmp_path / "one")
    assert refused.code == 2
    assert "order 9" in refused.err
    # Nobody asked for the default, so it is left out.
    made = cli(*common, "--epochs", 1, "--json", "-o", tmp_path / "two")
    assert made.code == 0, made.err
    assert "ngram" not in json.loads(made.out)
