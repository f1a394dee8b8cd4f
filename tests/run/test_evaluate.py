import json
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput, FelicityError, NotPossible, UnknownName
from felicity.core.policy import Policy

PAIRS = "suite,good,bad\ns1,The cats annoy Tim.,The cats annoys Tim.\ns1,He left.,Him left.\n"
PAIRS += "s2,She saw herself.,She saw himself.\ns2,Same here.,Same here.\n"


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    path.write_text(PAIRS)
    return path


def test_a_run_goes_from_pairs_to_estimates(pairs: Path, tiny_model: Path, tmp_path: Path) -> None:
    run = fe.evaluate(str(pairs), fe.model(str(tiny_model)), measures=["lp", "mean_lp"], out=tmp_path / "run")
    assert run["judgements"].height == 4 * 2
    overall = run.accuracy().filter(measure="lp").row(0, named=True)
    passed = run["judgements"].filter(measure="lp")["passed"]
    assert overall["accuracy"] == passed.mean()
    assert (overall["n"], overall["ties"]) == (4, 1)
    files = {path.name for path in (tmp_path / "run").iterdir()}
    names = ("items", "contexts", "requests", "tokens", "scores", "judgements")
    sheets = {"manifest.json", "estimates.csv", "audit.csv", "baselines.csv"}
    assert files == {f"{name}.parquet" for name in names} | sheets


def test_scores_can_be_traced_to_tokens(pairs: Path, tiny_model: Path) -> None:
    run = fe.evaluate(str(pairs), fe.model(str(tiny_model)))
    sums = run["tokens"].select("request", pl.col("logprob").list.sum().cast(pl.Float64).alias("sum"))
    joined = run["scores"].join(sums, on="request")
    # Four pairs, one of two identical sentences; each sentence is a request.
    assert joined.height == run["scores"].height == run["tokens"].height == 8
    assert joined["value"].n_unique() > 4
    assert joined["value"].to_list() == pytest.approx(joined["sum"].to_list(), abs=1e-5)


def test_an_identical_pair_is_an_exact_tie_and_not_stable(pairs: Path, tiny_model: Path) -> None:
    judged = fe.evaluate(str(pairs), fe.model(str(tiny_model)))["judgements"].filter(item="s2/2")
    assert judged.select("passed", "margin", "stable").row(0) == (0.5, 0.0, False)


def test_the_audit_counts_identical_and_unequal_pairs(pairs: Path, tiny_model: Path) -> None:
    run = fe.evaluate(str(pairs), fe.model(str(tiny_model)))
    audit = dict(run["audit"].select("check", "count").iter_rows())
    assert audit["identical pairs"] == 1
    lengths = run["tokens"].join(run["requests"], on="request").with_columns(n=pl.col("tokens").list.len())
    wide = lengths.pivot(on="condition", index="item", values="n")
    assert audit["good longer"] == (wide["good"] > wide["bad"]).sum()
    assert audit["good shorter"] == (wide["good"] < wide["bad"]).sum()
    assert audit["tokens unscored"] == 0


def test_without_begin_token_the_unscored_first_tokens_are_counted(pairs: Path, tiny_model: Path) -> None:
    run = fe.evaluate(str(pairs), fe.model(str(tiny_model), policy=Policy(bos="none")))
    audit = dict(run["audit"].select("check", "count").iter_rows())
    assert audit["tokens unscored"] == 8
    assert run["tokens"]["logprob"].list.first().null_count() == 8


def test_a_second_run_scores_nothing_and_never_loads_the_model(
    pairs: Path, tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fe.evaluate(str(pairs), fe.model(str(tiny_model)), out=tmp_path / "a")

    def load(*_: object, **__: object) -> None:
        raise AssertionError("the weights were loaded")

    monkeypatch.setattr("felicity.engines.causal.engine.load_weights", load)
    second = fe.evaluate(str(pairs), fe.model(str(tiny_model)), out=tmp_path / "b")
    assert second.manifest["scored"]["now"] == 0
    for name in ("tokens", "scores", "judgements", "estimates", "audit"):
        assert second[name].equals(first[name])


def test_more_measures_are_computed_later_in_the_same_folder(
    pairs: Path, tiny_model: Path, tmp_path: Path
) -> None:
    fe.evaluate(str(pairs), fe.model(str(tiny_model)), out=tmp_path / "run")
    again = fe.evaluate(str(pairs), fe.model(str(tiny_model)), measures=["pen_lp"], out=tmp_path / "run")
    assert again["scores"]["measure"].unique(maintain_order=True).to_list() == ["lp", "pen_lp"]
    assert again.manifest["scored"]["now"] == 0


def test_the_manifest_says_all_that_is_needed(pairs: Path, tiny_model: Path, tmp_path: Path) -> None:
    fe.evaluate(str(pairs), fe.model(str(tiny_model)), out=tmp_path / "run", seed=7)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert manifest["model"]["policy"]["bos"] == "<|endoftext|>"  # `auto`, resolved
    assert len(manifest["model"]["weights"]) == 32
    assert manifest["dataset"] | {"digest": ""} == {
        "name": str(pairs),
        "items": 4,
        "stimuli": 8,
        "suites": 2,
        "digest": "",
    }
    assert manifest["options"]["seed"] == 7
    assert {"python", "torch", "transformers", "felicity"} <= set(manifest["versions"])
    assert manifest["finished"]


@pytest.mark.parametrize(("policy", "said"), [(Policy(bos="none"), "with another policy")])
def test_a_folder_of_another_policy_is_refused(
    pairs: Path, tiny_model: Path, tmp_path: Path, policy: Policy, said: str
) -> None:
    fe.evaluate(str(pairs), fe.model(str(tiny_model)), out=tmp_path / "run")
    before = (tmp_path / "run" / "manifest.json").read_bytes()
    with pytest.raises(BadInput, match=said):
        fe.evaluate(str(pairs), fe.model(str(tiny_model), policy=policy), out=tmp_path / "run")
    assert (tmp_path / "run" / "manifest.json").read_bytes() == before


def test_a_folder_of_other_items_is_refused(pairs: Path, tiny_model: Path, tmp_path: Path) -> None:
    fe.evaluate(str(pairs), fe.model(str(tiny_model)), out=tmp_path / "run")
    pairs.write_text(PAIRS.replace("Him left", "Them left"))
    with pytest.raises(BadInput, match="with other items"):
        fe.evaluate(str(pairs), fe.model(str(tiny_model)), out=tmp_path / "run")


def test_slor_with_counts_and_its_refusal_without(pairs: Path, tiny_model: Path, tmp_path: Path) -> None:
    lm = fe.model(str(tiny_model))
    with pytest.raises(NotPossible, match="felicity measures count"):
        fe.evaluate(str(pairs), lm, measures=["slor"])
    (tmp_path / "counts.tsv").write_text("The\t5\nĠcats\t2\n.\t9\n")
    run = fe.evaluate(
        str(pairs), lm, measures=["slor", "norm_lp"], unigram=tmp_path / "counts.tsv", unseen=1.0
    )
    assert run.manifest["unigram_unseen_tokens"] > 0
    assert run["scores"].height == 8 * 2


def test_tables_and_levels_are_asked_for_by_name(pairs: Path, tiny_model: Path) -> None:
    run = fe.evaluate(str(pairs), fe.model(str(tiny_model)))
    with pytest.raises(UnknownName, match="did you mean 'judgements'"):
        run["judgments"]
    with pytest.raises(UnknownName, match="did you mean 'phenomenon'"):
        run.accuracy(by="phenomena")


def test_a_text_longer_than_the_window_stops_the_run_before_it_begins(
    tiny_model: Path, tmp_path: Path
) -> None:
    path = tmp_path / "long.csv"
    path.write_text("good,bad\nHe left.,Him left.\n" + "cat " * 100 + ".,Short.\n")
    with pytest.raises(
        BadInput, match=r"'long/2/good' is \d+ tokens long, but 'tiny-gpt2' reads at most 64; shorten"
    ):
        fe.evaluate(str(path), fe.model(str(tiny_model)), out=tmp_path / "run")
    assert not (tmp_path / "run" / "tokens.parquet").exists()


def test_a_cache_of_ones_own_is_neither_read_nor_written(
    pairs: Path, tiny_model: Path, own_cache: Path
) -> None:
    policy = Policy(join="  ")
    fe.evaluate(str(pairs), fe.model(str(tiny_model), policy=policy, cache=False))
    fresh = fe.evaluate(str(pairs), fe.model(str(tiny_model), policy=policy))
    assert fresh.manifest["scored"]["now"] == 7  # 8 stimuli, one text twice


@pytest.mark.parametrize("texts", [[], [""], ["  "], [None]])
def test_texts_that_are_none_are_refused(tiny_model: Path, texts: list[str]) -> None:
    with pytest.raises(FelicityError):
        fe.model(str(tiny_model)).score(texts)


def test_one_context_for_all_or_one_each(tiny_model: Path) -> None:
    lm = fe.model(str(tiny_model))
    shared = lm.score(["He left.", "She saw."], context="The cat.")
    each = lm.score(["He left.", "She saw."], context=["The cat.", "The cat."])
    assert shared.equals(each)
    with pytest.raises(BadInput, match="2 texts but 1 contexts"):
        lm.score(["He left.", "She saw."], context=["The cat."])
