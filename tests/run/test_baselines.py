"""What word frequency, length and a 5-gram alone would score, in a table and in the audit."""

import sys
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.core.contrasts import PAIR
from felicity.data import find_frequency
from felicity.design import build_requests
from felicity.engines.ngram import score_by_ngram, train_ngram
from felicity.run import Baselines, measure_baselines

CORPUS = [
    "The cat sleeps.",
    "A cat sleeps here.",
    "The dog sleeps.",
    "The cats sleep.",
    "The old cat sleeps.",
]
needs_frequencies = pytest.mark.skipif(find_frequency() is None, reason="wordfreq is not installed")


def measure(
    good: list[str], bad: list[str], *, corpus: Path | None = None, language: str | None = "en"
) -> Baselines:
    rows = [
        {"item": str(n), "suite": "s", "phenomenon": "p", "condition": condition, "text": text}
        for n, texts in enumerate(zip(good, bad, strict=True))
        for condition, text in zip(("good", "bad"), texts, strict=True)
    ]
    items = pl.DataFrame(rows)
    return measure_baselines(items, build_requests(items)[0], [PAIR], language=language, corpus=corpus)


def share(found: Baselines, name: str) -> float:
    return float(found.table.filter(baseline=name, level="overall")["accuracy"].item())


def test_length_prefers_the_shorter_sentence_and_a_tie_counts_half() -> None:
    found = measure(["She ran.", "He sat up.", "We ate."], ["She runned.", "He sat.", "We atE."])
    assert share(found, "length") == pytest.approx((1 + 0 + 0.5) / 3)


@needs_frequencies
def test_frequency_is_the_mean_of_the_words() -> None:
    found = measure(["The house is big.", "An aardvark ran."], ["The abode is big.", "A dog ran."])
    assert share(found, "word frequency") == 0.5


def test_suites_that_are_decided_are_named_in_the_audit() -> None:
    found = measure(["She ran.", "We ate."] * 5, ["She runned.", "We eated."] * 5)
    rows = {row["check"]: row for row in found.audit().to_dicts()}
    row = rows["suites decided by length"]
    assert (row["count"], row["of"], row["examples"]) == (1, 1, "s")
    assert "of all 10 pairs it judges 100.0% right" in row["meaning"]
    # Of fewer pairs, chance alone decides many.
    few = measure(["She ran."] * 9, ["She runned."] * 9)
    assert few.audit().filter(check="suites decided by length").row(0, named=True)["of"] == 0
    assert "words of felicity's own prose" in rows["suites decided by 5-gram"]["meaning"]


def test_the_5_gram_of_a_text_scores_as_the_model_that_is_trained_on_it(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("".join(f"{line}\n" for line in CORPUS), encoding="utf-8")
    train_ngram(corpus, tmp_path / "five.arpa", order=5, casing="lower")
    texts = ["The dog sleeps.", "The cats sleeps.", "The zebra sleeps."]
    lm = fe.model(str(tmp_path / "five.arpa"), policy=fe.Policy(casing="lower", eos="auto"), cache=False)
    scores = score_by_ngram(CORPUS, texts, order=5)
    assert scores.lp[:2].tolist() == pytest.approx(lm.score(texts)["lp"][:2].to_list(), abs=1e-4)
    assert scores.unknown == pytest.approx(1 / 12)
    found = measure(["The dog sleeps."], ["The dog sleep."], corpus=corpus)
    assert share(found, "5-gram") == 1.0
    assert found.margins["0"] > 0
    assert found.notes[0].startswith("The 5-gram was trained on 22 words of corpus.txt; ")


def test_what_cannot_be_computed_is_said() -> None:
    found = measure(["Die Katze sieht."], ["Die Katze sehen."], language=None)
    assert found.table["baseline"].unique().to_list() == ["length"]
    said = found.audit().filter(check="not checked")["meaning"].to_list()
    assert said[0] == "word frequency, because the sentences are not in one known language"
    assert said[1].startswith("5-gram, because felicity's own prose is English")


def test_without_wordfreq_a_run_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wordfreq", None)
    found = measure(["She ran."], ["She runned."])
    assert "wordfreq is not installed; run `pip install 'felicity[stimuli]'`" in found.missing[0]


def test_a_run_keeps_baselines_beside_its_estimates_and_shows_them(tiny_model: Path, tmp_path: Path) -> None:
    pairs = pl.DataFrame(
        {
            "suite": ["a"] * 2,
            "good": ["The cats sleep.", "He is at home."],
            "bad": ["The cats sleeps.", "He at is home."],
        }
    )
    (run,) = fe.run(pairs, str(tiny_model), out=tmp_path / "run")
    table = pl.read_csv(tmp_path / "run" / "baselines.csv")
    assert run["baselines"].equals(table)
    assert table.filter(baseline="length", level="suite")["accuracy"].to_list() == [0.75]
    assert "suites decided by length" in run["audit"]["check"].to_list()
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Without a model" in page
