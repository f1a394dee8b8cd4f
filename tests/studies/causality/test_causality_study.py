"""The whole study by the command line, with a tiny model and a few verbs."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from felicity.core.policy import Policy
from felicity.humans import build_lists, read_rating_study
from felicity.run import Model, open_model, read_record, write_record
from felicity.studies.causality import read_causality, read_stimuli_set
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
    said = cli("causality", "run", design, "-m", small_model, "-o", out, "--tokens", 44, "--quiet")
    assert said.code == 0, said.err
    assert "1 of 3 verbs have no bias norm (zoomed)" in said.out
    return out


def test_surprisals_are_those_of_the_model_in_bits(finished: Path, small_model: Path) -> None:
    table = pl.read_parquet(finished / "models" / "tiny-gpt2" / "preference.parquet")
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


def test_the_folder_has_tables_and_a_report_that_shows_nothing_flagged(finished: Path) -> None:
    for name in ("agreement", "verbs", "diversity", "references"):
        assert (finished / f"{name}.csv").exists()
    page = (finished / "report.html").read_text(encoding="utf-8")
    for title in ("The paper’s findings", "The paper's findings", "The paper&#39;s findings"):
        if title in page:
            break
    else:
        pytest.fail("the report has no findings")
    written = pl.read_parquet(finished / "models" / "tiny-gpt2" / "continuations.parquet")
    assert written.height == 24
    assert set(written["reference"]) <= {"subject", "object", "unknown"}
    frequent = pl.read_csv(finished / "frequent.csv") if (finished / "frequent.csv").stat().st_size else None
    assert frequent is None or not frequent["flagged"].any()


def test_another_study_in_the_folder_is_refused_and_the_same_is_resumed(
    finished: Path, small_model: Path, cli: Cli, tmp_path: Path
) -> None:
    design = tmp_path / "own.toml"
    other = cli("causality", "run", design, "-m", small_model, "-o", finished, "--tokens", 40, "--quiet")
    assert other.code == 2
    assert "another sampling" in other.err
    before = pl.read_parquet(finished / "models" / "tiny-gpt2" / "continuations.parquet")
    again = cli("causality", "run", design, "-m", small_model, "-o", finished, "--tokens", 44, "--quiet")
    assert again.code == 0
    assert before.equals(pl.read_parquet(finished / "models" / "tiny-gpt2" / "continuations.parquet"))


def test_a_sample_becomes_a_study_and_its_ratings_are_analysed(
    finished: Path, cli: Cli, tmp_path: Path
) -> None:
    # The texts of a random model say nothing; only their flags would be in the way.
    path = finished / "models" / "tiny-gpt2" / "continuations.parquet"
    table = pl.read_parquet(path).with_columns(flagged=pl.lit(False), continuation=pl.lit("it was so"))
    table.write_parquet(path)
    study = tmp_path / "study"
    options = ("--verbs", 1, "--bins", 2, "--pairs", 2, "--lists", 2, "--json")
    assert cli("causality", "sample", finished, "-o", study, *options).code == 2
    renew_digests(finished)
    said = cli("causality", "sample", finished, "-o", study, *options)
    assert said.code == 0, said.err
    assert json.loads(said.out)["balance"]["n"] == 8
    assert [len(one.rows) for one in build_lists(read_rating_study(study))] == [4, 4]
    rng = np.random.default_rng(1)
    rows = [
        {"rater": rater, "item": stimulus.item, "rating": int(rng.integers(1, 6)), "role": "target"}
        for stimulus in read_rating_study(study).stimuli
        for rater in "abc"
    ]
    pl.DataFrame(rows).write_csv(tmp_path / "ratings.csv")
    said = cli("causality", "report", finished, "--ratings", tmp_path / "ratings.csv")
    assert said.code == 0, said.err
    assert (finished / "rating_counts.csv").exists()
    assert "Does the model know when it is wrong?" in (finished / "report.html").read_text(encoding="utf-8")
    found = read_causality(finished, ratings=tmp_path / "ratings.csv").ratings
    assert found is not None
    kept = read_causality(finished).ratings
    assert kept is not None
    assert kept.correlations.equals(found.correlations)
    for command in (("report", finished), ("causality", "report", finished)):
        (finished / "report.html").unlink()
        assert cli(*command).code == 0
        assert "Does the model know when it is wrong?" in (finished / "report.html").read_text("utf-8")
    (finished / "ratings.parquet").write_bytes(b"other")
    said = cli("report", finished)
    assert said.code == 2
    assert "ratings.parquet" in said.err
    assert cli("causality", "report", finished, "--ratings", tmp_path / "ratings.csv").code == 0
    assert found.summary["ratings"] == 24
    _add_model(finished, "other")
    for options, complaint in (
        ((), "tiny-gpt2, other have written continuations; say whose were rated"),
        (("--model", "othr"), "did you mean 'other'?"),
    ):
        said = cli("causality", "report", finished, "--ratings", tmp_path / "ratings.csv", *options)
        assert said.code == 2
        assert complaint in said.err
    said = cli("causality", "report", finished, "--ratings", tmp_path / "ratings.csv", "-m", "other")
    assert said.code == 0, said.err
    said = cli("causality", "report", finished, "-m", "tiny-gpt2")
    assert said.code == 2
    assert "The kept ratings are of continuations by 'other'; give --ratings as well" in said.err
    turned = read_causality(finished, ratings=tmp_path / "ratings.csv", model="other").ratings
    assert turned is not None
    ours, theirs = (one.correlations.filter(measure=EXPECTED)["r"].item() for one in (found, turned))
    assert theirs == pytest.approx(-ours)
    strange = pl.DataFrame(rows).with_columns(item=pl.lit("elsewhere"))
    strange.write_csv(tmp_path / "strange.csv")
    said = cli("causality", "report", finished, "--ratings", tmp_path / "strange.csv", "-m", "other")
    assert said.code == 2
    assert "not one of the study's" in said.err


EXPECTED = "preference for the noun that people expect"


def _add_model(study: Path, name: str) -> None:
    """Another model in the folder of a study: one that prefers the other noun each time."""
    shutil.copytree(study / "models" / "tiny-gpt2", study / "models" / name)
    table = pl.read_parquet(study / "models" / name / "preference.parquet")
    table.with_columns(-pl.col("subject_preference")).write_parquet(
        study / "models" / name / "preference.parquet"
    )
    record = read_record(study)
    write_record(study, record | {"models": [*record["models"], name]}, record["digests"])
    renew_digests(study)


def renew_digests(study: Path) -> None:
    """Call what a test has written into a study the study's own."""
    kept = [str(path.relative_to(study)) for path in study.rglob("*.parquet")]
    write_record(study, read_record(study), kept)


def test_what_is_no_study_is_refused(cli: Cli, tmp_path: Path) -> None:
    said = cli("causality", "report", tmp_path)
    assert said.code == 2
    assert "has no study" in said.err
    said = cli("causality", "run", "starter", "-o", tmp_path / "x")
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
        ("causality", "report", finished),
        ("causality", "sample", finished, "-o", tmp_path / "sampled", "--lists", 1),
    ]
    for name in ("stimuli.parquet", "models/tiny-gpt2/preference.parquet"):
        whole = spoil(finished / name)
        for line in reads:
            told = cli(*line)
            assert told.code == 2, (name, line)
            assert f"{finished / name} was changed since the study wrote it" in told.err
        (finished / name).write_bytes(whole)
    continuations = finished / "models" / "tiny-gpt2" / "continuations.parquet"
    whole = spoil(continuations)
    assert cli(*reads[1]).code == 2
    assert "was changed" not in cli(*reads[1], "--force").err
    design = tmp_path / "own.toml"
    again = cli("causality", "run", design, "-m", small_model, "-o", finished, "--tokens", 44, "--quiet")
    assert again.code == 0, again.err
    assert pl.read_parquet(continuations).equals(pl.read_parquet(whole))
    assert cli(*reads[0]).code == 0
    (finished / "study.json").write_text("[" * 20_000)
    assert "is not JSON" in cli(*reads[0]).err


def test_another_model_does_not_vouch_for_damaged_files_of_the_first(
    finished: Path, cli: Cli, tmp_path: Path
) -> None:
    spoil(finished / "models" / "tiny-gpt2" / "preference.parquet")
    other = make_tiny_model(tmp_path / "other", seed=3, window=256)
    line = ("causality", "run", tmp_path / "own.toml", "-m", other, "-o", finished, "--tokens", 44, "--quiet")
    told = cli(*line)
    assert told.code == 2
    assert "preference.parquet was changed" in told.err


def test_the_report_of_a_study_is_written_again_from_its_folder(finished: Path, cli: Cli) -> None:
    record = json.loads((finished / "study.json").read_text(encoding="utf-8"))
    assert {"study", "felicity", "created", "command", "models"} <= set(record)
    before = (finished / "report.html").read_bytes()
    (finished / "report.html").unlink()
    assert cli("report", finished).code == 0
    assert (finished / "report.html").read_bytes() == before


def test_two_models_of_one_name_are_refused_before_either_is_scored(cli: Cli, tmp_path: Path) -> None:
    models = [make_tiny_model(tmp_path / place / "same", seed=1) for place in ("a", "b")]
    design = write_design(tmp_path)
    said = cli("causality", "run", design, "-m", models[0], "-m", models[1], "-o", tmp_path / "run", "-q")
    assert said.code == 2
    assert "Two models are called 'same'" in said.err
    assert not (tmp_path / "run" / "models").exists()


def test_a_policy_field_that_a_model_does_not_use_is_refused(
    cli: Cli, small_model: Path, tmp_path: Path
) -> None:
    design = write_design(tmp_path)
    asked = ("-m", small_model, "-o", tmp_path / "run", "--policy", "pll=original", "-q")
    said = cli("causality", "run", design, *asked)
    assert said.code == 2
    assert "does not use --policy pll" in said.err
