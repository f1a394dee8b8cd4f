"""The study from ratings to report, on tiny models and made-up ratings, and on SmolLM2 with the published
ones."""

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy import stats

import felicity as fe
from felicity.core.errors import BadInput, NotPossible
from felicity.core.ids import hash_file
from felicity.core.policy import Policy
from felicity.engines.ngram import train_ngram
from felicity.engines.trained import TopicSettings, TrainingSettings, prepare, train
from felicity.run import Model, open_model
from felicity.stats import compare_correlations
from felicity.studies import Study, read_study, report_study
from felicity.studies.acceptability import Results, describe_findings, read_ratings
from felicity.studies.acceptability.correlations import Cell, lay_out, measure_effects, pick_disagreements
from felicity.studies.acceptability.findings import name_measure
from felicity.studies.acceptability.scoring import build_stimuli, list_readings
from felicity.studies.acceptability.unigram_counts import CountSource
from felicity.studies.driver import carry_out_study, name_models
from tests.conftest import Answer, make_tiny_model
from tests.engines.corpora import topical_documents, write_documents
from tests.engines.served.served_server import NAME, Served
from tests.engines.shapes import make_masked, make_seq2seq, make_xlnet

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


def open_plain(spec: str, policy: Policy | None) -> Model:
    return open_model(spec, policy=policy or Policy(), cache=False)


def carry_out(table: Path | str, folder: Path, *models: Path | str, **settings: Any) -> Study:
    given = {"ratings": table} | settings
    return carry_out_study("acceptability", given, list(map(str, models)), out=folder, open_one=open_plain)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join([*WORDS, "herself 0 1 2 3 4 5 6 7 8 9 10 11 . cats barked"] * 20) + "\n")
    return path


@pytest.fixture(scope="module")
def finished(tiny_model: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("study")
    table = write_table(folder / "rated.csv")
    other = make_tiny_model(folder / "tiny-other", seed=2)
    return carry_out(table, folder / "out", tiny_model, other, corpus=corpus, unseen=0.9)


def test_every_model_measure_and_context_meets_every_setting(
    finished: Study,
) -> None:
    correlations = finished["correlations"]
    assert correlations.height == 2 * 3 * 5 * 3
    assert set(correlations["measure"]) == {"lp", "mean_lp", "pen_lp", "norm_lp", "slor"}
    assert correlations.group_by("setting", "model", "context").agg(pl.col("best_measure").sum())[
        "best_measure"
    ].unique().to_list() == [1]


def test_exported_tables_give_the_reports_correlations(finished: Study) -> None:
    """An independent few lines: join two CSV files, correlate."""
    folder = finished.folder
    scores, ratings = pl.read_csv(folder / "scores.csv"), pl.read_csv(folder / "ratings.csv")
    correlations = pl.read_csv(folder / "correlations.csv")
    assert correlations.height == 2 * 3 * 5 * 3
    for row in correlations.iter_rows(named=True):
        cell = scores.filter(model=row["model"], context=row["context"], measure=row["measure"])
        joined = cell.join(ratings.filter(setting=row["setting"]), on="item")
        pairs = joined["value"].to_numpy(), joined["rating"].to_numpy()
        assert stats.pearsonr(*pairs)[0] == pytest.approx(row["r"], abs=1e-12)
        assert stats.spearmanr(*pairs)[0] == pytest.approx(row["spearman"], abs=1e-12)
        assert stats.kendalltau(*pairs)[0] == pytest.approx(row["kendall"], abs=1e-12)
    page = (folder / "report.html").read_text(encoding="utf-8")
    best = correlations.sort("r", descending=True).row(0, named=True)
    assert f"{best['r']:.3f}*†" in page.replace("−", "-")


def test_scores_are_those_of_the_model_in_each_context(finished: Study, tiny_model: Path) -> None:
    results = Results.of(finished)
    lm = open_plain(str(tiny_model), Policy())
    texts = results.ratings.sentences["text"].to_list()
    for context, text in SETTINGS.items():
        alone = lm.score(texts, context=text)
        assert results.vectors[Cell("tiny-gpt2", context, "lp")].tolist() == pytest.approx(
            alone["lp"].to_list(), abs=1e-4
        )
        mean = (alone["lp"] / alone["n_tokens"]).to_list()
        assert results.vectors[Cell("tiny-gpt2", context, "mean_lp")].tolist() == pytest.approx(
            mean, abs=1e-5
        )


def test_comparisons_are_adjusted_over_their_kind(finished: Study) -> None:
    tests = finished["tests"]
    kinds = dict(tests.group_by("compares").len().iter_rows())
    # Pairs of 5 measures in 6 cells, of 2 models in 15, of 3 contexts in 10, for 3 settings.
    assert kinds == {"measure": 10 * 6 * 3, "model": 15 * 3, "context": 3 * 10 * 3}
    tested = tests.filter(pl.col("p").is_not_null())
    assert (tested["p_holm"] >= tested["p_bh"]).all()
    assert (tested["p_holm"] >= tested["p_holm_within"]).all()
    for kind in kinds:
        own = tested.filter(compares=kind)
        # Holm (1979) by hand: the k-th smallest p times how many are left, never falling, at most 1.
        p = np.sort(own["p"].to_numpy())
        by_hand = np.minimum(np.maximum.accumulate(p * np.arange(len(p), 0, -1)), 1)
        assert own["p_holm"].sort().to_numpy() == pytest.approx(by_hand, rel=1e-12)
        within = own.group_by("setting", "model").agg(
            (pl.col("p").min() * pl.len()).clip(upper_bound=1).alias("first"),
            pl.col("p_holm_within").min().alias("told"),
        )
        assert within["told"].to_list() == pytest.approx(within["first"].to_list(), rel=1e-12)


def test_comparisons_are_those_of_the_pairwise_test(finished: Study) -> None:
    results = Results.of(finished)
    for row in results["tests"].filter(compares="measure").head(20).iter_rows(named=True):
        cells = [Cell(row["model"], row["context"], row[side]) for side in ("first", "second")]
        pair = compare_correlations(
            results.ratings.mean(row["setting"]), *(results.vectors[cell] for cell in cells)
        )
        williams, steiger = pair.row(0, named=True), pair.row(1, named=True)
        assert (row["t"], row["p"]) == pytest.approx((williams["statistic"], williams["p"]), rel=1e-9)
        assert (row["z"], row["p_steiger"]) == pytest.approx((steiger["statistic"], steiger["p"]), rel=1e-9)


def test_what_holds_within_one_model_only_is_said_to_do_so(finished: Study) -> None:
    results = Results.of(finished)
    chosen = {"compares": "measure", "context": "none", "setting": results.ratings.settings[0]}
    model = results.models[0]
    best = results.best(results.ratings.settings[0], model)
    assert best is not None
    own = pl.all_horizontal(pl.col(name) == value for name, value in chosen.items()) & (
        pl.col("model") == model
    )
    tests = results["tests"].with_columns(
        pl.when(own).then(0.001).otherwise("p").alias("p"),
        pl.when(own).then(0.2).otherwise("p_holm").alias("p_holm"),
        pl.when(own).then(0.01).otherwise("p_holm_within").alias("p_holm_within"),
    )
    changed = Results(results.ratings, results.tables | {"tests": tests})
    told = next(text for text in describe_findings(changed) if f"measures of {model}" in text)
    assert "detectably above" not in told
    assert "only if p is adjusted over the comparisons of this model and these ratings alone" in told
    assert name_measure(best.measure) in told


def test_the_report_answers_first_and_names_sentences_on_hover(finished: Study) -> None:
    page = (finished.folder / "report.html").read_text(encoding="utf-8")
    for section in ("answer", "table", "ceilings", "tests", "people", "distribution", "effects", "scatter"):
        assert f'id="{section}"' in page
    text = Results.of(finished).ratings.sentences["text"][0]
    assert f": {text}</title>" in page
    assert (finished.folder / "figures" / "correlations.svg").exists()
    shown = unescape(page)
    hero = shown.index("Highest correlation of every model with H0")
    assert shown.index(finished.page.question) < shown.index(finished.page.answer) < hero
    sure = shown.index("How sure is this?")
    assert hero < sure
    assert all(shown.index(text) > sure for text in finished.page.findings)
    ceilings = finished["ceilings"].filter(setting="none")
    assert ceilings["bound"].to_list() == ["UB1", "UB2"]
    assert "UB1: one person" in shown[hero - 20_000 : hero]


def test_the_report_is_written_again_from_the_folder(finished: Study) -> None:
    page = finished.folder / "report.html"
    before = page.read_bytes()
    page.unlink()
    assert report_study(finished.folder).read_bytes() == before


def test_a_finished_study_is_taken_up_without_scoring(tiny_model: Path, tmp_path: Path) -> None:
    table = write_table(tmp_path / "rated.csv", n=5)
    given = {"models": str(tiny_model), "measures": "lp", "out": tmp_path / "out", "report": False}
    first, again = (fe.acceptability(table, **given) for _ in range(2))
    assert again["correlations"].equals(first["correlations"])
    assert again.run("tiny-gpt2").manifest["scored"]["now"] == 0


def test_a_folder_with_other_ratings_is_refused(finished: Study, tiny_model: Path, tmp_path: Path) -> None:
    table = tmp_path / "rated.csv"
    with pytest.raises(BadInput, match="contains a study with another ratings"):
        carry_out(write_table(table, n=8), finished.folder, tiny_model)
    table = finished.folder.parent / "rated.csv"
    written = table.read_bytes()
    write_table(table, n=8)
    settings = {"corpus": finished.settings.corpus, "unseen": 0.9}
    with pytest.raises(BadInput, match="The data of the study in .* has changed"):
        carry_out(table, finished.folder, tiny_model, **settings)
    table.write_bytes(written)


def test_a_masked_model_is_read_in_both_ways_unless_one_is_asked_for(tmp_path: Path) -> None:
    folder = str(make_masked("bert", tmp_path / "bert"))

    def read(policy: Policy) -> list[str]:
        (model,) = name_models([folder], lambda spec, other: open_plain(spec, other or policy), policy)
        return [reading.name for reading in list_readings(model)]

    assert read(Policy()) == ["bert original", "bert word_l2r"]
    assert read(Policy(pll="original")) == ["bert"]
    (opened,) = name_models([open_plain(folder, None)], open_plain, Policy())
    assert [reading.name for reading in list_readings(opened)] == ["bert"]


def test_a_policy_that_no_model_uses_is_refused(
    cli: Callable[..., Answer], tiny_model: Path, tmp_path: Path
) -> None:
    masked = make_masked("bert", tmp_path / "bert")
    table = write_table(tmp_path / "rated.csv", n=4)
    command = (
        "acceptability",
        table,
        "-o",
        tmp_path / "out",
        "--policy",
        "pll=original",
        "--no-report",
        "-q",
    )
    said = cli(*command, "-m", tiny_model)
    assert said.code == 2
    assert said.err == "'tiny-gpt2' is of the family causal, which does not use --policy pll; omit it.\n"
    other = make_tiny_model(tmp_path / "tiny-other", seed=2)
    said = cli(*command, "-m", tiny_model, "-m", other)
    assert said.err == "None of the models uses --policy pll; omit it.\n"
    said = cli(*command, "-m", tiny_model, "-m", masked)
    assert said.code == 0, said.err
    assert read_study(tmp_path / "out").facts["readings"] == ["tiny-gpt2", "bert"]


@pytest.mark.parametrize("library", ["polars", "pandas"])
def test_a_frame_is_rated_as_its_file_is(library: str, finished: Study, tiny_model: Path) -> None:
    frame = pl.read_csv(finished.folder.parent / "rated.csv")
    given = frame if library == "polars" else frame.to_pandas()
    study = fe.acceptability(given, models=str(tiny_model), measures=["lp"], scale=(1, 5))
    for name in ("ceilings", "settings", "ratings"):
        assert study[name].equals(finished[name]), name
    lp = finished["scores"].filter(model="tiny-gpt2", measure="lp")["value"]
    assert study["scores"]["value"].to_list() == pytest.approx(lp.to_list(), abs=1e-4)


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
    rows = {row["model"]: row["family"] for row in told["tables"]["models"]}
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
    study = carry_out(table, tmp_path / "out", tiny_model)
    assert set(study["correlations"]["measure"]) == {"lp", "mean_lp", "pen_lp"}
    assert any("no unigram counts for tiny-gpt2" in note for note in study.notes)
    with pytest.raises(NotPossible, match="'slor' needs unigram counts"):
        carry_out(table, tmp_path / "slor", tiny_model, measures=["slor"])


def test_counts_of_another_tokenizer_are_left_out_and_said(tiny_model: Path, tmp_path: Path) -> None:
    (tmp_path / "counts.tsv").write_text("▁strange\t5\n▁words\t3\n", encoding="utf-8")
    table = write_table(tmp_path / "rated.csv")
    study = carry_out(table, tmp_path / "out", tiny_model, unigram=[str(tmp_path / "counts.tsv")])
    assert any("counted with another tokenizer" in note for note in study.notes)
    assert "slor" not in study["correlations"]["measure"]


def test_counts_are_named_by_model_or_for_all(tmp_path: Path) -> None:
    found = CountSource.parse(["a.tsv", "gpt2=b.tsv"], corpus=None, folder=tmp_path, unseen=0.05)
    assert found.tables == {"": Path("a.tsv"), "gpt2": Path("b.tsv")}
    with pytest.raises(BadInput, match="without a model"):
        CountSource.parse(["a.tsv", "b.tsv"], corpus=None, folder=tmp_path, unseen=0.05)


def test_the_manifest_says_where_counts_are_from(finished: Study, corpus: Path) -> None:
    folder = finished.folder
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
    assert "has the highest correlation with the ratings without a context (H0)" in said.out
    assert "makes no detectable difference to the correlation" in said.out
    assert not re.search(r"H0 is|predicted best|most strongly|helps|harms", said.out)
    told = json.loads(cli(*command, "--json").out)
    assert len(told["tables"]["correlations"]) == 3 * 3 * 3
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
    study = carry_out("lau2020", tmp_path / "out", "smollm2", sample=5)
    tokenizer = AutoTokenizer.from_pretrained(default_weights.config._name_or_path)
    begin_id = tokenizer.convert_tokens_to_ids("<|endoftext|>")
    source = pl.concat(
        pl.read_csv(folder / f"context-{name}-ratings.csv", infer_schema=False).with_columns(
            pl.lit(name).alias("setting")
        )
        for name in ("none", "real")
    )
    wanted = {item.rpartition("/")[2] for item in study["sentences"]["item"]}
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
            ours = study["correlations"].filter(setting="none", context=setting, measure=measure)["r"].item()
            assert ours == pytest.approx(np.corrcoef(own_values, target)[0, 1], abs=5e-4)


def test_counts_are_those_of_the_corpus_that_is_given_and_a_damaged_table_is_counted_again(
    tiny_model: Path, tmp_path: Path
) -> None:
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("the cats annoy tim\n")
    two.write_text("no dog has ever barked here\n" * 3)
    lm = open_plain(str(tiny_model), None)

    def count(corpus: Path) -> dict[str, int]:
        source = CountSource(folder=tmp_path / "counts", tables={}, corpus=corpus)
        counts, origin, _ = source.find(lm, "tiny", [])
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

    monkeypatch.setattr("felicity.studies.acceptability.unigram_counts.hash_file", hash_and_note)
    monkeypatch.setattr("felicity.core.watched.RESOLUTION_SECONDS", -1.0)  # as if it had been there for long
    for folder in (tiny_model, other):
        source.find(open_plain(str(folder), None), folder.name, [])
    assert hashed.count(corpus) == 1


def test_a_bound_that_no_trial_has_is_left_out_and_said(tiny_model: Path, tmp_path: Path) -> None:
    table = tmp_path / "rated.csv"
    rows = [f's{k},The cat {k}.,{k},"2,2"' for k in range(6)]
    table.write_text("item,text,rating,ratings\n" + "\n".join(rows) + "\n")
    study = carry_out(table, tmp_path / "out", tiny_model)
    assert any("UB1" in note and "rated alike" in note for note in study.notes)
    assert not study["ceilings"]["r"].is_nan().any()


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
    found = json.loads(said.out)["tables"]
    assert {row["n"] for row in found["correlations"]} == {8}
    assert all("(1 | item) + (1 | stimulus)" in row["formula"] for row in found["ordinal"])
    names = ["stimulus", "item", "condition"]
    for name in ("sentences", "ratings", "scores"):
        kept = pl.read_csv(tmp_path / "out" / f"{name}.csv")
        assert kept.columns[:3] == names
        assert set(kept.select(names).rows()) == {
            (f"{row['item']}/{row['condition']}", row["item"], row["condition"]) for row in rows
        }
