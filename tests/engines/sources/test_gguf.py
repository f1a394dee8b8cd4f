"""GGUF files: the converted model is the one that was written, and bad files are refused."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.engines.sources.folders import check_folder
from felicity.engines.sources.gguf import convert_gguf, read_gguf, repair_tokenizer, split_rule
from felicity.engines.sources.model_cache import read_cache_record
from felicity.engines.sources.resolve import resolve_source
from tests.engines.conftest import TinyGguf, write_tiny_gguf

# Converts a file and stops in the middle, to be killed there.
STALL = """
import sys, time
from felicity.engines.sources import resolve_source

def say(step, done, total):
    if done == 10:
        print("in the middle", flush=True)
        time.sleep(600)

resolve_source(sys.argv[1], progress=say)
"""
TRICKY = [
    "two  12",
    "In 2024 it's   7 cats.\n\n 5\t6",
    "“curly” quotes — naïve café",
    "中文 字 12",
    "😀 ok ½ ²",
    "<|im_start|>The cats",
    "",
]


@pytest.fixture
def converted(tiny_gguf: TinyGguf, empty_cache: Path) -> Path:
    return resolve_source(str(tiny_gguf.path)).folder


def test_the_converted_model_gives_the_same_logits(tiny_gguf: TinyGguf, converted: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(converted).eval()
    tokens = torch.arange(1, 60)[None]
    with torch.no_grad():
        difference = (model(tokens).logits - tiny_gguf.model(tokens).logits).abs().max()
    # The file holds the numbers in float32 and both models run the same operations.
    assert float(difference) == 0.0


@pytest.mark.parametrize("text", TRICKY)
def test_the_converted_tokenizer_cuts_where_the_original_cuts(
    tiny_gguf: TinyGguf, converted: Path, text: str
) -> None:
    tokenizer = AutoTokenizer.from_pretrained(converted)
    ours = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    original = tiny_gguf.tokenizer.encode(text, add_special_tokens=False)
    assert ours["input_ids"] == original.ids
    assert [tuple(pair) for pair in ours["offset_mapping"]] == original.offsets


def test_special_tokens_are_kept_and_none_is_added(converted: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(converted)
    assert (tokenizer.bos_token, tokenizer.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert tokenizer.unk_token == "<|endoftext|>"
    assert tokenizer("cats")["input_ids"] == tokenizer("cats", add_special_tokens=False)["input_ids"]


@pytest.mark.parametrize("kind", ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "F16"])
def test_quantized_weights_are_unpacked_as_the_reference_does(
    kind: str, tiny_gguf: TinyGguf, tmp_path: Path
) -> None:
    from gguf import GGMLQuantizationType, GGUFReader, dequantize

    path = requantize(tiny_gguf.path, tmp_path / "small.gguf", GGMLQuantizationType[kind])
    (tmp_path / "out").mkdir()
    convert_gguf(path, tmp_path / "out")
    ours = AutoModelForCausalLM.from_pretrained(tmp_path / "out").state_dict()
    written = {tensor.name: tensor for tensor in GGUFReader(path).tensors}

    def expect(name: str) -> np.ndarray:
        return np.asarray(dequantize(written[name].data, written[name].tensor_type), dtype=np.float32)

    down = expect("blk.1.ffn_down.weight")
    assert np.array_equal(ours["model.layers.1.mlp.down_proj.weight"].numpy(), down)
    assert np.array_equal(ours["lm_head.weight"].numpy(), expect("token_embd.weight"))
    # Rotary heads: 4 heads of 16 rows, stored as pairs (0, 8), (1, 9), ... of each head.
    query = ours["model.layers.0.self_attn.q_proj.weight"].numpy()
    stored = expect("blk.0.attn_q.weight")
    for head in range(4):
        for pair in range(8):
            assert np.array_equal(query[16 * head + pair], stored[16 * head + 2 * pair])
            assert np.array_equal(query[16 * head + 8 + pair], stored[16 * head + 2 * pair + 1])


def requantize(source: Path, target: Path, kind: object) -> Path:
    """The same file with its matrices in another type."""
    from gguf import GGUFReader, GGUFValueType, GGUFWriter, quants

    reader = GGUFReader(source)
    writer = GGUFWriter(target, "llama")
    for key, field in reader.fields.items():
        if not key.startswith("GGUF.") and key != "general.architecture":
            array = field.types[0] == GGUFValueType.ARRAY
            writer.add_key_value(
                key, field.contents(), field.types[0], sub_type=field.types[-1] if array else None
            )
    for tensor in reader.tensors:
        if len(tensor.shape) > 1:
            writer.add_tensor(tensor.name, quants.quantize(tensor.data, kind), raw_dtype=kind)
        else:
            writer.add_tensor(tensor.name, tensor.data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def test_a_file_is_converted_once_and_a_copy_of_it_not_again(
    tiny_gguf: TinyGguf, converted: Path, tmp_path: Path
) -> None:
    steps: list[str] = []
    copy = shutil.copy(tiny_gguf.path, tmp_path / "Tiny-Llama.gguf")
    source = resolve_source(str(copy), progress=lambda step, done, total: steps.append(step))
    assert source.folder == converted
    assert steps == []
    assert (source.name, source.origin) == ("tiny-llama", "gguf")


@pytest.mark.slow
def test_killed_while_converting_the_next_call_makes_the_whole_model(
    tiny_gguf: TinyGguf, empty_cache: Path
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STALL, str(tiny_gguf.path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "in the middle\n"
    process.kill()
    process.communicate()
    left = [path.name for path in (empty_cache / "models").iterdir() if path.is_dir()]
    assert len(left) == 1
    assert left[0].startswith(".tiny-llama-")
    folder = resolve_source(str(tiny_gguf.path)).folder
    assert [path for path in (empty_cache / "models").iterdir() if path.is_dir()] == [folder]
    check_folder(folder)


def test_progress_counts_every_tensor(tiny_gguf: TinyGguf, tmp_path: Path) -> None:
    heard: list[tuple[str, int, int]] = []
    convert_gguf(tiny_gguf.path, tmp_path, progress=lambda *said: heard.append(said))
    assert heard[0] == ("convert Tiny-Llama.gguf", 0, 0)
    # Two layers of nine tensors, the embedding and the last norm.
    assert heard[-1] == ("convert Tiny-Llama.gguf", 20, 20)


def test_two_conversions_make_the_same_files(
    tiny_gguf: TinyGguf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, offline in (("one", "0"), ("two", "1")):
        copy = tmp_path / name / f"{name}.gguf"
        copy.parent.mkdir()
        shutil.copy(tiny_gguf.path, copy)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", offline == "1")
        (tmp_path / name / "out").mkdir()
        convert_gguf(copy, tmp_path / name / "out")
    one, two = tmp_path / "one" / "out", tmp_path / "two" / "out"
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in two.iterdir())
    assert [name for name in names if (one / name).read_bytes() != (two / name).read_bytes()] == []


def test_what_lies_beside_the_file_is_not_taken_for_its_own(
    tiny_gguf: TinyGguf, tiny_model: Path, tmp_path: Path, empty_cache: Path
) -> None:
    crowded = shutil.copytree(tiny_model, tmp_path / "crowded")
    shutil.copy(tiny_gguf.path, crowded / "Tiny-Llama.gguf")
    folder = resolve_source(str(crowded / "Tiny-Llama.gguf")).folder
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.get_vocab() == tiny_gguf.tokenizer.get_vocab()
    assert AutoModelForCausalLM.from_pretrained(folder).config.model_type == "llama"


def test_conversion_prints_nothing(
    tiny_gguf: TinyGguf, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    convert_gguf(tiny_gguf.path, tmp_path)
    assert capfd.readouterr() == ("", "")


def test_an_unknown_splitting_rule_is_noted_in_the_record(tmp_path: Path, empty_cache: Path) -> None:
    file = write_tiny_gguf(tmp_path / "odd.gguf", splitting="klingon")
    source = resolve_source(str(file.path))
    assert "'klingon' is not known" in source.details["notes"]["tokenizer"]
    assert read_cache_record(source.folder)["notes"] == source.details["notes"]


@pytest.mark.parametrize(
    ("rule", "pieces"),
    [
        # Worked by hand: digits leave first and the spaces stay together; or the last space goes with
        # the number; or a run of spaces before a non-space leaves its last one, and numbers go by threes
        # or by ones.
        ("smollm", ["a", "ĠĠ", "1", "2", "3", "4"]),
        ("gpt-2", ["a", "Ġ", "Ġ1234"]),
        ("llama-bpe", ["a", "Ġ", "Ġ", "123", "4"]),
        ("qwen2", ["a", "Ġ", "Ġ", "1", "2", "3", "4"]),
    ],
)
def test_known_rules_split_as_their_names_say(rule: str, pieces: list[str]) -> None:
    found = split_rule(rule)
    assert found is not None
    assert [piece for piece, _ in found.pre_tokenize_str("a  1234")] == pieces


@pytest.mark.parametrize(("rule", "pieces"), [("llama-bpe", ["cat"]), ("smollm", ["c", "a", "t"])])
def test_llama_3_takes_a_whole_word_that_no_merge_leads_to(rule: str, pieces: list[str]) -> None:
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    vocabulary = {"c": 0, "a": 1, "t": 2, "cat": 3}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE(vocab=vocabulary, merges=[])))
    repair_tokenizer(tokenizer, model="gpt2", rule=rule)
    assert tokenizer.tokenize("cat") == pieces


def test_a_truncated_file_is_refused_wherever_it_ends(tiny_gguf: TinyGguf, tmp_path: Path) -> None:
    content = tiny_gguf.path.read_bytes()
    short = tmp_path / "short.gguf"
    for length in (4, 7, 23, 500, 5000, len(content) // 2, len(content) - 1):
        short.write_bytes(content[:length])
        with pytest.raises(BadInput, match=r"short\.gguf is damaged or incomplete"):
            read_gguf(short)


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04 a zip file", b"plain text"])
def test_a_file_that_is_not_gguf_is_refused(content: bytes, tmp_path: Path, empty_cache: Path) -> None:
    (tmp_path / "fake.gguf").write_bytes(content)
    with pytest.raises(BadInput, match="is not a GGUF file"):
        resolve_source(str(tmp_path / "fake.gguf"))


def test_one_piece_of_several_is_refused(tiny_gguf: TinyGguf, tmp_path: Path, empty_cache: Path) -> None:
    piece = shutil.copy(tiny_gguf.path, tmp_path / "big-00001-of-00003.gguf")
    with pytest.raises(BadInput, match="one of 3 parts"):
        resolve_source(str(piece))


def test_an_architecture_transformers_cannot_read_is_refused(tmp_path: Path, empty_cache: Path) -> None:
    file = write_tiny_gguf(tmp_path / "strange.gguf", architecture="bert")
    with pytest.raises(NotPossible, match="of architecture 'bert'"):
        resolve_source(str(file.path))


def test_stretched_positions_are_refused_rather_than_dropped(tmp_path: Path, empty_cache: Path) -> None:
    file = write_tiny_gguf(tmp_path / "long.gguf", extra={"rope_freqs.weight": np.ones(8, np.float32)})
    with pytest.raises(NotPossible, match=r"scales its rotary positions \(rope_freqs\.weight\)"):
        resolve_source(str(file.path))


def test_a_file_that_lacks_weights_is_refused(tmp_path: Path, empty_cache: Path) -> None:
    file = write_tiny_gguf(tmp_path / "hollow.gguf", leave_out="blk.1.ffn_up.weight")
    with pytest.raises(NotPossible, match=r"lacks 1 weights of LlamaForCausalLM \(model\.layers\.1"):
        resolve_source(str(file.path))


def test_a_refused_file_leaves_nothing_in_the_cache(tmp_path: Path, empty_cache: Path) -> None:
    file = write_tiny_gguf(tmp_path / "hollow.gguf", leave_out="blk.1.ffn_up.weight")
    with pytest.raises(FelicityError):
        resolve_source(str(file.path))
    assert [path for path in (empty_cache / "models").iterdir() if path.is_dir()] == []
