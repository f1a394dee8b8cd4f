"""Another model put in the place of an open one: no score of it is ever stored as the first one's."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

import felicity as fe
from felicity.core.errors import FelicityError
from felicity.engines.causal import engine
from felicity.engines.ngram.training import train_ngram
from felicity.engines.sources import gguf, resolve_source
from felicity.engines.trained.settings import TrainingSettings
from felicity.engines.trained.training import train
from felicity.engines.trained.training_data import prepare
from tests.conftest import Answer, make_tiny_model
from tests.engines.conftest import write_tiny_gguf
from tests.engines.ngram.test_ngram import PACKED

TEXTS = ["The cats annoy Tim.", "She saw herself.", "No dog has ever barked here."]
CHANGED = "was changed or removed while it was in use, and nothing computed since is stored"


@pytest.fixture
def models(tmp_path: Path, empty_cache: Path) -> tuple[Path, Path]:
    """A model, and another one of the same size."""
    return make_tiny_model(tmp_path / "one", seed=1), make_tiny_model(tmp_path / "two", seed=2)


def copy_over(source: Path, target: Path) -> None:
    """As `cp` does: the same file with another content."""
    target.write_bytes(source.read_bytes())


def move_over(source: Path, target: Path) -> None:
    shutil.copy(source, target.with_name("new"))
    target.with_name("new").replace(target)


def assert_true(folder: Path, *, kept: int) -> None:
    """What is stored for this model, of which so many texts, is what it gives by itself."""
    stored = fe.model(str(folder))
    lone = fe.model(str(folder), cache=False)
    database = stored.store._database
    assert database.execute("SELECT COUNT(*) FROM score").fetchone()[0] == kept
    assert stored.score(TEXTS)["lp"].to_list() == pytest.approx(lone.score(TEXTS)["lp"].to_list(), abs=1e-4)


@pytest.mark.parametrize("exchange", [copy_over, move_over])
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_file_exchanged_after_opening_is_found(
    models: tuple[Path, Path], tmp_path: Path, name: str, exchange: Callable[[Path, Path], None]
) -> None:
    one, two = models
    first = shutil.copytree(one, tmp_path / "first")
    (two / "config.json").write_text((one / "config.json").read_text().replace("gelu_new", "relu"))
    tokens = (one / "tokenizer.json").read_text()
    (two / "tokenizer.json").write_text(tokens.replace('"Ġannoy"', '"Ġyonna"'))
    lm = fe.model(str(one))
    exchange(two / name, one / name)
    with pytest.raises(FelicityError, match=f"{name} {CHANGED}"):
        lm.score(TEXTS)
    assert_true(first, kept=0)


@pytest.mark.parametrize("exchange", [copy_over, move_over])
def test_a_file_exchanged_between_two_batches_ends_the_scoring_with_what_was_stored_before(
    models: tuple[Path, Path], tmp_path: Path, exchange: Callable[[Path, Path], None]
) -> None:
    one, two = models
    first = shutil.copytree(one, tmp_path / "first")
    lm = fe.model(str(one))
    lm.score(TEXTS[:2])
    exchange(two / "model.safetensors", one / "model.safetensors")
    for compute in (
        lambda: lm.score(TEXTS),
        lambda: lm.tokens(TEXTS, entropy=True),
        lambda: lm.fill("The cats ___.", k=2),
        lambda: lm.score_candidates("The cats ___.", ["annoy"]),
        lambda: lm.generate("The cats", tokens=2),
    ):
        with pytest.raises(FelicityError, match=CHANGED):
            compute()
    assert lm.score(TEXTS[:2])["lp"].len() == 2  # stored before
    assert_true(first, kept=2)


def test_weights_cut_short_while_they_are_in_use_end_in_a_sentence(models: tuple[Path, Path]) -> None:
    one, _ = models
    lm = fe.model(str(one))
    lm.score(TEXTS[:1])
    os.truncate(one / "model.safetensors", 100)
    with pytest.raises(FelicityError, match=CHANGED):
        lm.score(TEXTS)


def test_the_command_line_says_it_in_a_sentence_and_exits_with_2(
    models: tuple[Path, Path], tmp_path: Path, cli: Callable[..., Answer], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = models
    first = shutil.copytree(one, tmp_path / "first")
    load = engine.load_weights

    def load_and_exchange(*given: Any, **options: Any) -> Any:
        model = load(*given, **options)
        copy_over(two / "model.safetensors", one / "model.safetensors")
        return model

    monkeypatch.setattr(engine, "load_weights", load_and_exchange)
    answer = cli("judge", *TEXTS[:2], "-m", str(one))
    assert answer.code == 2
    assert f"model.safetensors {CHANGED}" in " ".join(answer.err.split())
    monkeypatch.undo()
    monkeypatch.setenv("FELICITY_CACHE", str(tmp_path / "cache"))
    assert_true(first, kept=0)


def test_a_model_that_is_only_touched_goes_on(models: tuple[Path, Path]) -> None:
    one, _ = models
    lm = fe.model(str(one))
    lm.score(TEXTS[:1])
    os.utime(one / "model.safetensors")
    assert lm.score(TEXTS)["lp"].len() == len(TEXTS)


def test_a_tokenizer_exchanged_while_it_is_loaded_is_not_remembered(
    models: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers import AutoTokenizer

    one, _ = models
    first = shutil.copytree(one, tmp_path / "first")
    other = tmp_path / "tokenizer.json"
    other.write_text((one / "tokenizer.json").read_text().replace('"Ġannoy"', '"Ġyonna"'))
    load: Any = AutoTokenizer.from_pretrained

    def exchange_and_load(folder: Path, **options: Any) -> Any:
        move_over(other, folder / "tokenizer.json")
        return load(folder, **options)

    monkeypatch.setattr(AutoTokenizer, "from_pretrained", exchange_and_load)
    with pytest.raises(FelicityError, match=f"tokenizer.json {CHANGED}"):
        fe.model(str(one))
    monkeypatch.undo()
    monkeypatch.setenv("FELICITY_CACHE", str(tmp_path / "cache"))
    assert fe.model(str(first)).tokens(TEXTS[0])["tokens"][0].to_list()[2] == "Ġannoy"


def test_the_float64_of_a_model_is_not_that_of_another(models: tuple[Path, Path]) -> None:
    one, two = models
    lm = fe.model(str(one))
    copy_over(two / "model.safetensors", one / "model.safetensors")
    with pytest.raises(FelicityError, match="files of 'one' were changed"):
        assert lm.in_float64


def test_a_gguf_file_exchanged_before_its_conversion_is_not_stored(
    tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf").path
    other = write_tiny_gguf(tmp_path / "other.gguf", splitting="gpt-2").path
    whole = gguf.check_gguf

    def exchange(given: Path) -> None:
        whole(given)
        copy_over(other, given)

    monkeypatch.setattr(gguf, "check_gguf", exchange)
    with pytest.raises(FelicityError, match=f"tiny.gguf {CHANGED}"):
        resolve_source(str(path))
    assert not list((empty_cache / "models").glob("[!.]*"))


def test_an_arpa_file_exchanged_after_opening_is_found(tmp_path: Path, empty_cache: Path) -> None:
    lines = ["the cats annoy tim", "she saw herself", "no dog has ever barked here", "the dog saw the cats"]
    for name in ("one", "two"):
        corpus = tmp_path / f"{name}.txt"
        corpus.write_text("\n".join(lines * 3 + [f"{name} more"] * 5))
        train_ngram(corpus, tmp_path / f"{name}.arpa", order=2)
    path, first = tmp_path / "one.arpa", shutil.copy(tmp_path / "one.arpa", tmp_path / "first.arpa")
    lm = fe.model(str(path))
    lm.score("the cats")
    copy_over(tmp_path / "two.arpa", path)
    with pytest.raises(FelicityError, match=rf"one\.arpa {CHANGED}"):
        lm.score(TEXTS)
    lm = fe.model(str(path))
    move_over(Path(first), path)
    with pytest.raises(FelicityError, match=rf"one\.arpa {CHANGED}"):
        lm.score(TEXTS)
    assert_true(Path(first), kept=1)


def test_a_kenlm_file_cut_short_while_it_is_in_use_ends_in_a_sentence(
    tmp_path: Path, empty_cache: Path
) -> None:
    pytest.importorskip("kenlm", reason="the package kenlm is not here: pip install 'felicity[ngram]'")
    path = Path(shutil.copy(PACKED, tmp_path / "packed.klm"))
    lm = fe.model(str(path))
    before = lm.score("a b")["lp"].item()
    os.truncate(path, 200)
    with pytest.raises(FelicityError, match=rf"packed\.klm {CHANGED}"):
        lm.score("b a")
    assert fe.model(str(PACKED)).score("a b")["lp"].item() == before


def test_a_trained_model_that_is_trained_on_is_found(tmp_path: Path, empty_cache: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the cats annoy tim\nshe saw herself\n" * 4)
    settings = TrainingSettings(embedding=4, hidden=4, epochs=1, min_count=1)
    train(prepare(corpus, settings), tmp_path / "model", settings)
    first = Path(shutil.copytree(tmp_path / "model", tmp_path / "first"))
    lm = fe.model(str(tmp_path / "model"))
    weights = load_file(first / "model.safetensors")
    save_file({name: tensor + 0.5 for name, tensor in weights.items()}, tmp_path / "next.safetensors")
    move_over(tmp_path / "next.safetensors", tmp_path / "model" / "model.safetensors")
    with pytest.raises(FelicityError, match=CHANGED):
        lm.score(TEXTS)
    assert_true(first, kept=0)


@pytest.mark.parametrize("style", ["vllm", "llama", "top"])
def test_another_model_behind_the_same_server_is_found_before_its_scores_are_stored(
    models: tuple[Path, Path], tmp_path: Path, style: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("httpx", reason="served models need httpx: pip install 'felicity[api]'")
    from felicity.engines.served.settings import Serving
    from tests.engines.served.served_server import NAME, Served, load

    for name in ("OPENAI_API_KEY", "FELICITY_API_KEY", "OPENAI_BASE_URL", "FELICITY_URL"):
        monkeypatch.delenv(name, raising=False)
    one, two = models
    tokenizer = None if style == "top" else str(one)
    with Served(one, style=style) as served:
        lm = fe.model(f"openai:{NAME}", serving=Serving(url=served.url, tokenizer=tokenizer))
        first = lm.fill(["The cats ___."], k=2) if style == "top" else lm.score(TEXTS[:1])
        served.model, _ = load(two)
        with pytest.raises(FelicityError, match="answers as another model"):
            lm.fill(["The cats ___."], k=2) if style == "top" else lm.score(TEXTS)
        served.model, _ = load(one)
        again = lm.fill(["The cats ___."], k=2) if style == "top" else lm.score(TEXTS[:1])
    assert again.equals(first)
    assert lm.store._database.execute("SELECT COUNT(*) FROM score").fetchone()[0] == (style != "top")
