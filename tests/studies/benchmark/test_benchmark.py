"""A benchmark: tasks by models, as published and corrected, and the form of BabyLM's collation."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import felicity as fe
from felicity.core.errors import BadInput, UnknownName
from felicity.data import find_benchmark, find_entry, load_benchmarks
from felicity.data.benchmarks import build_benchmark
from felicity.run import RunFolder
from felicity.stats import measure_reading
from felicity.studies import STUDIES
from felicity.studies.benchmark.collation import write_predictions
from felicity.studies.benchmark.scores import CORRECTED, PUBLISHED, score_task
from tests.conftest import make_tiny_model


@pytest.fixture(scope="module")
def wide_model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A random model whose window holds the items of these tasks."""
    return str(make_tiny_model(tmp_path_factory.mktemp("wide") / "wide-gpt2", seed=2, window=512))


def test_every_task_of_a_benchmark_has_a_dataset() -> None:
    assert "benchmark" in STUDIES
    for benchmark in load_benchmarks().values():
        for task in benchmark.tasks:
            assert find_entry(task.dataset).languages == (benchmark.language,)


def test_an_unknown_benchmark_or_score_suggests_the_near_one() -> None:
    with pytest.raises(UnknownName, match="did you mean 'babylm'"):
        find_benchmark("babylmm")
    task = {"title": "T", "dataset": "blimp", "score": "makro", "chance": 0.5}
    with pytest.raises(UnknownName, match="did you mean 'macro'"):
        build_benchmark({"name": "x", "title": "X", "home": "", "language": "en", "tasks": {"t": task}})


def judge(passed: list[float], suites: list[str], margin: list[float]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "item": [f"{suite}/{place}" for place, suite in enumerate(suites)],
            "suite": suites,
            "phenomenon": suites,
            "measure": "lp",
            "rule": "pair",
            "passed": passed,
            "margin": margin,
            "stable": True,
        }
    )


def test_ties_are_right_as_published_and_half_corrected(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    run.write("judgements", judge([1.0, 0.5, 0.0, 1.0], ["a", "a", "b", "b"], [1.0, 0.0, -1.0, 1.0]))
    published, corrected = (score_task(run, "macro", version) for version in (PUBLISHED, CORRECTED))
    assert (published["score"], corrected["score"]) == (75.0, 62.5)
    assert published["ties"] == corrected["ties"] == 1


def test_made_up_adjectives_are_scored_by_rank_correlation(tmp_path: Path) -> None:
    run = RunFolder(tmp_path)
    suites = ["wug"] * 5
    judged = judge([1.0, 1.0, 0.0, 0.0, 1.0], suites, [2.0, 1.0, -1.0, -2.0, 0.5])
    run.write("judgements", judged)
    ratios = pl.Series("ratio", ["0.9", "0.8", "0.3", "0.1", "0.85"])
    run.write(
        "items",
        judged.select("item", "suite", "phenomenon", condition=pl.lit("good"), text=pl.lit("x")).with_columns(
            ratios
        ),
    )
    # scipy.stats.spearmanr([2, 1, -1, -2, .5], [.9, .8, .3, .1, .85]) = 0.9
    assert score_task(run, "correlation", CORRECTED)["score"] == pytest.approx(90.0)


@pytest.mark.data
@pytest.mark.parametrize(
    ("model", "eye", "paced"), [("opt-1024-warmup", 0.3975, 0.0269), ("mamba-1024", 0.3041, 0.0961)]
)
def test_reading_scores_of_stored_surprisals_are_those_of_the_pipeline(
    model: str, eye: float, paced: float, published: Callable[[str], Path]
) -> None:
    content = gzip.decompress(published("babylm2025/reading/reading_data.csv.gz").read_bytes())
    table = pl.read_csv(content, infer_schema_length=None)
    names = {
        "sent_id": "text",
        "context_length": "position",
        "Subtlex_log10": "frequency",
        "prev_length": "length_1",
    }
    with gzip.open(published(f"babylm2025/results/{model}/reading/prediction.jsonl.gz"), "rt") as file:
        stored = [json.loads(line) for line in file]
    words = table.rename(names).with_columns(
        sentence=pl.lit(1),
        surprisal=pl.Series([line["Logprob"] for line in stored]),
        surprisal_1=pl.Series([line["Prev_Logprob"] for line in stored]),
    )
    assert measure_reading(words, "eye_tracking").share == pytest.approx(eye, abs=5e-5)
    assert measure_reading(words, "self_paced").share == pytest.approx(paced, abs=5e-5)


@pytest.mark.data
def test_a_benchmark_runs_resumes_and_writes_predictions(
    wide_model: str, tmp_path: Path, published: Callable[[str], Path]
) -> None:
    published("babylm2025")
    asked = {"tasks": ["wug_adj", "eye_tracking", "self_paced"], "models": [wide_model]}
    study = fe.benchmark("babylm", out=tmp_path / "babylm", **asked)
    scores = study["scores"]
    tasks = scores["task"].unique(maintain_order=True).to_list()
    assert tasks == ["wug_adj", "eye_tracking", "self_paced", "average"]
    assert scores.filter(task="average", version=CORRECTED)["score"].item() == pytest.approx(
        scores.filter(pl.col("task") != "average", version=CORRECTED)["score"].mean()
    )
    assert study["reading"].height == 6
    assert fe.benchmark("babylm", out=tmp_path / "babylm", **asked)["scores"].equals(scores)
    (path,) = write_predictions(tmp_path / "babylm", tmp_path / "predictions.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    assert set(content) == {"wug_adj", "reading"}
    first = content["wug_adj"]["wug_adj_nominalization"]["predictions"][0]
    assert first["id"] == "wug_adj_nominalization_0"
    assert 0 < first["prob"] < 1
    words = content["reading"]["reading"]["predictions"]
    assert (len(words), words[0]["id"]) == (1_726, 0)
    assert words[19]["prev_pred"] is None
    assert "Reading scores" in (tmp_path / "babylm" / "report.html").read_text(encoding="utf-8")


@pytest.mark.data
def test_predictions_of_a_sample_are_refused(
    wide_model: str, tmp_path: Path, published: Callable[[str], Path]
) -> None:
    published("babylm_supplement")
    both = [wide_model, str(make_tiny_model(tmp_path / "other", seed=5, window=512))]
    fe.benchmark("babylm", tasks=["blimp_supplement"], sample=1, models=both, out=tmp_path / "few")
    assert "Models in pairs" in (tmp_path / "few" / "report.html").read_text(encoding="utf-8")
    with pytest.raises(BadInput, match="run without --sample"):
        write_predictions(tmp_path / "few", tmp_path / "predictions.json")
    with pytest.raises(UnknownName, match="did you mean 'blimp'"):
        fe.benchmark("babylm", tasks=["blimpp"], models=[wide_model])
