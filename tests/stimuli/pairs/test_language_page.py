"""The small language of the page "A grammar for your language" works as it is printed."""

import re
from collections.abc import Sequence
from pathlib import Path

from felicity.stimuli.pairs import PairGenerator, read_language

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "grammar-for-your-language.md"
FILES = (
    "layout.toml",
    "nouns.tsv",
    "determiners.tsv",
    "verbs.tsv",
    "grammar.toml",
    "paradigms/agreement.toml",
)


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def test_the_toy_language_makes_pairs(tmp_path: Path) -> None:
    blocks = re.findall(
        r"^```(?:toml)?\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    for name, block in zip(FILES, blocks, strict=False):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(block, encoding="utf-8")
    language = read_language(str(tmp_path))
    generator = PairGenerator(language.lexicon, language.grammar, {"words": count_words})
    paradigms = language.read_paradigms()
    agreement = generator.make(paradigms["agreement"], 4, seed=0).pairs
    gender = generator.make(paradigms["gender"], 4, seed=0).pairs
    assert len(agreement) == len(gender) == 4
    singular = agreement.filter(agreement["good"].str.starts_with("La niña"))
    assert set(singular["good"]) <= {"La niña duerme.", "La niña lee."}
    assert all(re.match("(El|La|Los|Las) ", text) for text in (*gender["good"], *gender["bad"]))
