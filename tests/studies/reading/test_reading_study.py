"""A study of reading from words to page: surprisal by character, what it adds, and what is refused."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.data import read_reading
from felicity.studies import read_study
from tests.conftest import Answer, make_tiny_model

Published = Callable[[str], Path]
NOUNS = ("cat", "dog", "teacher", "river", "window", "letter", "garden", "engineer")
VERBS = ("saw", "annoyed", "forgot", "painted", "followed", "washed")
ENDS = ("yesterday.", "again.", "here.", "slowly.")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model whose window holds the texts."""
    return make_tiny_model(tmp_path_factory.mktemp("reading") / "tiny", seed=3, window=512)


def write_texts(texts: int = 12, sentences: int = 5) -> pl.DataFrame:
    """Words of made-up sentences, with frequencies that are not those of a language."""
    rng = np.random.default_rng(5)
    rows = []
    for text in range(texts):
        for sentence in range(sentences):
            words = ["The", rng.choice(NOUNS), rng.choice(VERBS), "the", rng.choice(NOUNS), rng.choice(ENDS)]
            for place, word in enumerate(words):
                rows.append(
                    {"text": f"t{text}", "sentence": f"s{sentence}", "position": place + 1, "word": str(word)}
                )
    table = pl.DataFrame(rows)
    return table.with_columns(frequency=pl.Series(rng.normal(4, 1, table.height)))


@pytest.fixture(scope="module")
def words(model: Path) -> pl.DataFrame:
    """Words whose times rise by 5 ms per bit of their own surprisal and 3 ms of the word before."""
    table = write_texts()
    sentences = table.group_by("text", "sentence", maintain_order=True).agg(pl.col("word").str.join(" "))
    lm = fe.model(str(model))
    bits = []
    for (_,), part in sentences.group_by("text", maintain_order=True):
        scored = lm.words(" ".join(part["word"]))
        bits += (-scored["lp"] / np.log(2)).to_list()
    table = table.with_columns(bits=pl.Series(bits))
    noise = np.random.default_rng(6).normal(0, 10, table.height)
    before = pl.col("bits").shift(1).over("text", "sentence").fill_null(0.0)
    length = pl.col("word").str.len_chars()
    return table.with_columns(
        self_paced=300 + 5 * pl.col("bits") + 3 * before + 4 * length + pl.Series("noise", noise)
    )


def test_words_of_a_story_have_the_surprisals_of_the_whole_text(model: Path, words: pl.DataFrame) -> None:
    study = fe.reading(words, models=[str(model)], draws=100)
    scored = study["words"]
    assert scored["surprisal"].to_numpy() == pytest.approx(words["bits"].to_numpy(), abs=1e-3)
    text = " ".join(words.filter(text="t0")["word"])
    lm = fe.model(str(model))
    own = scored.filter(text="t0")
    for boundary in ("plain", "corrected"):
        whole = -lm.words(text, boundary=boundary)["lp"].to_numpy() / np.log(2)
        assert own[f"surprisal_{boundary}"].to_numpy() == pytest.approx(whole, abs=1e-3)
    tokens = lm.tokens(text, entropy=True)
    first = tokens["entropy"][0][0] / np.log(2)
    assert own["entropy"][0] == pytest.approx(first, abs=1e-3)
    drop = own["entropy"][0] - own["entropy"][1]
    assert own["entropy_reduction"][0] == pytest.approx(max(drop, 0.0), abs=1e-6)


def test_slopes_fit_and_alignment_are_those_the_times_were_made_with(
    model: Path, words: pl.DataFrame
) -> None:
    study = fe.reading(words.drop("bits"), models=[str(model)], draws=200)
    fit = study["fit"].filter(pl.col("lead"), predictor="surprisal").row(0, named=True)
    assert fit["delta_ll"] > 0.1
    assert fit["p_holm"] < 0.01
    assert (fit["n"], fit["sentences"]) == (240, 60)
    slopes = study["slopes"].filter(pl.col("lead")).sort("lag")
    for truth, row in zip((5.0, 3.0, 0.0), slopes.to_dicts(), strict=True):
        assert row["low"] < truth < row["high"]
    assert slopes["unit"].unique().to_list() == ["ms per bit"]
    bent = study["fit"].filter(predictor="smooth surprisal").row(0, named=True)
    assert abs(bent["delta_ll"]) < 0.02
    curve = study["curves"]
    rise = (curve["y"][-1] - curve["y"][0]) / (curve["x"][-1] - curve["x"][0])
    assert rise == pytest.approx(5.0, abs=1.0)
    peak = study["alignment"].sort("r").row(-1, named=True)
    assert peak["shift"] == 0
    both = study["correction"].row(0, named=True)
    assert both["difference"] == pytest.approx(both["corrected"] - both["plain"])
    assert both["corrected"] == fit["delta_ll"]
    assert not any("Alignment" in note for note in study.notes)
    assert "word 5's times are predicted with words 5, 4, 3" in " ".join(study.page.sure).lower()
    assert study["excluded"]["left"].to_list() == [240]


def test_times_listed_one_word_early_are_found(model: Path, words: pl.DataFrame) -> None:
    early = words.with_columns(pl.col("self_paced").shift(-1).over("text")).drop_nulls("self_paced")
    study = fe.reading(early.drop("bits"), models=[str(model)], draws=100, entropy=False)
    assert any("belong to other words" in finding for finding in study.page.findings)
    assert study["alignment"].sort("r").row(-1, named=True)["shift"] == -1


def test_a_trend_over_the_text_can_be_controlled(words: pl.DataFrame) -> None:
    place = pl.int_range(pl.len()).over("text")
    tired = words.with_columns(self_paced=pl.col("self_paced") - 4 * place)
    plain = fe.reading(tired, surprisal="bits", draws=100)
    freed = fe.reading(tired, surprisal="bits", draws=100, controls=("text_position",))
    deltas = [one["fit"].filter(predictor="surprisal")["delta_ll"].item() for one in (plain, freed)]
    assert deltas[1] > deltas[0] + 0.05
    assert any("text_position" in note for note in freed.notes)


def test_two_models_and_measures_are_compared_on_the_same_words(
    model: Path, words: pl.DataFrame, tmp_path: Path
) -> None:
    other = make_tiny_model(tmp_path / "other", seed=9, window=512)
    table = words.drop("bits").with_columns(first_pass=pl.col("self_paced") - 50 * (pl.col("position") == 4))
    table = table.with_columns(
        pl.when(pl.col("position") != 3).then("first_pass").alias("first_pass"),
    )
    study = fe.reading(table, models=[str(model), str(other)], draws=100, out=tmp_path / "study")
    sizes = study["fit"].filter(predictor="surprisal").select("measure", "n").unique().sort("measure")
    assert sizes.rows() == [("first_pass", 180), ("self_paced", 240)]
    compared = study["comparisons"]
    assert compared.height == 2
    both = study["fit"].filter(pl.col("lead"), predictor="surprisal", measure="self_paced")
    deltas = dict(both.select("model", "delta_ll").iter_rows())
    row = compared.filter(measure="self_paced").row(0, named=True)
    assert row["difference"] == pytest.approx(deltas[row["first"]] - deltas[row["second"]])
    assert study["quality"]["perplexity"].min() > 1
    page = (tmp_path / "study" / "report.html").read_text(encoding="utf-8")
    for heading in ("Fit", "Slopes", "Is it a straight line?", "Alignment", "Models compared", "left out"):
        assert heading in page
    again = read_study(tmp_path / "study")
    assert again["fit"].equals(study["fit"])


def test_readers_give_mixed_models_and_trimming_is_said(model: Path, words: pl.DataFrame) -> None:
    rng = np.random.default_rng(8)
    parts = [
        words.drop("bits").with_columns(
            reader=pl.lit(f"r{number}"),
            self_paced=pl.col("self_paced") + 30.0 * number + pl.Series("e", rng.normal(0, 20, words.height)),
        )
        for number in range(5)
    ]
    trials = pl.concat(parts)
    trials[9, "self_paced"] = 9000.0
    study = fe.reading(trials, models=[str(model)], draws=100, entropy=False)
    mixed = study["mixed"].filter(lag=0).row(0, named=True)
    assert mixed["low"] < 5.0 < mixed["high"]
    assert (mixed["readers"], mixed["trials"]) == (5, 1199)
    assert "(1 | item)" in mixed["formula"]
    assert any("1 of 1,800 single times of self_paced outside 100 to 3000 ms" in note for note in study.notes)


def test_given_surprisals_need_no_model(model: Path, words: pl.DataFrame, tmp_path: Path) -> None:
    by_model = fe.reading(words.drop("bits"), models=[str(model)], draws=100, entropy=False)
    wanted = by_model["fit"].filter(pl.col("lead"), predictor="surprisal")["delta_ll"].item()
    scores = by_model["words"].select("text", "sentence", "position", "word", "surprisal")
    scores.write_csv(tmp_path / "scores.csv")
    for given in (str(tmp_path / "scores.csv"), scores.select("word", "surprisal"), "bits"):
        study = fe.reading(words, surprisal=(given,), draws=100)
        found = study["fit"].filter(predictor="surprisal")
        assert study.models == []
        assert found["delta_ll"].item() == pytest.approx(wanted, abs=1e-4)
    nats = scores.with_columns(pl.col("surprisal") * np.log(2))
    study = fe.reading(words, surprisal=(nats,), unit="nats", draws=100)
    assert study["words"]["surprisal"].to_numpy() == pytest.approx(scores["surprisal"].to_numpy())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda t: t.with_columns(word=pl.col("word").replace("teacher", "painter")),
            "surprisals of another text",
        ),
        (lambda t: t.head(50), "same words in the same order"),
        (lambda t: t.with_columns(-pl.col("surprisal").abs() - 1), "negate"),
        (lambda t: t.rename({"surprisal": "value"}), "surprisal"),
        (lambda t: t.with_columns(surprisal=pl.col("word")), "does not hold numbers"),
    ],
)
def test_surprisals_of_another_text_are_refused(
    words: pl.DataFrame, change: Callable[[pl.DataFrame], pl.DataFrame], said: str
) -> None:
    given = change(words.select("word", pl.col("bits").alias("surprisal")))
    with pytest.raises((BadInput, UnknownName), match=said):
        fe.reading(words, surprisal=(given,))


def test_what_cannot_be_predicted_is_refused_in_a_sentence(
    cli: Callable[..., Answer], words: pl.DataFrame, tmp_path: Path
) -> None:
    """Everything that is no reading time or no order of words, through the command."""
    place = pl.col("position") == 2
    cases = {
        "seconds": (words.with_columns(pl.col("self_paced") / 1000), "like seconds"),
        "negative": (words.with_columns(pl.col("self_paced") - 400), "below 0 ms"),
        "missing": (words.with_columns(self_paced=pl.lit(None, dtype=pl.Float64)), "empty in every row"),
        "order": (words.sort("word"), "comes after a later word"),
        "twice": (
            words.with_columns(pl.when(place).then(1).otherwise("position").alias("position")),
            "occurs twice",
        ),
        "sentences": (
            words.with_columns(sentence_text=pl.lit("Nothing of the kind.")),
            "different texts",
        ),
        "reader": (
            pl.concat(
                [words.with_columns(reader=pl.lit("a")), words.head(1).with_columns(reader=pl.lit("b"))]
            ),
            "only one row",
        ),
    }
    for name, (table, said) in cases.items():
        path = tmp_path / f"{name}.csv"
        table.write_csv(path)
        result = cli("reading", str(path), "--surprisal", "bits", "-o", str(tmp_path / f"out-{name}"))
        assert result.code == 2, name
        assert said in result.err, name
        assert "Traceback" not in result.err


def test_names_that_are_not_there_are_refused(words: pl.DataFrame) -> None:
    with pytest.raises(UnknownName, match="n400"):
        fe.reading(words, surprisal="bits", measures=("n400",))
    with pytest.raises(UnknownName, match="column"):
        fe.reading(words, surprisal="bits", controls=("lenth",))
    with pytest.raises(UnknownName, match="context"):
        fe.reading(words, surprisal="bits", context="page")
    with pytest.raises(UnknownName, match="preset"):
        fe.reading(words, surprisal="bits", preset="wilcox")
    with pytest.raises(NotPossible, match="name a model"):
        fe.reading(words, models=[])
    with pytest.raises(BadInput, match="--condition"):
        fe.reading(words, surprisal="bits", preset="michaelov2022")


def test_the_command_prints_the_answer_and_resumes(
    cli: Callable[..., Answer], model: Path, words: pl.DataFrame, tmp_path: Path
) -> None:
    path, out = tmp_path / "times.csv", tmp_path / "study"
    words.drop("bits").write_csv(path)
    first = cli("reading", str(path), "-m", str(model), "-o", str(out), "--draws", "100", "--json")
    told = json.loads(first.out)
    assert told["study"] == "reading"
    assert told["tables"]["fit"][0]["delta_ll"] > 0
    again = cli("reading", str(path), "-m", str(model), "-o", str(out), "--draws", "100", "--lags", "0")
    assert again.code == 0
    assert "ms per bit" in again.out
    other = cli("reading", str(path), "-m", str(model), "-o", str(out), "--context", "sentence")
    assert other.code == 2
    assert "another context" in other.err


def test_words_that_are_not_in_their_sentence_are_listed(words: pl.DataFrame) -> None:
    lost = words.with_row_index("n").with_columns(
        sentence_text=pl.col("word").str.join(" ").over("text", "sentence"),
        word=pl.when(pl.col("n") == 9).then(pl.lit("absent")).otherwise("word"),
    )
    lost = lost.with_columns(pl.when(pl.col("n") == 9).then(None).otherwise("bits").alias("bits")).drop("n")
    study = fe.reading(lost, surprisal="bits", draws=100)
    assert study["not_joined"].select("text", "sentence", "word").rows() == [("t0", "s1", "absent")]
    assert study["not_joined"]["reason"].item() == "not in the sentence"
    # The word itself and the two after it, whose words before lack a value.
    assert study["excluded"]["rows"].sum() == 120 + 3


def test_the_preset_of_de_varda_gives_the_published_figures(published: Published) -> None:
    table = pl.read_csv(
        published("devarda2023/all_measures.csv.gz"), infer_schema_length=None, null_values=["NA"]
    )
    study = fe.reading(
        table.sort("sent_id", "context_length"),
        surprisal="s_GPT2",
        measures=("n400", "first_pass", "self_paced"),
        frequencies="Subtlex_log10",
        preset="devarda2023",
        draws=100,
    )
    fit = study["fit"].filter(predictor="surprisal")
    totals = dict(fit.select("measure", pl.col("in_sample") * pl.col("n")).iter_rows())
    wanted = {"n400": 24.283913, "first_pass": 20.692254, "self_paced": 2.735972}
    assert totals == pytest.approx(wanted, abs=1e-6)
    assert fit.filter(measure="first_pass")["delta_aic"].item() == pytest.approx(-39.384508, abs=1e-6)
    assert study["excluded"].filter(measure="n400")["rows"].to_list() == [239, 21]
    assert any("in-sample" in note for note in study.notes)


def test_conditions_are_compared_as_michaelov_and_bergen_did(published: Published) -> None:
    folder = published("michaelov2022_collateral")
    stimuli = pl.read_csv(folder / "stimuli" / "ito_2016.tsv", separator="\t", quote_char=None)
    scored = pl.read_csv(
        folder / "surprisal" / "ito_2016.surprisal.gpt2-xl.causal.output.gz", separator="\t", quote_char=None
    )
    table = pl.DataFrame(
        {
            "sentence": [f"{place}" for place in range(stimuli.height)],
            "word": scored["TargetWords"],
            "item": stimuli["SentenceFrame"],
            "condition": stimuli["Condition"],
            "gpt2_xl": scored["Surprisal"],
        }
    )
    study = fe.reading(table, surprisal="gpt2_xl", condition="condition", preset="michaelov2022")
    row = study["conditions"].filter(first="semantically_related", second="unrelated").row(0, named=True)
    # The published figure is that of lme4, which stops at a looser tolerance.
    assert row["f"] == pytest.approx(64.012946, abs=1e-3)
    assert row["df_residual"] == pytest.approx(156.66, abs=0.01)
    assert "F = " in study.page.answer


@pytest.mark.parametrize("preset", ["wilcox2023", "devarda2023", "kuribayashi2024", "babylm2025"])
def test_every_preset_runs_through_the_command_and_says_what_is_doubtful(
    cli: Callable[..., Answer], words: pl.DataFrame, tmp_path: Path, preset: str
) -> None:
    words.write_csv(tmp_path / "times.csv")
    out = tmp_path / preset
    answer = cli(
        *("reading", tmp_path / "times.csv", "--surprisal", "bits", "--preset", preset),
        *("-o", out, "--draws", 100, "--no-report"),
    )
    assert answer.code == 0, answer.err
    study = read_study(out)
    fit = study["fit"].filter(predictor="surprisal").row(0, named=True)
    assert fit["delta_ll"] > 0
    assert fit["held_out"] == (preset == "wilcox2023")
    assert "Recipe" in answer.err
    assert study.notes[-1].endswith(".")


def test_effects_by_item_are_those_of_sap(published: Published) -> None:
    folder = published("sap_benchmark/Surprisals/data/gpt2")
    parts = [
        pl.read_csv(folder / f"items_{name}.gpt2.csv.gz", infer_schema_length=None).select(
            pl.format("{}/{}", "condition", "item").alias("text"),
            pl.lit("1").alias("sentence"),
            (pl.col("word_pos") + 1).alias("position"),
            "word",
            pl.col("sum_surprisal_base2").alias("surprisal"),
        )
        for name in ("ClassicGP",)
    ]
    study = fe.reading("sap", surprisal=(pl.concat(parts),))
    means = study["effects"].filter(place=0)
    bits = dict(means.select("effect", "bits").iter_rows())
    published_bits = {"GPE_MVRR": 2.8282, "GPE_NPS": 2.3518, "GPE_NPZ": 6.9097}
    assert {name: bits[name] for name in published_bits} == pytest.approx(published_bits, abs=1e-4)
    observed = study["effects"].filter(effect="GPE_MVRR").sort("place")["observed_ms"].to_list()
    assert observed == pytest.approx([59.3, 202.1, 113.3], abs=1.0)
    assert study["item_effects"].filter(effect="GPE_NPS", place=0).height == 24
    clauses = study["words"].filter(
        pl.col("roi").is_in([0, 1, 2]) & ~pl.col("item").is_in(["42", "45"]), effect="RC"
    )
    sides = [clauses.filter(side=side).sort("item", "roi")["word"].to_list() for side in ("hard", "easy")]
    assert sides[0] == sides[1]
    assert "critical word" in study.page.answer


def test_fillers_turn_bits_into_milliseconds(published: Published, model: Path, words: pl.DataFrame) -> None:
    published("sap_benchmark")
    rng = np.random.default_rng(4)
    fillers = pl.concat(
        [
            words.drop("bits").with_columns(
                reader=pl.lit(f"r{number}"),
                self_paced=pl.col("self_paced") + pl.Series("e", rng.normal(0, 5, words.height)),
            )
            for number in range(4)
        ]
    )
    study = fe.reading("sap", models=[str(model)], fillers=fillers, frequencies=None, entropy=False)
    slopes = dict(study["conversion"].select("lag", "slope").iter_rows())
    # The times were made of 5 ms per bit of the word itself and 3 ms of the word before.
    assert slopes[0] == pytest.approx(5.0, abs=0.5)
    assert slopes[1] == pytest.approx(3.0, abs=0.5)
    scored = study["words"].filter(effect="GPE_NPS", item="3").sort("position")
    ms = {}
    for side in ("hard", "easy"):
        own = scored.filter(side=side)
        at = own["roi"].to_list().index(1)
        ms[side] = sum(slopes[lag] * own["surprisal"][at - lag] for lag in range(4))
    row = study["item_effects"].filter(effect="GPE_NPS", item="3", place=1).row(0, named=True)
    assert row["predicted_ms"] == pytest.approx(ms["hard"] - ms["easy"], abs=1e-6)


@pytest.mark.slow
def test_the_shift_of_natural_stories_as_released_is_found(published: Published) -> None:
    path = published("kuribayashi2024_ns/results/NS/gpt2/surprisal.json.gz")
    listed = json.loads(gzip.decompress(path.read_bytes()))
    bits = [value for text in sorted(listed, key=int) for sentence in listed[text] for value in sentence]
    table = read_reading("natural_stories").words.with_columns(gpt2=pl.Series(bits))
    released = table.with_columns(pl.col("self_paced").shift(-1).over("text"))
    found = {}
    for name, one in (("moved", table), ("released", released)):
        study = fe.reading(one, surprisal="gpt2", unit="nats", draws=100, lags=0, control_lags=0)
        found[name] = [note for note in study.notes if note.startswith("Alignment")]
    assert not found["moved"]
    assert "one word early" in found["released"][0]


def test_full_stops_at_sentence_ends_do_not_stop_the_test_of_entropy(model: Path) -> None:
    """Final words have no entropy reduction, so that punctuation is the same on the words that have one."""
    rng = np.random.default_rng(4)
    vocabulary = [
        "the",
        "old",
        "man",
        "walked",
        "home",
        "slowly",
        "my",
        "sister",
        "reads",
        "every",
        "evening",
        "we",
        "saw",
        "many",
        "birds",
        "near",
        "it",
    ]
    sentences = [" ".join(rng.choice(vocabulary, 7)) + "." for _ in range(40)]
    rows = [
        {"sentence": str(n), "position": place, "word": word, "self_paced": 330 + 40 * rng.normal()}
        for n, text in enumerate(sentences)
        for place, word in enumerate(text.split(), start=1)
    ]
    study = fe.reading(pl.DataFrame(rows), models=str(model), context="sentence", report=False)
    assert "entropy_reduction" in study["fit"]["predictor"].to_list()
