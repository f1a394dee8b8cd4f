"""Factorial designs: all conditions of an item with the same words, in regions, and refusals with a line."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest

from felicity.api.pairs import check_designs_path, make_designs, write_designs
from felicity.core.errors import BadInput, FelicityError, UnknownName
from felicity.data import read_dataset
from felicity.stimuli.designs import DesignGenerator, read_design_file, read_designs
from felicity.stimuli.pairs import read_language
from tests.conftest import Answer

Cli = Callable[..., Answer]
ENGLISH, GERMAN = read_language("english"), read_language("german")
DESIGNS = read_designs(ENGLISH.grammar, ENGLISH.folder)
GERMAN_DESIGNS = read_designs(GERMAN.grammar, GERMAN.folder)

TOY = """
phenomenon = "agreement"

[toy]
about = "The verb agrees."
factors = { number = ["sg", "pl"], verb = ["right", "wrong"] }
regions = ["subject", "verb", "end"]
equal = ["verb"]
predictions = ["(verb;%sg_right%) < (verb;%sg_wrong%)"]
[toy.conditions]
sg_right = "the noun:N[num=sg, sem=person, rel=none] | verb:V[form=pres, num=sg, frame=intrans] | today ."
sg_wrong = "the @noun | @verb[num=pl] | today ."
pl_right = "the @noun[num=pl] | @verb[num=pl] | today ."
pl_wrong = "the @noun[num=pl] | @verb | today ."
"""


def count_words(texts: Sequence[str]) -> list[int]:
    """Words, and one more for a long one."""
    return [sum(1 + (len(word) > 6) for word in text.split()) for text in texts]


COUNTERS = {"words": count_words}


@pytest.fixture(scope="module")
def generator() -> DesignGenerator:
    return DesignGenerator(ENGLISH.lexicon, ENGLISH.grammar, COUNTERS)


@pytest.mark.parametrize("name", sorted(DESIGNS | GERMAN_DESIGNS))
def test_every_design_makes_whole_items_with_equal_regions(name: str, generator: DesignGenerator) -> None:
    design = (DESIGNS | GERMAN_DESIGNS)[name]
    if name in GERMAN_DESIGNS:
        generator = DesignGenerator(GERMAN.lexicon, GERMAN.grammar, COUNTERS)
    made = generator.make(design, 6, seed=2)
    assert design.source
    assert len(made.items) == 6
    for item in made.items:
        assert set(item) == set(design.conditions)
        assert all(len(regions) == len(design.regions) for regions in item.values())
        assert len({tuple(regions) for regions in item.values()}) == len(item)
        for region in design.equal:
            texts = [regions[design.regions.index(region)] for regions in item.values()]
            assert len(set(count_words([text for text in texts if text]))) == 1


def test_conditions_share_their_words_but_for_what_they_change(
    tmp_path: Path, generator: DesignGenerator
) -> None:
    path = tmp_path / "toy.toml"
    path.write_text(TOY)
    (design,) = read_design_file(path, ENGLISH.grammar)
    item = generator.make(design, 1, seed=0).items[0]
    assert item["sg_right"][0] == item["sg_wrong"][0] != item["pl_right"][0] == item["pl_wrong"][0]
    assert item["sg_right"][1] == item["pl_wrong"][1] != item["sg_wrong"][1] == item["pl_right"][1]
    assert {regions[2] for regions in item.values()} == {"today."}


def test_the_same_seed_gives_the_same_items() -> None:
    first, again, other = (
        make_designs(["that_trace"], 3, seed=seed, counters=COUNTERS)[0].items for seed in (1, 1, 2)
    )
    assert first == again != other


def test_the_suite_is_read_by_felicity_and_the_table_has_the_factors(tmp_path: Path) -> None:
    made = make_designs(["filler_gap", "that_trace"], 3, counters=COUNTERS)
    paths = write_designs(made, tmp_path / "designs")
    assert [path.name for path in paths] == [
        "filler_gap.json",
        "filler_gap.csv",
        "that_trace.json",
        "that_trace.csv",
    ]
    items = read_dataset(str(paths[0])).items
    assert len(items) == 12
    assert items["predictions"][0].to_list() == list(made[0].design.predictions)
    table = pl.read_csv(paths[3])
    assert table.columns == ["suite", "item", "condition", "gap", "complementizer", "text"]
    assert set(table["gap"]) == {"subject", "object"}
    assert table["text"].str.count_matches(r"\|").unique().to_list() == [3]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('pl_wrong = "the', 'pl_odd = "the', "no condition 'pl_odd' in toy.toml, line 4; known: pl_right"),
        ('pl_wrong = "the @noun[num=pl] | @verb | today ."', "", "no condition 'pl_wrong'"),
        ("| @verb | today .", "| @verb today .", "line 14: condition 'pl_wrong' has 2 regions where .* 3"),
        ("| @verb | today .", "| @verb today | .", "line 14: a region starts with '.'"),
        (
            "the @noun | @verb[num=pl]",
            "the @nuon | @verb[num=pl]",
            "no earlier part 'nuon' in toy.toml, line 12",
        ),
        ("(verb;%sg_wrong%)", "(vreb;%sg_wrong%)", "no region 'vreb'"),
        ("(verb;%sg_wrong%)", "(verb;%sg_wrng%)", "no condition 'sg_wrng'"),
        ("@verb[num=pl] | today", "@verb[nmu=pl] | today", "no feature 'nmu'"),
        ('equal = ["verb"]', 'equal = ["vrb"]', "no region 'vrb'"),
        ('equal = ["verb"]', 'eqal = ["verb"]', "no key 'eqal'"),
        ('regions = ["subject", "verb", "end"]', "", "has no 'regions'"),
        ("rel=none] | verb:V", "rel=none] | noun:V", "two parts are called 'noun'"),
        ("num=sg, sem=person, rel=none]", "num=sg, sem=person, rel=pict]", "no item of 'toy' can be made"),
    ],
)
def test_a_mistake_is_refused_with_the_file_and_line(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    assert old in TOY
    path = tmp_path / "toy.toml"
    path.write_text(TOY.replace(old, new, 1))
    with pytest.raises(FelicityError, match=message):
        make_designs([str(path)], 2, counters=COUNTERS)


def test_several_designs_need_a_folder_and_unknown_names_are_refused(tmp_path: Path) -> None:
    made = make_designs(["filler_gap", "that_trace"], 1, counters=COUNTERS)
    with pytest.raises(BadInput, match="would hold 2 designs; name a folder"):
        write_designs(made, tmp_path / "both.json")
    with pytest.raises(BadInput, match="ends in .json"):
        check_designs_path(tmp_path / "both.txt")
    with pytest.raises(UnknownName, match="did you mean 'that_trace'"):
        make_designs(["that_trce"], 1, counters=COUNTERS)
    bare = tmp_path / "bare"
    shutil.copytree(read_language("german").folder, bare, ignore=shutil.ignore_patterns("designs"))
    with pytest.raises(BadInput, match="bare has no design"):
        make_designs(["all"], 1, language=str(bare), counters=COUNTERS)


def test_a_design_goes_from_the_command_into_run_and_into_a_rating_study(
    cli: Cli, tiny_model: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "designs"
    assert (
        cli("stimuli", "design", "that_trace", "-n", "4", "--seed", "1", "-m", tiny_model, "-o", folder).code
        == 0
    )
    run = cli(
        "run", folder / "that_trace.json", "-m", tiny_model, "-o", tmp_path / "run", "--no-report", "-q"
    )
    assert run.code == 0, run.err
    assert pl.read_csv(tmp_path / "run" / "estimates.csv")["n"].max() == 4
    for number, name in enumerate(("that_trace.json", "that_trace.csv")):
        study = tmp_path / f"study{number}"
        made = cli("rate", "new", study, "--from", folder / name)
        assert made.code == 0, made.err
        assert "16 stimuli in 4 lists of 4" in made.out + made.err
        assert "|" not in (study / "stimuli.csv").read_text()
    listed = cli("stimuli", "design", "--list", "--json")
    assert {row["name"] for row in json.loads(listed.out)} == set(DESIGNS)
