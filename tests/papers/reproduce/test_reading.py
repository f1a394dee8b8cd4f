"""Published figures of reading times and N400, from published surprisals."""

from collections.abc import Callable
from pathlib import Path

import pytest

from felicity.core.files import data_folder
from felicity.papers.reproduce import check_paper, count_statuses, read_paper
from felicity.papers.reproduce.inputs import Files, find_inputs
from felicity.papers.reproduce.reading import (
    babylm_regression,
    babylm_score,
    kuribayashi_delta,
    michaelov_anova,
)

Published = Callable[[str], Path]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("devarda2023", {"holds": 3 * 165}),
        ("kuribayashi2024", {"holds with the authors' slip": 18}),
        ("michaelov2022", {"holds": 2 * 24}),
        ("babylm2025", {"holds": 44 + 4}),
    ],
)
def test_published_figures_of_reading_come_out(
    name: str, counts: dict[str, int], published: Published
) -> None:
    published("SOURCES.md")
    checked = check_paper(read_paper(name))
    assert checked.as_expected, [v.claim.id for v in checked.verdicts if not v.as_expected]
    assert count_statuses(checked) == {"all claims": counts}


def test_the_eleven_languages_of_wilcox_come_out_to_the_last_digit(published: Published) -> None:
    published("wilcox2023")
    checked = check_paper(read_paper("wilcox2023"), only=["delta/*", "slope/*"])
    assert [v.status for v in checked.verdicts] == ["holds"] * 14
    assert all(v.claim.tolerance is None for v in checked.verdicts)


@pytest.mark.slow
def test_additive_models_of_three_languages_are_those_of_mgcv_to_the_last_digit(published: Published) -> None:
    published("wilcox2023")
    checked = check_paper(
        read_paper("wilcox2023"), only=["additive/it/*", "additive/ru/*", "additive/en/monot*"]
    )
    assert len(checked.verdicts) == 10
    off = [v.claim.id for v in checked.verdicts if not v.claim.printed.matches(v.computed or 0.0)]
    assert off == []


def _files(paper: str) -> Files:
    claims = read_paper(paper)
    folder = data_folder()
    assert folder is not None
    return Files(find_inputs(claims.inputs, [folder]), frozenset(claims.inputs))


def test_natural_stories_rightly_ordered_and_moved(published: Published) -> None:
    # ../shared/PROTOCOLS.md, section 6.
    published("kuribayashi2024_ns")
    files = _files("kuribayashi2024")
    ordered = {"gpt2": 0.012982, "opt-125m": 0.012747, "Llama-2-7b-hf": 0.005086}
    for model, expected in ordered.items():
        assert kuribayashi_delta(files, model=model) == pytest.approx(expected, abs=5e-7)
    assert kuribayashi_delta(files, model="gpt2", critical="all") == pytest.approx(0.019334, abs=5e-7)
    moved = kuribayashi_delta(files, model="gpt2", critical="all", moved=True)
    assert moved == pytest.approx(0.030666, abs=5e-7)


def test_babylm_with_the_space_and_without_final_words(published: Published) -> None:
    # PROTOCOLS.md, section 8: 9.7675 / 2.1694, without words with . , or ' 1.9951 / .0838; n 1496, else 1497.
    published("babylm2025")
    files = _files("babylm2025")
    spr = {"model": "gpt2", "measure": "self_paced_reading_time", "spillover": True, "none_missing": False}
    assert babylm_score(files, model="gpt2", task="eye_tracking") == pytest.approx(9.7675, abs=5e-5)
    assert babylm_regression(files, **spr) == pytest.approx(2.1694, abs=5e-5)
    without = babylm_score(files, model="gpt2", task="eye_tracking", exclude=True)
    assert without == pytest.approx(1.9951, abs=5e-5)
    assert babylm_regression(files, **spr, exclude=True) == pytest.approx(0.0838, abs=5e-5)
    assert babylm_regression(files, **spr, figure="n") == 1497
    assert babylm_regression(files, **(spr | {"none_missing": True}), figure="n") == 1496


def test_the_target_word_left_out_of_four_cells(published: Published) -> None:
    # PROTOCOLS.md: with a target intercept DeLong RoBERTa is 52.3358; lme4 with tight limits gives 52.36031.
    published("michaelov2022_collateral")
    value = michaelov_anova(_files("michaelov2022"), study="delong_2019", model="roberta-large")
    assert value == pytest.approx(52.36031, abs=1e-3)
