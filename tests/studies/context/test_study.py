"""The context study as a whole: from a dataset and a small model to tables and a page."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput, NotPossible
from felicity.core.policy import Policy
from felicity.core.sweep import KINDS
from felicity.data.pairs import Columns
from felicity.engines.token_counter import open_counter
from felicity.studies.context.plan import plan_study
from felicity.studies.context.scoring import Forecast
from felicity.studies.context.settings import Setting, parse_lengths
from felicity.studies.context.study import Finished, plan_in, run_study
from tests.conftest import Answer, make_tiny_model
from tests.engines.shapes import make_masked

OWN = ("matched_acceptable", "matched_unacceptable", "mismatched_acceptable", "mismatched_unacceptable")


@pytest.fixture(scope="session")
def wide_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small random model that reads a few hundred tokens."""
    return make_tiny_model(tmp_path_factory.mktemp("wide") / "wide-gpt2", seed=3, window=1024)


def make_setting(model: Path, **changes: object) -> Setting:
    given: dict[str, object] = {
        "dataset": "starter",
        "columns": Columns(phenomenon="binding"),
        "lengths": (0, 40, 80, 160),
        "kinds": OWN,
        "tokenizer": str(model),
        "sample": 4,
    }
    return Setting(**(given | changes))  # type: ignore[arg-type]


def study(setting: Setting, folder: Path, *models: str, **options: object) -> Finished:
    planned = plan_in(folder, setting, lambda: open_counter(setting.tokenizer))
    opened = [lambda spec=spec: fe.model(spec, cache=False) for spec in models or (setting.tokenizer,)]
    return run_study(planned, opened, folder, report=False, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def done(wide_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    setting = make_setting(wide_model)
    folder = tmp_path_factory.mktemp("study")
    planned = plan_in(folder, setting, lambda: open_counter(setting.tokenizer))
    return run_study(planned, [lambda: fe.model(str(wide_model), cache=False)], folder)


def test_delta_accuracy_recomputed_from_the_tables_equals_the_estimates(done: Finished) -> None:
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


def test_every_score_is_that_of_the_text_behind_its_context(done: Finished, wide_model: Path) -> None:
    scores = pl.read_parquet(done.folder / "models" / "wide-gpt2" / "scores.parquet").filter(measure="lp")
    texts = done.planned.contexts.select("context", "context_text").unique("context")
    asked = done.planned.requests.join(texts, on="context", how="left").sample(60, seed=1)
    plain = fe.model(str(wide_model), cache=False)
    direct = [
        plain.score(text, context=context)["lp"][0] for text, context in asked["text", "context_text"].rows()
    ]
    known = dict(scores["request", "value"].rows())
    for request, value in zip(asked["request"], direct, strict=True):
        assert known[request] == pytest.approx(value, abs=1e-4)


def test_scores_in_context_are_those_of_minicons(done: Finished, wide_model: Path) -> None:
    from minicons.scorer import IncrementalLMScorer
    from transformers import AutoModelForCausalLM, AutoTokenizer

    # minicons puts no begin token before a context, and counts a space between the two to the text.
    ours = fe.model(str(wide_model), policy=Policy.compat("minicons"), cache=False)
    tokenizer = AutoTokenizer.from_pretrained(wide_model)
    tokenizer.pad_token = tokenizer.eos_token
    peer = IncrementalLMScorer(AutoModelForCausalLM.from_pretrained(wide_model), "cpu", tokenizer=tokenizer)
    texts = done.planned.contexts.select("context", "context_text").unique("context")
    asked = done.planned.requests.join(texts, on="context").sample(40, seed=2)
    contexts, sentences = asked["context_text"].to_list(), asked["text"].to_list()
    theirs = peer.conditional_score(contexts, sentences, reduction=lambda scores: scores.sum(0).item())
    for mine, other in zip(ours.score(sentences, context=contexts)["lp"], theirs, strict=True):
        assert mine == pytest.approx(other, abs=1e-3)


def test_a_study_broken_off_goes_on_and_ends_the_same(
    done: Finished, wide_model: Path, tmp_path: Path, empty_cache: Path
) -> None:
    setting = make_setting(wide_model)

    def stop(suite: str, finished: int, total: int) -> None:
        if finished > total // 2:
            raise KeyboardInterrupt

    planned = plan_in(tmp_path, setting, lambda: open_counter(setting.tokenizer))
    models = [lambda: fe.model(str(wide_model))]
    with pytest.raises(KeyboardInterrupt):
        run_study(planned, models, tmp_path, progress=lambda _: stop)
    begun: list[int] = []
    planned = plan_in(tmp_path, setting, lambda: pytest.fail("contexts are drawn once"))  # type: ignore[arg-type,return-value]
    again = run_study(
        planned,
        models,
        tmp_path,
        progress=lambda _: lambda suite, now, total: begun.append(now),
        report=False,
    )
    assert again.judgements.equals(done.judgements)
    assert again.findings.curves.equals(done.findings.curves)
    # What was scored before the interrupt counts as done from the start.
    assert begun[0] > 0
    assert begun[-1] == len(planned.requests)


def test_two_models_stand_behind_the_same_contexts(wide_model: Path, tmp_path: Path) -> None:
    other = make_tiny_model(tmp_path / "other-gpt2", seed=9, window=1024)
    setting = make_setting(wide_model, sample=2, lengths=(0, 60))
    found = study(setting, tmp_path / "study", str(wide_model), str(other))
    assert found.judgements["model"].unique().sort().to_list() == ["other-gpt2", "wide-gpt2"]
    for _, part in found.judgements.group_by("item", "kind", "length"):
        assert part["context"].n_unique() == 1
    taken = study(
        make_setting(other, sample=2, lengths=(0, 60)), tmp_path / "again", str(other)
    )  # its own tokenizer cuts elsewhere or not at all, but the table can be handed on
    handed = plan_study(setting, lambda _: [], given=found.folder / "contexts.parquet")
    assert handed.contexts.equals(found.planned.contexts)
    assert handed.requests.equals(found.planned.requests)
    assert set(taken.planned.items["item"]) == set(found.planned.items["item"])


def test_python_asks_for_the_same_study(done: Finished, wide_model: Path, tmp_path: Path) -> None:
    lm = fe.model(str(wide_model), cache=False)
    asked = fe.study_context(
        "starter",
        lm,
        out=tmp_path,
        lengths=[0, 40, 80, 160],
        kinds=list(OWN),
        columns=Columns(phenomenon="binding"),
        sample=4,
        report=False,
    )
    assert asked.judgements.equals(done.judgements)
    assert asked.report is None


def test_a_folder_of_another_study_is_refused(done: Finished, wide_model: Path) -> None:
    with pytest.raises(BadInput, match=r"another seed \(0, not 1\)"):
        plan_in(done.folder, make_setting(wide_model, seed=1), lambda: open_counter(str(wide_model)))


def test_shared_contexts_are_a_random_effect(wide_model: Path, tmp_path: Path) -> None:
    found = study(make_setting(wide_model, contexts_per_suite=2, sample=8), tmp_path)
    behind = found.judgements.filter(pl.col("kind") != "none")
    readers = behind.group_by("series").agg(pl.col("item").n_unique())["item"]
    assert readers.to_list() == [4] * len(readers)
    assert "(1 | series)" in found.findings.terms["formula"][0]


def test_suites_before_suites_make_a_matrix_and_perturbations_a_scatter(
    wide_model: Path, tmp_path: Path
) -> None:
    setting = make_setting(
        wide_model,
        kinds=("matched_acceptable",),
        from_suites=("all",),
        perturbations=("adverb_before", "quotation", "all"),
        unit="sentences",
        lengths=(0, 3),
        contexts_per_suite=1,
        sample=2,
    )
    found = study(setting, tmp_path)
    suites = found.planned.items["suite"].n_unique()
    assert len(found.findings.matrix) == 2 * suites**2
    assert found.findings.matrix["token_f1"].is_between(0, 1).all()
    points = found.findings.points.filter(
        link="perturbation similarity and change", kind="matched_acceptable"
    )
    alike = dict(points["name", "x"].rows())
    assert alike["none"] == 1.0
    assert alike["none"] > alike["adverb_before"] > alike["all"] > 0


def test_formulas_are_judged_in_context_with_their_critical_regions(
    published: Callable[[str], Path], wide_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FELICITY_DATA", str(published("syntaxgym").parent))
    setting = make_setting(
        wide_model, dataset="syntaxgym", columns=Columns(suite="number_prep"), kinds=OWN[:2], sample=2,
        lengths=(0, 30),
    )  # fmt: skip
    found = study(setting, tmp_path)
    assert found.judgements["measure"].unique().to_list() == ["surprisal_bits"]
    assert found.judgements["ppl_margin"].null_count() == len(found.judgements)
    regions = found.findings.regions
    assert regions["name"].unique().to_list() == ["matrix_v"]
    assert sorted(regions["length"].unique()) == [0, 30]


def test_crows_pairs_takes_the_less_stereotyping_sentence_as_acceptable(
    published: Callable[[str], Path], wide_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FELICITY_DATA", str(published("crows_pairs").parent))
    setting = make_setting(wide_model, dataset="crows_pairs", columns=None, sample=1, lengths=(0, 50))
    planned = plan_study(setting, open_counter(str(wide_model)))
    assert planned.dataset.method == "less"


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
    setting = Setting(
        dataset=str(pairs), tokenizer=str(masked), unit="sentences", lengths=(0, 1), kinds=OWN[:1]
    )
    planned = plan_in(tmp_path / "study", setting, lambda: open_counter(str(masked)))
    found = run_study(planned, [lambda: fe.model(str(masked), cache=False)], tmp_path / "study", report=False)
    assert found.judgements.filter(pl.col("kind") != "none").height == len(animals)


def test_contexts_are_never_shortened_behind_the_users_back(wide_model: Path, tmp_path: Path) -> None:
    narrow = make_tiny_model(tmp_path / "narrow", seed=1, window=64)
    setting = make_setting(wide_model, sample=1, lengths=(0, 160), kinds=OWN[2:3])
    planned = plan_in(tmp_path / "study", setting, lambda: open_counter(str(wide_model)))
    lm = fe.model(str(narrow), policy=Policy(overflow="drop"), cache=False)
    with pytest.raises(BadInput, match="--overflow drop would shorten"):
        run_study(planned, [lambda: lm], tmp_path / "study", report=False)


def test_a_study_taken_up_again_forecasts_what_is_left(
    wide_model: Path, tmp_path: Path, empty_cache: Path
) -> None:
    setting = make_setting(wide_model, sample=2)

    def stop(suite: str, finished: int, total: int) -> None:
        if finished > total // 2:
            raise KeyboardInterrupt

    told: list[Forecast] = []
    for progress in (stop, lambda *_: None):
        planned = plan_in(tmp_path, setting, lambda: open_counter(setting.tokenizer))
        with contextlib.suppress(KeyboardInterrupt):
            run_study(
                planned,
                [lambda: fe.model(str(wide_model))],
                tmp_path,
                progress=lambda _, chosen=progress: chosen,
                on_forecast=lambda _, forecast: told.append(forecast),
                report=False,
            )
    assert told[1].requests < 0.6 * told[0].requests


def test_a_forecast_comes_before_the_work_and_counts_all_of_it(wide_model: Path, tmp_path: Path) -> None:
    told: list[Forecast] = []
    found = study(
        make_setting(wide_model, sample=2), tmp_path, on_forecast=lambda _, forecast: told.append(forecast)
    )
    # Some items have the same sentence, which is scored once.
    asked = found.planned.requests.unique(["context", "text"], maintain_order=True)
    pilot = asked.filter(pl.col("item") == asked["item"][0])
    assert told[0].requests == len(asked) - len(pilot)
    assert told[0].seconds > 0


def test_a_rule_without_sentences_to_compare_is_refused(
    published: Callable[[str], Path], wide_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FELICITY_DATA", str(published("lau2020").parent))
    with pytest.raises(NotPossible, match="cannot be judged in contexts"):
        plan_study(make_setting(wide_model, dataset="lau2020", columns=None), open_counter(str(wide_model)))


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
    assert (tmp_path / "out" / "report.html").exists()
    assert {path.name for path in (tmp_path / "out").glob("*.csv")} >= {"estimates.csv", "suites.csv"}


def test_the_command_forecasts_without_a_study(
    cli: Callable[..., Answer], wide_model: Path, tmp_path: Path
) -> None:
    answer = cli(
        *COMMAND, "-m", wide_model, "--sentences", "0,2", "--kind", OWN[0], "--forecast", "--json", "-o",
        tmp_path / "out",
    )  # fmt: skip
    assert json.loads(answer.out)["forecast"][0]["texts"] > 0
    assert not (tmp_path / "out" / "estimates.csv").exists()


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
