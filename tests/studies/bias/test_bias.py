"""Token-length splits under the published vocabularies, and accuracies within them."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.contrasts import ACCURACY
from felicity.core.errors import BadInput
from felicity.data.catalogue import read_dataset
from felicity.engines.ngram.training import train_ngram
from felicity.engines.token_counter import has_weights, open_counter
from felicity.studies import study_function
from felicity.studies.bias.bias_page import _answer, _compare_ends
from felicity.studies.bias.lengths import measure_lengths
from felicity.studies.bias.splits import count_nontrivial, draw_curves, split_suites
from tests.engines.corpora import agreeing_lines

Published = Callable[[str], Path]
PAIRS = "suite,good,bad\ns1,The cats annoy Tim.,The cats annoys Tim.\ns1,He left.,Him left.\n"
PAIRS += "s2,She saw herself.,She saw himself.\ns2,Same here.,Same here.\n"


@pytest.fixture(scope="module")
def tokenizers(published: Published, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders that hold nothing but a tokenizer, each in another form."""
    source = published("tokenizers")
    folder = tmp_path_factory.mktemp("tokenizers")
    for name in ("gpt2", "bert_cased", "bert_uncased"):
        (folder / name).mkdir()
    (folder / "gpt2" / "vocab.json").write_bytes(
        gzip.decompress((source / "gpt2-encoder.json.gz").read_bytes())
    )
    (folder / "gpt2" / "merges.txt").write_bytes(gzip.decompress((source / "gpt2-vocab.bpe.gz").read_bytes()))
    for kind in ("cased", "uncased"):
        shutil.copy(source / f"bert-base-{kind}-vocab.txt.gz", folder / f"bert_{kind}" / "vocab.txt.gz")
    return folder


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "counts"),
    [("gpt2", [997, 282, 229]), ("bert_cased", [1021, 283, 204]), ("bert_uncased", [1092, 255, 161])],
)
def test_crows_pairs_splits_as_published(
    name: str, counts: list[int], tokenizers: Path, published: Published
) -> None:
    published("crows_pairs")
    lengths = measure_lengths(read_dataset("crows_pairs").items, open_counter(str(tokenizers / name)))
    assert split_suites(lengths, name).filter(suite="all")["n"].to_list() == counts


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.parametrize("name", ["gpt2", "bert_cased", "bert_uncased"])
def test_blimp_splits_as_computed_from_the_released_files(
    name: str, tokenizers: Path, published: Published
) -> None:
    published("blimp")
    expected = pl.read_csv(published("ueda2024/blimp_token_length_splits.tsv"), separator="\t")
    lengths = measure_lengths(read_dataset("blimp").items, open_counter(str(tokenizers / name)))
    splits = split_suites(lengths, name)
    wide = splits.filter(pl.col("suite") != "all").pivot(on="split", index="suite", values="n")
    joined = wide.join(expected, left_on="suite", right_on="uid")
    assert joined.height == 67
    for split, column in (("A=U", "eq"), ("A>U", "gt"), ("A<U", "lt")):
        assert joined[split].to_list() == joined[f"{name}_{column}"].to_list()
    if name == "gpt2":
        assert splits.filter(suite="all")["n"].to_list() == [58_326, 3_620, 5_054]
        uneven = count_nontrivial(splits)
        assert (uneven["n"].to_list(), uneven["suites"].to_list()) == ([22_326, 3_620, 5_054], [31, 31, 31])


def test_lengths_differences_and_splits_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(PAIRS)
    lengths = measure_lengths(read_dataset(str(path)).items, lambda texts: [len(text) for text in texts])
    assert lengths["difference"].to_list() == [-1, -1, 0, 0]
    splits = split_suites(lengths, "letters")
    assert splits.filter(suite="s1")["n"].to_list() == [0, 0, 2]
    assert splits["accuracy"].null_count() == len(splits)


def test_accuracy_within_splits_and_an_empty_split_has_none(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(PAIRS)
    items = read_dataset(str(path)).items
    lengths = measure_lengths(items, lambda texts: [len(text) for text in texts])
    names = lengths["item"].to_list()
    judged = pl.DataFrame(
        {
            "item": names,
            "suite": lengths["suite"],
            "phenomenon": lengths["suite"],
            "measure": "lp",
            "rule": "pair",
            "passed": [1.0, 0.0, 1.0, 0.5],
            "margin": 0.0,
            "stable": True,
        }
    )
    splits = split_suites(lengths, "m", judgements=judged)
    whole = splits.filter(suite="all").select("split", "n", "accuracy").rows()
    assert whole == [("A=U", 2, 0.75), ("A>U", 0, None), ("A<U", 2, 0.5)]
    curve = draw_curves(lengths, "m", judged)
    assert curve.select("difference", "n", "accuracy").rows() == [(-1, 2, 0.5), (0, 2, 0.75)]


def test_a_model_with_weights_is_scored_and_one_without_only_splits(tiny_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(PAIRS)
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copy(tiny_model / "tokenizer.json", bare)
    assert has_weights(str(tiny_model))
    assert not has_weights(str(bare))
    study = study_function("bias")(
        path, models=[str(tiny_model), str(bare)], out=tmp_path / "out", measures=["lp", "mean_lp"]
    )
    assert study.facts["scored"] == ["tiny-gpt2"]
    assert study.notes == ["bare: tokenizer only, so there are splits but no accuracies."]
    per_model = study["splits"].filter(suite="all")
    bare_counts = per_model.filter(model="bare")["n"].to_list()
    assert per_model.filter(model="tiny-gpt2", measure="lp")["n"].to_list() == bare_counts
    assert set(study["curves"]["measure"]) == {"lp", "mean_lp"}
    assert study["curves"].filter(measure="lp")["n"].sum() == 4
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "tiny-gpt2" in page
    assert "N/A" in page or bare_counts.count(0) == 0


def test_slopes_are_fitted_compared_and_answer_the_question(tmp_path: Path) -> None:
    # Sentences of a model's own kind, some cut short: LP prefers the shorter of two.
    lines = agreeing_lines(3, 400)
    (tmp_path / "corpus.txt").write_text("\n".join(agreeing_lines(1, 300)))
    train_ngram(tmp_path / "corpus.txt", tmp_path / "two.arpa", order=2)
    pairs = [
        (f"s{place % 5}", " ".join(good.split()[: 4 + place % 4]), " ".join(bad.split()[: 7 - place % 3]))
        for place, (good, bad) in enumerate(zip(lines[:200], lines[200:], strict=True))
    ]
    table = pl.DataFrame(pairs, schema=["suite", "good", "bad"], orient="row")
    study = study_function("bias")(
        table, models=[str(tmp_path / "two.arpa")], out=tmp_path / "out", measures=["lp", "mean_lp"]
    )
    slopes = study["slopes"]
    assert slopes.select("model", "set", "measure").rows() == [
        ("two", "biased", "lp"),
        ("two", "biased", "mean_lp"),
    ]
    assert slopes["slope"][0] < 0
    assert slopes["p"][0] < 0.05
    test = study["slope_tests"].row(0, named=True)
    assert test["difference"] == pytest.approx(slopes["slope"][0] - slopes["slope"][1])
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Yes, for lp" in page
    assert "Slopes compared" in page


def test_the_answer_and_its_findings_go_by_one_test() -> None:
    def cell(split: str, accuracy: float, low: float, high: float) -> dict[str, object]:
        ends = {"accuracy": accuracy, "low": low, "high": high}
        return {"model": "m", "measure": "lp", "split": split, "n": 20} | ends

    judged = pl.DataFrame([cell("A>U", 0.5, 0.3, 0.7), cell("A<U", 0.7, 0.5, 0.9)])
    line = {"model": "m", "set": "biased", "measure": "lp", "slope": -0.8, "low": -1.5, "high": -0.1}
    steep = pl.DataFrame([line | {"p": 0.02, "note": ""}])
    assert _answer(judged, steep, ACCURACY).startswith("Yes, for lp")
    (finding,) = _compare_ends(judged, steep, ACCURACY)
    assert finding.endswith("slope −0.80 [−1.50, −0.10] log-odds per token, p = .020.")
    flat = steep.with_columns(p=pl.lit(0.2))
    assert "No slope" in _answer(judged, flat, ACCURACY)
    assert _compare_ends(judged, flat, ACCURACY)[0].endswith("p = .200, no detectable difference from 0.")
    # Length that separates right from wrong has no slope; then intervals that overlap show nothing.
    apart = steep.with_columns(slope=pl.lit(None, pl.Float64), note=pl.lit("'difference' separates hits"))
    assert _answer(judged, apart, ACCURACY).startswith("No detectable difference")
    assert _compare_ends(judged, apart.clear(), ACCURACY)[0].endswith("no detectable difference.")


def test_what_is_not_pairs_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("item,condition,text\n1,good,a\n1,near,b\n1,far,c\n")
    with pytest.raises(BadInput, match="not pairs of a good and a bad sentence"):
        measure_lengths(read_dataset(str(path)).items, lambda texts: [1] * len(texts))


def test_a_folder_without_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no tokenizer"):
        open_counter(str(tmp_path))
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(BadInput, match="cannot be read"):
        open_counter(str(tmp_path))
