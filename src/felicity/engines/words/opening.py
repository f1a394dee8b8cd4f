"""One door for models of words: n-gram files, and folders that `felicity train` wrote."""

from pathlib import Path

from felicity.engines.describe import ModelDescription
from felicity.engines.ngram.engine import describe_ngram, load_ngram_tokenizer
from felicity.engines.trained.engine import describe_trained, load_trained_tokenizer
from felicity.engines.words.tokenizer import WordTokenizer


def describe_words(path: Path) -> ModelDescription:
    """What a model of words is, without loading it.

    Raises BadInput where its files are damaged.
    """
    return describe_trained(path) if path.is_dir() else describe_ngram(path)


def load_word_tokenizer(path: Path) -> WordTokenizer:
    """How a model of words cuts a text.

    Raises BadInput where its files are damaged.
    """
    return load_trained_tokenizer(path) if path.is_dir() else load_ngram_tokenizer(path)
