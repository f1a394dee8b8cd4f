from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, FelicityError, UnknownName
from felicity.data.catalogue import describe_items, read_items
from felicity.data.pairs import Columns
from felicity.data.sample import sample_items


def test_an_unknown_name_suggests_the_near_one() -> None:
    with pytest.raises(UnknownName, match="There is no dataset 'blmp'; did you mean 'blimp'"):
        read_items("blmp")


def test_a_named_dataset_is_narrowed_to_a_suite() -> None:
    whole = read_items("starter")
    suite = whole["suite"][0]
    part = read_items("starter", Columns(suite=suite))
    assert part["suite"].unique().to_list() == [suite]
    assert len(part) < len(whole)


def test_an_unknown_suite_suggests_the_near_one() -> None:
    suite = read_items("starter")["suite"][0]
    with pytest.raises(UnknownName, match=f"did you mean '{suite}'"):
        read_items("starter", Columns(suite=suite[:-1]))


def test_a_sample_takes_both_members_of_the_same_pairs() -> None:
    items = read_items("starter")
    sample = sample_items(items, 2, seed=1)
    sizes = sample.group_by("suite", "condition").len()["len"].unique().to_list()
    assert sizes == [2]
    assert sample["item"].n_unique() * 2 == len(sample)
    assert sample.equals(sample_items(items, 2, seed=1))
    assert not sample.equals(sample_items(items, 2, seed=2))


def test_an_empty_sample_is_refused() -> None:
    with pytest.raises(BadInput, match="at least 1"):
        sample_items(read_items("starter"), 0, seed=1)


@pytest.mark.data
def test_blimp_has_67_suites_of_1000_pairs_in_12_phenomena(published: Callable[[str], Path]) -> None:
    published("blimp")
    items = read_items("blimp")
    assert items["suite"].n_unique() == 67
    assert items.group_by("suite", "condition").len()["len"].unique().to_list() == [1000]
    assert items["phenomenon"].n_unique() == 12
    assert "s-selection" not in items["phenomenon"].unique().to_list()
    # Seven pairs of the released files are identical.
    texts = items.group_by("item").agg(pl.col("text").n_unique())
    assert len(texts.filter(pl.col("text") == 1)) == 7


@pytest.mark.data
def test_blimp_is_described_with_its_size_and_licence(published: Callable[[str], Path]) -> None:
    published("blimp")
    told = describe_items("blimp", read_items("blimp"), rows=2)
    assert (told["items"], told["stimuli"], len(told["suites"])) == (67_000, 134_000, 67)
    assert told["licence"] == "CC BY 4.0"
    assert len(told["examples"]) == 2


def test_blimp_out_of_reach_says_where_it_was_looked_for(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FELICITY_DATA", str(tmp_path))
    with pytest.raises(FelicityError, match=r"\$FELICITY_DATA/blimp nor in the cache"):
        read_items("blimp")
    assert not (empty_cache / "datasets" / "blimp").exists()


def test_an_incomplete_blimp_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "blimp" / "data"
    folder.mkdir(parents=True)
    (folder / "adjunct_island.jsonl").write_text('{"sentence_good": "A.", "sentence_bad": "B."}\n')
    monkeypatch.setenv("FELICITY_DATA", str(tmp_path))
    with pytest.raises(BadInput, match="holds 1 files of BLiMP, not 67"):
        read_items("blimp")
