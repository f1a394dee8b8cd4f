"""The whole study by the command line, with a tiny model and a few verbs."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import felicity as fe
from felicity.core.policy import Policy
from felicity.humans import build_lists, read_rating_study
from felicity.run import Model, open_model
from felicity.studies import read_study
from felicity.studies.causality import read_stimuli_set
from tests.conftest import Answer, make_tiny_model
from tests.studies.causality.test_causality_parts import write_design

Cli = Callable[..., Answer]


@pytest.fixture(scope="module")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model whose window has room for what it writes, which is many tokens of few letters."""
    return make_tiny_model(tmp_path_factory.mktemp("causality") / "tiny-gpt2", seed=1, window=256)


@pytest.fixture
def finished(tmp_path: Path, small_model: Path, cli: Cli) -> Path:
    """A finished study of three verbs, two noun pairs and two pairs of one gender."""
    design = write_design(tmp_path, norms='"norms.csv"', same_gender="true")
    out = tmp_path / "run"
    said = cli("causality", design, "-m", small_model, "-o", out, "--tokens", 44)
    assert said.code == 0, said.err
    assert "1 of 3 verbs have no bias norm (zoomed)" in said.err
    return out


def test_surprisals_are_those_of_the_model_in_bits(finished: Path, small_model: Path) -> None:
    table = read_study(finished)["preference"]
    assert table.height == 3 * 4 * 2
    lm = open_model(str(small_model), cache=False)
    prompts = table["prompt"].to_list()
    for side in ("subject", "object"):
        lp = lm.score(table[f"{side}_text"].to_list(), context=prompts)["lp"].to_numpy()
        assert np.allclose(table[f"surprisal_{side}"], -lp / np.log(2), atol=1e-5)
    margin = table["surprisal_object"] - table["surprisal_subject"]
    assert np.allclose(table["subject_preference"], margin)
    judged = table.filter(pl.col("bias") < 0)
    assert (judged["match"] == (judged["subject_preference"] < 0).cast(pl.Float64)).all()


def test_the_page_answers_first_in_one_figure_with_chance_and_shows_nothing_flagged(finished: Path) -> None:
    study = read_study(finished)
    page = study.page
    assert page.answer.startswith("No: tiny-gpt2 expects it after 50.0% [21.5, 78.5] of the prompts")
    assert "no detectable difference from chance; its preference is almost only the pronoun's gender" in (
        page.answer
    )
    assert "“he” after 100.0% of the prompts with a male subject" in page.findings[0]
    assert [figure.name for figure in page.figures] == [
        "agreement",
        "noun_pairs_tiny-gpt2",
        "effects",
        "references",
    ]
    drawn = json.dumps(study.plot().to_dict())
    assert "male subject" in drawn
    assert "strokeDash" in drawn
    written = study["continuations"]
    assert written.height == 24
    assert set(written["reference"]) <= {"subject", "object", "unknown"}
    assert not study["frequent"]["flagged"].any()
    assert "The paper&#39;s findings" in (finished / "report.html").read_text(encoding="utf-8")


def test_command_and_python_give_the_same_tables(finished: Path, small_model: Path, tmp_path: Path) -> None:
    study = fe.causality(tmp_path / "own.toml", models=str(small_model), tokens=44)
    kept = read_study(finished)
    assert set(kept.tables) == set(study.tables)
    for name, table in study.tables.items():
        assert table.equals(kept[name]), name


def test_another_study_in_the_folder_is_refused_and_the_same_is_resumed(
    finished: Path, small_model: Path, cli: Cli, tmp_path: Path
) -> None:
    asked = ("causality", tmp_path / "own.toml", "-m", small_model, "-o", finished, "--quiet")
    other = cli(*asked, "--tokens", 40)
    assert other.code == 2
    assert "another tokens (44, now 40)" in other.err
    before = (finished / "continuations.csv").read_bytes()
    assert cli(*asked, "--tokens", 44).code == 0
    assert (finished / "continuations.csv").read_bytes() == before


@pytest.fixture
def rated(finished: Path, tmp_path: Path) -> Path:
    """Random ratings of every sentence of a study."""
    rng = np.random.default_rng(1)
    rows = [
        {"rater": rater, "item": item, "rating": int(rng.integers(1, 6)), "role": "target"}
        for item in read_study(finished)["preference"]["item"]
        for rater in "abc"
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "ratings.csv")
    return tmp_path / "ratings.csv"


def test_a_sample_of_continuations_becomes_a_study_for_raters(
    finished: Path, cli: Cli, tmp_path: Path
) -> None:
    sizes = ("--verbs", 1, "--bins", 2, "--pairs", 2, "--parts", 2, "--raters", 4)
    said = cli("rate", "new", tmp_path / "study", "--from", finished, *sizes, "--json")
    assert said.code == 0, said.err
    assert json.loads(said.out)["balance"]["n"] == 8
    made = read_rating_study(tmp_path / "study")
    assert [len(one.rows) for one in build_lists(made)] == [4, 4]
    assert made.design.quota == 4
    for options, told in (
        (("--sample", 2), "is the folder of a causality study; leave out --sample"),
        (("--model", "tiny"), "did you mean 'tiny-gpt2'"),
    ):
        said = cli("rate", "new", tmp_path / "other", "--from", finished, *options)
        assert said.code == 2
        assert told in said.err
    said = cli("rate", "new", tmp_path / "other", "--from", "starter", "--verbs", 2)
    assert "starter is not the folder of a causality study; leave out --verbs" in said.err


def test_ratings_are_analysed_by_report_and_kept(
    finished: Path, rated: Path, small_model: Path, cli: Cli, tmp_path: Path
) -> None:
    said = cli("report", finished, "--ratings", rated)
    assert said.code == 0, said.err
    title = "Does the model know when it is wrong?"
    assert title in (finished / "report.html").read_text(encoding="utf-8")
    kept = read_study(finished)
    assert kept["rating_summary"]["ratings"].item() == 72
    assert kept["ratings"].columns == ["participant", "sentence", "rating"]
    # Neither a later report nor the same command again forgets them.
    assert cli("report", finished).code == 0
    design = tmp_path / "own.toml"
    again = cli("causality", design, "-m", small_model, "-o", finished, "--tokens", 44, "-q")
    assert again.code == 0, again.err
    assert read_study(finished)["rating_correlations"].equals(kept["rating_correlations"])
    assert title in (finished / "report.html").read_text(encoding="utf-8")
    (finished / "ratings.csv").write_text("participant,sentence,rating\n")
    said = cli("report", finished)
    assert said.code == 2
    assert "ratings.csv was changed" in said.err


def test_of_several_models_it_must_be_said_whose_continuations_were_rated(
    finished: Path, rated: Path, small_model: Path, cli: Cli, tmp_path: Path
) -> None:
    other = make_tiny_model(tmp_path / "other", seed=3, window=256)
    models = [str(small_model), str(other)]
    fe.causality(tmp_path / "own.toml", models=models, tokens=44, out=tmp_path / "two", report=False)
    asked = ("report", tmp_path / "two", "--ratings", rated)
    for options, told in (
        ((), "tiny-gpt2, other have written continuations; say whose were rated"),
        (("--set", "rated=othr"), "did you mean 'other'?"),
        (("--set", "rated"), "--set rated is not NAME=VALUE"),
        (("--set", "tokens=40"), "The setting 'tokens' affects the scores"),
        (("--set", "rate=other"), "did you mean 'rated'?"),
    ):
        said = cli(*asked, *options)
        assert said.code == 2
        assert told in said.err
    said = cli(*asked, "--set", "rated=other")
    assert said.code == 0, said.err
    assert read_study(tmp_path / "two")["rating_summary"]["lm"].item() == "other"


def test_ratings_of_other_sentences_and_of_runs_are_refused(finished: Path, cli: Cli, tmp_path: Path) -> None:
    strange = tmp_path / "strange.csv"
    strange.write_text("rater,item,rating\na,elsewhere,3\n")
    said = cli("report", finished, "--ratings", strange)
    assert said.code == 2
    assert "not one of the study's" in said.err
    said = cli("report", finished / "models" / "tiny-gpt2", "--ratings", strange)
    assert said.code == 2
    assert "is not the folder of a study; leave out ratings" in said.err


def test_simulated_ratings_are_marked_in_the_report(finished: Path, rated: Path, cli: Cli) -> None:
    table = pl.read_csv(rated).with_columns(rater=pl.lit("sim-") + pl.col("rater"))
    table.write_csv(rated)
    assert cli("report", finished, "--ratings", rated).code == 0
    page = (finished / "report.html").read_text(encoding="utf-8")
    assert "no person gave them" in page.partition("<main>")[0]
    marked = {
        path.stem for path in (finished / "figures").glob("*.svg") if "simulated raters" in path.read_text()
    }
    assert marked == {"ratings"}


def test_stimuli_without_bias_are_refused(cli: Cli, tmp_path: Path) -> None:
    said = cli("causality", "starter", "-o", tmp_path / "x")
    assert said.code == 2
    assert "no verbs with their bias" in said.err


@pytest.mark.data
@pytest.mark.slow
def test_pronouns_are_scored_as_minicons_does_on_200_prompts(default_weights: object) -> None:
    from minicons.scorer import IncrementalLMScorer
    from transformers import AutoTokenizer

    from felicity.engines.sources import resolve_source

    rows = read_stimuli_set("implicit_causality").rows.gather_every(34).head(200)
    assert rows.height == 200
    prompts = rows["prompt"].to_list()
    tokenizer = AutoTokenizer.from_pretrained(resolve_source("smollm2").folder)
    peer = IncrementalLMScorer(default_weights, "cpu", tokenizer=tokenizer)
    lm = open_model("smollm2", policy=Policy(bos="declared"), cache=False)
    for side in ("subject", "object"):
        texts = rows[f"{side}_text"].to_list()
        ours = lm.score(texts, context=prompts)["lp"].to_numpy()
        theirs = []
        for begin in range(0, 200, 50):
            part = slice(begin, begin + 50)
            theirs += peer.conditional_score(
                prompts[part], texts[part], reduction=lambda x: x.sum(0).item(), bos_token=True
            )
        assert np.abs(ours - np.array(theirs)).max() < 1e-3


@pytest.mark.data
@pytest.mark.slow
def test_continuations_are_those_of_transformers_generate_on_100_prompts(
    default_model: Model, default_weights: object
) -> None:
    import torch
    from transformers import AutoTokenizer

    from felicity.engines.sources import resolve_source

    prompts = read_stimuli_set("implicit_causality").rows.gather_every(68).head(100)["prompt"].to_list()
    found = default_model.generate(prompts, whole=50, stop=["."])
    tokenizer = AutoTokenizer.from_pretrained(resolve_source("smollm2").folder)
    begin = default_model.info.policy["bos"]
    rows = [tokenizer(begin + text, add_special_tokens=False)["input_ids"] for text in prompts]
    expected: dict[int, list[int]] = {}
    # Prompts of one length need no padding, so that each is continued as if it were alone.
    for size in sorted(set(map(len, rows))):
        places = [place for place, row in enumerate(rows) if len(row) == size]
        ids = torch.tensor([rows[place] for place in places])
        with torch.inference_mode():
            output = default_weights.generate(  # type: ignore[attr-defined]
                ids, attention_mask=torch.ones_like(ids), max_length=50, do_sample=False, pad_token_id=0
            )
        expected |= dict(zip(places, output[:, size:].tolist(), strict=True))
    for place, row in enumerate(found.iter_rows(named=True)):
        text = tokenizer.decode(expected[place][: row["n_tokens"]])
        before = tokenizer.decode(expected[place][: row["n_tokens"] - 1])
        assert text.partition(".")[0] == row["continuation"]
        if row["ended"] == "stop":
            assert "." in text
            assert "." not in before
        else:
            assert "." not in text


def spoil(path: Path) -> bytes:
    """Change one bit in the middle of a file; gives what it was."""
    whole = path.read_bytes()
    content = bytearray(whole)
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    return whole


def test_a_damaged_study_is_refused_and_running_it_again_heals_it(
    finished: Path, small_model: Path, cli: Cli, tmp_path: Path
) -> None:
    reads = [
        ("report", finished),
        ("rate", "new", tmp_path / "sampled", "--from", finished, "--parts", 1),
    ]
    for name in ("stimuli.parquet", "preference.csv", "continuations.csv"):
        whole = spoil(finished / name)
        for line in reads:
            told = cli(*line)
            assert told.code == 2, (name, line)
            assert f"{finished / name} was changed since the study wrote it" in told.err
        (finished / name).write_bytes(whole)
    continuations = finished / "continuations.csv"
    whole = spoil(continuations)
    again = cli(
        "causality", tmp_path / "own.toml", "-m", small_model, "-o", finished, "--tokens", 44, "--quiet"
    )
    assert again.code == 0, again.err
    assert continuations.read_bytes() == whole
    assert cli(*reads[0]).code == 0
    (finished / "study.json").write_text("[" * 20_000)
    assert "is not JSON" in cli(*reads[0]).err


def test_two_models_of_one_name_are_refused_before_either_is_scored(cli: Cli, tmp_path: Path) -> None:
    models = [make_tiny_model(tmp_path / place / "same", seed=1) for place in ("a", "b")]
    design = write_design(tmp_path)
    said = cli("causality", design, "-m", models[0], "-m", models[1], "-o", tmp_path / "run", "-q")
    assert said.code == 2
    assert "Two models are called 'same'" in said.err
    assert not (tmp_path / "run" / "models").exists()


def test_a_policy_field_that_a_model_does_not_use_is_refused(
    cli: Cli, small_model: Path, tmp_path: Path
) -> None:
    design = write_design(tmp_path)
    asked = ("-m", small_model, "-o", tmp_path / "run", "--policy", "pll=original", "-q")
    said = cli("causality", design, *asked)
    assert said.code == 2
    assert "does not use --policy pll" in said.err
