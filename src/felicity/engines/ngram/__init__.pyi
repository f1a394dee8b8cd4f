from .engine import NgramEngine as NgramEngine
from .engine import describe_ngram as describe_ngram
from .engine import load_ngram_tokenizer as load_ngram_tokenizer
from .training import compare_perplexity as compare_perplexity
from .training import find_perplexity as find_perplexity
from .training import keep_perplexity as keep_perplexity
from .training import train_ngram as train_ngram
