"""Hostile models: configurations, tokenizers and weights that are not what they should be.

Each is refused soon, in one sentence with a next step and exit code 2: no traceback, no hang, no score.
"""

import gzip
import json
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.attack.test_command_lines import limited
from tests.conftest import Answer, make_tiny_model
from tests.engines.conftest import write_tiny_gguf
from tests.engines.corpora import agreeing_lines
from tests.engines.shapes import make_masked, make_seq2seq

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
PATIENCE = 30
SENTENCES = ("The cats annoy Tim.", "The cats annoys Tim.")
CONFIG, TOKENIZER, SETTINGS, WEIGHTS = (
    *("config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"),
)
START = "generation_config.json"
Spoil = Callable[[Path], None]


def edit(name: str, change: Callable[[Any], Any]) -> Spoil:
    """Change a JSON file of the folder."""

    def spoil(folder: Path) -> None:
        path = folder / name
        content = json.loads(path.read_text())
        path.write_text(json.dumps(change(content)))

    return spoil


def put(name: str, **fields: Any) -> Spoil:
    """Set fields of a JSON file."""
    return edit(name, lambda content: content | fields)


def drop(name: str, *fields: str) -> Spoil:
    """Leave fields of a JSON file out."""
    return edit(name, lambda content: {key: value for key, value in content.items() if key not in fields})


def write(name: str, content: str | bytes) -> Spoil:
    """Replace a file."""

    def spoil(folder: Path) -> None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return spoil


def cut(name: str, share: float) -> Spoil:
    """Cut a file off."""

    def spoil(folder: Path) -> None:
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: int(len(content) * share)])

    return spoil


def model_of(change: Callable[[dict[str, Any]], Any]) -> Spoil:
    """Change the `model` of a tokenizer."""
    return edit(TOKENIZER, lambda content: content | {"model": change(content["model"])})


def weights(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Spoil:
    """Change the tensors."""

    def spoil(folder: Path) -> None:
        save_file(change(load_file(folder / WEIGHTS)), folder / WEIGHTS, metadata={"format": "pt"})

    return spoil


def header(change: Callable[[dict[str, Any]], Any], *, length: int | None = None) -> Spoil:
    """Change the header of the weights, whatever follows it."""

    def spoil(folder: Path) -> None:
        content = (folder / WEIGHTS).read_bytes()
        size = struct.unpack("<Q", content[:8])[0]
        changed = json.dumps(change(json.loads(content[8 : 8 + size]))).encode()
        begin = struct.pack("<Q", len(changed) if length is None else length)
        (folder / WEIGHTS).write_bytes(begin + changed + content[8 + size :])

    return spoil


def pickled(content: Any) -> Spoil:
    """The weights as a .bin file of this content."""

    def spoil(folder: Path) -> None:
        (folder / WEIGHTS).unlink()
        torch.save(content, folder / "pytorch_model.bin")

    return spoil


def binary(content: bytes) -> Spoil:
    """A .bin file of these bytes."""

    def spoil(folder: Path) -> None:
        (folder / WEIGHTS).unlink()
        (folder / "pytorch_model.bin").write_bytes(content)

    return spoil


def indexed(content: Any) -> Spoil:
    """An index of shards."""

    def spoil(folder: Path) -> None:
        (folder / WEIGHTS).rename(folder / "part.safetensors")
        (folder / f"{WEIGHTS}.index.json").write_text(json.dumps(content))

    return spoil


def remove(*names: str) -> Spoil:
    def spoil(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return spoil


class RunMe:
    """Writes a file if it is ever unpickled."""

    def __reduce__(self) -> Any:
        return (open, ("executed", "w"))


def bomb_of_zip(folder: Path) -> None:
    """A .bin file whose entry is packed a thousandfold."""
    (folder / WEIGHTS).unlink()
    with zipfile.ZipFile(folder / "pytorch_model.bin", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("archive/data.pkl", bytes(200_000_000))


def shift_ids(content: dict[str, Any]) -> dict[str, Any]:
    return content | {"vocab": {token: number + 1000 for token, number in content["vocab"].items()}}


DEEP = "[" * 50_000 + "]" * 50_000
FIRST = "transformer.h.0.attn.c_attn.weight"
HUGE = 10_000_000
GPT2: dict[str, Spoil] = {
    "no layers fit": put(CONFIG, n_layer=HUGE),
    "few more layers": put(CONFIG, n_layer=3),
    "hundreds of layers": put(CONFIG, n_layer=500),
    "fewer layers than stored": put(CONFIG, n_layer=1),
    "no layers": put(CONFIG, n_layer=0),
    "negative layers": put(CONFIG, n_layer=-1),
    "layers as text": put(CONFIG, n_layer="2"),
    "half a layer": put(CONFIG, n_layer=1.5),
    "layers without end": write(CONFIG, '{"model_type": "gpt2", "n_layer": 1e999}'),
    "many digits": write(CONFIG, '{"model_type": "gpt2", "n_layer": ' + "9" * 400 + "}"),
    "too many digits": write(CONFIG, '{"model_type": "gpt2", "n_layer": ' + "9" * 5000 + "}"),
    "labels": put(CONFIG, num_labels=1_000_000_000),
    "a number of labels that is a text": put(CONFIG, num_labels="many"),
    "huge width": put(CONFIG, n_embd=HUGE),
    "other width": put(CONFIG, n_embd=64),
    "no width": put(CONFIG, n_embd=0),
    "width as text": put(CONFIG, n_embd="wide"),
    "huge vocabulary": put(CONFIG, vocab_size=2_000_000_000),
    "small vocabulary": put(CONFIG, vocab_size=3),
    "no vocabulary": put(CONFIG, vocab_size=0),
    "huge window": put(CONFIG, n_positions=1_000_000),
    "small window": put(CONFIG, n_positions=1),
    "heads that do not divide": put(CONFIG, n_head=3),
    "no heads": put(CONFIG, n_head=0),
    "huge inner layer": put(CONFIG, n_inner=1_000_000_000),
    "an activation that does not exist": put(CONFIG, activation_function="os.system"),
    "dropout of 2": put(CONFIG, attn_pdrop=2),
    "epsilon as text": put(CONFIG, layer_norm_epsilon="small"),
    "architectures as number": put(CONFIG, architectures=5),
    "architectures as text": put(CONFIG, architectures="GPT2LMHeadModel"),
    "architectures of lists": put(CONFIG, architectures=[["GPT2LMHeadModel"]]),
    "an unknown model": put(CONFIG, architectures=["Nonsense"], model_type="nonsense"),
    "a classifier": put(CONFIG, architectures=["GPT2ForSequenceClassification"]),
    "another kind of model": put(CONFIG, architectures=["BertForMaskedLM"], model_type="bert"),
    "model type as list": put(CONFIG, model_type=["gpt2"]),
    "no model type": drop(CONFIG, "model_type", "architectures"),
    "dtype that does not exist": put(CONFIG, torch_dtype="float1000", dtype="float1000"),
    "quantized by nothing": put(CONFIG, quantization_config={"quant_method": "nonsense"}),
    "its own code": put(
        CONFIG, model_type="own", architectures=["Own"], auto_map={"AutoModelForCausalLM": "own.Own"}
    ),
    "an empty configuration": write(CONFIG, "{}"),
    "a list as configuration": write(CONFIG, "[]"),
    "no JSON": write(CONFIG, "{"),
    "not UTF-8": write(CONFIG, b'{"model_type": "\xff"}'),
    "nested too deeply": write(CONFIG, f'{{"a": {DEEP}}}'),
    "objects nested too deeply": write(CONFIG, '{"a": ' * 5000 + "1" + "}" * 5000),
    "a gzip file as configuration": write(CONFIG, gzip.compress(b"{}")),
    "an empty file as configuration": write(CONFIG, ""),
    "ids beyond the embedding": model_of(shift_ids),
    "a vocabulary that is a list": model_of(lambda model: model | {"vocab": []}),
    "negative ids": model_of(lambda model: model | {"vocab": dict.fromkeys(model["vocab"], -1)}),
    "one id for all": model_of(lambda model: model | {"vocab": dict.fromkeys(model["vocab"], 0)}),
    "an empty vocabulary": model_of(lambda model: model | {"vocab": {}, "merges": []}),
    "merges of nothing": model_of(lambda model: model | {"merges": [["zz", "yy"]]}),
    "merges as number": model_of(lambda model: model | {"merges": 5}),
    "a tokenizer of no kind": model_of(lambda model: model | {"type": "Nonsense"}),
    "a tokenizer that is a list": write(TOKENIZER, "[]"),
    "an empty tokenizer": write(TOKENIZER, "{}"),
    "half a tokenizer": cut(TOKENIZER, 0.5),
    "a tokenizer nested too deeply": write(TOKENIZER, DEEP),
    "a pattern without end": edit(
        TOKENIZER,
        lambda content: (
            content
            | {
                "pre_tokenizer": {
                    "type": "Split",
                    "pattern": {"Regex": "("},
                    "behavior": "Isolated",
                    "invert": False,
                }
            }
        ),
    ),
    "truncation to nothing": edit(
        TOKENIZER,
        lambda content: (
            content
            | {"truncation": {"direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 5}}
        ),
    ),
    "length as text": put(SETTINGS, model_max_length="512"),
    "length as list": put(SETTINGS, model_max_length=[512]),
    "a tokenizer class that does not exist": put(SETTINGS, tokenizer_class="Nonsense"),
    "a tokenizer class as number": put(SETTINGS, tokenizer_class=5),
    "a begin token as number": put(SETTINGS, bos_token=5),
    "a begin token as list": put(SETTINGS, bos_token=["<s>"]),
    "added tokens as text": put(SETTINGS, added_tokens_decoder={"x": "y"}),
    "settings as list": write(SETTINGS, "[]"),
    "settings that are no JSON": write(SETTINGS, "{"),
    "no tokenizer": remove(TOKENIZER, SETTINGS),
    "weights cut short": cut(WEIGHTS, 0.5),
    "weights cut in the header": cut(WEIGHTS, 0.001),
    "empty weights": write(WEIGHTS, b""),
    "weights of zeros": write(WEIGHTS, bytes(1000)),
    "a header without end": header(lambda found: found, length=2**62),
    "a header of one byte": header(lambda found: found, length=1),
    "a header that is a list": header(lambda _: []),
    "offsets beyond the file": header(
        lambda found: found | {FIRST: found[FIRST] | {"data_offsets": [0, 2**60]}}
    ),
    "a shape beyond the file": header(
        lambda found: found | {FIRST: found[FIRST] | {"shape": [2**40, 2**40]}}
    ),
    "a dtype that is none": header(lambda found: found | {FIRST: found[FIRST] | {"dtype": "X99"}}),
    "no tensors": weights(lambda _: {}),
    "one tensor": weights(lambda found: {FIRST: found[FIRST]}),
    "a tensor too few": weights(lambda found: {k: v for k, v in found.items() if k != FIRST}),
    "a tensor of another shape": weights(lambda found: found | {FIRST: torch.zeros(3)}),
    "a tensor of whole numbers": weights(
        lambda found: {name: value.to(torch.int8) for name, value in found.items()}
    ),
    "not a number": weights(lambda found: found | {FIRST: torch.full_like(found[FIRST], float("nan"))}),
    "infinite": weights(lambda found: found | {FIRST: torch.full_like(found[FIRST], float("inf"))}),
    "other names": weights(lambda found: {f"other.{name}": value for name, value in found.items()}),
    "a list as .bin": pickled([1, 2, 3]),
    "a number as .bin": pickled(5),
    "texts as .bin": pickled({"a": "b"}),
    "numbers as names in .bin": pickled({1: torch.zeros(3)}),
    "no tensors in .bin": pickled({}),
    "code as .bin": pickled(RunMe()),
    "bytes as .bin": binary(bytes(range(256)) * 50),
    "an empty .bin": binary(b""),
    "a packed .bin": bomb_of_zip,
    "an index that is a list": indexed([]),
    "an index of no shards": indexed({"weight_map": {}}),
    "an index of numbers": indexed({"weight_map": {"a": 5}}),
    "an index of shards elsewhere": indexed({"weight_map": {"a": "../../../etc/passwd"}}),
    "an index of other tensors": indexed({"weight_map": {"a": "part.safetensors"}}),
}
# What a model may be without being refused.
HARMLESS = {
    "a number of labels that is a text",
    "a classifier",
    "quantized by nothing",
    "truncation to nothing",
    "a tokenizer class that does not exist",
}
LLAMA: dict[str, Spoil] = {
    "layers": put(CONFIG, num_hidden_layers=HUGE),
    "a layer too many": put(CONFIG, num_hidden_layers=4),
    "a layer too few": put(CONFIG, num_hidden_layers=1),
    "no heads": put(CONFIG, num_attention_heads=0),
    "huge heads": put(CONFIG, head_dim=HUGE),
    "other heads": put(CONFIG, num_attention_heads=8),
    "more key heads": put(CONFIG, num_key_value_heads=3),
    "no base": put(CONFIG, rope_parameters={"rope_type": "default", "rope_theta": float("nan")}),
    "a rotation of no kind": put(CONFIG, rope_parameters={"rope_type": "nonsense", "rope_theta": 1e4}),
    "the rotation as text": put(CONFIG, rope_parameters="default"),
    "a huge vocabulary": put(CONFIG, vocab_size=10**12),
}
MASKED: dict[str, Spoil] = {
    "layers": put(CONFIG, num_hidden_layers=HUGE),
    "a layer too few": put(CONFIG, num_hidden_layers=1),
    "no mask token": put(SETTINGS, mask_token=None),
    "the mask token as number": put(SETTINGS, mask_token=5),
    "padding beyond the embedding": put(CONFIG, pad_token_id=HUGE),
    "no segments": put(CONFIG, type_vocab_size=0),
    "ids beyond the embedding": model_of(shift_ids),
}
SEQ2SEQ: dict[str, Spoil] = {
    "layers": put(CONFIG, num_layers=HUGE),
    "decoder layers": put(CONFIG, num_decoder_layers=HUGE),
    "a start beyond the embedding": put(START, decoder_start_token_id=HUGE),
    "a negative start": put(START, decoder_start_token_id=-5),
    "the start as text": put(START, decoder_start_token_id="<pad>"),
    "huge buckets": put(CONFIG, relative_attention_num_buckets=10**9),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models as they should be, from which the hostile ones are made."""
    from tests.engines.causal.test_llama import make_llama

    folder = tmp_path_factory.mktemp("models")
    return {
        "gpt2": make_tiny_model(folder / "gpt2", seed=1),
        "llama": make_llama(folder / "llama"),
        "masked": make_masked("bert", folder / "masked"),
        "seq2seq": make_seq2seq("t5", folder / "seq2seq"),
    }


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small LSTM."""
    from felicity.engines.trained import TrainingSettings, prepare, train

    folder = tmp_path_factory.mktemp("trained")
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(agreeing_lines(1, 200)) + "\n")
    settings = TrainingSettings(embedding=4, hidden=8, epochs=1, min_count=1)
    train(prepare(corpus, settings), folder / "lstm", settings)
    return folder / "lstm"


CASES = [
    (kind, name)
    for kind, cases in (("gpt2", GPT2), ("llama", LLAMA), ("masked", MASKED), ("seq2seq", SEQ2SEQ))
    for name in cases
]
SPOILS = {"gpt2": GPT2, "llama": LLAMA, "masked": MASKED, "seq2seq": SEQ2SEQ}


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[f"{kind}: {name}" for kind, name in CASES])
def test_a_hostile_model_is_refused_in_a_sentence(
    kind: str,
    name: str,
    models: dict[str, Path],
    cli: Callable[..., Answer],
    tmp_path: Path,
    empty_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path(shutil.copytree(models[kind], tmp_path / "model"))
    SPOILS[kind][name](folder)
    with limited(PATIENCE):
        answer = cli("judge", *SENTENCES, "-m", folder)
    assert_refused(answer, harmless=name in HARMLESS)
    assert not (tmp_path / "executed").exists()


ARPA = (
    "\\data\\\nngram 1={}\nngram 2=1\n\n"
    "\\1-grams:\n-1\t{}\t0\n-1\tcat\t0\n\n\\2-grams:\n-1\tthe cat\n\n\\end\\\n"
)
WORDS: dict[str, str | bytes] = {
    "more n-grams than lines": ARPA.format(10**12, "the"),
    "more n-grams than a number holds": ARPA.format(10**30, "the"),
    "a count of many digits": ARPA.format("9" * 5000, "the"),
    "no n-grams": ARPA.format(0, "the"),
    "a word twice": ARPA.format(2, "cat"),
    "a word of two": ARPA.format(2, "the the"),
    "probabilities above 1": ARPA.format(2, "the").replace("-1\tthe cat", "5\tthe cat"),
    "probabilities that are none": ARPA.format(2, "the").replace("-1\tthe cat", "nan\tthe cat"),
    "no end": ARPA.format(2, "the")[:-9],
    "bytes": b"\\data\\\n" + bytes(range(256)) * 10,
    "a cut gzip file": gzip.compress(ARPA.format(2, "the").encode())[:-10],
}


@pytest.mark.parametrize("name", WORDS)
def test_a_hostile_ngram_model_is_refused_in_a_sentence(
    name: str, cli: Callable[..., Answer], tmp_path: Path, empty_cache: Path
) -> None:
    content = WORDS[name]
    path = tmp_path / ("model.arpa.gz" if name == "a cut gzip file" else "model.arpa")
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with limited(PATIENCE):
        answer = cli("judge", "the cat", "cat the", "-m", path)
    assert_refused(answer)


def set_number(path: Path, name: str, value: int) -> None:
    """Set a number in the header of a GGUF file."""
    from gguf import GGUFReader

    reader = GGUFReader(path, "r+")
    field = reader.fields[name]
    field.parts[field.data[0]][0] = value
    reader.data.flush()


GGUF_NUMBERS = {
    "llama.block_count": (10_000_000, 5, 1),
    "llama.embedding_length": (1_000_000_000, 32),
    "llama.attention.head_count": (0, 3),
    "llama.vocab_size": (2_000_000_000,),
    "tokenizer.ggml.bos_token_id": (2_000_000_000,),
}


@pytest.mark.parametrize(("name", "value"), [(k, v) for k, values in GGUF_NUMBERS.items() for v in values])
def test_a_hostile_gguf_file_is_refused_in_a_sentence(
    name: str, value: int, cli: Callable[..., Answer], tmp_path: Path, empty_cache: Path
) -> None:
    path = write_tiny_gguf(tmp_path / "tiny.gguf").path
    set_number(path, name, value)
    with limited(PATIENCE):
        answer = cli("judge", *SENTENCES, "-m", path)
    assert_refused(answer, harmless=name in ("llama.vocab_size", "tokenizer.ggml.bos_token_id"))


TRAINED = {"hidden": (10**9, 3.5, "many", 7), "layers": (10**9, 2), "embedding": (10**12, -1)}


@pytest.mark.parametrize(("name", "value"), [(k, v) for k, values in TRAINED.items() for v in values])
def test_a_hostile_trained_model_is_refused_in_a_sentence(
    name: str, value: object, trained: Path, cli: Callable[..., Answer], tmp_path: Path, empty_cache: Path
) -> None:
    folder = Path(shutil.copytree(trained, tmp_path / "model"))
    path = folder / "trained.json"
    content = json.loads(path.read_text())
    content["settings"][name] = value
    path.write_text(json.dumps(content))
    with limited(PATIENCE):
        answer = cli("judge", "the cat", "cat the", "-m", folder)
    assert_refused(answer)


def assert_refused(answer: Answer, *, harmless: bool = False) -> None:
    """One sentence with a next step, and exit code 2."""
    assert answer.code == 2 or (harmless and answer.code == 0), answer
    assert "Traceback" not in answer.err
    if answer.code == 2:
        said = answer.err.strip()
        assert said.endswith((".", "?")), said
        assert len(said.splitlines()) <= 3, said
        assert not answer.out, answer.out
