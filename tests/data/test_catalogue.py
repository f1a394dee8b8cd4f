from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, FelicityError, UnknownName
from felicity.data.catalogue import read_dataset, sample_items
from felicity.data.entry import load_entries
from felicity.data.inspection import describe_dataset
from felicity.data.locate import find_copy, get_copy
from felicity.data.pairs import Columns
from tests.data.test_languages import SIZES_BY_LANGUAGE


def test_an_unknown_name_suggests_the_near_one() -> None:
    with pytest.raises(UnknownName, match="There is no dataset 'blmp'; did you mean 'blimp'"):
        read_dataset("blmp")


def test_a_named_dataset_is_narrowed_to_a_suite() -> None:
    whole = read_dataset("starter").items
    suite = whole["suite"][0]
    part = read_dataset("starter", Columns(suite=suite)).items
    assert part["suite"].unique().to_list() == [suite]
    assert len(part) < len(whole)


def test_an_unknown_suite_suggests_the_near_one() -> None:
    suite = read_dataset("starter").items["suite"][0]
    with pytest.raises(UnknownName, match=f"did you mean '{suite}'"):
        read_dataset("starter", Columns(suite=suite[:-1]))


def test_a_sample_takes_both_members_of_the_same_pairs() -> None:
    items = read_dataset("starter").items
    sample = sample_items(items, 2, seed=1)
    sizes = sample.group_by("suite", "condition").len()["len"].unique().to_list()
    assert sizes == [2]
    assert sample["item"].n_unique() * 2 == len(sample)
    assert sample.equals(sample_items(items, 2, seed=1))
    assert not sample.equals(sample_items(items, 2, seed=2))


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 1"):
        sample_items(read_dataset("starter").items, 0, seed=1)


@pytest.mark.data
def test_blimp_has_67_suites_of_1000_pairs_in_12_phenomena(published: Callable[[str], Path]) -> None:
    published("blimp")
    items = read_dataset("blimp").items
    assert items["suite"].n_unique() == 67
    assert items.group_by("suite", "condition").len()["len"].unique().to_list() == [1000]
    assert items["phenomenon"].n_unique() == 12
    assert "s-selection" not in items["phenomenon"].unique().to_list()
    # Seven pairs of the released files are identical.
    texts = items.group_by("item").agg(pl.col("text").n_unique())
    assert len(texts.filter(pl.col("text") == 1)) == 7


# Items, stimuli and suites as the papers and the files' own names give them.
SIZES = {
    "blimp": (67_000, 134_000, 67),
    "syntaxgym": (842, 3_304, 34),
    "crows_pairs": (1_508, 3_016, 9),
    "neg_136_simp": (18, 72, 1),
    "neg_136_nat": (16, 64, 2),
    "role_88": (44, 88, 1),
    "cprag_102": (34, 102, 2),
    "neg_1500_simp_temp": (770, 1_540, 1),
    "neg_1500_simp_gen": (750, 1_500, 1),
    "role_1500": (750, 1_500, 1),
    "implicit_causality": (6_888, 13_776, 246),
    "implicit_causality_match": (6_888, 6_888, 246),
    "lau2020": (250, 750, 5),
}
UNSEEN = {"comps_base", "comps_wugs", "cola", "ewok"}


def test_the_catalogue_has_every_name() -> None:
    assert set(load_entries()) == set(SIZES) | UNSEEN | set(SIZES_BY_LANGUAGE)


@pytest.mark.data
@pytest.mark.parametrize("name", SIZES)
def test_every_dataset_has_its_published_size_and_checksum(
    name: str, published: Callable[[str], Path]
) -> None:
    entry = load_entries()[name]
    published(entry.folder)
    data = read_dataset(name)
    told = describe_dataset(data, rows=2)
    assert (told["items"], told["stimuli"], len(told["suites"])) == SIZES[name]
    assert {"name", "items", "stimuli", "suites", "licence"} <= set(told)
    assert len(told["examples"]) == 2
    assert (data.left_out.height, data.notes) == (0, ())
    copy = find_copy(entry)
    assert copy is not None
    assert copy.checksum == "published"


@pytest.mark.data
@pytest.mark.parametrize("name", SIZES)
def test_no_stimulus_stands_twice_and_texts_are_as_published(
    name: str, published: Callable[[str], Path]
) -> None:
    published(load_entries()[name].folder)
    items = read_dataset(name).items
    assert items.select("item", "condition").is_unique().all()
    unclean = items["text"].str.contains(r"^\s|\s$|\s\s|^$").sum()
    # Doubled spaces change GPT-2's tokens, so that they are not mended behind the reader's back.
    assert unclean == (18 if name == "crows_pairs" else 0)


@pytest.mark.data
@pytest.mark.parametrize(("rule", "left_out"), [("one_prefix", 47_000), ("two_prefix", 47_000)])
def test_prefix_methods_count_the_rows_they_do_not_apply_to(
    rule: str, left_out: int, published: Callable[[str], Path]
) -> None:
    published("blimp")
    data = read_dataset("blimp", rule=rule)
    assert (data.left_out.height, data.items["item"].n_unique()) == (left_out, 67_000 - left_out)
    assert data.rows == 67_000
    pair = data.items.filter(pl.col("item") == data.items["item"][0])
    shared = "context_text" if rule == "one_prefix" else "text"
    assert pair[shared].n_unique() == 1


@pytest.mark.data
def test_the_article_is_chosen_by_the_target(published: Callable[[str], Path]) -> None:
    published("ettinger2020")
    items = read_dataset("neg_136_simp").items
    ant = items.filter(pl.col("context_text").str.starts_with("An ant"))
    assert sorted(zip(ant["context_text"], ant["text"], strict=True)) == [
        ("An ant is a", "vegetable"),
        ("An ant is an", "insect"),
        ("An ant is not a", "vegetable"),
        ("An ant is not an", "insect"),
    ]


@pytest.mark.data
def test_crows_pairs_takes_either_sentence_as_good(published: Callable[[str], Path]) -> None:
    published("crows_pairs")
    more, less = read_dataset("crows_pairs").items, read_dataset("crows_pairs", rule="less").items
    assert more.filter(condition="good")["text"].equals(less.filter(condition="bad")["text"])


def test_an_unknown_rule_suggests_the_near_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'one_prefix'"):
        load_entries()["blimp"].method("one_prefx")


def test_a_dataset_out_of_reach_says_where_it_was_looked_for(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FELICITY_DATA", str(tmp_path))
    closed = replace(load_entries()["crows_pairs"], fetch="http://127.0.0.1:9/none")
    with pytest.raises(FelicityError, match=r"\$FELICITY_DATA/crows_pairs nor in the cache.*--from DIR"):
        get_copy(closed)
    assert not (empty_cache / "datasets" / "crows_pairs").exists()


def test_an_incomplete_copy_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "blimp" / "data"
    folder.mkdir(parents=True)
    (folder / "adjunct_island.jsonl").write_text('{"sentence_good": "A.", "sentence_bad": "B."}\n')
    monkeypatch.setenv("FELICITY_DATA", str(tmp_path))
    with pytest.raises(BadInput, match="has 1 of the 67 files of blimp"):
        read_dataset("blimp")
