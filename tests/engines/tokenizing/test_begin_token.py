"""The begin token of plain text: what is chosen for each kind of vocabulary, and why."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from felicity.core.policy import Policy
from felicity.data import read_dataset
from felicity.engines.tokenizing.begin_token import (
    SENTENCES,
    BeginToken,
    Gain,
    choose_begin_token,
    find_candidates,
)
from felicity.run import Model, open_model
from tests.conftest import Answer, make_tiny_model
from tests.engines.served.served_server import Served

STEPS = 150
LENGTH = 40
CHAT = "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n"


@dataclass(frozen=True)
class Layout:
    """Which special tokens a tokenizer declares, and which of them stood around documents in training."""

    bos: str | None
    eos: str | None
    others: tuple[str, ...] = ()
    begin: str = ""
    end: str = ""
    chat: bool = False
    expected: str = ""


LAYOUTS = {
    "llama": Layout("<s>", "</s>", ("<unk>",), "<s>", "</s>", expected="<s>"),
    "gemma": Layout("<bos>", "<eos>", ("<pad>",), "<bos>", "<eos>", expected="<bos>"),
    "opt": Layout("</s>", "</s>", ("<s>", "<pad>"), "</s>", "</s>", expected="</s>"),
    "smollm2": Layout(
        "<|im_start|>",
        "<|im_end|>",
        ("<|endoftext|>",),
        "<|endoftext|>",
        "<|endoftext|>",
        chat=True,
        expected="<|endoftext|>",
    ),
    "qwen": Layout(
        None,
        "<|im_end|>",
        ("<|endoftext|>", "<|im_start|>"),
        "<|endoftext|>",
        "<|endoftext|>",
        chat=True,
        expected="<|endoftext|>",
    ),
    "declared and trained": Layout(
        "<|im_start|>",
        "<|im_end|>",
        ("<|endoftext|>",),
        "<|im_start|>",
        "<|im_end|>",
        expected="<|im_start|>",
    ),
}


def train(folder: Path, layout: Layout) -> Path:
    """Write a tiny model trained on sentences between the tokens of the layout, and on chats if any."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

    sentences = read_dataset("starter").items["text"].to_list()
    special = [token for token in dict.fromkeys([layout.bos, layout.eos, *layout.others]) if token]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=800, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(sentences, trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=layout.bos,
        eos_token=layout.eos,
        additional_special_tokens=list(layout.others),
    )
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=len(fast), n_positions=64, n_embd=32, n_layer=1, n_head=2)
    model = GPT2LMHeadModel(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    # Documents follow each other, and training sees any part of them, as in pretraining.
    draw = random.Random(0)
    texts = [layout.begin + text + layout.end * (layout.end != layout.begin) for text in sentences]
    texts += [CHAT.format(text) for text in sentences[::2] if layout.chat]
    draw.shuffle(texts)
    running = torch.tensor(fast("".join(texts), add_special_tokens=False)["input_ids"])
    for _ in range(STEPS):
        starts = [draw.randrange(len(running) - LENGTH) for _ in range(24)]
        ids = torch.stack([running[start : start + LENGTH] for start in starts])
        loss = model(ids, labels=ids).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def chat_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model that declares the opening of a turn and was trained on documents after another token."""
    return train(tmp_path_factory.mktemp("chat") / "chat", LAYOUTS["smollm2"])


@pytest.mark.parametrize("name", [name for name in LAYOUTS if name != "smollm2"])
def test_the_token_between_the_documents_of_training_is_chosen(name: str, tmp_path: Path) -> None:
    layout = LAYOUTS[name]
    folder = train(tmp_path / "trained", layout)
    info = open_model(folder, cache=False).info
    assert info.policy["bos"] == layout.expected
    declared = layout.bos or layout.eos
    assert open_model(folder, policy=Policy(bos="declared"), cache=False).info.policy["bos"] == declared
    kept = layout.expected == declared
    assert (
        f"{layout.expected}, {'as declared' if kept else 'instead of the declared'}"
        in (info.notes["begin_token"])
    )


def test_a_chat_model_gets_the_token_between_documents_and_is_measured_once(
    chat_model: Path, empty_cache: Path
) -> None:
    first = open_model(chat_model)
    assert first.info.policy["bos"] == "<|endoftext|>"
    assert "model" in first.engine.__dict__  # measuring has loaded the weights
    gain = first.info.notes["begin_gains"]["<|endoftext|>"]
    assert gain["mean"] - 2 * gain["error"] > 1
    again = open_model(chat_model)
    assert again.info.policy["bos"] == "<|endoftext|>"
    assert again.info.notes["begin_token"] == first.info.notes["begin_token"]
    assert "model" not in again.engine.__dict__


def test_the_gain_is_that_of_a_plain_forward_pass(chat_model: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(chat_model).eval()
    tokenizer = AutoTokenizer.from_pretrained(chat_model)

    def score(begin: str, sentence: str) -> float:
        ids = tokenizer(begin + sentence, add_special_tokens=False, return_tensors="pt")["input_ids"]
        with torch.inference_mode():
            logprobs = model(ids).logits[0, :-1].log_softmax(dim=-1)
        return float(logprobs.gather(1, ids[0, 1:, None]).sum())

    gains = [score("<|endoftext|>", text) - score("<|im_start|>", text) for text in SENTENCES]
    told = open_model(chat_model, cache=False).info.notes["begin_gains"]["<|endoftext|>"]
    assert told["mean"] == pytest.approx(sum(gains) / len(gains), abs=1e-3)


def test_every_precision_of_a_model_uses_the_token_that_was_measured(chat_model: Path) -> None:
    half = open_model(chat_model, dtype="bfloat16", cache=False)
    exact = half.in_float32
    assert half.info.policy == exact.info.policy
    wide = exact.in_float64 or open_model(chat_model, cache=False).in_float64
    assert wide is not None
    assert wide.info.policy == half.info.policy


@pytest.mark.parametrize(("program", "bos"), [("minicons", "tokenizer"), ("lau2020", "alone:<|im_start|>")])
def test_compatible_programs_keep_the_token_of_theirs(chat_model: Path, program: str, bos: str) -> None:
    lm = open_model(chat_model, policy=Policy.compat(program), cache=False)
    assert lm.info.policy["bos"] == bos
    assert "begin_token" not in lm.info.notes


def test_a_server_is_asked_a_few_sentences_and_only_once(chat_model: Path, empty_cache: Path) -> None:
    from felicity.engines.served import Serving

    with Served(chat_model) as served:
        serving = Serving(url=served.url, tokenizer=str(chat_model))
        before = open_model("openai:tiny", policy=Policy(bos="declared"), serving=serving)
        declared = len(served.asked)
        first = open_model("openai:tiny", serving=serving)
        measured = len(served.asked) - declared
        again = open_model("openai:tiny", serving=serving)
        once = len(served.asked) - declared - measured
    assert before.info.policy["bos"] == "<|im_start|>"
    assert first.info.policy["bos"] == again.info.policy["bos"] == "<|endoftext|>"
    assert first.info.weights == before.info.weights
    assert measured - once == 3 * 8  # candidates x sentences


def test_the_first_lines_of_a_run_say_which_token_and_why(
    chat_model: Path, tmp_path: Path, cli: Callable[..., Answer]
) -> None:
    answer = cli("run", "starter", "-m", chat_model, "--sample", 1, "-o", tmp_path / "run", "--no-report")
    assert answer.code == 0
    line = "Begin token: <|endoftext|>, instead of the declared <|im_start|>: plain sentences are"
    assert line in answer.err.splitlines()[0]
    info = cli("models", "info", chat_model)
    assert "<|endoftext|>, instead of the declared <|im_start|>" in info.out


def test_a_study_refuses_its_input_before_it_says_which_token(
    chat_model: Path, tmp_path: Path, cli: Callable[..., Answer]
) -> None:
    answer = cli("methods", tmp_path / "none.csv", "-m", chat_model, "-o", tmp_path / "out")
    assert answer.code == 2
    assert "Begin token" not in answer.err
    (tmp_path / "pairs.csv").write_text("good,bad\nHe left.,Him left.\nShe left.,Her left.\n")
    answer = cli(
        *("methods", tmp_path / "pairs.csv", "--method", "direct", "-m", chat_model, "-o", tmp_path / "out")
    )
    assert answer.code == 0, answer.err
    assert "Begin token: <|endoftext|>, instead of the declared <|im_start|>" in answer.err


def test_the_default_model_begins_with_the_token_that_separated_its_documents(default_model: Model) -> None:
    assert default_model.info.policy["bos"] == "<|endoftext|>"
    gains = default_model.info.notes["begin_gains"]
    assert set(gains) == {"<|im_end|>", "<|endoftext|>"}
    # Measured beforehand by a forward pass of transformers per sentence: 8.04 (1.18) and 0.35 (0.35) nats.
    assert gains["<|endoftext|>"]["mean"] == pytest.approx(8.04, abs=0.02)
    assert gains["<|im_end|>"]["mean"] == pytest.approx(0.35, abs=0.02)
    found = default_model.fill("Paris is the capital of ___.", k=1)
    assert found["filler"].item() == "France"


def test_gpt2_has_one_candidate_and_nothing_is_measured(published: Callable[[str], Path]) -> None:
    import gzip
    import json

    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    vocabulary = json.loads(gzip.decompress(published("tokenizers/gpt2-encoder.json.gz").read_bytes()))
    end = "<|endoftext|>"
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.BPE(vocab=vocabulary, merges=[])), bos_token=end, eos_token=end
    )
    assert find_candidates(tokenizer) == ["<|endoftext|>"]
    assert choose_begin_token(tokenizer, _never, key={}, window=64).token == "<|endoftext|>"


def test_a_model_with_one_candidate_is_not_loaded(tmp_path: Path) -> None:
    lm = open_model(make_tiny_model(tmp_path / "tiny", seed=3), cache=False)
    assert lm.info.policy["bos"] == "<|endoftext|>"
    assert "model" not in lm.engine.__dict__


class FakeTokenizer:
    """A tokenizer of one-letter words with these special tokens; it may know no letter."""

    known = True

    def __init__(self, bos: str | None, eos: str | None, *special: str) -> None:
        self.bos_token, self.eos_token, self.all_special_tokens = bos, eos, list(special)

    def get_added_vocab(self) -> dict[str, int]:
        return {}

    def convert_tokens_to_ids(self, token: str) -> int:
        return self.all_special_tokens.index(token)

    def __call__(self, texts: list[str], **_: object) -> dict[str, Any]:
        return {"input_ids": [[10 + ord(letter) for letter in text * self.known] for text in texts]}


def _never(sequences: list[list[int]]) -> list[float]:
    raise AssertionError("nothing should be scored")


def _score_by(values: list[Callable[[int], float]]) -> Callable[[list[list[int]]], list[float]]:
    """Scores of sentence i after candidate j are `values[j](i)`."""
    return lambda rows: [values[row[0]](place // len(values)) for place, row in enumerate(rows)]


def test_without_a_declared_token_there_is_none(empty_cache: Path) -> None:
    tokenizer = FakeTokenizer(None, None, "<s>")
    assert choose_begin_token(tokenizer, _never, key={}, window=64) == BeginToken("none", "none", {})


@pytest.mark.parametrize(
    ("gain", "chosen"),
    [
        (lambda i: 0.9, "<s>"),  # sure, but less than a nat
        (lambda i: 1.1, "</s>"),
        (lambda i: 1.1 + 4 * (-1) ** i, "<s>"),  # more than a nat, but a standard error of 1
        (lambda i: 5 + 4 * (-1) ** i, "</s>"),
        (lambda i: float("nan"), "<s>"),
        (lambda i: -30.0, "<s>"),
    ],
)
def test_another_token_must_be_clearly_better(
    gain: Callable[[int], float], chosen: str, empty_cache: Path
) -> None:
    tokenizer = FakeTokenizer("<s>", "</s>", "<s>", "</s>")
    score = _score_by([lambda i: -40.0, lambda i: -40.0 + gain(i)])
    assert choose_begin_token(tokenizer, score, key={}, window=64).token == chosen


def test_where_no_sentence_can_be_written_the_declared_token_is_kept(empty_cache: Path) -> None:
    tokenizer = FakeTokenizer("<s>", "</s>", "<s>", "</s>")
    tokenizer.known = False
    assert choose_begin_token(tokenizer, _never, key={}, window=64).token == "<s>"


def test_tokens_that_the_model_does_not_know_are_no_candidates() -> None:
    tokenizer = FakeTokenizer("<s>", "</s>", "<s>", "<|endoftext|>", "</s>")
    assert find_candidates(tokenizer, vocabulary=2) == ["<s>", "<|endoftext|>"]


def test_the_sentence_tells_what_was_kept_and_what_was_taken() -> None:
    kept = BeginToken("<s>", "<s>", {"</s>": Gain(-3.21, 0.4)}, 16)
    assert kept.describe() == (
        "<s>, as declared: plain sentences are 3.2 nats less probable after </s> (SE 0.4, 16 sentences)"
    )
    taken = replace(kept, token="</s>", gains={"</s>": Gain(8.04, 1.18)})
    assert taken.describe() == (
        "</s>, instead of the declared <s>: plain sentences are 8.0 nats more probable after it (SE 1.2, "
        "16 sentences)"
    )
    assert "no other candidate" in BeginToken("<s>", "<s>", {}).describe()
