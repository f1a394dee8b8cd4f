"""Words by character offsets, with the end of a word counted to the word."""

import json
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput, UnknownName
from felicity.measures.words import find_words, sum_spans

HARD = [
    "The cat didn't see the cat.",
    "“No,” she said — “never!”",
    "I 😀 中文  yes",
    "中文 句子",
    "cats",
    " The cats ",
]


def table(
    text: str, cuts: list[int], logprob: list[float | None], boundary: list[float | None]
) -> pl.DataFrame:
    starts = [0, *cuts]
    return pl.DataFrame(
        {
            "start": [starts],
            "end": [[*cuts, len(text)]],
            "logprob": [logprob],
            "boundary": [boundary],
        }
    )


def test_a_worked_example() -> None:
    # "the cat sat": the | _ca | t | _sat. The end of "the" is the chance -0.1 of a space before "_ca",
    # taken from "cat"; that of "cat" is -0.4. So: -2 - 0.1, -3 - 0.5 + 0.1 - 0.4, -4 + 0.4.
    text = "the cat sat"
    tokens = table(text, [3, 6, 7], [-2.0, -3.0, -0.5, -4.0], [-0.7, -0.1, -2.0, -0.4])
    corrected = sum_spans(tokens, [text], [find_words(text)])
    assert corrected["lp"].to_list() == pytest.approx([-2.1, -3.8, -3.6])
    plain = sum_spans(tokens, [text], [find_words(text)], boundary="plain")
    assert plain["lp"].to_list() == pytest.approx([-2.0, -3.5, -4.0])
    assert plain["n_tokens"].to_list() == [1, 2, 1]


def test_an_end_token_ends_the_last_word_and_stands_by_itself() -> None:
    text = "a b"
    tokens = pl.DataFrame(
        {
            "start": [[0, 1, 3]],
            "end": [[1, 3, 3]],
            "logprob": [[-1.0, -2.0, -3.0]],
            "boundary": [[-9.0, -0.5, -0.25]],
        }
    )
    words = sum_spans(tokens, [text], [find_words(text)])
    assert words["word"].to_list() == ["a", "b", ""]
    assert words["lp"].to_list() == pytest.approx([-1.5, -2.0 + 0.5 - 0.25, -3.0 + 0.25])


def test_a_region_that_ends_within_a_word_is_not_corrected_there() -> None:
    text = "cat."
    tokens = table(text, [3], [-1.0, -2.0], [-0.5, -0.5])
    regions = sum_spans(tokens, [text], [[(0, 3), (3, 4)]])
    assert regions["lp"].to_list() == [-1.0, -2.0]


@pytest.mark.parametrize("policy", [{}, {"eos": "auto"}, {"bos": "none"}], ids=["begin", "end", "bare"])
@pytest.mark.parametrize("boundary", ["corrected", "plain"])
def test_words_sum_to_the_sentence(tiny_model: Path, policy: dict[str, str], boundary: str) -> None:
    lm = fe.model(str(tiny_model), policy=fe.Policy(**policy), cache=False)
    words = lm.words(HARD, boundary=boundary)
    sums = words.group_by("text", maintain_order=True).agg(pl.col("lp").sum())["lp"]
    assert sums.to_list() == pytest.approx(lm.score(HARD)["lp"].to_list(), abs=1e-4)


@pytest.fixture(scope="module")
def metaspace_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random Llama whose tokenizer is SentencePiece's way: spaces as letters, bytes for what is unknown."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    trainer = trainers.BpeTrainer(vocab_size=90, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False)
    tokenizer.train_from_iterator(["The cat didn't see the cats.", "No, she said, yes, never!"], trainer)
    written = json.loads(tokenizer.to_str())
    known = written["model"]["vocab"]
    known |= {f"<0x{byte:02X}>": len(known) + byte for byte in range(256)}
    written["model"]["byte_fallback"] = True
    tokenizer = Tokenizer.from_str(json.dumps(written))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    torch.manual_seed(4)
    config = LlamaConfig(
        vocab_size=len(fast),
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=128,
        bos_token_id=1,
        eos_token_id=2,
    )
    folder = tmp_path_factory.mktemp("metaspace") / "tiny-llama"
    LlamaForCausalLM(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("boundary", ["corrected", "plain"])
def test_words_of_a_sentencepiece_tokenizer_sum_to_the_sentence(metaspace_model: Path, boundary: str) -> None:
    lm = fe.model(str(metaspace_model), cache=False)
    tokens = lm.tokens(HARD)["tokens"].to_list()
    assert any(piece.startswith("▁") for piece in tokens[0])
    assert any(piece.startswith("<0x") for piece in tokens[2])
    words = lm.words(HARD, boundary=boundary)
    assert words.filter(row=1)["word"].to_list() == HARD[0].split()
    sums = words.group_by("text", maintain_order=True).agg(pl.col("lp").sum())["lp"]
    assert sums.to_list() == pytest.approx(lm.score(HARD)["lp"].to_list(), abs=1e-4)


def test_plain_words_are_not_scored_twice(tiny_model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    once = lm.words(HARD, boundary="plain")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("scored again")

    monkeypatch.setattr(lm.engine, "score", refuse)
    assert lm.words(HARD, boundary="plain").equals(once)


def test_a_repeated_word_is_told_apart_by_where_it_stands(tiny_model: Path) -> None:
    words = fe.model(str(tiny_model), cache=False).words("The cat saw the cat.")
    assert words["word"].to_list() == ["The", "cat", "saw", "the", "cat."]
    assert [
        ("The cat saw the cat."[start:end]) for start, end in words.select("start", "end").iter_rows()
    ] == [*words["word"]]
    assert words["n_tokens"].sum() == len(
        fe.model(str(tiny_model)).tokens("The cat saw the cat.")["tokens"][0]
    )


def test_correction_changes_words_but_not_behind_the_last(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    corrected, plain = (
        lm.words("The cats annoy", boundary=way)["lp"].to_list() for way in ("corrected", "plain")
    )
    assert corrected[0] < plain[0]
    assert corrected[2] > plain[2]


def test_words_behind_a_context_sum_to_the_conditional_score(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), cache=False)
    words = lm.words("The cats annoy", context="No dog.")
    assert words["lp"].sum() == pytest.approx(
        lm.score("The cats annoy", context="No dog.")["lp"][0], abs=1e-4
    )


def test_regions_that_overlap_are_refused(tiny_model: Path) -> None:
    with pytest.raises(BadInput, match="region 1 to 5"):
        fe.model(str(tiny_model), cache=False).words("The cats", regions=[[(0, 3), (1, 5)]])


def test_an_unknown_boundary_is_refused(tiny_model: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'corrected'"):
        fe.model(str(tiny_model), cache=False).words("The cats", boundary="corected")
