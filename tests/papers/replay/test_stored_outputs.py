"""Stored outputs of other programs give their published accuracies to the digit, with ties both ways."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.core.errors import BadInput
from felicity.papers.replay import replay_file


def read_estimates(path: Path, level: str, name: str = "all") -> dict[str, float]:
    found = replay_file(path).estimate().filter(level=level, name=name)
    return {row["measure"]: row["accuracy"] for row in found.iter_rows(named=True)}


# Table 1 and 2 of Gulordava et al. (2018), as their stored log-probabilities give them: original and nonce.
LSTM = {"English": (0.8049, 0.7182), "Italian": (0.9076, 0.8478), "Hebrew": (0.9517, 0.7980)}


@pytest.mark.data
@pytest.mark.parametrize("language", LSTM)
def test_the_best_lstm_of_gulordava_agrees_as_published(
    language: str, published: Callable[[str], Path]
) -> None:
    path = published(f"gulordava/data/evaluation_output/{language}/best_model.tab.gz")
    for kind, expected in zip(("original", "nonce"), LSTM[language], strict=True):
        strict, half = read_estimates(path, "phenomenon", kind).values()
        assert strict == pytest.approx(expected, abs=5e-5)
        assert half >= strict


@pytest.mark.data
def test_zorro_gives_the_accuracy_of_roberta(published: Callable[[str], Path]) -> None:
    strict, half = read_estimates(
        published("zorro/reference/huggingface_RoBERTa-base_Liu2019"), "macro"
    ).values()
    assert 100 * strict == pytest.approx(82.489, abs=5e-4)
    # 44 pairs have the same score to the four digits that are stored.
    assert half - strict == pytest.approx(22 / 46_000)


# The reports of the pipeline, in the folders of the stored outputs.
SCORES = {"opt-1024-warmup": (65.37, 24.26, 51.50), "mamba-1024": (56.99, 21.52, 62.50)}


@pytest.mark.data
@pytest.mark.parametrize("model", SCORES)
def test_babylm_scores_come_out_of_the_chosen_sentences(model: str, published: Callable[[str], Path]) -> None:
    tasks = ("supplement_filtered", "entity_tracking", "wug_adj_nominalization")
    for task, expected in zip(tasks, SCORES[model], strict=True):
        folder = published(f"babylm2025/results/{model}/{task}")
        path = next(folder.glob("predictions.json*"))
        found = read_estimates(path, "macro")
        assert list(found) == [f"{model}, ties right", f"{model}, ties half"]
        # No stored output is of a pair with two equal sentences.
        assert [round(100 * value, 2) for value in found.values()] == [expected, expected]


@pytest.mark.data
@pytest.mark.parametrize(("model", "expected"), [("opt-1024-warmup", 75.74), ("mamba-1024", 66.28)])
def test_babylm_reports_give_the_mean_over_uids(
    model: str, expected: float, published: Callable[[str], Path]
) -> None:
    path = published(f"babylm2025/results/{model}/blimp_filtered/best_temperature_report.txt")
    assert 100 * read_estimates(path, "macro")[model] == pytest.approx(expected, abs=5e-3)


def test_a_table_of_agreement_counts_ties_both_ways(tmp_path: Path) -> None:
    head = "pattern\tconstr_id\tsent_id\tform\tclass\ttype\tprefix\tmodel"
    rows = [
        "L__NOUN\t1\t0\tis\tcorrect\toriginal\tThe cat\t-1.0",
        "L__NOUN\t1\t0\tare\twrong\toriginal\tThe cat\t-1.0",
        "L__NOUN\t2\t0\tis\tcorrect\toriginal\tA dog\t-1.0",
        "L__NOUN\t2\t0\tare\twrong\toriginal\tA dog\t-2.0",
    ]
    path = tmp_path / "best.tab"
    path.write_text("\n".join([head, *rows]) + "\n")
    assert list(read_estimates(path, "overall").values()) == [0.5, 0.75]
    path.write_text("\n".join([head, *rows[:3]]) + "\n")
    with pytest.raises(BadInput, match="without both forms"):
        replay_file(path)
    path.write_text("pattern\tclass\nL\tcorrect\n")
    with pytest.raises(BadInput, match="no column 'constr_id'"):
        replay_file(path)


@pytest.mark.data
def test_chosen_sentences_of_another_number_are_refused(
    tmp_path: Path, published: Callable[[str], Path]
) -> None:
    published("babylm_supplement")
    path = tmp_path / "predictions.json"
    path.write_text(json.dumps({"hypernym": {"predictions": [{"id": "hypernym_0", "pred": "It rains."}]}}))
    with pytest.raises(BadInput, match="1 answers for 'hypernym', which has 842 items"):
        replay_file(path)


def test_a_damaged_line_of_zorro_is_named(tmp_path: Path) -> None:
    (tmp_path / "probing_case-pronoun_results_500000.txt").write_text("he runs . 0.5\nhim runs .\n")
    with pytest.raises(BadInput, match="line 2: not a sentence with a score"):
        replay_file(tmp_path)
