"""The tokenizer inside a GGUF file, cut where the model's own tokenizer cuts.

A GGUF file has the vocabulary and the merges but only a name for the rule that splits a text before
the merges apply. transformers knows some of the names and takes GPT-2's rule for the others, which
moves tokens without a word: SmolLM2 splits digits off first, so two spaces before a number are one
token for it, and two for GPT-2's rule.
"""

from typing import Any

from tokenizers import Regex, pre_tokenizers

LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

# The rules by the name that `tokenizer.ggml.pre` gives them.
DIGITS_APART = ("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b")
AS_GPT2 = ("gpt-2", "mpt", "olmo", "phi-2", "jais", "trillion", "gigachat")
AS_LLAMA3 = ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral")
AS_QWEN2 = ("qwen2", "stablelm2", "hunyuan", "megrez", "deepseek-r1-qwen")


def split_rule(pre: str) -> Any | None:
    """The pre-tokenizer that `tokenizer.ggml.pre` names, or None where the name is not known here."""
    if pre in DIGITS_APART:
        digits = pre_tokenizers.Digits(individual_digits=True)
        return pre_tokenizers.Sequence([digits, _byte_level(use_regex=True)])
    if pre in AS_GPT2:
        return _byte_level(use_regex=True)
    pattern = LLAMA3 if pre in AS_LLAMA3 else QWEN2 if pre in AS_QWEN2 else None
    if pattern is None:
        return None
    split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
    return pre_tokenizers.Sequence([split, _byte_level(use_regex=False)])


def repair_tokenizer(tokenizer: Any, *, model: str, rule: str) -> dict[str, str]:
    """Give a tokenizer read by transformers its own splitting rule; notes on what was done.

    `model` and `rule` are the file's `tokenizer.ggml.model` and `tokenizer.ggml.pre`.
    """
    if model != "gpt2":
        return {
            "tokenizer": f"transformers' rendering of the file's '{model}' tokenizer is used; felicity does "
            "not check that it cuts as the original tokenizer does"
        }
    known = split_rule(rule)
    if known is None:
        return {
            "tokenizer": f"the file's splitting rule '{rule}' is not known to felicity; transformers' choice "
            "for it is used and may cut some texts elsewhere than the original tokenizer"
        }
    tokenizer.backend_tokenizer.pre_tokenizer = known
    # Llama 3 takes a whole word that is in the vocabulary, whatever the merges say.
    tokenizer.backend_tokenizer.model.ignore_merges = rule in AS_LLAMA3
    return {}


def _byte_level(*, use_regex: bool) -> Any:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)
