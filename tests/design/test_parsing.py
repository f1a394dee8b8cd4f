"""spaCy's tokens, with places in the text; without spaCy, a sentence that says what to install."""

import pytest

from felicity.core.errors import NotPossible
from felicity.design import parsing


def test_tokens_have_tags_labels_lemmas_and_places() -> None:
    (tokens,) = parsing.parse(["The cats chased a mouse."])
    assert [token.text for token in tokens] == ["The", "cats", "chased", "a", "mouse", "."]
    assert [token.tag for token in tokens] == ["DT", "NNS", "VBD", "DT", "NN", "."]
    assert [token.dep for token in tokens] == ["det", "nsubj", "ROOT", "det", "dobj", "punct"]
    assert [token.lemma for token in tokens] == ["the", "cat", "chase", "a", "mouse", "."]
    assert [token.head for token in tokens] == [1, 2, 2, 4, 2, 2]
    assert all("The cats chased a mouse."[token.start : token.end] == token.text for token in tokens)


def test_one_text_parses_as_it_does_among_others() -> None:
    texts = ["The cats annoyed Tim.", "Who left?", ""]
    assert parsing.parse(texts) == [parsing.parse_sentence(text) for text in texts]


def test_the_record_names_the_parser() -> None:
    said = parsing.describe_parser()
    assert said["parser"].startswith("en_core_web_sm")
    assert said["spacy"].startswith("3.")


@pytest.mark.parametrize("missing", ["spacy", "en_core_web_sm"])
def test_what_is_not_installed_is_named_with_the_command(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = parsing.find_spec
    monkeypatch.setattr(parsing, "find_spec", lambda name: None if name.startswith(missing) else real(name))
    parsing.load_parser.cache_clear()
    with pytest.raises(NotPossible, match=r"pip install 'felicity\[parse\]'"):
        parsing.parse(["It rains."])
    parsing.load_parser.cache_clear()
