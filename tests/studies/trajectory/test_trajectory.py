"""Learning curves over the checkpoints of small trainings, resumed with more of them."""

from pathlib import Path

import pytest

import felicity as fe
from felicity.core.errors import BadInput
from felicity.engines import list_checkpoints
from felicity.studies import STUDIES
from tests.conftest import make_tiny_model


@pytest.fixture(scope="module")
def trainings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders with three random models each, named like checkpoints."""
    place = tmp_path_factory.mktemp("trainings")
    for seed, training in enumerate(("one", "two")):
        for number, step in enumerate((10, 100, 1000)):
            make_tiny_model(place / training / f"checkpoint-{step}", seed=10 * seed + number, window=256)
    return place


def test_checkpoints_are_found_in_folders_patterns_and_revisions(trainings: Path) -> None:
    assert "trajectory" in STUDIES
    names = ["one-checkpoint-10", "one-checkpoint-100", "one-checkpoint-1000"]
    assert [point.name for point in list_checkpoints(str(trainings / "one"))] == names
    assert [point.name for point in list_checkpoints(str(trainings / "one" / "checkpoint-*"))] == names
    revisions = list_checkpoints("org/model@chck_100M,chck_1M")
    assert [(point.spec, point.step) for point in revisions] == [
        ("org/model@chck_1M", 1e6),
        ("org/model@chck_100M", 1e8),
    ]


def test_what_has_no_checkpoints_or_no_order_is_refused(trainings: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no checkpoints"):
        list_checkpoints(str(tmp_path))
    with pytest.raises(BadInput, match="has no number"):
        list_checkpoints("org/model@main,final")
    with pytest.raises(BadInput, match="Two checkpoints"):
        list_checkpoints("org/model@step1,epoch1")
    with pytest.raises(BadInput, match="has one checkpoint"):
        fe.trajectory("starter", sample=1, models=[str(trainings / "one" / "checkpoint-1000*")])


def test_curves_are_those_of_single_runs_and_resume_with_more(trainings: Path, tmp_path: Path) -> None:
    first = str(trainings / "one")
    study = fe.trajectory("starter", sample=3, models=[first], out=tmp_path / "curve")
    assert study["curves"].filter(suite="all suites")["step"].to_list() == [10, 100, 1000]
    lm = fe.model(str(trainings / "one" / "checkpoint-100"))
    alone = fe.evaluate("starter", lm, sample=3).accuracy(by="macro")["accuracy"].item()
    assert study["curves"].filter(suite="all suites", step=100)["accuracy"].item() == pytest.approx(alone)
    both = fe.trajectory("starter", sample=3, models=[first, str(trainings / "two")], out=tmp_path / "curve")
    assert both["acquisition"]["training"].unique().sort().to_list() == ["one", "two"]
    assert both["curves"].filter(training="one").equals(study["curves"])
    page = (tmp_path / "curve" / "report.html").read_text(encoding="utf-8")
    assert "Order of acquisition" in page


def test_training_keeps_checkpoints_that_can_be_scored(tmp_path: Path) -> None:
    from felicity.engines.trained import TrainingSettings, prepare, train

    corpus = tmp_path / "corpus.txt"
    corpus.write_text("the cat sleeps .\nthe cats sleep .\n" * 100)
    settings = TrainingSettings(
        embedding=8, hidden=8, min_count=1, epochs=2, batch=4, dropout=0.0, casing="keep"
    )
    prepared = prepare(corpus, settings)
    train(prepared, tmp_path / "lstm", settings, kept=[200, 1200])
    points = list_checkpoints(str(tmp_path / "lstm" / "checkpoints"))
    assert [(point.training, point.step) for point in points] == [("lstm", 200), ("lstm", 1200)]
    scores = [fe.model(point.spec).score("the cat sleeps .")["lp"][0] for point in points]
    assert scores[0] < scores[1]
