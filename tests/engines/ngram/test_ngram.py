"""n-gram models: counted and smoothed as Chen & Goodman (1998) say, scored as KenLM scores them."""

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.policy import Policy
from felicity.engines.families import open_engine
from felicity.engines.ngram.estimation import count_ngrams, estimate
from felicity.engines.ngram.kenlm_file import read_ngram_counts
from felicity.engines.ngram.model import NgramModel, build_model
from felicity.engines.ngram.training import measure_perplexity, train_ngram
from felicity.engines.tokenizing.vocabulary import read_lines
from felicity.engines.words.corpus import BEGIN_ID, UNKNOWN_ID, encode_corpus, mark_lines, read_corpus
from felicity.run.model import Model, open_model
from tests.conftest import Answer

# A tiny bigram model as KenLM 0.3.0's build_binary packed the ARPA file that the fixture `tiny` writes.
PACKED = Path(__file__).parent / "files" / "tiny.klm"
# Random word sequences have few words here, so that longer n-grams repeat.
WORDS = ["the", "cat", "dog", "saw", "barked", "here", "a", "ran", "no", "ever"]


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Two lines, small enough to be worked out by hand."""
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("a b\na c\n")
    train_ngram(corpus, tmp_path / "tiny.arpa", order=2)
    return tmp_path / "tiny.arpa"


@pytest.fixture(scope="module")
def wikitext(published: Callable[[str], Path]) -> list[str]:
    """The WikiText-103 test set, tokenized, its unknown words as a word like any other."""
    path = published("wikitext103/wiki.test.tokens.gz")
    return [line.replace("<unk>", "UNKW") for line in read_lines(path)]


def make_model(lines: list[str], order: int, *, min_count: int = 1) -> NgramModel:
    corpus = read_corpus(lines, splitting="space", casing="keep", min_count=min_count)
    tables = count_ngrams(corpus, order)
    return build_model(corpus.words, tables, estimate(tables), splitting="space", lower=False)


def random_lines(seed: int, n: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=rng.integers(1, 12))) for _ in range(n)]


def probability(lm: Model, text: str, context: str | None = None) -> list[float]:
    return lm.tokens(text, context=context)["logprob"].list.eval(pl.element().exp()).to_list()[0]


def test_two_lines_come_out_as_worked_by_hand(tiny: Path) -> None:
    # So few n-grams have no discounts of their own: 0.5, 1 and 1.5. Words before a, b, c: 1 each, before
    # </s>: 2; their sum is 5, the discounts take 0.5 of it, handed on in fifths (<unk> </s> a b c):
    # p(b) = .5/5 + .5/5 = .2, p(</s>) = 1/5 + .1 = .3, p(<unk>) = .1.
    # p(a|<s>) = (2-1)/2 + 1/2 * .2 = .6;  p(b|a) = (1-.5)/2 + .5 * .2 = .35;  p(a|a) = .5 * .2 = .1;
    # p(</s>|b) = (1-.5)/1 + .5 * .3 = .65;  p(<unk>|a) = .5 * .1 = .05;  p(a|<unk>) = p(a) = .2.
    lm = open_model(str(tiny), policy=Policy(eos="auto"), cache=False)
    assert probability(lm, "a b") == pytest.approx([0.6, 0.35, 0.65], abs=1e-6)
    assert probability(lm, "a a") == pytest.approx([0.6, 0.1, 0.5 * 0.3], abs=1e-6)
    assert probability(lm, "a zebra a")[:3] == pytest.approx([0.6, 0.05, 0.2], abs=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_probabilities_sum_to_one_after_any_history(seed: int) -> None:
    order = 1 + seed
    model = make_model([*random_lines(seed, 300), "here <unk> ran"], order, min_count=1 + seed % 2)
    rng = np.random.default_rng(seed)
    words = [word for word in range(len(model.words)) if word != BEGIN_ID]
    for _ in range(50):
        length = int(rng.integers(0, order + 2))
        history = rng.integers(0, len(model.words), size=length)
        history[1:][history[1:] == BEGIN_ID] = UNKNOWN_ID
        ids = np.concatenate([[*history, word] for word in words]).astype(np.int64)
        nats = model.score(ids, np.arange(len(words) + 1) * (length + 1))[length :: length + 1]
        assert np.exp(nats).sum() == pytest.approx(1, abs=1e-9)


def test_only_the_last_words_of_a_history_count(tiny: Path) -> None:
    lm = open_model(str(tiny), cache=False)
    assert probability(lm, "b", context="c a") == probability(lm, "b", context="a a a")


@pytest.mark.data
def test_discounts_are_those_of_kenlm(wikitext: list[str]) -> None:
    # lmplz -o 5 of KenLM 0.3.0 on the same 2,400 lines, as it prints them.
    printed = [
        (0.601328, 1.05447, 1.4339),
        (0.787522, 1.21439, 1.54709),
        (0.90233, 1.35552, 1.58282),
        (0.96131, 1.51768, 1.88997),
        (0.966938, 1.63177, 1.60872),
    ]
    corpus = read_corpus(wikitext[:2400], splitting="space", casing="keep")
    tables = count_ngrams(corpus, 5)
    assert [len(table) for table in tables] == [17928, 102505, 168590, 191078, 196150]
    smoothed = estimate(tables)
    assert np.allclose([order.discounts for order in smoothed], printed, atol=0, rtol=1e-5)
    # Base-10 logarithms from the ARPA file that lmplz wrote: <unk>, </s>, and what <s> hands on.
    assert np.log10(smoothed[0].probability[[0, 2]]) == pytest.approx([-5.0287566, -2.9556518], abs=1e-6)
    assert np.log10(smoothed[0].gamma[BEGIN_ID]) == pytest.approx(-0.67411757, abs=1e-6)


@pytest.mark.data
def test_held_out_perplexity_is_below_an_add_one_trigrams(wikitext: list[str]) -> None:
    corpus = read_corpus(wikitext[:2400], splitting="space", casing="keep", min_count=2)
    held = encode_corpus(wikitext[2400:], corpus.words, splitting="space", casing="keep")
    tables = count_ngrams(corpus, 3)
    model = build_model(corpus.words, tables, estimate(tables), splitting="space", lower=False)
    kneser_ney = measure_perplexity(model, held)
    # Laplace: (c(h w) + 1) / (c(h) + V), the counts looked up through the model's own trie.
    stream, bounds = mark_lines(held)
    end = np.repeat(bounds[1:], np.diff(bounds))
    rows = model._walk(stream.astype(np.int64), end)
    starts = np.flatnonzero(np.arange(len(stream)) + 2 < end)
    history, whole = rows[1][starts], rows[2][starts]
    seen = np.where(whole >= 0, tables[2].count[whole], 0) + 1
    total = np.where(history >= 0, np.bincount(tables[2].prefix, tables[2].count)[history], 0)
    add_one = np.exp(-np.mean(np.log(seen / (total + len(corpus.words) - 1))))
    assert kneser_ney < 0.2 * add_one


def test_kenlm_reads_what_is_written_and_scores_alike(tmp_path: Path) -> None:
    kenlm = pytest.importorskip(
        "kenlm", reason="the package kenlm is not here: pip install 'felicity[ngram]'"
    )
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("\n".join([*random_lines(1, 400), "naïve café 中文"]) + "\n")
    train_ngram(corpus, tmp_path / "model.arpa", order=4, min_count=1)
    reader = kenlm.Model(str(tmp_path / "model.arpa"))
    texts = [*random_lines(2, 100), "the naïve zebra saw 中文 ever", "unheard words only"]
    ours = open_model(str(tmp_path / "model.arpa"), policy=Policy(eos="auto"), cache=False).tokens(texts)
    for text, nats in zip(texts, ours["logprob"].to_list(), strict=True):
        theirs = [score * np.log(10) for score, *_ in reader.full_scores(text)]
        # ARPA files hold seven digits, which KenLM keeps as float32.
        assert nats == pytest.approx(theirs, abs=1e-5)


def test_a_kenlm_binary_scores_as_the_arpa_file_it_was_made_from(tiny: Path) -> None:
    pytest.importorskip("kenlm", reason="the package kenlm is not here: pip install 'felicity[ngram]'")
    texts = ["a b", "a zebra a", "b"]
    packed = open_model(str(PACKED), policy=Policy(eos="auto"), cache=False)
    plain = open_model(str(tiny), policy=Policy(eos="auto"), cache=False)
    assert packed.info.family == "ngram"
    assert packed.info.vocabulary == plain.info.vocabulary == 6
    assert packed.tokens(texts).drop("logprob").equals(plain.tokens(texts).drop("logprob"))
    for left, right in zip(packed.tokens(texts)["logprob"], plain.tokens(texts)["logprob"], strict=True):
        assert left.to_list() == pytest.approx(right.to_list(), abs=1e-6)


def test_a_kenlm_binary_without_the_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kenlm", None)
    assert read_ngram_counts(PACKED) == (6, 5)
    with pytest.raises(NotPossible, match=r"felicity\[ngram\]"):
        _ = open_model(str(PACKED), cache=False).info


def test_a_cut_off_kenlm_binary_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.klm").write_bytes(PACKED.read_bytes()[:100])
    with pytest.raises(BadInput, match=r"cut\.klm is truncated"):
        open_model(str(tmp_path / "cut.klm"), cache=False)


def test_unknown_words_are_scored_left_out_or_refused(tiny: Path) -> None:
    text = "a zebra b"
    scored, skipped = (
        open_model(str(tiny), policy=Policy(unknown=choice), cache=False) for choice in ("score", "skip")
    )
    assert scored.tokens(text)["tokens"].to_list() == [["a", "<unk>", "b"]]
    assert skipped.tokens(text)["logprob"].to_list()[0][1] is None
    assert scored.score(text)["lp"][0] < skipped.score(text)["lp"][0]
    assert scored.info.key != skipped.info.key
    with pytest.raises(NotPossible, match="characters 2 to 7 of the text of 'text 1'"):
        open_model(str(tiny), policy=Policy(unknown="refuse"), cache=False).score(text)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        # A device that torch has everywhere and nothing computes on.
        ({"device": "meta"}, "on the processor only; omit --device"),
        ({"device_map": "auto"}, "on one device only; omit --device-map"),
    ],
)
def test_ways_of_computing_that_would_do_nothing_are_refused(
    tiny: Path, given: dict[str, str], said: str
) -> None:
    with pytest.raises(NotPossible, match=f"n-gram models compute {said}"):
        open_model(str(tiny), **given)  # type: ignore[arg-type]
    for device in ("auto", "cpu"):
        assert open_model(str(tiny), device=device).info.family == "ngram"


def test_words_sum_to_their_text_and_ranks_are_not_had(tiny: Path) -> None:
    lm = open_model(str(tiny), cache=False)
    words = lm.words("a b. c")
    assert words["word"].to_list() == ["a", "b.", "c"]
    assert words["lp"].sum() == pytest.approx(lm.score("a b. c")["lp"][0], abs=1e-5)
    with pytest.raises(NotPossible, match="no ranks"):
        lm.tokens("a b", rank=True)


def test_unknown_words_are_counted_for_the_audit(tiny: Path) -> None:
    prompts = pl.DataFrame({"request": ["1"], "context_text": ["c a"], "text": ["b zebra yak"]})
    row = open_engine(str(tiny), policy=Policy()).encode(prompts).row(0, named=True)
    assert (row["n_tokens"], row["n_unknown"], row["n_context"], row["n_unscored"]) == (3, 2, 2, 0)


def test_offsets_and_words_are_those_of_the_text(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("Don't go, Tim.\nGo home.\n")
    train_ngram(corpus, tmp_path / "m.arpa", order=2, casing="lower")
    lm = open_model(str(tmp_path / "m.arpa"), cache=False)
    text = "TIM, don't go."
    tokens = lm.tokens(text).row(0, named=True)
    assert tokens["tokens"] == ["tim", ",", "don't", "go", "."]
    spans = zip(tokens["start"], tokens["end"], strict=True)
    assert [text[start:end] for start, end in spans] == ["TIM", ",", "don't", "go", "."]
    assert lm.info.policy["casing"] == "lower"


def test_what_is_scored_already_is_passed_over(tiny: Path) -> None:
    engine = open_engine(str(tiny), policy=Policy())
    prompts = pl.DataFrame(
        {"request": ["1", "2"], "context_text": [None, None], "text": ["a b", "a c"]},
        schema_overrides={"context_text": pl.String},
    )
    whole = pl.concat(engine.score(prompts))
    assert pl.concat(engine.score(prompts, done={"1"})).equals(whole.filter(request="2"))
    assert not list(engine.score(prompts, done={"1", "2"}))


def test_neither_a_text_nor_a_corpus_can_write_the_marks_that_begin_and_end_it(tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("a </s> b\na <s> b\n")
    train_ngram(tmp_path / "corpus.txt", tmp_path / "m.arpa", order=2, splitting="space")
    lm = open_model(str(tmp_path / "m.arpa"), cache=False)
    assert lm.tokens("a </s> b <s>")["tokens"].to_list() == [["a", "<unk>", "b", "<unk>"]]


@pytest.mark.parametrize(
    ("content", "options", "said"),
    [
        (None, {}, "no such file"),
        (b"", {}, "is empty"),
        (b"fine\n\xff\n", {}, "line 2: not UTF-8"),
        (b"one two\n", {"order": 5}, "no line of 3 words"),
        (b"one two\n", {"min_count": 2}, "no word that occurs 2 times"),
        (b"one two\n", {"order": 0}, "give -n a number"),
    ],
    ids=["missing", "empty", "bad UTF-8", "too short", "too rare", "order 0"],
)
def test_what_cannot_be_trained_on_is_refused(
    tmp_path: Path, content: bytes | None, options: dict[str, int], said: str
) -> None:
    if content is not None:
        (tmp_path / "corpus.txt").write_bytes(content)
    with pytest.raises(FelicityError, match=said):
        train_ngram(tmp_path / "corpus.txt", tmp_path / "out.arpa", **{"order": 2} | options)
    assert not [path for path in tmp_path.iterdir() if "arpa" in path.name]


def test_the_command_trains_counts_and_judges(cli: Callable[..., Answer], tmp_path: Path) -> None:
    (tmp_path / "corpus.txt").write_text("\n".join(random_lines(3, 200)))
    (tmp_path / "held.txt").write_text("\n".join(random_lines(4, 50)))
    model = tmp_path / "model.arpa.gz"
    made = cli(
        "train", "ngram", tmp_path / "corpus.txt", "-n", 3, "-o", model, "--valid", tmp_path / "held.txt"
    )
    assert made.code == 0, made.err
    assert "Held-out perplexity" in made.out
    counted = cli(
        "measures", "count", tmp_path / "held.txt", "-m", model, "-o", tmp_path / "counts.tsv", "-q"
    )
    assert counted.code == 0, counted.err
    assert cli("judge", "the cat ran", "ran cat the zebra", "-m", model, "--json").code == 0
    info = cli("models", "info", model, "--policy", "unknown=skip")
    assert "ngram" in info.out
    assert "'skip'" in info.out


def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    cli: Callable[..., Answer], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "corpus.txt").write_text("a b\n")
    answer = cli("train", "ngram", tmp_path / "corpus.txt", "-o", tmp_path / "file" / "model.arpa")
    assert answer.code == 2
    assert "Cannot write" in answer.err
    assert "name that ends in .arpa" in cli("train", "ngram", tmp_path / "corpus.txt", "-o", "model.txt").err
