"""Published cloze predictions, as their authors read them and corrected."""

import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.errors import BadInput, FelicityError
from felicity.data import read_dataset
from felicity.papers.replay.predictions import read_words, replay_predictions
from felicity.papers.replay.shivagunde import compare_cells, explain_cell
from tests.conftest import ROOT

Published = Callable[[str], Path]
PREDICTIONS = "shivagunde2023/predictions"


@pytest.fixture(scope="module")
def cells(published: Published) -> pl.DataFrame:
    return compare_cells(published(PREDICTIONS))


@pytest.mark.data
@pytest.mark.slow
def test_300_cells_come_out_20_are_off_by_one_and_16_do_not(cells: pl.DataFrame) -> None:
    counts = dict(
        cells.filter(~pl.col("model").str.starts_with("gpt3"))["comes_out"].value_counts().iter_rows()
    )
    assert counts == {"as published": 300, "off by one": 20, "not at all": 16}


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "dataset", "figure", "printed", "corrected"),
    [
        # RoBERTa's first place is the empty string: top 1 was published as 0.
        ("roberta-large", "ROLE-1500", "top1", 0.0, 11.53),
        ("gpt2", "NEG-136-SIMP", "top5", 0.0, 72.22),
        ("gpt2-xl", "NEG-136-SIMP", "top5", 0.0, 88.89),
        ("gpt3", "NEG-136-SIMP", "sensitivity", 100.0, 72.22),
        ("gpt3", "NEG-1500-SIMP-GEN", "sensitivity", 100.0, 92.4),
        ("bert-base-uncased", "NEG-1500-SIMP-TEMP", "top5", 58.4, 58.44),
    ],
)
def test_corrected_figures(
    cells: pl.DataFrame, model: str, dataset: str, figure: str, printed: float, corrected: float
) -> None:
    cell = cells.filter(model=model, dataset=dataset, figure=figure).row(0, named=True)
    assert cell["published"] == printed
    assert cell["corrected"] == pytest.approx(corrected, abs=0.005)


@pytest.mark.data
@pytest.mark.slow
def test_every_cell_that_differs_has_a_reason(cells: pl.DataFrame) -> None:
    differing = cells.filter(pl.col("comes_out") != "as published")
    reasons = {explain_cell(row, cells) for row in differing.iter_rows(named=True)}
    assert all(reasons)
    t5 = cells.filter(model="t5-3b", dataset="NEG-1500-SIMP-GEN", figure="top5").row(0, named=True)
    assert "NEG-1500-SIMP-TEMP, whose published figure this is" in explain_cell(t5, cells)


@pytest.mark.data
@pytest.mark.slow
def test_the_page_is_what_the_data_gives(cells: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    monkeypatch.setattr(sys, "argv", ["shivagunde2023.py"])
    import shivagunde2023

    page = (ROOT / "docs" / "studies" / "shivagunde2023.md").read_text(encoding="utf-8")
    assert page == shivagunde2023.render(cells)


@pytest.mark.data
def test_a_folder_gives_every_model_twice_and_says_what_does_not_fit(
    published: Published, tmp_path: Path
) -> None:
    folder = tmp_path / "predictions" / "NEG-1500-SIMP-GEN"
    folder.mkdir(parents=True)
    (tmp_path / "data").symlink_to(published("shivagunde2023/data"))
    for model in ("gpt2", "roberta-base", "t5-3b"):
        name = f"{model}.txt.gz"
        (folder / name).symlink_to(published(f"{PREDICTIONS}/{folder.name}/{name}"))
    replayed = replay_predictions(folder)
    fitting = ("gpt2", "roberta-base")
    assert replayed.measures == tuple(
        f"{m} {reading}" for m in fitting for reading in ("published", "corrected")
    )
    assert [note for note, _, _ in replayed.notes] == [
        "predictions of t5-3b, which do not match the 1500 sentences"
    ]
    estimates = replayed.estimate().filter(level="prediction", measure="roberta-base corrected")
    figures = dict(estimates.select("name", "accuracy").iter_rows())
    assert set(figures) == {"top1", "top5", "top10", "top20", "sensitivity"}
    assert figures["top1"] == pytest.approx(0.1547, abs=5e-5)


@pytest.mark.parametrize("line", ["not a list", "['a', 1]", "{'a': 1}", "[" * 300])
def test_a_line_that_is_no_list_of_words_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "model.txt"
    path.write_text(f"['fish']\n{line}\n")
    with pytest.raises(BadInput, match="line 2: not a list of words"):
        read_words(path)


def test_predictions_of_something_unknown_are_refused(tmp_path: Path) -> None:
    (tmp_path / "things").mkdir()
    (tmp_path / "things" / "model.txt").write_text("['fish']\n")
    with pytest.raises(FelicityError, match="name what was predicted with --dataset"):
        replay_predictions(tmp_path / "things")


@pytest.mark.data
def test_predictions_need_no_sentences_beside_them(published: Published, tmp_path: Path) -> None:
    """The file has every pair of sentences twice; the corrected figure is 13 of the 18 items either way."""
    copy = tmp_path / "gpt2.txt.gz"
    copy.write_bytes(published(f"{PREDICTIONS}/NEG-136-SIMP/gpt2.txt.gz").read_bytes())
    replayed = replay_predictions(copy, dataset="neg_136_simp")
    estimates = replayed.estimate().filter(level="prediction", measure="gpt2 corrected")
    alone = dict(estimates.select("name", "accuracy").iter_rows())
    assert alone["top5"] == pytest.approx(13 / 18)
    assert replayed.items["condition"].unique(maintain_order=True).to_list() == ["aff_true", "neg_true"]
    beside = replay_predictions(published(f"{PREDICTIONS}/NEG-136-SIMP")).estimate()
    whole = beside.filter(level="prediction", measure="gpt2 corrected")
    assert alone == pytest.approx(dict(whole.select("name", "accuracy").iter_rows()))


@pytest.mark.data
@pytest.mark.parametrize("order", ["as the catalogue has them", "roles only", "shuffled"])
def test_predictions_are_matched_to_stimuli_by_their_contexts(
    order: str, published: Published, tmp_path: Path
) -> None:
    published("ettinger2020")
    items = read_dataset("neg_136_simp", rule="cloze").items
    if order == "roles only":
        items = items.filter(pl.col("condition").is_in(["aff_true", "neg_true"]))
    right = items["condition"].str.starts_with("aff")
    words = [["fish"] if good else ["trout", "tool"] for good in right]
    if order == "shuffled":
        words = words[1:] + words[:1]
    path = tmp_path / "mine.txt"
    path.write_text("\n".join(map(str, words)) + "\n")
    if order == "shuffled":
        with pytest.raises(BadInput, match="has a prediction for each of the 36 sentences"):
            replay_predictions(path, dataset="neg_136_simp")
        return
    rows = replay_predictions(path, dataset="neg_136_simp").estimate()
    figures = dict(
        rows.filter(level="prediction", measure="mine corrected").select("name", "accuracy").iter_rows()
    )
    fish = items.filter(condition="aff_true")["text"] == "fish"
    assert figures["top1"] == pytest.approx(fish.mean())
    assert figures["sensitivity"] == 1
