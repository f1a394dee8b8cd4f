"""The study from ratings to report, on tiny models and made-up ratings, and on SmolLM2 with the published
ones."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

from felicity.core.errors import BadInput, NotPossible
from felicity.core.ids import hash_file
from felicity.core.policy import Policy
from felicity.engines.ngram import train_ngram
from felicity.engines.trained import TopicSettings, TrainingSettings, prepare, train
from felicity.run import Model, open_model
from felicity.stats import compare_correlations
from felicity.studies.acceptability import (
    AcceptabilityStudy,
    describe_findings,
    read_ratings,
    study_acceptability,
    write_acceptability_report,
)
from felicity.studies.acceptability.correlations import Cell, lay_out, measure_effects, pick_disagreements
from felicity.studies.acceptability.findings import name_measure
from felicity.studies.acceptability.scoring import CountSource, build_stimuli, open_readings
from tests.conftest import Answer, make_tiny_model
from tests.engines.corpora import topical_documents, write_documents
from tests.engines.served.served_server import NAME, Served
from tests.engines.shapes import make_masked, make_seq2seq, make_xlnet, save_random

Finished = tuple[AcceptabilityStudy, Path]
WORDS = ["the cats annoy tim", "she saw herself", "no dog has ever barked here", "the cat annoys tim"]
SETTINGS = {"none": None, "real": "the cats saw tim.", "random": "no dog barked."}


def write_table(path: Path, *, n: int = 12) -> Path:
    rng = np.random.default_rng(1)
    rows = []
    for k in range(n):
        text = " ".join(rng.permutation(WORDS[k % 4].split())[: 3 + k % 3]) + "."
        for setting, context in SETTINGS.items():
            single = rng.integers(1, 5, size=5) + (k % 3 == 0)
            rows.append(
                {
                    "item": f"s{k}",
                    "condition": setting,
                    "text": f"{text} {k}",
                    "context": context,
                    "rating": float(single.mean()),
                    "ratings": ",".join(map(str, single)),
                }
            )
    pl.DataFrame(rows).write_csv(path)
    return path


def open_plain(spec: str, policy: Policy) -> Model:
    return open_model(spec, policy=policy, cache=False)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join([*WORDS, "herself 0 1 2 3 4 5 6 7 8 9 10 11 . cats barked"] * 20) + "\n")
    return path


@pytest.fixture(scope="module")
def finished(
    tiny_model: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[AcceptabilityStudy, Path]:
    folder = tmp_path_factory.mktemp("study")
    table = write_table(folder / "rated.csv")
    other = make_tiny_model(folder / "tiny-other", seed=2)
    study = study_acceptability(
        str(table),
        [str(tiny_model), str(other)],
        folder / "out",
        open_one=open_plain,
        corpus=corpus,
        unseen=0.9,
    )
    write_acceptability_report(study, folder / "out")
    return study, folder / "out"


def test_every_model_measure_and_context_meets_every_setting(
    finished: Finished,
) -> None:
    study, _ = finished
    assert study.correlations.height == 2 * 3 * 5 * 3
    assert set(study.correlations["measure"]) == {"lp", "mean_lp", "pen_lp", "norm_lp", "slor"}
    assert study.correlations.group_by("setting", "model", "context").agg(pl.col("best_measure").sum())[
        "best_measure"
    ].unique().to_list() == [1]


def test_exported_tables_give_the_reports_correlations(finished: Finished) -> None:
    """An independent few lines: join two CSV files, correlate."""
    study, folder = finished
    scores, ratings = pl.read_csv(folder / "scores.csv"), pl.read_csv(folder / "ratings.csv")
    told = pl.read_csv(folder / "correlations.csv")
    assert told.height == study.correlations.height
    for row in told.iter_rows(named=True):
        own = scores.filter(model=row["model"], context=row["context"], measure=row["measure"])
        joined = own.join(ratings.filter(setting=row["setting"]), on="item")
        pairs = joined["value"].to_numpy(), joined["rating"].to_numpy()
        assert stats.pearsonr(*pairs)[0] == pytest.approx(row["r"], abs=1e-12)
        assert stats.spearmanr(*pairs)[0] == pytest.approx(row["spearman"], abs=1e-12)
        assert stats.kendalltau(*pairs)[0] == pytest.approx(row["kendall"], abs=1e-12)
    page = (folder / "report.html").read_text(encoding="utf-8")
    best = told.sort("r", descending=True).row(0, named=True)
    assert f"{best['r']:.3f}*†" in page.replace("−", "-")


def test_scores_are_those_of_the_model_in_each_context(finished: Finished, tiny_model: Path) -> None:
    study, _ = finished
    lm = open_plain(str(tiny_model), Policy())
    texts = study.ratings.sentences["text"].to_list()
    for context, text in SETTINGS.items():
        alone = lm.score(texts, context=text)
        assert study.vectors[Cell("tiny-gpt2", context, "lp")].tolist() == pytest.approx(
            alone["lp"].to_list(), abs=1e-4
        )
        mean = (alone["lp"] / alone["n_tokens"]).to_list()
        assert study.vectors[Cell("tiny-gpt2", context, "mean_lp")].tolist() == pytest.approx(mean, abs=1e-5)


def test_comparisons_are_adjusted_over_their_kind(finished: Finished) -> None:
    study, _ = finished
    kinds = dict(study.tests.group_by("compares").len().iter_rows())
    # Pairs of 5 measures in 6 cells, of 2 models in 15, of 3 contexts in 10, for 3 settings.
    assert kinds == {"measure": 10 * 6 * 3, "model": 15 * 3, "context": 3 * 10 * 3}
    known = study.tests.filter(pl.col("p").is_not_null())
    assert (known["p_holm"] >= known["p_bh"]).all()
    assert (known["p_holm"] >= known["p_holm_within"]).all()
    for kind in kinds:
        own = known.filter(compares=kind)
        # Holm (1979) by hand: the k-th smallest p times how many are left, never falling, at most 1.
        p = np.sort(own["p"].to_numpy())
        by_hand = np.minimum(np.maximum.accumulate(p * np.arange(len(p), 0, -1)), 1)
        assert own["p_holm"].sort().to_numpy() == pytest.approx(by_hand, rel=1e-12)
        within = own.group_by("setting", "model").agg(
            (pl.col("p").min() * pl.len()).clip(upper_bound=1).alias("first"),
            pl.col("p_holm_within").min().alias("told"),
        )
        assert within["told"].to_list() == pytest.approx(within["first"].to_list(), rel=1e-12)


def test_comparisons_are_those_of_the_pairwise_test(finished: Finished) -> None:
    study, _ = finished
    for row in study.tests.filter(compares="measure").head(20).iter_rows(named=True):
        cells = [Cell(row["model"], row["context"], row[side]) for side in ("first", "second")]
        pair = compare_correlations(
            study.ratings.mean(row["setting"]), *(study.vectors[cell] for cell in cells)
        )
        williams, steiger = pair.row(0, named=True), pair.row(1, named=True)
        assert (row["t"], row["p"]) == pytest.approx((williams["statistic"], williams["p"]), rel=1e-9)
        assert (row["z"], row["p_steiger"]) == pytest.approx((steiger["statistic"], steiger["p"]), rel=1e-9)


def test_what_holds_within_one_model_only_is_said_to_do_so(finished: Finished) -> None:
    study, _ = finished
    chosen = {"compares": "measure", "context": "none", "setting": study.ratings.settings[0]}
    model = study.models["model"][0]
    best = study.best(study.ratings.settings[0], model=model, context="none").measure
    own = pl.all_horizontal(pl.col(name) == value for name, value in chosen.items()) & (
        pl.col("model") == model
    )
    tests = study.tests.with_columns(
        pl.when(own).then(0.001).otherwise("p").alias("p"),
        pl.when(own).then(0.2).otherwise("p_holm").alias("p_holm"),
        pl.when(own).then(0.01).otherwise("p_holm_within").alias("p_holm_within"),
    )
    told = next(
        text for text in describe_findings(replace(study, tests=tests)) if f"measures of {model}" in text
    )
    assert "detectably above" not in told
    assert "only if p is adjusted over the comparisons of this model and these ratings alone" in told
    assert name_measure(best) in told


def test_the_report_has_every_section_and_names_sentences_on_hover(
    finished: Finished,
) -> None:
    study, folder = finished
    page = (folder / "report.html").read_text(encoding="utf-8")
    for section in ("findings", "table", "ceilings", "tests", "people", "distribution", "effects", "scatter"):
        assert f'id="{section}"' in page
    assert f": {study.ratings.sentences['text'][0]}</title>" in page
    assert (folder / "figures" / "correlations.svg").exists()
    assert describe_findings(study)[0] in unescape(page)


def test_a_finished_study_is_taken_up_without_scoring(
    finished: Finished, tiny_model: Path, corpus: Path
) -> None:
    study, folder = finished
    again = study_acceptability(
        str(folder.parent / "rated.csv"),
        [str(tiny_model)],
        folder,
        open_one=lambda spec, policy: open_model(spec, policy=policy),
        corpus=corpus,
        unseen=0.9,
    )
    known = study.correlations.filter(model="tiny-gpt2")["r"].to_list()
    assert again.correlations["r"].to_list() == pytest.approx(known)


def test_a_folder_with_other_ratings_is_refused(finished: Finished, tiny_model: Path, tmp_path: Path) -> None:
    _, folder = finished
    other = write_table(tmp_path / "rated.csv", n=8)
    with pytest.raises(BadInput, match="contains a study of other ratings"):
        study_acceptability(str(other), [str(tiny_model)], folder, open_one=open_plain)


def test_two_models_of_one_name_are_refused(tiny_model: Path) -> None:
    with pytest.raises(BadInput, match="Two models are called 'tiny-gpt2'"):
        list(open_readings([str(tiny_model), str(tiny_model)], Policy(), open_plain))


def test_a_masked_model_is_read_in_both_ways_unless_one_is_asked_for(tmp_path: Path) -> None:
    from transformers import BertConfig, BertTokenizerFast

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat"]
    tokenizer = BertTokenizerFast(vocab={word: place for place, word in enumerate(words)})
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
    )
    folder = save_random(config, "AutoModelForMaskedLM", tokenizer, tmp_path / "bert")
    both = [reading.name for reading in open_readings([str(folder)], Policy(), open_plain)]
    assert both == ["bert original", "bert word_l2r"]
    one = [reading.name for reading in open_readings([str(folder)], Policy(pll="original"), open_plain)]
    assert one == ["bert"]


def make_families(folder: Path) -> dict[str, Path]:
    """A tiny model of every family that lives in a file or folder."""
    documents = write_documents(folder / "documents.txt", topical_documents(1, 12))
    found = {
        "bert": make_masked("bert", folder / "bert"),
        "xlnet": make_xlnet(folder / "xlnet"),
        "t5": make_seq2seq("t5", folder / "t5"),
        "ngram": folder / "ngram.arpa",
    }
    train_ngram(documents, found["ngram"], order=2)
    for name, topic in (("lstm", None), ("tdlm", TopicSettings(topics=3, size=4, filters=4, frequent=0.0))):
        settings = TrainingSettings(embedding=8, hidden=8, batch=8, epochs=1, min_count=1, topic=topic)
        train(prepare(documents, settings), folder / name, settings)
        found[name] = folder / name
    return found


def write_topical_ratings(path: Path) -> Path:
    """Sentences of the trained models' words, so that a document means something to a TDLM."""
    rng = np.random.default_rng(3)
    documents = topical_documents(2, 5)
    rows = []
    for k, (_, sentences) in enumerate(documents):
        # Short, for the served model reads 63 tokens.
        own, other = (" ".join(text.split()[:4]) for text in (sentences[1], documents[-1 - k][1][1]))
        for setting, context in (("none", None), ("real", own), ("random", other)):
            rows.append((f"s{k}", setting, sentences[0], context, float(rng.uniform(1, 4))))
    pl.DataFrame(rows, schema=["item", "condition", "text", "context", "rating"], orient="row").write_csv(
        path
    )
    return path


@pytest.mark.slow
def test_every_family_of_models_is_in_one_table(cli: Callable[..., Answer], tmp_path: Path) -> None:
    pytest.importorskip("httpx", reason="served models need httpx: pip install 'felicity[api]'")
    families = make_families(tmp_path)
    table = write_topical_ratings(tmp_path / "rated.csv")
    models = [part for path in families.values() for part in ("-m", path)]
    with Served(make_tiny_model(tmp_path / "tiny", seed=1)) as served:
        said = cli(
            *("acceptability", table, *models, "-m", f"openai:{NAME}", "--url", served.url),
            # The text that XLNet reads before everything else takes most of the time.
            *("--policy", "lead=none", "-o", tmp_path / "out", "--json"),
        )
    assert said.code == 0, said.err
    told = json.loads(said.out)
    rows = {row["model"]: row["family"] for row in told["models"]}
    assert rows == {
        "bert original": "masked",
        "bert word_l2r": "masked",
        "xlnet left": "xlnet",
        "xlnet both": "xlnet",
        "t5": "seq2seq",
        "ngram": "ngram",
        "lstm": "lstm",
        "tdlm": "tdlm",
        NAME: "served",
    }
    scores = pl.read_csv(tmp_path / "out" / "scores.csv").filter(measure="lp")
    assert scores.height == len(rows) * 3 * 5
    cells = scores.pivot(on="context", index=["model", "item"], values="value")
    changed = cells.filter(pl.col("none") != pl.col("real"))["model"].unique().to_list()
    assert sorted(changed) == sorted(rows), "a context changes what every model says"
    left, both = (cells.filter(model=f"xlnet {order}")["none"].to_numpy() for order in ("left", "both"))
    assert not np.allclose(left, both)


def test_without_counts_the_measures_that_need_them_are_left_out(tiny_model: Path, tmp_path: Path) -> None:
    table = write_table(tmp_path / "rated.csv")
    study = study_acceptability(str(table), [str(tiny_model)], tmp_path / "out", open_one=open_plain)
    assert set(study.correlations["measure"]) == {"lp", "mean_lp", "pen_lp"}
    assert any("no unigram counts for tiny-gpt2" in note for note in study.notes)
    with pytest.raises(NotPossible, match="'slor' needs unigram counts"):
        study_acceptability(
            str(table), [str(tiny_model)], tmp_path / "slor", open_one=open_plain, measures=["slor"]
        )


def test_counts_of_another_tokenizer_are_left_out_and_said(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "counts.tsv").write_text("▁strange\t5\n▁words\t3\n", encoding="utf-8")
    table = write_table(tmp_path / "rated.csv")
    study = study_acceptability(
        str(table),
        [str(tiny_model)],
        tmp_path / "out",
        open_one=open_plain,
        unigram=[str(tmp_path / "counts.tsv")],
    )
    assert any("counted with another tokenizer" in note for note in study.notes)
    assert "slor" not in study.correlations["measure"]


def test_counts_are_named_by_model_or_for_all(tmp_path: Path) -> None:
    found = CountSource.parse(["a.tsv", "gpt2=b.tsv"], corpus=None, folder=tmp_path, unseen=0.05)
    assert found.tables == {"": Path("a.tsv"), "gpt2": Path("b.tsv")}
    with pytest.raises(BadInput, match="without a model"):
        CountSource.parse(["a.tsv", "b.tsv"], corpus=None, folder=tmp_path, unseen=0.05)


def test_the_manifest_says_where_counts_are_from(finished: Finished, corpus: Path) -> None:
    _, folder = finished
    manifest = json.loads((folder / "models" / "tiny-gpt2" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["options"]["unigram"] == str(corpus)
    assert manifest["options"]["unigram_digest"]
    # Both models have the same tokenizer, so there is one table.
    assert len(list((folder / "counts").glob("*.tsv"))) == 1


def test_ratings_in_context_alone_still_ask_models_without(tmp_path: Path) -> None:
    table = write_table(tmp_path / "rated.csv")
    pl.read_csv(table).filter(pl.col("condition") == "real").write_csv(table)
    stimuli = build_stimuli(read_ratings(str(table)))
    assert stimuli["condition"].unique(maintain_order=True).to_list() == ["none", "real"]
    assert stimuli.filter(condition="none")["context_text"].null_count() == 12


def test_a_model_that_halves_its_scores_in_context_is_compressed(tmp_path: Path) -> None:
    ratings = read_ratings(str(write_table(tmp_path / "rated.csv")))
    base = np.linspace(-9.0, -1.0, 12)
    rows = [
        {"model": "m", "context": context, "measure": "lp", "item": item, "value": value}
        for context, values in (("none", base), ("real", base / 2 + 1))
        for item, value in zip(ratings.sentences["item"], values, strict=True)
    ]
    vectors, notes = lay_out(pl.DataFrame(rows), ratings)
    assert not notes
    found = measure_effects(vectors, ratings).filter(who="m").row(0, named=True)
    assert found["slope"] == pytest.approx(0.5)
    assert found["sd_ratio"] == pytest.approx(0.5)
    # The mean of base is -5 and becomes -1.5.
    assert found["raised"] == pytest.approx(3.5 / base.std())


def test_values_that_are_no_numbers_are_left_out_and_said(tmp_path: Path) -> None:
    ratings = read_ratings(str(write_table(tmp_path / "rated.csv")))
    rows = [
        {"model": "m", "context": "none", "measure": measure, "item": item, "value": value}
        for measure, values in (("lp", [-np.inf, *range(11)]), ("mean_lp", range(12)), ("pen_lp", [1.0] * 12))
        for item, value in zip(ratings.sentences["item"], map(float, values), strict=True)
    ]
    vectors, notes = lay_out(pl.DataFrame(rows), ratings)
    assert list(vectors) == [Cell("m", "none", "mean_lp")]
    assert "lp of m with context 'none' is not a number for 1 sentences" in notes[0]
    assert "the same for all sentences" in notes[1]


def test_disagreements_come_from_both_ends(tmp_path: Path) -> None:
    ratings = read_ratings(str(write_table(tmp_path / "rated.csv")))
    cell = Cell("m", "none", "lp")
    picked = pick_disagreements({cell: -ratings.mean("none")}, ratings, cell, "none", k=2)
    assert (picked["difference"][:2] > 0).all()
    assert (picked["difference"][2:] < 0).all()


def test_the_command_prints_the_table_and_its_findings(
    cli: Callable[..., Any], tiny_model: Path, tmp_path: Path
) -> None:
    table = write_table(tmp_path / "rated.csv")
    command = ("acceptability", table, "-m", tiny_model, "-o", tmp_path / "out", "--compat", "lau2020")
    said = cli(*command)
    assert said.code == 0, said.err
    assert "UB1" in said.out
    assert "correlations with the ratings without a context (H0)" in said.out
    assert "makes no detectable difference to the correlation" in said.out
    assert not re.search(r"H0 is|predicted best|most strongly|helps|harms", said.out)
    told = json.loads(cli(*command, "--json").out)
    assert len(told["correlations"]) == 3 * 3 * 3
    assert told["report"].endswith("report.html")
    refused = cli("acceptability", tmp_path / "none.csv", "-m", tiny_model)
    assert refused.code == 2
    assert "There is no file" in refused.err


@pytest.mark.data
@pytest.mark.slow
def test_correlations_of_smollm2_equal_plain_forward_passes(
    published: Callable[[str], Path], default_weights: Any, tmp_path: Path
) -> None:
    """LP, MeanLP and PenLP with H0, without and with the real contexts, to three digits.

    The other program: transformers, one sentence per forward pass, written from the definitions alone. A
    sample, since every sentence with its context is a pass of its own.
    """
    import torch
    from transformers import AutoTokenizer

    folder = published("lau2020/human-ratings")
    study = study_acceptability("lau2020", ["smollm2"], tmp_path / "out", open_one=open_plain, sample=5)
    tokenizer = AutoTokenizer.from_pretrained(default_weights.config._name_or_path)
    begin_id = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    source = pl.concat(
        pl.read_csv(folder / f"context-{name}-ratings.csv", infer_schema=False).with_columns(
            pl.lit(name).alias("setting")
        )
        for name in ("none", "real")
    )
    wanted = {item.rpartition("/")[2] for item in study.ratings.sentences["item"]}
    means = pl.col("mean-ratings").cast(pl.Float64)
    rating = dict(source.filter(setting="none").select("ID", means).iter_rows())
    for setting in ("none", "real"):
        values: dict[str, list[float]] = {"lp": [], "mean_lp": [], "pen_lp": []}
        target = []
        for row in source.filter(pl.col("ID").is_in(list(wanted)), setting=setting).iter_rows(named=True):
            context = (row["context"] or "").replace("\t", " ")
            whole = f"{context} {row['sentence']}" if context else row["sentence"]
            begin = len(whole) - len(row["sentence"])
            encoded = tokenizer(whole, return_offsets_mapping=True)
            ids = [begin_id, *encoded["input_ids"]]
            own = [1 + place for place, (_, end) in enumerate(encoded["offset_mapping"]) if end > begin]
            with torch.inference_mode():
                chances = default_weights(torch.tensor([ids])).logits[0].double().log_softmax(-1)
            lp = sum(float(chances[place - 1, ids[place]]) for place in own)
            values["lp"].append(lp)
            values["mean_lp"].append(lp / len(own))
            values["pen_lp"].append(lp / ((5 + len(own)) / 6) ** 0.8)
            target.append(rating[row["ID"]])
        for measure, own_values in values.items():
            ours = study.correlations.filter(setting="none", context=setting, measure=measure)["r"].item()
            assert ours == pytest.approx(np.corrcoef(own_values, target)[0, 1], abs=5e-4)


def test_counts_are_those_of_the_corpus_that_is_given_and_a_damaged_table_is_counted_again(
    tiny_model: Path, tmp_path: Path
) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("the cats annoy tim\n")
    two.write_text("no dog has ever barked here\n" * 3)
    (reading,) = open_readings([str(tiny_model)], Policy(), open_plain)

    def count(corpus: Path) -> dict[str, int]:
        source = CountSource(folder=tmp_path / "counts", tables={}, corpus=corpus)
        counts, origin, _ = source.find(reading, [])
        assert counts is not None
        assert origin == str(corpus)
        return counts.counts

    first, second = count(one), count(two)
    assert first != second
    assert count(one) == first
    for path in (tmp_path / "counts").glob("*.tsv"):
        path.write_text(path.read_text(encoding="utf-8").replace("\t1\n", "\t3\n"), encoding="utf-8")
    assert (count(one), count(two)) == (first, second)


def test_the_corpus_is_hashed_once_for_all_models(
    tiny_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the cats annoy tim\n")
    other = make_tiny_model(tmp_path / "tiny-other", seed=2)
    source = CountSource(folder=tmp_path / "counts", tables={}, corpus=corpus)
    hashed: list[Path] = []

    def hash_and_note(path: Path) -> str:
        hashed.append(path)
        return hash_file(path)

    monkeypatch.setattr("felicity.studies.acceptability.scoring.hash_file", hash_and_note)
    monkeypatch.setattr("felicity.core.watched.RESOLUTION_SECONDS", -1.0)  # as if it had been there for long
    for reading in open_readings([str(tiny_model), str(other)], Policy(), open_plain):
        source.find(reading, [])
    assert hashed.count(corpus) == 1


def test_a_bound_that_no_trial_has_is_left_out_and_said(tiny_model: Path, tmp_path: Path) -> None:
    table = tmp_path / "rated.csv"
    rows = [f's{k},The cat {k}.,{k},"2,2"' for k in range(6)]
    table.write_text("item,text,rating,ratings\n" + "\n".join(rows) + "\n")
    study = study_acceptability(str(table), [str(tiny_model)], tmp_path / "out", open_one=open_plain)
    assert any("UB1" in note and "rated alike" in note for note in study.notes)
    assert not study.ceilings["r"].is_nan().any()


def test_an_exported_design_of_items_and_conditions_is_correlated_by_stimulus(
    cli: Callable[..., Answer], tiny_model: Path, tmp_path: Path
) -> None:
    table = tmp_path / "design.csv"
    texts = {"good": "The {} sleep.", "bad": "The {} sleeps."}
    rows = [
        {"item": f"i{k}", "condition": condition, "text": text.format(noun)}
        for k, noun in enumerate(("cats", "dogs", "birds", "boys"))
        for condition, text in texts.items()
    ]
    pl.DataFrame(rows).write_csv(table)
    assert cli("rate", "new", tmp_path / "study", "--from", table).code == 0
    assert cli("rate", "simulate", tmp_path / "study", "-o", tmp_path / "export").code == 0
    said = cli("acceptability", tmp_path / "export", "-m", tiny_model, "-o", tmp_path / "out", "--json")
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert {row["n"] for row in found["correlations"]} == {8}
    assert all("(1 | item) + (1 | stimulus)" in row["formula"] for row in found["ordinal"])
    names = ["stimulus", "item", "condition"]
    for name in ("sentences", "ratings", "scores"):
        kept = pl.read_csv(tmp_path / "out" / f"{name}.csv")
        assert kept.columns[:3] == names
        assert set(kept.select(names).rows()) == {
            (f"{row['item']}/{row['condition']}", row["item"], row["condition"]) for row in rows
        }
