"""word_pmi in runs: by hand, against a slow implementation, for every family, resumed, and its error."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from felicity.core.contrasts import PAIR as CONTRAST
from felicity.core.errors import BadInput, FelicityError, NotPossible
from felicity.core.schemas import SCORES
from felicity.data import take_frame
from felicity.engines.served import Serving
from felicity.engines.trained.settings import TrainingSettings
from felicity.engines.trained.training import train
from felicity.engines.trained.training_data import prepare
from felicity.judge.contrasts import add_sampling_error, judge_contrasts
from felicity.run import (
    MeasureSettings,
    Model,
    Run,
    RunFolder,
    carry_out,
    evaluate,
    open_model,
    plan_run,
    read_run,
)
from felicity.run.store import ScoreStore
from tests.conftest import Answer, make_tiny_model
from tests.engines.corpora import agreeing_lines
from tests.engines.served.served_server import NAME, Served
from tests.engines.shapes import make_masked

# A bigram model without back-off to bigrams: p(word | previous) is written out where it matters. Logs to
# base 10, as ARPA files have them: 0.5, 0.2, 0.1 and 0.05.
ARPA = """\\data\\
ngram 1=8
ngram 2=6

\\1-grams:
-1.0 <unk> 0
-99 <s> 0
-1.0 </s> 0
-0.69897 the 0
-1.0 cat 0
-1.0 cats 0
-1.30103 sleeps 0
-1.30103 sleep 0

\\2-grams:
-0.30103 cat sleeps
-0.69897 cats sleep
-0.30103 the cat
-0.69897 the cats
-0.30103 <s> the
-0.69897 old cat

\\end\\
"""
PAIR = pl.DataFrame({"good": ["the cat sleeps"], "bad": ["the cat sleep"], "suite": ["s"]})


@pytest.fixture
def contexts(tmp_path: Path) -> Path:
    """Two neutral sentences of short words, for models with small windows."""
    path = tmp_path / "neutral.txt"
    path.write_text("A dog saw the cat here. No dog barked here then.\n")
    return path


def run_pairs(
    lm: Model,
    pairs: pl.DataFrame,
    contexts: Path,
    *,
    measures: list[str] | None = None,
    power: float = 2.0,
    **given: Any,
) -> Run:
    settings = MeasureSettings(prior_contexts=2, prior_texts=contexts, prior_power=power)
    return evaluate(pairs, lm, measures=measures or ["lp", "word_pmi"], settings=settings, **given)


def margins(run: Run) -> dict[str, list[float]]:
    return {
        str(name): part["margin"].to_list()
        for (name,), part in run["judgements"].group_by("measure", maintain_order=True)
    }


# Contexts 'the cat' and 'the cats': sleeps .5 and .05, sleep .05 and .2. Arithmetic means .275 and .125; the
# quadratic ones are the roots of (.25 + .0025) / 2 and (.0025 + .04) / 2.
@pytest.mark.parametrize(
    ("power", "sleeps", "sleep"), [(1.0, 0.275, 0.125), (2.0, math.sqrt(0.12625), math.sqrt(0.02125))]
)
def test_a_pair_comes_out_as_worked_by_hand(
    tmp_path: Path, power: float, sleeps: float, sleep: float
) -> None:
    arpa, text = tmp_path / "tiny.arpa", tmp_path / "neutral.txt"
    arpa.write_text(ARPA.replace("ngram 2=6", "ngram 2=5").replace("-0.69897 old cat\n", ""))
    # Cut after two words, since a full stop follows the fourth: the last word is 'cat' or 'cats'.
    text.write_text("The cat sleeps now. The cats sleep now.\n")
    run = run_pairs(open_model(str(arpa), cache=False), PAIR, text, power=power)
    # LP: p(sleeps | cat) = .5; 'cat sleep' backs off to p(sleep) = .05, the back-off weight being 1.
    assert margins(run)["lp"] == pytest.approx([math.log(0.5 / 0.05)], abs=1e-5)
    assert {one.split()[-1] for one in run.manifest["priors"]["beginnings"]} == {"cat", "cats"}
    expected = math.log(0.5 / sleeps) - math.log(0.05 / sleep)
    assert run.manifest["priors"]["power"] == power
    assert margins(run)["word_pmi"] == pytest.approx([expected], abs=1e-5)
    # The jackknife of two contexts: half the difference of what is left when either is left out.
    one, other = math.log(0.5 / 0.05), math.log(0.05 / 0.2)
    error = run["judgements"].filter(measure="word_pmi")["sampling_error"].item()
    assert error == pytest.approx(abs(one - other) / 2, abs=1e-5)


def slow_word_pmi(lm: Model, text: str, words: list[tuple[str, str, bool]], run: Run) -> float:
    """By the definition, one word and one context at a time, from the public functions of a model.

    words: form, position and whether a space follows, of the words that the pair does not share.
    """
    facts = run.manifest["priors"]
    total = lm.score(text)["lp"].item()
    for form, start, closed in words:
        probabilities = []
        for beginning, sentence in zip(facts["beginnings"], facts["sentences"], strict=True):
            context = sentence if start == "opening" else beginning
            lead = "\n" if start == "opening" and facts["opening"] == "new line" else ""
            corrected = facts["boundary"] == "corrected"
            tail = (" and" if corrected and closed else "") if lm.info.kind == "left-to-right" else "."
            whole = f"{lead}{form}{tail}"
            reader = lm.bounded if corrected else lm
            row = reader._kept_tokens(
                pl.DataFrame({"request": ["r"], "context_text": [context], "text": [whole]})
            ).row(0, named=True)
            inside = [
                place
                for place, end in enumerate(row["end"])
                if end > len(lead) and row["start"][place] < len(lead) + len(form)
            ]
            log = math.fsum(row["logprob"][place] for place in inside)
            if corrected:
                log -= 0.0 if lead else row["boundary"][inside[0]]
                log += row["boundary"][inside[-1] + 1] if closed else 0.0
            probabilities.append(math.exp(log))
        # The quadratic mean.
        total -= math.log(math.fsum(one**2 for one in probabilities) / len(probabilities)) / 2
    return total


PAIRS = pl.DataFrame(
    {
        "good": ["The cats annoy Tim.", "No dog barked ever here."],
        "bad": ["The cat annoys Tim.", "She dog barked ever herself."],
        "suite": ["s", "s"],
    }
)
DIFFERING = {
    "The cats annoy Tim.": [("cats", "inside", True), ("annoy", "inside", True)],
    "The cat annoys Tim.": [("cat", "inside", True), ("annoys", "inside", True)],
    "No dog barked ever here.": [("No", "opening", True), ("here", "inside", False)],
    "She dog barked ever herself.": [("She", "opening", True), ("herself", "inside", False)],
}


def make_arpa(folder: Path) -> Path:
    from felicity.engines.ngram.training import train_ngram

    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(agreeing_lines(1, 60)))
    train_ngram(corpus, folder / "model.arpa", order=2)
    return folder / "model.arpa"


def make_lstm(folder: Path) -> Path:
    (folder / "corpus.txt").write_text("\n".join(agreeing_lines(1, 60)))
    small = TrainingSettings(embedding=8, hidden=8, batch=8, steps=8, epochs=1, min_count=1)
    train(prepare(folder / "corpus.txt", small, valid=folder / "corpus.txt"), folder / "lstm", small)
    return folder / "lstm"


FAMILIES: dict[str, Callable[[Path], Path]] = {
    "causal": lambda folder: make_tiny_model(folder / "gpt2", seed=1),
    "masked": lambda folder: make_masked("bert", folder / "bert"),
    "roberta": lambda folder: make_masked("roberta", folder / "roberta"),
    "ngram": make_arpa,
    "lstm": make_lstm,
}


@pytest.mark.parametrize("family", FAMILIES)
def test_runs_agree_with_a_slow_implementation(family: str, tmp_path: Path, contexts: Path) -> None:
    lm = open_model(str(FAMILIES[family](tmp_path)), cache=False)
    run = run_pairs(lm, PAIRS, contexts)
    texts = dict(run["requests"].select("request", "text").iter_rows())
    found = dict(run["scores"].filter(measure="word_pmi").select("request", "value").iter_rows())
    expected = [slow_word_pmi(lm, texts[name], DIFFERING[texts[name]], run) for name in found]
    # Scores are stored in float32, of the same tokens in both.
    assert list(found.values()) == pytest.approx(expected, abs=1e-6)
    assert run.manifest["priors"]["words"] == len(run["priors"]) == 8


def test_a_served_model_gives_what_the_local_one_gives(
    tiny_model: Path, contexts: Path, empty_cache: Path
) -> None:
    with Served(tiny_model, style="echo") as served:
        serving = Serving(url=served.url, backoff=0.02, patience=20.0, tokenizer=str(tiny_model))
        far = run_pairs(open_model(f"openai:{NAME}", serving=serving, cache=False), PAIRS, contexts)
    assert far.manifest["priors"]["boundary"] == "plain"
    near = run_pairs(open_model(str(tiny_model), cache=False), PAIRS, contexts)
    # Without word boundaries the priors differ a little, the sentences do not.
    assert margins(far)["lp"] == pytest.approx(margins(near)["lp"], abs=1e-3)
    assert margins(far)["word_pmi"] == pytest.approx(margins(near)["word_pmi"], abs=1.0)


def test_the_same_words_in_another_order_have_the_margin_of_lp(tiny_model: Path, contexts: Path) -> None:
    pairs = pl.DataFrame(
        {"good": ["The cat saw no dog here."], "bad": ["The dog here saw cat no."], "suite": ["s"]}
    )
    run = run_pairs(open_model(str(tiny_model), cache=False), pairs, contexts)
    found = margins(run)
    assert found["word_pmi"] == found["lp"]
    assert run["priors"].is_empty()
    assert run["judgements"].filter(measure="word_pmi")["sampling_error"].to_list() == [0.0]


def test_shared_words_do_not_change_a_margin_and_are_not_scored(tiny_model: Path, contexts: Path) -> None:
    run = run_pairs(open_model(str(tiny_model), cache=False), PAIRS[:1], contexts)
    assert set(run["priors"]["form"]) == {"cats", "cat", "annoy", "annoys"}
    prior = dict(run["priors"].select("form", "prior").iter_rows())
    shift = prior["cats"] + prior["annoy"] - prior["cat"] - prior["annoys"]
    found = margins(run)
    assert found["word_pmi"][0] == pytest.approx(found["lp"][0] - shift, abs=1e-9)


def test_a_weight_takes_part_of_the_priors_out(tiny_model: Path, contexts: Path) -> None:
    lm = open_model(str(tiny_model), cache=False)
    whole = run_pairs(lm, PAIRS[:1], contexts)
    settings = MeasureSettings(prior_contexts=2, prior_texts=contexts, prior_weight=0.25)
    part = evaluate(PAIRS[:1], lm, measures=["lp", "word_pmi"], settings=settings)
    shift = margins(whole)["lp"][0] - margins(whole)["word_pmi"][0]
    assert margins(part)["word_pmi"][0] == pytest.approx(margins(part)["lp"][0] - shift / 4, abs=1e-9)
    errors = [run["judgements"].filter(measure="word_pmi")["sampling_error"].item() for run in (whole, part)]
    assert errors[1] == pytest.approx(errors[0] / 4)
    assert part.manifest["priors"]["weight"] == 0.25


def test_a_power_or_weight_outside_its_range_is_refused() -> None:
    with pytest.raises(BadInput, match="must be above 0"):
        MeasureSettings(prior_power=0.0)
    with pytest.raises(BadInput, match="at most 1"):
        MeasureSettings(prior_weight=1.5)


def test_rated_sentences_are_compared_word_by_word(tiny_model: Path, contexts: Path) -> None:
    rated = pl.DataFrame({"text": ["The cats annoy Tim.", "The cat annoys Tim."], "rating": [4.0, 1.0]})
    run = run_pairs(open_model(str(tiny_model), cache=False), rated, contexts)
    assert set(run["priors"]["form"]) == {"The", "cats", "cat", "annoy", "annoys", "Tim", "."}


def test_a_word_is_scored_once_per_model(tiny_model: Path, contexts: Path, empty_cache: Path) -> None:
    first = run_pairs(open_model(str(tiny_model)), PAIRS[:1], contexts)
    assert first.manifest["priors"]["now"] == first.manifest["priors"]["prompts"] == 8
    again = PAIRS[:1].with_columns(good=pl.lit("The cats annoy herself."))
    second = run_pairs(open_model(str(tiny_model)), again, contexts)
    # 'herself' and 'Tim' before a full stop are new; 'cats', 'cat', 'annoy' and 'annoys' are not.
    assert (second.manifest["priors"]["words"], second.manifest["priors"]["now"]) == (6, 4)


def test_a_run_that_stops_among_the_priors_goes_on_with_the_same_numbers(
    tiny_model: Path, contexts: Path, tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run_pairs(open_model(str(tiny_model), cache=False), PAIRS, contexts)
    add, calls = ScoreStore.add, []

    def stop_after_the_sentences(store: ScoreStore, *given: Any) -> None:
        calls.append(1)
        if len(calls) > 1:
            raise FelicityError("stopped")
        add(store, *given)

    monkeypatch.setattr(ScoreStore, "add", stop_after_the_sentences)
    with pytest.raises(FelicityError, match="stopped"):
        run_pairs(open_model(str(tiny_model)), PAIRS, contexts, out=tmp_path / "run")
    monkeypatch.setattr(ScoreStore, "add", add)
    resumed = run_pairs(open_model(str(tiny_model)), PAIRS, contexts, out=tmp_path / "run")
    assert margins(resumed) == margins(whole)
    assert (resumed.manifest["scored"]["now"], resumed.manifest["priors"]["now"]) == (0, 16)
    assert read_run(tmp_path / "run")["priors"].height == 8
    assert not list((tmp_path / "run").glob("pending*"))


def test_the_sampling_error_is_the_jackknife_of_a_margin() -> None:
    rng = np.random.default_rng(1)
    drawn = rng.normal(size=(2, 9))
    requests = pl.DataFrame(
        {"request": ["g", "b"], "item": ["1", "1"], "condition": ["good", "bad"], "text": ["a", "b"]}
    )
    items = requests.select("item", "condition").with_columns(suite=pl.lit("s"), phenomenon=pl.lit("p"))
    scores = pl.DataFrame(
        {
            "request": ["g", "b"] * 2,
            "measure": ["word_pmi"] * 2 + ["lp"] * 2,
            "value": [0.4, 0.0] * 2,
            "error": 0.0,
        },
        schema=SCORES,
    )
    judged = add_sampling_error(
        judge_contrasts(items, requests, scores),
        requests,
        [CONTRAST],
        left_out=drawn,
        measures=["word_pmi"],
    )
    shifts = drawn[1] - drawn[0]
    expected = math.sqrt(8 / 9 * ((shifts - shifts.mean()) ** 2).sum())
    assert judged.filter(measure="word_pmi")["sampling_error"].item() == pytest.approx(expected)
    assert judged.filter(measure="word_pmi")["stable"].item() is (1.96 * expected < 0.4)
    assert judged.filter(measure="lp").select("sampling_error", "stable").row(0) == (None, True)


def test_contexts_and_seed_are_recorded(tiny_model: Path, contexts: Path) -> None:
    facts = run_pairs(open_model(str(tiny_model), cache=False), PAIRS[:1], contexts).manifest["priors"]
    assert (facts["contexts"], facts["seed"], facts["texts"]) == (2, 0, str(contexts))
    assert sorted(facts["sentences"]) == ["A dog saw the cat here.", "No dog barked here then."]


def test_a_topic_model_and_a_script_without_spaces_are_refused(tiny_model: Path, contexts: Path) -> None:
    chinese = pl.DataFrame({"good": ["猫在院子里叫。"], "bad": ["猫在叫院子里。"], "suite": ["s"]})
    lm = open_model(str(tiny_model), cache=False)
    with pytest.raises(BadInput, match="written without spaces"):
        run_pairs(lm, chinese, contexts)
    with pytest.raises(NotPossible, match="needs unigram counts"):
        run_pairs(lm, PAIRS, contexts, measures=["morcela"])


def test_a_context_that_does_not_fit_the_window_is_named(tmp_path: Path) -> None:
    lm = open_model(str(make_tiny_model(tmp_path / "small", seed=1, window=24)), cache=False)
    with pytest.raises(BadInput, match="neutral context"):
        evaluate(PAIRS, lm, measures=["word_pmi"])


def test_the_command_takes_contexts_of_ones_own(
    cli: Callable[..., Answer], tiny_model: Path, contexts: Path, tmp_path: Path
) -> None:
    PAIRS.write_csv(tmp_path / "pairs.csv")
    answer = cli(
        *("run", tmp_path / "pairs.csv", "-m", tiny_model, "--measure", "word_pmi", "-o", tmp_path / "run"),
        *("--prior-texts", contexts, "--prior-contexts", "2", "--no-report"),
    )
    assert answer.code == 0, answer.err
    assert read_run(tmp_path / "run").manifest["priors"]["contexts"] == 2


def test_lp_stands_beside_it_and_the_main_measure_stays_the_first(tiny_model: Path, contexts: Path) -> None:
    run = run_pairs(open_model(str(tiny_model), cache=False), PAIRS, contexts, measures=["word_pmi"])
    assert run.manifest["measures"] == ["word_pmi", "lp"]


@pytest.mark.parametrize(("unequal", "advised"), [(1, True), (0, False)])
def test_the_audit_points_to_it_where_many_pairs_are_unequal(
    tiny_model: Path, unequal: int, advised: bool
) -> None:
    pairs = pl.DataFrame(
        {
            "good": ["The cats annoy Tim."] * 10 + ["The cat saw Tim here."] * unequal,
            "bad": ["The cats annoy Tim."] * 10 + ["The cat saw Tim."] * unequal,
            "suite": ["s"] * (10 + unequal),
        }
    )
    audit = evaluate(pairs, open_model(str(tiny_model), cache=False))["audit"]
    assert audit["meaning"].str.contains("--measure word_pmi").any() is advised


def test_english_contexts_are_refused_for_another_language(tiny_model: Path, tmp_path: Path) -> None:
    lm = open_model(str(tiny_model), cache=False)
    plan = plan_run(take_frame(PAIRS), take_frame(PAIRS).items, lm, measures=["word_pmi"])
    turkish = replace(plan, options=plan.options | {"languages": ["tr"]})
    with pytest.raises(NotPossible, match="are English, but these sentences are in 'tr'"):
        carry_out(lm, turkish, RunFolder(tmp_path / "run"))
