"""Every dataset of the catalogue through the default model, a few items each, by its authors' rule."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

import felicity as fe
from felicity.core.errors import NotPossible
from felicity.data.catalogue import read_dataset
from felicity.data.entry import load_entries
from felicity.data.locate import find_copy
from felicity.data.pairs import Columns
from felicity.run.model import Model

# The rule each is judged by when none is named, and the suite that is run here.
RULES = {
    "blimp": ("pair", "npi_present_1"),
    "syntaxgym": ("formula", "npz_ambig"),
    "crows_pairs": ("sentence", "age"),
    "neg_136_simp": ("cloze", "neg_136_simp"),
    "neg_136_nat": ("cloze", "Y"),
    "role_88": ("cloze", "role_88"),
    "cprag_102": ("cloze", "H"),
    "neg_1500_simp_temp": ("cloze", "neg_1500_simp_temp"),
    "neg_1500_simp_gen": ("cloze", "neg_1500_simp_gen"),
    "role_1500": ("cloze", "role_1500"),
    "implicit_causality": ("pronoun", "abandoned"),
    "implicit_causality_match": ("rating", None),
    "lau2020": ("rating", "en"),
}


# The same in other languages, with the measures that are judged without --measure, the authors' own first.
RULES_BY_LANGUAGE = {
    "multiblimp": ("pair", "el", "el/SV-#", ["lp"]),
    "clams": ("pair", "he", "he/simple_agrmt", ["lp"]),
    "rublimp": ("pair", "ru", "tense_marker", ["lp"]),
    "turblimp": ("pair", "tr", "binding", ["lp"]),
    "turblimp_experimental": ("pair", "tr", "argument_structure_transitive_OSV", ["lp"]),
    "sling": ("pair", "zh", "bare_wh", ["lp"]),
    "zhoblimp": ("pair", "zh", "BA_meiba", ["slln_lp", "lp"]),
    "lindsea": ("pair", "ta", "ta/wh-word_reduplication", ["lp"]),
    "qfrblimp": ("pair", "fr-CA", "7", ["mean_lp", "lp"]),
    "zorro": ("pair", "en", "ellipsis-n_bar", ["lp"]),
    "gulordava": ("form", "it", "it/original/L__NOUN_VERB_VERB", ["lp"]),
    "linzen2016": ("form", "en", "4", ["lp"]),
    "syntaxgym_mandarin": ("target", "zh", "cls_none_txt", ["lp"]),
    "kryvosheieva2025": ("continuation", "hi", "hi/hindi-S_O_V", ["mean_lp", "lp"]),
    "jcola": ("rating", "ja", None, ["lp"]),
    "hucola": ("rating", "hu", None, ["lp"]),
    "dalaj": ("rating", "sv", None, ["lp"]),
    "mega_acceptability": ("rating", "en", "NP Ved", ["lp"]),
    "blimp_filtered": ("pair", "en", "npi_present_1", ["lp"]),
    "blimp_supplement": ("pair", "en", "qa_congruence_easy", ["lp"]),
    "entity_tracking": ("choice", "en", "regular_0_ops", ["lp"]),
    "wug_adj_nominalization": ("pair", "en", None, ["lp"]),
    "babylm_reading": ("word", "en", None, ["lp"]),
}


def test_every_dataset_at_hand_has_a_run_here(published: Callable[[str], Path]) -> None:
    published("blimp")
    present = {
        name
        for name, entry in load_entries().items()
        if find_copy(entry.narrow("all")[0] if entry.parts else entry)
    }
    assert set(RULES) | set(RULES_BY_LANGUAGE) == present


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", RULES_BY_LANGUAGE)
def test_a_dataset_of_another_language_runs_by_its_authors_rule(
    name: str, default_model: Model, published: Callable[[str], Path]
) -> None:
    published(load_entries()[name].folder)
    rule, language, suite, measures = RULES_BY_LANGUAGE[name]
    columns = Columns(language=language, suite=suite)
    # Rated sentences of all suites, so that some are acceptable and some are not.
    size = {"jcola": 1}.get(name, 8 if rule == "rating" else 2)
    run = fe.evaluate(name, default_model, columns=columns, sample=size)
    assert (run.manifest["options"]["rule"], run.manifest["measures"]) == (rule, measures)
    assert run.manifest["options"]["languages"] == [language]
    assert ("people" in run["estimates"].columns) == bool(load_entries()[name].people)


@pytest.mark.data
@pytest.mark.parametrize("name", RULES)
def test_a_dataset_runs_by_its_authors_rule(
    name: str, default_model: Model, published: Callable[[str], Path], tmp_path: Path
) -> None:
    published(load_entries()[name].folder)
    rule, suite = RULES[name]
    source = None
    if name == "implicit_causality_match":
        # The rating is the verb's, so that several verbs are needed: two stimuli of every tenth.
        source = tmp_path
        lines = gzip.decompress(published("davis2020/IC_match.csv.gz").read_bytes()).decode().splitlines()
        few = [line for place, line in enumerate(lines[1:]) if place % 280 < 2]
        (tmp_path / "IC_match.csv").write_text("\n".join([lines[0], *few]) + "\n")
    size = 4 if rule == "rating" else 2
    run = fe.evaluate(
        name, default_model, columns=Columns(suite=suite), sample=size, source=source, out=tmp_path / "run"
    )
    assert run.manifest["options"]["rule"] == rule
    assert run["judgements"].height >= 2
    overall = run.accuracy().row(0, named=True)
    assert 0 <= overall["low"] <= overall["accuracy"] <= overall["high"] <= 1
    report = fe.read_run(tmp_path / "run")
    assert set(report.tables) == set(run.tables)


@pytest.mark.data
def test_items_that_nothing_is_predicted_of_are_not_a_run(
    published: Callable[[str], Path], tiny_model: Path
) -> None:
    published("davis2020")
    with pytest.raises(NotPossible, match="None of these items can be judged"):
        fe.evaluate("implicit_causality", fe.model(str(tiny_model)), columns=Columns(suite=unbiased_verb()))


def unbiased_verb() -> str:
    items = read_dataset("implicit_causality").items
    return str(items.filter(items["phenomenon"] == "unbiased")["suite"][0])
