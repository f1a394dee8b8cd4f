"""Masked models: equal to a slow loop from the definition, and to minicons; little work, bounded memory."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.data.catalogue import read_dataset
from felicity.engines.families import find_family
from felicity.engines.runtime.masking import MASKED_BATCH_TOKENS as BATCH_TOKENS
from felicity.engines.sources.describe import describe_model
from felicity.run.prompts import build_text_prompts
from tests.engines.shapes import CONTEXT, POSITIONS, SENTENCES, make_masked

SHAPES = ("bert", "roberta", "albert", "distilbert", "electra", "modernbert", "deberta", "deberta-v2")
# Where the last layer of a model can be left with hidden tokens alone; of others, only the head is spared.
SITES = {
    "bert": "encoder.layer.1.attention.output",
    "roberta": "encoder.layer.1.attention.output",
    "electra": "encoder.layer.1.attention.output",
    "deberta": "encoder.layer.1.attention.output",
    "deberta-v2": "encoder.layer.1.attention.output",
    "distilbert": "transformer.layer.1.sa_layer_norm",
}
TOLERANCE = 1e-3  # nats, on the sum over a sentence


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def find(shape: str) -> Path:
        if shape not in made:
            made[shape] = make_masked(shape, tmp_path_factory.mktemp("masked") / f"tiny-{shape}")
        return made[shape]

    return find


def open_masked(folder: Path, **policy: Any) -> Any:
    return fe.model(str(folder), policy=Policy(**policy), cache=False)


def score_slowly(folder: Path, text: str, *, pll: str, context: str = "") -> list[float]:
    """One token after the other, one input at a time, the whole model each time."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForMaskedLM.from_pretrained(folder, dtype=torch.float32).eval()
    whole = f"{context} {text}" if context else text
    begins = len(whole) - len(text)
    encoded = tokenizer(whole, return_offsets_mapping=True)
    ids, words = torch.tensor(encoded["input_ids"]), encoded.word_ids()
    scores = []
    for place, (_, end) in enumerate(encoded["offset_mapping"]):
        if words[place] is None or end <= begins:
            continue
        hidden = [place]
        if pll == "word_l2r":
            hidden += [later for later in range(place + 1, len(ids)) if words[later] == words[place]]
        masked = ids.clone()
        masked[hidden] = tokenizer.mask_token_id
        with torch.no_grad():
            logits = model(input_ids=masked[None]).logits[0, place]
        scores.append(logits.log_softmax(-1)[ids[place]].item())
    return scores


@pytest.mark.parametrize("pll", ["original", "word_l2r"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_equals_a_slow_loop(make: Callable[[str], Path], shape: str, pll: str) -> None:
    lm = open_masked(make(shape), pll=pll)
    for context in ("", CONTEXT):
        found = lm.tokens(SENTENCES, context=context or None)["logprob"].to_list()
        for text, ours in zip(SENTENCES, found, strict=True):
            slow = score_slowly(make(shape), text, pll=pll, context=context)
            assert np.allclose(ours, slow, atol=1e-4)
    assert lm.engine.masked_scorer.predictor.selector.site == SITES.get(shape, "output")


PADDING = ("fnet", "funnel", "big_bird", "convbert", "yoso", "mobilebert")
# Long enough for BigBird's sparse attention, in several lengths, and short ones between them.
MIXED = [
    text for number in range(4) for text in (" ".join(SENTENCES[:2]) + " here" * number, SENTENCES[number])
]


@pytest.mark.parametrize("shape", PADDING)
def test_a_model_that_sees_its_padding_equals_a_slow_loop(make: Callable[[str], Path], shape: str) -> None:
    lm = open_masked(make(shape))
    for text, ours in zip(MIXED, lm.tokens(MIXED)["logprob"].to_list(), strict=True):
        assert np.allclose(ours, score_slowly(make(shape), text, pll="word_l2r"), atol=1e-4)
    assert lm.info.notes["batches"] == "batches of equal length"
    assert lm.info.scoring == 2
    score = lm.engine._score_sample(lm.engine.masked_scorer)
    assert np.abs(score("padded batches") - score("one text at a time")).max() > 1e-3


def test_how_texts_are_batched_is_said_once_the_model_is_loaded_and_does_not_change_the_key(
    make: Callable[[str], Path],
) -> None:
    lm = open_masked(make("bert"))
    before = lm.info
    assert "batches" not in before.notes
    lm.score(SENTENCES)
    assert lm.info.notes["batches"] == "padded batches"
    assert (lm.info.key, lm.info.scoring) == (before.key, 1)


@pytest.mark.parametrize(("causal", "family"), [(False, "masked"), (True, "causal")])
def test_an_xlm_is_what_its_configuration_says(
    make: Callable[[str], Path], tmp_path: Path, causal: bool, family: str
) -> None:
    folder = Path(shutil.copytree(make("xlm"), tmp_path / "xlm"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"causal": causal}))
    lm = open_masked(folder)
    assert lm.info.family == family
    found = lm.tokens(SENTENCES)["logprob"].to_list()
    if not causal:
        for text, ours in zip(SENTENCES, found, strict=True):
            assert np.allclose(ours, score_slowly(folder, text, pll="word_l2r"), atol=1e-4)


def test_the_two_ways_differ_in_words_of_several_tokens_only(make: Callable[[str], Path]) -> None:
    original = open_masked(make("bert"), pll="original").tokens(SENTENCES)
    by_word = open_masked(make("bert")).tokens(SENTENCES)
    assert original["logprob"].to_list() != by_word["logprob"].to_list()
    for row, other in zip(original.iter_rows(named=True), by_word.iter_rows(named=True), strict=True):
        following = [*(token.startswith("##") for token in row["tokens"][1:]), False]
        for more, a, b in zip(following, row["logprob"], other["logprob"], strict=True):
            assert more or abs(a - b) < 1e-4


def test_what_a_masked_model_is(make: Callable[[str], Path]) -> None:
    info = open_masked(make("bert")).info
    assert (info.family, info.kind, info.policy["pll"], info.policy["bos"]) == (
        "masked",
        "pseudo",
        "word_l2r",
        "tokenizer",
    )
    assert info.can == ("score", "more", "fill")


def test_equal_masked_inputs_are_read_once(make: Callable[[str], Path]) -> None:
    lm = open_masked(make("bert"), pll="original")
    inputs = record_inputs(lm)
    lm.score(["the cat is here", "the dog is here", "the cat is here."])
    # Four words each; where the mask covers the second word the first two are one text: 4 + 4 - 1. The
    # third has a token more and shares nothing.
    assert sum(len(ids) for ids in inputs) == 7 + 5


def test_a_long_text_is_read_in_bounded_pieces(tmp_path: Path) -> None:
    from transformers import BertConfig

    from tests.engines.shapes import SMALL, make_wordpiece, save_random

    tokenizer = make_wordpiece()
    config = BertConfig(**SMALL, vocab_size=len(tokenizer), max_position_embeddings=512)
    lm = open_masked(save_random(config, "AutoModelForMaskedLM", tokenizer, tmp_path), pll="original")
    inputs = record_inputs(lm)
    scored = lm.score(" ".join(["cat"] * 350))
    assert scored["n_tokens"].to_list() == [350]
    assert sum(len(ids) for ids in inputs) == 350
    assert max(ids.size for ids in inputs) <= BATCH_TOKENS


def test_a_score_does_not_depend_on_what_else_is_scored(make: Callable[[str], Path]) -> None:
    for shape in ("bert", "roberta", "modernbert"):
        lm = open_masked(make(shape))
        together = lm.score(SENTENCES)["lp"].to_numpy()
        alone = [open_masked(make(shape)).score(text)["lp"][0] for text in SENTENCES]
        assert np.abs(together - alone).max() < lm.info.noise


def test_work_taken_up_again_gives_the_same_numbers(
    make: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("felicity.engines.masked.engine.UNIT_TOKENS", 100)
    engine = open_masked(make("bert")).engine
    prompts = build_text_prompts(SENTENCES, None)
    parts = list(engine.score(prompts))
    assert len(parts) > 2
    done = set(parts[0]["request"]) | set(parts[1]["request"])
    again = pl.concat(list(engine.score(prompts, done=done)))
    assert again.equals(pl.concat(parts[2:]))


def test_ranks_and_entropies_are_those_of_the_filled_blank(make: Callable[[str], Path]) -> None:
    lm = open_masked(make("bert"))
    tokens = lm.tokens("the dog is here", rank=True, entropy=True, top=2).row(0, named=True)
    filled = lm.fill("the ___ is here", k=1000).with_columns(whole=pl.col("rank") + pl.col("dropped"))
    dog = filled.filter(token="dog").row(0, named=True)
    assert tokens["tokens"][1] == "dog"
    assert tokens["rank"][1] == dog["whole"]
    assert tokens["logprob"][1] == pytest.approx(dog["logprob"], abs=1e-4)
    assert tokens["top_tokens"][1] == filled["token"].to_list()[:2]
    assert filled["dropped"].max() == 0
    entropy = -(filled["logprob"].exp() * filled["logprob"]).sum()
    assert tokens["entropy"][1] == pytest.approx(entropy, abs=1e-3)


def test_words_are_summed_but_have_no_boundaries(make: Callable[[str], Path]) -> None:
    lm = open_masked(make("bert"))
    words = lm.words("The unforgettable cat.", boundary="plain")
    assert words["word"].to_list() == ["The", "unforgettable", "cat."]
    assert words["lp"].sum() == pytest.approx(lm.score("The unforgettable cat.")["lp"].item(), abs=1e-4)
    assert lm.words("The unforgettable cat.").equals(words)
    with pytest.raises(NotPossible, match="use --boundary plain"):
        lm.words("The cat.", boundary="corrected")


def test_the_audit_counts_context_and_unknown_tokens(make: Callable[[str], Path]) -> None:
    encodings = open_masked(make("bert")).engine.encode(build_text_prompts(["the cat 中"], "the dog"))
    row = encodings.row(0, named=True)
    assert (row["n_tokens"], row["n_context"], row["n_unknown"], row["n_unscored"]) == (3, 2, 1, 0)


@pytest.mark.parametrize(("shape", "window"), [("bert", POSITIONS), ("roberta", POSITIONS - 2)])
def test_the_window_is_what_the_model_can_read(make: Callable[[str], Path], shape: str, window: int) -> None:
    lm = open_masked(make(shape))
    assert lm.info.window == window
    # Two places are for the special tokens; a full stop is a token of both tokenizers.
    assert lm.score("." * (window - 2))["n_tokens"].item() == window - 2
    with pytest.raises(BadInput, match=f"1 token too long .* reads at most {window}; shorten it"):
        lm.score("." * (window - 1))


@pytest.mark.parametrize("policy", [{"bos": "none"}, {"eos": "auto"}])
def test_other_special_tokens_are_refused(make: Callable[[str], Path], policy: dict[str, str]) -> None:
    with pytest.raises(NotPossible, match="omit --bos and --eos"):
        open_masked(make("bert"), **policy).score("The cat.")


def test_weights_without_a_prediction_head_are_refused(make: Callable[[str], Path], tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    AutoModel.from_pretrained(make("bert")).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(make("bert")).save_pretrained(tmp_path)
    with pytest.raises(NotPossible, match="trained as a language model"):
        open_masked(tmp_path).score("The cat.")


def record_inputs(lm: Any) -> list[np.ndarray]:
    """The batches of ids that the model is given from now on."""
    inputs: list[np.ndarray] = []
    masked_scorer = lm.engine.masked_scorer
    read = masked_scorer.predictor

    def recording(ids: np.ndarray, *rest: Any) -> Any:
        inputs.append(ids)
        return read(ids, *rest)

    object.__setattr__(masked_scorer, "predictor", recording)
    return inputs


@pytest.mark.parametrize(
    ("architecture", "model_type", "family"),
    [
        ("BertForMaskedLM", "bert", "masked"),
        ("BertForPreTraining", "bert", "masked"),
        ("BertLMHeadModel", "bert", "causal"),
        ("unknown", "deberta-v2", "masked"),  # microsoft/deberta-v3-base names no class
        ("BartModel", "bart", "seq2seq"),  # facebook/bart-base names its body
        ("T5ForConditionalGeneration", "t5", "seq2seq"),
        ("XLNetLMHeadModel", "xlnet", "xlnet"),
        ("GPT2LMHeadModel", "gpt2", "causal"),
        ("TheirOwnForMaskedLM", "their-own", "masked"),
    ],
)
def test_the_family_is_told_by_class_or_type(
    make: Callable[[str], Path], architecture: str, model_type: str, family: str
) -> None:
    from dataclasses import replace

    description = replace(describe_model(make("bert")), architecture=architecture, model_type=model_type)
    assert find_family(description) == family


@pytest.fixture(scope="module")
def blimp_bert(published: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random weights with BERT's own vocabulary."""
    from transformers import BertConfig, BertTokenizerFast

    from tests.engines.shapes import save_random

    with gzip.open(published("tokenizers/bert-base-uncased-vocab.txt.gz"), "rt", encoding="utf-8") as lines:
        vocabulary = {line.rstrip("\n"): place for place, line in enumerate(lines)}
    tokenizer = BertTokenizerFast(vocab=vocabulary, do_lower_case=True)
    config = BertConfig(hidden_size=128, num_hidden_layers=4, num_attention_heads=4, intermediate_size=256)
    folder = tmp_path_factory.mktemp("blimp") / "random-bert"
    return save_random(config, "AutoModelForMaskedLM", tokenizer, folder)


@pytest.fixture(scope="module")
def blimp_sentences(published: Callable[[str], Path]) -> list[str]:
    published("blimp")
    return read_dataset("blimp").items.sample(200, seed=4)["text"].to_list()


@pytest.fixture
def minicons(blimp_bert: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    from minicons.scorer import MaskedLMScorer
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(blimp_bert)
    # minicons 0.3.39 calls a method that transformers 5 has dropped.
    monkeypatch.setattr(
        type(tokenizer), "batch_encode_plus", lambda self, *args, **options: self(*args, **options), False
    )
    model = AutoModelForMaskedLM.from_pretrained(blimp_bert)
    return MaskedLMScorer(model, "cpu", tokenizer=tokenizer)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(("pll", "theirs"), [("original", "original"), ("word_l2r", "within_word_l2r")])
def test_sums_agree_with_minicons_on_200_blimp_sentences(
    blimp_bert: Path, blimp_sentences: list[str], minicons: Any, pll: str, theirs: str
) -> None:
    ours = open_masked(blimp_bert, pll=pll).score(blimp_sentences)["lp"].to_numpy()
    peer: list[float] = []
    for begin in range(0, len(blimp_sentences), 10):
        batch = blimp_sentences[begin : begin + 10]
        peer += minicons.sequence_score(batch, reduction=lambda x: x.sum(0).item(), PLL_metric=theirs)
    assert np.abs(ours - np.array(peer)).max() < TOLERANCE


@pytest.mark.data
def test_sums_given_a_context_agree_with_minicons(
    blimp_bert: Path, blimp_sentences: list[str], minicons: Any
) -> None:
    texts, contexts = blimp_sentences[:5], blimp_sentences[5:10]
    lm = fe.model(str(blimp_bert), policy=Policy.compat("minicons"), cache=False)
    ours = lm.score(texts, context=contexts)["lp"].to_numpy()
    peer = minicons.conditional_score(contexts, texts, reduction=lambda x: x.sum(0).item())
    assert np.abs(ours - np.array(peer)).max() < TOLERANCE
