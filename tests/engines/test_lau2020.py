"""`compat="lau2020"`: the sums of a forward pass written from the definition of the authors' program.

GPT-2: begin token only without a context, context and sentence tokenized separately. BERT: [CLS] context
sentence [SEP] in one segment, one token masked at a time, tokenized separately.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

import felicity as fe
from felicity.core.policy import Policy
from tests.engines.shapes import save_random

SENTENCES = ["the cats annoy tim.", "she saw herself.", "no dog has ever barked here."]
CONTEXTS = ["tim sleeps.", "a dog barked here. it saw tim.", "the cat."]
TOLERANCE = 1e-4  # nats on the sum over a sentence, float32


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from transformers import BertConfig, BertTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "the", "cat", "##s", "ann", "##oy", "tim"]
    words += [
        "she",
        "saw",
        "her",
        "##self",
        "no",
        "dog",
        "has",
        "ever",
        "bark",
        "##ed",
        "here",
        "sleep",
        "a",
        "it",
    ]
    tokenizer = BertTokenizerFast(vocab={word: place for place, word in enumerate(words)}, do_lower_case=True)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
    )
    return save_random(config, "AutoModelForMaskedLM", tokenizer, tmp_path_factory.mktemp("lau") / "bert")


def score_like_gpt2(model: Any, tokenizer: Any, sentence: str, context: str | None) -> float:
    own = tokenizer(sentence, add_special_tokens=False)["input_ids"]
    before = [tokenizer.bos_token_id]
    if context:
        before = tokenizer(context, add_special_tokens=False)["input_ids"]
    with torch.inference_mode():
        logits = model(torch.tensor([before + own])).logits[0].double().log_softmax(-1)
    return sum(float(logits[len(before) + place - 1, token]) for place, token in enumerate(own))


def score_like_bert(model: Any, tokenizer: Any, sentence: str, context: str | None) -> float:
    own = tokenizer(sentence, add_special_tokens=False)["input_ids"]
    before = tokenizer(context, add_special_tokens=False)["input_ids"] if context else []
    whole = [tokenizer.cls_token_id, *before, *own, tokenizer.sep_token_id]
    total = 0.0
    for place, token in enumerate(own):
        index = 1 + len(before) + place
        masked = [*whole[:index], tokenizer.mask_token_id, *whole[index + 1 :]]
        with torch.inference_mode():
            logits = model(
                torch.tensor([masked]), token_type_ids=torch.zeros(1, len(masked), dtype=torch.long)
            ).logits
        total += float(logits[0, index].double().log_softmax(-1)[token])
    return total


@pytest.mark.parametrize("in_context", [False, True], ids=["alone", "in context"])
def test_causal_sums_are_those_of_the_authors_definition(tiny_model: Path, in_context: bool) -> None:
    contexts = CONTEXTS if in_context else None
    lm = fe.model(str(tiny_model), policy=Policy.compat("lau2020"), cache=False)
    ours = lm.score(SENTENCES, context=contexts)["lp"].to_list()
    model = AutoModelForCausalLM.from_pretrained(tiny_model).eval()
    tokenizer = AutoTokenizer.from_pretrained(tiny_model)
    theirs = [
        score_like_gpt2(model, tokenizer, sentence, contexts[place] if contexts else None)
        for place, sentence in enumerate(SENTENCES)
    ]
    assert ours == pytest.approx(theirs, abs=TOLERANCE)


@pytest.mark.parametrize("in_context", [False, True], ids=["alone", "in context"])
def test_masked_sums_are_those_of_the_authors_definition(bert: Path, in_context: bool) -> None:
    contexts = CONTEXTS if in_context else None
    lm = fe.model(str(bert), policy=Policy.compat("lau2020"), cache=False)
    ours = lm.score(SENTENCES, context=contexts)["lp"].to_list()
    model, tokenizer = AutoModelForMaskedLM.from_pretrained(bert).eval(), AutoTokenizer.from_pretrained(bert)
    theirs = [
        score_like_bert(model, tokenizer, sentence, contexts[place] if contexts else None)
        for place, sentence in enumerate(SENTENCES)
    ]
    assert ours == pytest.approx(theirs, abs=TOLERANCE)


def test_every_token_of_the_sentence_is_scored_and_none_of_the_context(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), policy=Policy.compat("lau2020"), cache=False)
    alone, behind = lm.tokens("tim sleeps."), lm.tokens("tim sleeps.", context="she saw herself.")
    for column in ("tokens", "start", "end"):
        assert alone[column].to_list() == behind[column].to_list()
    assert behind["logprob"].list.drop_nulls().list.len().item() == len(behind["tokens"].item())


def test_the_begin_token_is_recorded_with_where_it_stands(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model), policy=Policy.compat("lau2020"), cache=False)
    assert lm.info.policy["bos"] == "alone:<|endoftext|>"
    assert lm.info.policy["seam"] == "apart"


def test_the_audit_counts_context_tokens_without_the_begin_token(tiny_model: Path) -> None:
    from felicity.run.prompts import build_text_prompts

    lm = fe.model(str(tiny_model), policy=Policy.compat("lau2020"), cache=False)
    prompts = build_text_prompts(["tim sleeps.", "tim sleeps."], ["she saw herself.", "a dog."])
    alone = build_text_prompts("tim sleeps.", None)
    size = len(AutoTokenizer.from_pretrained(tiny_model)("she saw herself.")["input_ids"])
    assert lm.engine.encode(prompts)["n_context"][0] == size
    assert lm.engine.encode(alone)["n_context"].to_list() == [0]


def test_word_level_masking_numbers_words_after_those_of_the_context(bert: Path) -> None:
    """Under `apart` the words of the text stay words of their own: the masked rest is the text's alone."""
    joined = fe.model(str(bert), policy=Policy(seam="offsets", pll="word_l2r"), cache=False)
    apart = fe.model(str(bert), policy=Policy(seam="apart", pll="word_l2r"), cache=False)
    for lm in (joined, apart):
        found = lm.tokens("she saw herself.", context="the cats.")["tokens"].to_list()
        assert found == [["she", "saw", "her", "##self", "."]]
    one, other = (lm.score("she saw herself.", context="the cats.")["lp"].item() for lm in (joined, apart))
    assert one == pytest.approx(other, abs=TOLERANCE)
