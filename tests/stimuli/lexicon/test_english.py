"""The English lexicon: its size, its forms, and the refusal of broken tables."""

import shutil
from pathlib import Path

import pytest

from felicity.core.errors import BadInput, UnknownName
from felicity.stimuli.lexicon import ENGLISH, Lexicon, read_lexicon

# Where lemminflect has another form, each looked up in a dictionary.
NOUN_EXCEPTIONS = {
    "congressman": "congressmen",  # lemminflect: congressmans
    "congresswoman": "congresswomen",  # lemminflect: congresswomans
    "ox": "oxen",  # lemminflect: oxes
}
VERB_EXCEPTIONS = {("knit", "VBD"): "knitted", ("knit", "VBN"): "knitted"}  # lemminflect: knit


@pytest.fixture(scope="module")
def lexicon() -> Lexicon:
    return read_lexicon()


@pytest.mark.parametrize(
    ("category", "least"), [("N", 600), ("V", 350), ("Adj", 120), ("Name", 150), ("Det", 10), ("Aux", 20)]
)
def test_the_lexicon_is_as_large_as_promised(category: str, least: int, lexicon: Lexicon) -> None:
    assert lexicon.count(category) >= least


def test_plurals_agree_with_lemminflect(lexicon: Lexicon) -> None:
    lemminflect = pytest.importorskip("lemminflect")
    forms: dict[str, dict[str, str]] = {}
    for one in lexicon.readings["N"]:
        forms.setdefault(one.lexeme, {})["".join(one.features["num"])] = one.text
    wrong = {
        noun: found["pl"]
        for noun, found in forms.items()
        if "pl" in found and found["pl"] not in lemminflect.getInflection(noun, tag="NNS")
    }
    assert wrong == NOUN_EXCEPTIONS


def test_verb_forms_agree_with_lemminflect(lexicon: Lexicon) -> None:
    lemminflect = pytest.importorskip("lemminflect")
    tags = {"pres": "VBZ", "past": "VBD", "part": "VBN", "ing": "VBG"}
    wrong = {}
    for one in lexicon.readings["V"]:
        form = "".join(one.features["form"])
        if form not in tags or (form == "pres" and one.features["num"] != {"sg"}):
            continue
        base = one.lexeme.split("/")[0]
        if one.text not in lemminflect.getInflection(base, tag=tags[form]):
            wrong[base, tags[form]] = one.text
    assert wrong == VERB_EXCEPTIONS


def test_irregular_is_what_does_not_add_s(lexicon: Lexicon) -> None:
    forms: dict[str, dict[str, str]] = {}
    marked = {}
    for one in lexicon.readings["N"]:
        forms.setdefault(one.lexeme, {})["".join(one.features["num"])] = one.text
        marked[one.lexeme] = one.features["irregular"] == {"yes"}
    for noun, found in forms.items():
        if "pl" in found:
            regular = found["pl"] in (noun + "s", noun + "es", noun[:-1] + "ies")
            assert regular != marked[noun], noun


def test_another_form_of_a_word_keeps_its_other_features(lexicon: Lexicon) -> None:
    hasnt = next(one for one in lexicon.readings["Aux"] if one.text == "hasn't")
    other = lexicon.other_form(hasnt, {"num": frozenset({"pl"})})
    assert other is not None
    assert other.text == "haven't"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    folder = tmp_path / "lexicon"
    shutil.copytree(ENGLISH, folder)
    return folder


def test_a_row_with_a_missing_cell_is_refused_with_its_line(copy: Path) -> None:
    names = copy / "names.tsv"
    names.write_text(names.read_text() + "Zoe\n")
    line = len(names.read_text().splitlines())
    with pytest.raises(BadInput, match=f"names.tsv, line {line}: 1 cells, not 2"):
        read_lexicon(copy)


def test_a_word_that_stands_twice_is_refused_with_its_line(copy: Path) -> None:
    names = copy / "names.tsv"
    names.write_text(names.read_text() + "Alice\tf\n")
    with pytest.raises(BadInput, match="'Alice' is already on line 2"):
        read_lexicon(copy)


def test_a_missing_column_is_refused(copy: Path) -> None:
    names = copy / "names.tsv"
    names.write_text(names.read_text().replace("gender", "sex", 1))
    with pytest.raises(UnknownName, match="no column 'gender'"):
        read_lexicon(copy)


def test_verbs_that_dialects_level_do_not_count_as_distinct(lexicon: Lexicon) -> None:
    # "I seen", "he come", "it begun", "she drunk", "they sung" are said in many dialects of English
    # (Kortmann & Lunkenheimer 2013, The Electronic World Atlas of Varieties of English).
    distinct = {
        one.lexeme.split("/")[0] for one in lexicon.readings["V"] if one.features["morph"] == {"distinct"}
    }
    assert distinct.isdisjoint({"see", "come", "begin", "drink", "sing"})
