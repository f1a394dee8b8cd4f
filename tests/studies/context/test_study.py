"""The context study as a whole: from a dataset and a small model to tables and a page."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.core.sweep import KINDS
from felicity.run import Model
from felicity.studies import NamedModel, Study, analyse_study, carry_out_study, read_study
from felicity.studies.context.settings import ContextSettings, parse_lengths
from felicity.studies.context.sweep_design import choose_design
from tests.conftest import Answer, make_tiny_model
from tests.engines.shapes import make_masked

OWN = ("matched_acceptable", "matched_unacceptable", "mismatched_acceptable", "mismatched_unacceptable")
ASKED = {
    "dataset": "starter",
    "phenomenon": "binding",
    "lengths": (0, 40, 80, 160),
    "kinds": OWN,
    "sample": 4,
}


@pytest.fixture(scope="session")
def wide_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random model that reads a few hundred tokens."""
    return make_tiny_model(tmp_path_factory.mktemp("wide") / "wide-gpt2", seed=3, window=1024)


def carry_out(out: Path, *models: Path | Model, report: bool = False, **changes: Any) -> Study:
    """The study of ASKED, with some settings changed; models that are named are not cached."""
    given = [model if isinstance(model, Model) else fe.model(str(model), cache=False) for model in models]
    return fe.context(models=given, out=out, report=report, **(ASKED | changes))  # type: ignore[attr-defined,no-any-return]


def read_judgements(study: Study) -> pl.DataFrame:
    return pl.concat(
        study.run(name)["judgements"].with_columns(pl.lit(name).alias("model")) for name in study.runs
    )


@pytest.fixture(scope="module")
def done(wide_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Study:
    return carry_out(tmp_path_factory.mktemp("study") / "out", wide_model, report=True)


def test_delta_accuracy_recomputed_from_the_tables_equals_the_estimates(done: Study) -> None:
    judged = pl.read_parquet(done.folder / "models" / "wide-gpt2" / "judgements.parquet").to_dicts()
    kept = pl.read_csv(done.folder / "estimates.csv").filter(pl.col("level") == "overall")
    without = {row["item"]: row["passed"] for row in judged if row["kind"] == "none"}
    cells = kept.filter(pl.col("kind") != "none").to_dicts()
    assert len(cells) == 4 * 3
    for cell in cells:
        changes = [
            row["passed"] - without[row["item"]]
            for row in judged
            if (row["kind"], row["length"]) == (cell["kind"], cell["length"])
        ]
        assert cell["n"] == len(changes)
        assert cell["delta"] == pytest.approx(sum(changes) / len(changes), abs=1e-12)


def test_every_table_has_one_name_on_disk_and_in_python(done: Study) -> None:
    assert list(done.tables) == ["estimates", "regressions", "points", "correlations", "suite_changes"]
    assert {path.stem for path in done.folder.glob("*.csv")} == set(done.tables)
    assert {path.stem for path in done.folder.glob("*.parquet")} == {"items", "contexts", "requests", "sides"}


def test_every_score_is_that_of_the_text_behind_its_context(done: Study, wide_model: Path) -> None:
    scores = pl.read_parquet(done.folder / "models" / "wide-gpt2" / "scores.parquet").filter(measure="lp")
    texts = done.place.read("contexts").select("context", "context_text").unique("context")
    asked = done.place.read("requests").join(texts, on="context", how="left").sample(60, seed=1)
    plain = fe.model(str(wide_model), cache=False)
    direct = [
        plain.score(text, context=context)["lp"][0] for text, context in asked["text", "context_text"].rows()
    ]
    known = dict(scores["request", "value"].rows())
    for request, value in zip(asked["request"], direct, strict=True):
        assert known[request] == pytest.approx(value, abs=1e-4)


def test_scores_in_context_are_those_of_minicons(done: Study, wide_model: Path) -> None:
    from minicons.scorer import IncrementalLMScorer
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # minicons puts no begin token before a context, and counts a space between the two to the text.
    ours = fe.model(str(wide_model), policy=Policy.compat("minicons"), cache=False)
    tokenizer = AutoTokenizer.from_pretrained(wide_model)
    tokenizer.pad_token = tokenizer.eos_token
    peer = IncrementalLMScorer(AutoModelForCausalLM.from_pretrained(wide_model), "cpu", tokenizer=tokenizer)
    texts = done.place.read("contexts").select("context", "context_text").unique("context")
    asked = done.place.read("requests").join(texts, on="context").sample(40, seed=2)
    contexts, sentences = asked["context_text"].to_list(), asked["text"].to_list()
    theirs = peer.conditional_score(contexts, sentences, reduction=lambda scores: scores.sum(0).item())
    for mine, other in zip(ours.score(sentences, context=contexts)["lp"], theirs, strict=True):
        assert mine == pytest.approx(other, abs=1e-3)


def stop_halfway(suite: str, finished: int, total: int) -> None:
    if finished > total // 2:
        raise KeyboardInterrupt


def test_a_study_broken_off_goes_on_and_ends_the_same(
    done: Study, wide_model: Path, tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = partial(carry_out_study, "context", ASKED, str(wide_model), out=tmp_path, report=False)
    with pytest.raises(KeyboardInterrupt):
        go_on(progress=stop_halfway)
    begun: list[int] = []
    monkeypatch.setattr(
        "felicity.studies.context.sweep_plan.open_counter", lambda _: pytest.fail("contexts are drawn once")
    )
    again = go_on(progress=lambda suite, now, total: begun.append(now))
    assert read_judgements(again).equals(read_judgements(done))
    for name, table in done.tables.items():
        assert again[name].equals(table), name
    # What was scored before the interrupt counts as done from the start.
    assert begun[0] > 0
    assert begun[-1] == again.facts["sizes"]["texts"]


def test_two_models_stand_behind_the_same_contexts(wide_model: Path, tmp_path: Path) -> None:
    other = make_tiny_model(tmp_path / "other-gpt2", seed=9, window=1024)
    found = carry_out(tmp_path / "study", wide_model, other, sample=2, lengths=(0, 60))
    judged = read_judgements(found)
    assert judged["model"].unique().sort().to_list() == ["other-gpt2", "wide-gpt2"]
    for _, part in judged.group_by("item", "kind", "length"):
        assert part["context"].n_unique() == 1
    handed = fe.context(  # type: ignore[attr-defined]
        "starter",
        phenomenon="binding",
        models=fe.model(str(other), cache=False),
        contexts=tmp_path / "study" / "contexts.parquet",
        out=tmp_path / "handed",
        report=False,
    )
    for name in ("contexts", "requests", "items"):
        assert handed.place.read(name).equals(found.place.read(name)), name
    assert handed["estimates"].equals(found["estimates"].filter(model="other-gpt2"))


def test_the_command_asks_for_the_same_study_as_python(
    cli: Callable[..., Answer], done: Study, wide_model: Path, tmp_path: Path
) -> None:
    kinds = [word for kind in OWN for word in ("--kind", kind)]
    grid = ("--lengths", "0,40,80,160", "--phenomenon", "binding", "--sample", 4)
    asked = ("context", "starter", "-m", wide_model, *grid, *kinds, "--no-cache")
    answer = cli(*asked, "-o", tmp_path / "out", "-q", "--no-report")
    assert answer.code == 0, answer.err
    kept = fe.read(tmp_path / "out")
    for name, table in done.tables.items():
        assert kept[name].equals(table), name  # type: ignore[index]
    assert not (tmp_path / "out" / "report.html").exists()
    # The same lengths in another order are the same study, others are not.
    assert cli(*asked[:5], "160,80,40,0", *asked[6:], "-o", tmp_path / "out", "-q").code == 0
    assert cli(*asked[:5], "0:160:40", *asked[6:], "-o", tmp_path / "out", "-q").code == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"seed": 1}, r"another seed \(none, now 1\)"), ({"length_tokenizer": "smollm2"}, "length tokenizer")],
)
def test_a_folder_of_another_study_is_refused(
    done: Study, wide_model: Path, changes: dict[str, Any], said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        carry_out(done.folder, wide_model, **changes)


def test_a_study_goes_on_only_with_the_tokens_it_counted(done: Study, tmp_path: Path) -> None:
    other = make_tiny_model(tmp_path / "other-gpt2", seed=9, window=1024)
    with pytest.raises(BadInput, match=r"another length tokenizer .*other-gpt2"):
        carry_out(done.folder, other)


def test_shared_contexts_are_a_random_effect(wide_model: Path, tmp_path: Path) -> None:
    found = carry_out(tmp_path, wide_model, contexts_per_suite=2, sample=8)
    behind = read_judgements(found).filter(pl.col("kind") != "none")
    readers = behind.group_by("series").agg(pl.col("item").n_unique())["item"]
    assert readers.to_list() == [4] * len(readers)
    assert "(1 | series)" in found["regressions"]["formula"][0]


def test_suites_before_suites_make_a_matrix_and_perturbations_a_scatter(
    wide_model: Path, tmp_path: Path
) -> None:
    found = carry_out(
        tmp_path,
        wide_model,
        kinds=("matched_acceptable",),
        from_suites="all",
        perturbations=("adverb_before", "quotation", "all"),
        lengths=None,
        sentences=(0, 3),
        contexts_per_suite=1,
        sample=2,
    )
    suites = found.facts["sizes"]["suites"]
    assert len(found["matrix"]) == 2 * suites**2
    assert found["matrix"]["token_f1"].is_between(0, 1).all()
    points = found["points"].filter(variables="perturbation similarity and change", kind="matched_acceptable")
    alike = dict(points["name", "x"].rows())
    assert alike["none"] == 1.0
    assert alike["none"] > alike["adverb_before"] > alike["all"] > 0


def test_formulas_are_judged_in_context_with_their_critical_regions(
    published: Callable[[str], Path], wide_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FELICITY_DATA", str(published("syntaxgym").parent))
    changes = {"dataset": "syntaxgym", "phenomenon": None, "suite": "number_prep", "sample": 2}
    found = carry_out(tmp_path, wide_model, **changes, kinds=OWN[:2], lengths=(0, 30))
    judged = read_judgements(found)
    assert judged["measure"].unique().to_list() == ["surprisal_bits"]
    assert judged["ppl_margin"].null_count() == len(judged)
    regions = found["regions"]
    assert regions["name"].unique().to_list() == ["matrix_v"]
    assert sorted(regions["length"].unique()) == [0, 30]


def test_crows_pairs_takes_the_less_stereotyping_sentence_as_acceptable(
    published: Callable[[str], Path], wide_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FELICITY_DATA", str(published("crows_pairs").parent))
    changes = {"dataset": "crows_pairs", "phenomenon": None, "sample": 1}
    found = carry_out(tmp_path, wide_model, **changes, lengths=(0, 50), kinds=OWN[:1])
    assert found.facts["method"] == "less"
    assert found.facts["score"]["name"] == "Anti-stereotyping score"


@pytest.mark.slow
def test_bfloat16_judges_as_float32_in_every_context(wide_model: Path, tmp_path: Path) -> None:
    """In a process of its own, as a user would; torch is not there yet when the processor is tried."""
    asked = [
        *(sys.executable, "-m", "felicity", "context", "starter", "--phenomenon", "binding", "--sample", "3"),
        *("-m", str(wide_model), "--sentences", "0:4:2", "--no-report", "--no-cache", "--json"),
        *(word for kind in OWN for word in ("--kind", kind)),
    ]
    judged = {}
    for dtype in ("bfloat16", "float32"):
        folder = tmp_path / dtype
        done = subprocess.run(
            [*asked, "--dtype", dtype, "-o", str(folder)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        judged[dtype] = pl.read_parquet(folder / "models" / "wide-gpt2" / "judgements.parquet")
        manifest = json.loads((folder / "models" / "wide-gpt2" / "manifest.json").read_text())
        assert ("precision" in manifest) == (dtype == "bfloat16")
    assert judged["bfloat16"]["passed"].equals(judged["float32"]["passed"])


def test_a_masked_model_is_studied_too(tmp_path: Path) -> None:
    masked = make_masked("bert", tmp_path / "bert")
    pairs = tmp_path / "pairs.csv"
    animals = ("cat", "dog", "cow", "pig", "hen")
    pairs.write_text("good,bad\n" + "".join(f"A {name} runs.,A {name} run.\n" for name in animals))
    changes = {"dataset": pairs, "phenomenon": None, "sample": None, "lengths": None, "sentences": (0, 1)}
    found = carry_out(tmp_path / "study", masked, **changes, kinds=OWN[0])
    assert read_judgements(found).filter(pl.col("kind") != "none").height == len(animals)


def test_contexts_are_never_shortened_behind_the_users_back(wide_model: Path, tmp_path: Path) -> None:
    narrow = make_tiny_model(tmp_path / "narrow", seed=1, window=64)
    lm = fe.model(str(narrow), policy=Policy(overflow="drop"), cache=False)
    changes = {"sample": 1, "lengths": (0, 160), "kinds": OWN[2:3], "length_tokenizer": str(wide_model)}
    with pytest.raises(BadInput, match="--overflow drop would shorten"):
        carry_out(tmp_path / "study", lm, **changes)


def count_texts(told: str) -> int:
    """The texts that a forecast promises."""
    return int(told.split(": ")[1].split(" texts")[0].replace(",", ""))


def test_a_study_taken_up_again_forecasts_what_is_left(
    wide_model: Path, tmp_path: Path, empty_cache: Path
) -> None:
    told: list[str] = []
    go_on = partial(
        carry_out_study, "context", ASKED | {"sample": 2}, str(wide_model), out=tmp_path, report=False
    )
    with pytest.raises(KeyboardInterrupt):
        go_on(progress=stop_halfway, notify=told.append)
    go_on(notify=told.append)
    first, second = (count_texts(text) for text in told if "texts to score" in text)
    assert second < 0.6 * first


def test_a_forecast_comes_before_the_work_and_counts_all_of_it(wide_model: Path, tmp_path: Path) -> None:
    told: list[str] = []
    lm = fe.model(str(wide_model), cache=False)
    found = carry_out_study(
        "context", ASKED | {"sample": 2}, lm, out=tmp_path, report=False, notify=told.append
    )
    # Some items have the same sentence, which is scored once.
    asked = found.place.read("requests").unique(["context", "text"], maintain_order=True)
    pilot = asked.filter(pl.col("item") == asked["item"][0])
    (forecast,) = (text for text in told if "texts to score" in text)
    assert forecast.startswith("wide-gpt2: ")
    assert count_texts(forecast) == len(asked) - len(pilot)


def test_a_rule_without_sentences_to_compare_is_refused(
    published: Callable[[str], Path], wide_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FELICITY_DATA", str(published("lau2020").parent))
    with pytest.raises(NotPossible, match="cannot be judged in contexts"):
        carry_out(tmp_path, wide_model, dataset="lau2020", phenomenon=None)


def test_a_frame_is_studied_and_analysed_again_with_a_formula_of_ones_own(
    wide_model: Path, tmp_path: Path
) -> None:
    verbs = ("run", "sleep", "eat", "sing", "win")
    pairs = pl.DataFrame(
        [(suite, f"A {suite} {verb}s.", f"A {suite} {verb}.") for suite in ("cat", "dog") for verb in verbs],
        schema=["suite", "good", "bad"],
        orient="row",
    )
    changes = {"dataset": pairs, "phenomenon": None, "lengths": None, "sentences": (0, 1, 2)}
    first = carry_out(tmp_path, wide_model, **changes)
    assert first["estimates"].filter(level="suite")["name"].unique().sort().to_list() == ["cat", "dog"]
    assert "own formula" not in "".join(first["regressions"]["analysis"])
    analyse_study(tmp_path, formula="length + (1|item)")
    again = read_study(tmp_path)
    assert "context (own formula)" in again["regressions"]["analysis"].to_list()
    assert again["estimates"].equals(first["estimates"])
    with pytest.raises(BadInput, match="'kinds' affects the scores"):
        analyse_study(tmp_path, kinds="unrelated")


def test_lengths_of_a_served_model_are_counted_by_its_local_tokenizer() -> None:
    served = NamedModel(name="x", spec="openai:x", opener=lambda _: pytest.fail("nothing is scored"))
    settings = ContextSettings(dataset="starter")
    with pytest.raises(BadInput, match="known only to its server; give the model's files"):
        choose_design(settings, served)
    assert choose_design(settings, replace(served, tokenizer="gpt2")).tokenizer == "gpt2"
    other = ContextSettings(dataset="starter", length_tokenizer="smollm2")
    assert choose_design(other, served).tokenizer == "smollm2"


@pytest.mark.parametrize("grid", ["", "0:900", "a,b", "-5,10", "0", "0:100:0"])
def test_lengths_that_are_none_are_refused(grid: str) -> None:
    with pytest.raises(BadInput, match="0:900:100"):
        parse_lengths(grid)


COMMAND = ("context", "starter", "--phenomenon", "binding", "--sample", 1, "--no-cache", "-q")


def test_the_command_writes_a_study_and_goes_on_with_it(
    cli: Callable[..., Answer], wide_model: Path, tmp_path: Path
) -> None:
    asked = (*COMMAND, "-m", wide_model, "--sentences", "0:2:1", "--kind", OWN[0], "-o", tmp_path / "out")
    for _ in range(2):
        answer = cli(*asked)
        assert answer.code == 0, answer.err
        assert "accuracy without context" in answer.out
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    # The answer comes before the design, and the command last.
    order = ["Does a preceding context change accuracy?", "o detectable difference", "How sure is this?"]
    order += ["What was done", "How this was made"]
    places = [page.index(text) for text in order]
    assert places == sorted(places)


def test_the_folder_of_a_study_is_explored_and_reported(
    cli: Callable[..., Answer], wide_model: Path, tmp_path: Path
) -> None:
    asked = (*COMMAND, "-m", wide_model, "--sentences", "0:2:1", "--kind", OWN[0], "-o", tmp_path / "out")
    assert cli(*asked, "--no-report").code == 0
    answer = cli("explore", tmp_path / "out", "--static", tmp_path / "page.html")
    assert answer.code == 0, answer.err
    assert '"contexts"' in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert cli("report", tmp_path / "out").code == 0
    assert (tmp_path / "out" / "figures" / "change_wide-gpt2.svg").exists()
    record = json.loads((tmp_path / "out" / "study.json").read_text(encoding="utf-8"))
    assert record["facts"]["design"]["unit"] == "sentences"


def test_the_command_forecasts_without_a_study(
    cli: Callable[..., Answer], wide_model: Path, tmp_path: Path
) -> None:
    answer = cli(
        *COMMAND, "-m", wide_model, "--sentences", "0,2", "--kind", OWN[0], "--forecast", "--json", "-o",
        tmp_path / "out",
    )  # fmt: skip
    assert json.loads(answer.out)["forecast"][0]["texts"] > 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--lengths", "0:900"), "0:900:100"),
        (("--lengths", "0,10", "--sentences", "2"), "give one of the two"),
        (("--sentences", "2", "--kind", "matched_acceptible"), "did you mean 'matched_acceptable'"),
        (("--sentences", "2", "--kind", "unrelated", "--text", "nowhere.txt"), "nowhere.txt"),
        (("--sentences", "2", "--kind", OWN[0], "--perturb", "adverb"), "adverb_"),
        (("--sentences", "2", "--from-suite", "nowhere"), "nowhere"),
        (("--contexts", "nowhere.parquet"), "its sample; omit one of the two"),
        (("--lengths", "0,2000", "--kind", OWN[2]), "--lengths"),
    ],
)
def test_a_study_that_cannot_be_is_refused_in_a_sentence(
    cli: Callable[..., Answer],
    wide_model: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("FELICITY_DATA", raising=False)
    answer = cli(*COMMAND, "-m", wide_model, "-o", tmp_path / "out", *options)
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.count("\n") == 1


def test_every_kind_is_offered_by_the_help(cli: Callable[..., Answer]) -> None:
    told = " ".join(cli("context", "--help").out.split())
    assert all(kind in told for kind in KINDS)
