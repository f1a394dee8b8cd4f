"""Every dataset of the catalogue through the default model, a few items each, by its authors' rule."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

import felicity as fe
from felicity.core.errors import NotPossible
from felicity.data.catalogue import read_items
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


def test_every_dataset_at_hand_has_a_run_here(published: Callable[[str], Path]) -> None:
    published("blimp")
    assert set(RULES) == {name for name, entry in load_entries().items() if find_copy(entry)}


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
    items = read_items("implicit_causality")
    return str(items.filter(items["phenomenon"] == "unbiased")["suite"][0])
