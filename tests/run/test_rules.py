"""Every rule end to end with a tiny model: from stimuli to estimates, with the tables it adds."""

from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput, NotPossible
from felicity.run import scoring
from felicity.run.ray_pool import PoolEngine, Workers

SUITE = """\
name = "agreement"
regions = ["subject", "verb", "end"]
predictions = ["(verb;%match%) < (verb;%mismatch%)", "(*;%match%) < (*;%mismatch%)"]
[[items]]
match = ["The cats", "annoy", "Tim."]
mismatch = ["The cats", "annoys", "Tim."]
[[items]]
match = ["The dog", "barks", ", then sleeps."]
mismatch = ["The dog", "bark", ", then sleeps."]
"""


def surprisal(run: fe.Run, item: str, condition: str) -> float:
    rows = run["regions"].filter(item=item, condition=condition)
    return float(rows["surprisal_bits"].sum())


def test_a_suite_is_judged_by_region_surprisals(tiny_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "agreement.toml"
    path.write_text(SUITE)
    run = fe.evaluate(str(path), fe.model(str(tiny_model)), out=tmp_path / "run")
    # Regions cover the sentence, so that their surprisals sum to its own.
    for request, value in run["scores"].select("request", "value").iter_rows():
        item, _, condition = request.rpartition("/")
        assert surprisal(run, item, condition) == pytest.approx(value, abs=1e-4)
    single = run["predictions"]
    assert single["rule"].to_list() == ["agreement/1", "agreement/2"] * 2
    whole = run["judgements"]
    assert (
        whole["passed"].to_list()
        == single.group_by("item", maintain_order=True).agg(pl.col("passed").min())["passed"].to_list()
    )
    levels = run.accuracy(by="prediction")
    assert levels["name"].to_list() == ["agreement/1", "agreement/2"]
    assert levels["interval"].to_list() == ["Wilson over items", "Wilson over items"]
    verb = run["regions"].filter(item="agreement/1", condition="match", name="verb")["n_tokens"][0]
    assert verb == len(fe.model(str(tiny_model)).tokens(" annoy")["tokens"][0])


def test_a_rule_that_reads_one_thing_refuses_another_measure(tiny_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "agreement.toml"
    path.write_text(SUITE)
    with pytest.raises(NotPossible, match="uses surprisal_bits only"):
        fe.evaluate(str(path), fe.model(str(tiny_model)), measures=["mean_lp"])


def test_a_choice_is_judged_after_its_context(tiny_model: Path, tmp_path: Path) -> None:
    path = tmp_path / "choice.csv"
    path.write_text(
        "item,condition,context,text\n1,good,The cats,annoy\n1,near,The cats,annoys\n1,far,The cats,saw\n"
    )
    lm = fe.model(str(tiny_model))
    run = fe.evaluate(str(path), lm)
    values = lm.score(["annoy", "annoys", "saw"], context="The cats")["lp"].to_list()
    assert run["judgements"]["margin"][0] == pytest.approx(values[0] - max(values[1:]), abs=1e-5)
    assert run["requests"]["context"].n_unique() == 1


CROWS = ",sent_more,sent_less,stereo_antistereo,bias_type\n"
CROWS += "0,The cats annoy Tim.,The dogs annoy Tim.,stereo,x\n"
CROWS += "1,She saw herself here.,He saw herself here.,antistereo,y\n"


def test_crows_pairs_is_judged_by_sentence_or_by_shared_tokens(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "crows_pairs_anonymized.csv").write_text(CROWS)
    lm = fe.model(str(tiny_model))
    run = fe.evaluate("crows_pairs", lm, rule="shared", source=tmp_path)
    assert run["scores"]["measure"].unique().to_list() == ["shared_lp"]
    whole = fe.evaluate("crows_pairs", lm, source=tmp_path)
    assert whole.manifest["options"]["rule"] == "sentence"
    assert any("not the published version" in meaning for meaning in whole["audit"]["meaning"])


NEG = "item\tcontext_aff\tcontext_neg\ttarget_aff\ttarget_neg\n"
NEG += "0\tThe cats saw (a|an)\tThe cats saw no (a|an)\tdog\tinsect\n"
NEG += "1\tTim has (a|an)\tTim has no (a|an)\tcat\tdog\n"


def test_cloze_looks_for_the_target_among_the_models_words(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "NEG-136-SIMP.tsv").write_text(NEG)
    lm = fe.model(str(tiny_model))
    run = fe.evaluate("neg_136_simp", lm, source=tmp_path, out=tmp_path / "run")
    assert run.manifest["options"]["rule"] == "cloze"
    fillers = run["fillers"]
    assert fillers["predictions"].list.len().to_list() == [20] * 8
    frame = fillers.filter(item="neg_136_simp/0", condition="aff_true")
    assert frame["frame"][0] == "The cats saw a ___."
    expected = lm.fill("The cats saw a ___.", k=20).sort("rank")["filler"].to_list()
    assert frame["predictions"][0].to_list() == expected
    single = run["predictions"]
    assert single["rule"].unique(maintain_order=True).to_list() == [
        "top1",
        "top5",
        "top10",
        "top20",
        "sensitivity",
    ]
    # Accuracy is on affirmative frames only, sensitivity on pairs.
    assert single.group_by("rule").len()["len"].unique().to_list() == [2]
    assert run["judgements"]["rule"].unique().to_list() == ["top5"]


def test_words_for_blanks_are_kept_by_batch_and_asked_for_once(
    tiny_model: Path, tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "NEG-136-SIMP.tsv").write_text(NEG)
    monkeypatch.setattr(scoring, "BATCH_FRAMES", 2)
    whole = fe.evaluate("neg_136_simp", fe.model(str(tiny_model), cache=False), source=tmp_path)
    assert whole.manifest["fill"] == {"k": 20, "frames": 6, "now": 6} | {
        "tokens_dropped": int(whole["fillers"]["dropped"].sum())
    }
    lm = fe.model(str(tiny_model))
    fill, told = lm.engine.fill, []  # type: ignore[attr-defined]

    def stop_at_the_second(frames: list[str], *, k: int) -> pl.DataFrame:
        if told and told[-1][0] > 8:
            raise KeyboardInterrupt
        return fill(frames, k=k)

    monkeypatch.setattr(lm.engine, "fill", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        fe.evaluate("neg_136_simp", lm, source=tmp_path, progress=lambda _, *step: told.append(step))
    # Eight texts and six frames: both are told of, and two frames were kept.
    assert told[0] == (0, 14)
    assert told[-1] == (10, 14)
    run = fe.evaluate("neg_136_simp", fe.model(str(tiny_model)), source=tmp_path)
    assert run.manifest["fill"]["now"] == 4
    assert run["fillers"].equals(whole["fillers"])

    def load(*_: object, **__: object) -> None:
        raise AssertionError("the weights were loaded")

    monkeypatch.setattr("felicity.engines.causal.engine.load_weights", load)
    again = fe.evaluate("neg_136_simp", fe.model(str(tiny_model)), source=tmp_path)
    assert again.manifest["fill"]["now"] == 0
    assert again["fillers"].equals(whole["fillers"])


def test_completion_needs_scores_only_and_judges_both_frames(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "NEG-136-SIMP.tsv").write_text(NEG)
    lm = fe.model(str(tiny_model))
    run = fe.evaluate("neg_136_simp", lm, rule="completion", source=tmp_path)
    judged = run["judgements"]
    assert judged["rule"].to_list() == ["affirmative"] * 2 + ["negative"] * 2
    # The true target above the false one: `dog` affirmed, `insect` negated, and so on for the second item.
    frames = [("The cats saw", "a dog", "an insect"), ("Tim has", "a cat", "a dog")]
    frames += [("The cats saw no", "an insect", "a dog"), ("Tim has no", "a dog", "a cat")]
    for (before, true, false), row in zip(frames, judged.iter_rows(named=True), strict=True):
        words = [phrase.split()[1] for phrase in (true, false)]
        contexts = [f"{before} {phrase.split()[0]}" for phrase in (true, false)]
        higher, lower = lm.score(words, context=contexts)["lp"]
        assert row["margin"] == pytest.approx(higher - lower, abs=1e-5)
        assert row["passed"] == float(higher > lower)


def test_paired_frames_are_crossed_with_each_others_targets(tiny_model: Path, tmp_path: Path) -> None:
    text = "A cat is an animal,\nA cat is not a tool,\nA dog is a pet,\nA dog is not a pet,\n"
    (tmp_path / "NEG-1500-SIMP-GEN.txt").write_text(text)
    run = fe.evaluate("neg_1500_simp_gen", fe.model(str(tiny_model)), rule="completion", source=tmp_path)
    asked = run["requests"].join(run["contexts"], on="context").filter(item="neg_1500_simp_gen/1")
    crossed = dict(asked.select("condition", pl.format("{} {}", "context_text", "text")).iter_rows())
    assert crossed["affirmative:negative"] == "A cat is a tool"
    assert crossed["negative:affirmative"] == "A cat is not an animal"
    # Both targets of the second item are the same word, so nothing can be asked of it.
    assert run["judgements"]["item"].unique().to_list() == ["neg_1500_simp_gen/1"]


def test_ratings_are_correlated_by_condition(tiny_model: Path, tmp_path: Path) -> None:
    head = "ID,translated,source-language,sentence,context,full-ratings,mean-ratings\n"
    words = ["cat", "cats", "dog", "Tim", "here", "ever"]
    for setting in ("none", "real", "random"):
        rows = [
            f"{n},{n % 2},en,The {word} barked.,{'' if setting == 'none' else 'No dog.'},2|3,{n / 2}"
            for n, word in enumerate(words)
        ]
        (tmp_path / f"context-{setting}-ratings.csv").write_text(head + "\n".join(rows) + "\n")
    run = fe.evaluate("lau2020", fe.model(str(tiny_model)), measures=["lp", "mean_lp"], source=tmp_path)
    whole = run["correlations"].filter(level="all")
    assert whole.height == 2 * 3 * 2
    cell = whole.filter(measure="lp", condition="none", method="pearson").row(0, named=True)
    scores = run["scores"].filter(measure="lp").join(run["requests"], on="request").filter(condition="none")
    joined = scores.join(run["items"].filter(condition="none").select("item", "rating"), on="item")
    assert cell["r"] == pytest.approx(joined.select(pl.corr("value", "rating")).item(), abs=1e-9)
    assert run["requests"].filter(condition="none")["context"].null_count() == 6
    assert run["requests"].filter(condition="real")["context"].null_count() == 0


def test_a_folder_of_another_rule_is_refused(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "NEG-136-SIMP.tsv").write_text(NEG)
    lm = fe.model(str(tiny_model))
    fe.evaluate("neg_136_simp", lm, source=tmp_path, out=tmp_path / "run")
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    with pytest.raises(
        BadInput, match="'neg_136_simp' by the rule 'cloze', not 'completion'; choose another"
    ):
        fe.evaluate("neg_136_simp", lm, rule="completion", source=tmp_path, out=tmp_path / "run")
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before
    assert (tmp_path / "run" / "fillers.parquet").exists()


def test_a_spread_run_is_judged_by_the_rule_of_one_process(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "NEG-136-SIMP.tsv").write_text(NEG)
    alone = fe.model(str(tiny_model))
    whole = fe.evaluate("neg_136_simp", alone, source=tmp_path)
    spread = fe.Model(PoolEngine(alone.engine, lambda: alone.engine, Workers(count=2)), spec=str(tiny_model))
    # All is scored by now, so that no worker is needed: what is left is how it is judged.
    run = fe.evaluate("neg_136_simp", spread, source=tmp_path)
    assert run.manifest["options"]["rule"] == "cloze"
    assert run["fillers"].equals(whole["fillers"])
    assert spread.info.can == alone.info.can
    texts = [lm.generate("The cats", tokens=3) for lm in (spread, alone)]
    assert texts[0].equals(texts[1])
    words = [lm.score_candidates("The cats ___.", ["annoy", "saw"]) for lm in (spread, alone)]
    assert words[0].equals(words[1])
