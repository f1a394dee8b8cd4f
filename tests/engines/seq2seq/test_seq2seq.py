"""Encoder-decoders: each of the three ways equals its definition, computed one text at a time."""

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
from felicity.run.prompts import build_text_prompts
from tests.engines.shapes import CONTEXT, POSITIONS, SENTENCES, make_seq2seq

SHAPES = ("t5", "t5-untied", "bart")
SENTINEL = "<extra_id_0>"


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def find(shape: str) -> Path:
        if shape not in made:
            made[shape] = make_seq2seq(shape, tmp_path_factory.mktemp("seq2seq") / f"tiny-{shape}")
        return made[shape]

    return find


def open_seq2seq(folder: Path, **policy: Any) -> Any:
    return fe.model(str(folder), policy=Policy(**policy), cache=False)


class Direct:
    """The model itself, one input at a time, no cache, no batch."""

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float32).eval()
        self.rewrites = SENTINEL not in self.tokenizer.get_vocab()
        gap = self.tokenizer.mask_token if self.rewrites else SENTINEL
        self.gap = self.tokenizer.convert_tokens_to_ids(gap)
        self.start = self.model.config.decoder_start_token_id
        # What BART writes begins with <s>; T5 has nothing of the kind.
        self.front = [self.tokenizer.bos_token_id] if self.rewrites else []

    def ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def count_before(self, context: str, text: str) -> int:
        """How many tokens have no character of the text."""
        whole = f"{context} {text}"
        spans = self.tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        return sum(end <= len(context) + 1 for _, end in spans)

    def logprobs(self, source: list[int], written: list[int]) -> np.ndarray:
        """For each place in what the decoder has written, log-probabilities of what comes next."""
        import torch

        with torch.no_grad():
            logits = self.model(
                input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([written])
            ).logits[0]
        return logits.log_softmax(-1).numpy()

    def write(self, source: list[int], before: list[int], text: list[int]) -> list[float]:
        written = [self.start, *before, *text]
        table = self.logprobs(source, written)
        return [float(table[len(before) + i, token]) for i, token in enumerate(text)]

    def around(self, ids: list[int]) -> list[int]:
        return [*self.front, *ids, self.tokenizer.eos_token_id]

    def fill(self, left: list[int], text: list[int], right: list[int]) -> list[float]:
        source = self.around([*left, self.gap, *right])
        before = [*self.front, *left] if self.rewrites else [self.gap]
        return self.write(source, before, text)


def test_a_model_whose_attention_depends_on_the_batch_is_read_by_equal_length(
    make: Callable[[str], Path],
) -> None:
    folder = make("bigbird_pegasus")
    lm = open_seq2seq(folder)
    # Sparse attention from 29 tokens on.
    contexts = [" ".join([CONTEXT] * number) for number in (0, 4, 1, 5, 2)]
    found = lm.tokens(SENTENCES, context=contexts)["logprob"].to_list()
    for text, context, ours in zip(SENTENCES, contexts, found, strict=True):
        direct = Direct(folder)
        source = direct.around(direct.ids(context))
        assert np.allclose(ours, direct.write(source, direct.front, direct.ids(text)), atol=1e-4)
    assert lm.info.notes["batches"] == "batches of equal length"
    assert lm.info.scoring == 2
    score = lm.engine._score_sample(lm.engine.predictor)
    assert np.abs(score("padded batches") - score("one text at a time")).max() > 1e-3


@pytest.mark.parametrize("context", ["", CONTEXT])
@pytest.mark.parametrize("shape", SHAPES)
def test_target_is_the_text_written_after_reading_the_context(
    make: Callable[[str], Path], shape: str, context: str
) -> None:
    direct = Direct(make(shape))
    found = open_seq2seq(make(shape)).tokens(SENTENCES, context=context or None)["logprob"].to_list()
    for text, ours in zip(SENTENCES, found, strict=True):
        slow = direct.write(direct.around(direct.ids(context)), direct.front, direct.ids(text))
        assert np.allclose(ours, slow, atol=1e-4)


@pytest.mark.parametrize("shape", ["t5", "bart"])
def test_span_is_the_text_written_into_a_gap(make: Callable[[str], Path], shape: str) -> None:
    direct = Direct(make(shape))
    lm = open_seq2seq(make(shape), seq2seq="span")
    plain = lm.tokens(SENTENCES)["logprob"].to_list()
    behind = lm.tokens(SENTENCES, context=CONTEXT)["logprob"].to_list()
    for text, alone, after in zip(SENTENCES, plain, behind, strict=True):
        assert np.allclose(alone, direct.fill([], direct.ids(text), []), atol=1e-4)
        whole, first = direct.ids(f"{CONTEXT} {text}"), direct.count_before(CONTEXT, text)
        assert np.allclose(after, direct.fill(whole[:first], whole[first:], []), atol=1e-4)


@pytest.mark.parametrize("shape", ["t5", "bart"])
def test_words_are_written_into_gaps_one_after_the_other(make: Callable[[str], Path], shape: str) -> None:
    direct = Direct(make(shape))
    found = open_seq2seq(make(shape), seq2seq="words").tokens(SENTENCES)["logprob"].to_list()
    for text, ours in zip(SENTENCES, found, strict=True):
        encoded = direct.tokenizer(text, add_special_tokens=False)
        ids, words = encoded["input_ids"], encoded.word_ids()
        slow: list[float] = []
        for word in sorted(set(words)):
            inside = [place for place, number in enumerate(words) if number == word]
            first, last = inside[0], inside[-1] + 1
            slow += direct.fill(ids[:first], ids[first:last], ids[last:])
        assert np.allclose(ours, slow, atol=1e-4)


@pytest.mark.parametrize("shape", ["t5", "bart"])
def test_the_end_token_is_scored_when_asked_for_and_only_then(
    make: Callable[[str], Path], shape: str
) -> None:
    direct = Direct(make(shape))
    text = SENTENCES[0]
    plain = open_seq2seq(make(shape)).tokens(text)
    ended = open_seq2seq(make(shape), eos="auto").tokens(text)
    written = [*direct.ids(text), direct.tokenizer.eos_token_id]
    slow = direct.write(direct.around([]), direct.front, written)
    assert plain["tokens"].to_list()[0] + ["</s>"] == ended["tokens"].to_list()[0]
    assert np.allclose(ended["logprob"].to_list()[0], slow, atol=1e-4)


def test_an_output_layer_of_its_own_is_used(make: Callable[[str], Path]) -> None:
    from safetensors.torch import load_file

    lm = open_seq2seq(make("t5-untied"))
    lm.score("A cat.")
    kept = load_file(make("t5-untied") / "model.safetensors")
    assert lm.engine.model.lm_head.weight.equal(kept["lm_head.weight"])
    assert not lm.engine.model.lm_head.weight.equal(kept["shared.weight"])


def test_an_output_layer_replaced_by_embeddings_is_refused(make: Callable[[str], Path]) -> None:
    from felicity.engines.seq2seq.engine import refuse_changed_head

    model = Direct(make("t5-untied")).model
    model.lm_head.weight = model.shared.weight
    with pytest.raises(NotPossible, match="replaces the output layer of 'tiny'"):
        refuse_changed_head(model, make("t5-untied"), name="tiny")


def test_what_an_encoder_decoder_is(make: Callable[[str], Path]) -> None:
    t5, bart = open_seq2seq(make("t5")).info, open_seq2seq(make("bart")).info
    assert (t5.family, t5.kind, t5.window, t5.policy["seq2seq"]) == ("seq2seq", "seq2seq", None, "target")
    assert (t5.policy["bos"], bart.policy["bos"]) == ("none", "<s>")
    assert bart.window == POSITIONS
    assert t5.can == bart.can == ("score", "more", "boundary", "fill", "generate")


def test_head_and_source_are_read_no_more_often_than_needed(make: Callable[[str], Path]) -> None:
    lm = open_seq2seq(make("bart"))
    sources: list[int] = []
    lm.engine.model.get_encoder().register_forward_pre_hook(
        lambda module, args, kwargs: sources.append(len(kwargs["input_ids"])), with_kwargs=True
    )
    lm.score(SENTENCES, context=CONTEXT)
    assert sources == [1]
    assert lm.engine.predictor.selector.site == "output"


def test_scores_do_not_depend_on_the_batch(make: Callable[[str], Path]) -> None:
    for shape in ("t5", "bart"):
        together = open_seq2seq(make(shape)).score(SENTENCES)["lp"].to_numpy()
        alone = [open_seq2seq(make(shape)).score(text)["lp"][0] for text in SENTENCES]
        assert np.abs(together - alone).max() < open_seq2seq(make(shape)).info.noise


def test_ranks_are_those_of_what_is_written(make: Callable[[str], Path]) -> None:
    direct = Direct(make("t5"))
    text = SENTENCES[0]
    tokens = open_seq2seq(make("t5")).tokens(text, rank=True).row(0, named=True)
    table = direct.logprobs(direct.around([]), [direct.start, *direct.ids(text)[:-1]])
    for place, token in enumerate(direct.ids(text)):
        assert tokens["rank"][place] == 1 + (table[place] > table[place, token]).sum()


def test_work_taken_up_again_gives_the_same_numbers(
    make: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("felicity.engines.seq2seq.engine.UNIT_TOKENS", 25)
    engine = open_seq2seq(make("t5")).engine
    prompts = build_text_prompts(SENTENCES, None)
    parts = list(engine.score(prompts))
    assert len(parts) > 2
    again = pl.concat(list(engine.score(prompts, done=set(parts[0]["request"]))))
    assert again.equals(pl.concat(parts[1:]))


def test_a_context_that_does_not_fit_is_refused_or_loses_its_oldest_sentences(
    make: Callable[[str], Path],
) -> None:
    context = " ".join(["She saw the dog."] * 20)
    with pytest.raises(BadInput, match="reads at most 64; drop old context"):
        open_seq2seq(make("bart")).score("No dog.", context=context)
    lm = open_seq2seq(make("bart"), overflow="drop")
    dropped = lm.engine.encode(build_text_prompts("No dog.", context))["n_dropped"].item()
    assert 0 < dropped < 20
    kept = " ".join(["She saw the dog."] * (20 - dropped))
    assert lm.score("No dog.", context=context)["lp"].item() == pytest.approx(
        lm.score("No dog.", context=kept)["lp"].item(), abs=1e-4
    )


@pytest.mark.parametrize(
    ("policy", "said"),
    [({"bos": "none"}, "omit --bos"), ({"eos": "auto", "seq2seq": "span"}, "omit --eos")],
)
def test_what_makes_no_sense_is_refused(
    make: Callable[[str], Path], policy: dict[str, str], said: str
) -> None:
    with pytest.raises(NotPossible, match=said):
        open_seq2seq(make("t5"), **policy).score("A cat.")


@pytest.mark.parametrize("content", ["{", "[1, 2]", ""])
def test_a_damaged_generation_configuration_is_named(
    make: Callable[[str], Path], tmp_path: Path, content: str
) -> None:
    shutil.copytree(make("t5"), tmp_path / "t5")
    (tmp_path / "t5" / "generation_config.json").write_text(content)
    with pytest.raises(
        BadInput, match=r"generation_config.json is not .*JSON.*; download or save the model again"
    ):
        fe.model(str(tmp_path / "t5"), cache=False).score("The cats annoy Tim.")
