"""Measures with parameters in runs: lengths in characters, SLLN-LP's exponent, MORCELA's ratings."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput, NotPossible
from felicity.engines import open_tokenizer
from felicity.engines.tokenizing import count_pieces
from felicity.measures import write_unigram
from felicity.run import MeasureSettings, evaluate, open_model

WORDS = ["cats", "dogs", "Tim", "mice", "owls"]
PAIRS = pl.DataFrame({"good": ["The cats annoy Tïm."], "bad": ["The cat annoys Tïm."], "suite": ["s"]})


@pytest.fixture
def rated(tmp_path: Path) -> Path:
    """Thirty rated sentences of different lengths."""
    texts = [f"The {first}{' saw' * n} the {second}." for n in (1, 2) for first in WORDS for second in WORDS]
    path = tmp_path / "rated.csv"
    pl.DataFrame({"text": texts[:30], "rating": np.linspace(1, 4, 30)}).write_csv(path)
    return path


@pytest.fixture
def counts(tiny_model: Path, tmp_path: Path) -> Path:
    """Unigram counts of the tiny model's tokens in its own sentences."""
    path = tmp_path / "counts.tsv"
    lines = iter(["The cats annoy Tim.", "The dogs saw the mice.", "Owls saw Tïm.", "The cat annoys Tim."])
    write_unigram(count_pieces(open_tokenizer(str(tiny_model)), lines), path)
    return path


def test_lengths_in_characters_and_bytes_and_the_exponent_are_used(tiny_model: Path) -> None:
    measures = ["lp", "char_lp", "byte_lp", "slln_lp"]
    lm = open_model(str(tiny_model), cache=False)
    run = evaluate(PAIRS, lm, measures=measures, settings=MeasureSettings(slln_exponent=0.3))
    good = run["requests"].filter(condition="good")["request"].item()
    value = dict(run["scores"].filter(request=good).select("measure", "value").iter_rows())
    n = len(run["tokens"].filter(request=good)["tokens"].item())
    # 19 characters, of which one takes two bytes.
    assert value["char_lp"] == pytest.approx(value["lp"] / 19)
    assert value["byte_lp"] == pytest.approx(value["lp"] / 20)
    assert value["slln_lp"] == pytest.approx(value["lp"] / n**0.3)
    assert run.manifest["slln_lp"] == {"exponent": 0.3}


def test_an_exponent_outside_its_range_is_refused() -> None:
    with pytest.raises(BadInput, match="between 0 and 1"):
        MeasureSettings(slln_exponent=1.0)


def test_morcela_is_fitted_to_other_sentences_and_recorded(
    tiny_model: Path, rated: Path, counts: Path
) -> None:
    lm = open_model(str(tiny_model), cache=False)
    settings = MeasureSettings(ratings=str(rated))
    given = {"measures": ["lp", "morcela"], "unigram": counts, "unseen": 1.0, "settings": settings}
    # Ratings that rise with the model's own log-probability per token can be fitted.
    table = pl.read_csv(rated)
    scores = lm.score(table["text"].to_list())
    table = table.with_columns(rating=scores["lp"] / scores["n_tokens"])
    table.write_csv(rated)
    run = evaluate(PAIRS, lm, **given)
    told = run.manifest["morcela"]
    assert (told["ratings"], told["n"]) == (str(rated), 30)
    # These ratings are MeanLP itself: neither frequency nor length has a weight.
    assert (told["beta"], told["gamma"]) == (pytest.approx(0.0, abs=1e-4), pytest.approx(0.0, abs=1e-3))
    found = {measure: values["value"].to_numpy() for (measure,), values in run["scores"].group_by("measure")}
    lengths = run["tokens"]["tokens"].list.len().to_numpy()
    assert found["morcela"] == pytest.approx(found["lp"] / lengths, abs=1e-3)


def test_morcela_refuses_its_test_items_and_what_has_no_ratings(
    tiny_model: Path, rated: Path, counts: Path, tmp_path: Path
) -> None:
    lm = open_model(str(tiny_model), cache=False)
    given = {"measures": ["morcela"], "unigram": counts, "unseen": 1.0}
    with pytest.raises(NotPossible, match="needs rated sentences"):
        evaluate(PAIRS, lm, **given)
    judged = PAIRS.with_columns(good=pl.lit("The cats saw the dogs."))
    with pytest.raises(BadInput, match="1 of the rated sentences .* are judged in this run"):
        evaluate(judged, lm, settings=MeasureSettings(ratings=str(rated)), **given)
    PAIRS.write_csv(tmp_path / "pairs.csv")
    with pytest.raises(BadInput, match="has no ratings"):
        evaluate(PAIRS, lm, settings=MeasureSettings(ratings=str(tmp_path / "pairs.csv")), **given)
