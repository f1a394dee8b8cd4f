import numpy as np
import polars as pl
import pytest
from scipy import stats

from felicity.core.errors import BadInput
from felicity.judge.ratings import find_concordance, judge_ratings


def test_mean_concordance_without_ties_is_kendalls_tau_rescaled() -> None:
    rng = np.random.default_rng(3)
    ratings, values = rng.normal(size=700), rng.normal(size=700)
    tau = stats.kendalltau(ratings, values).statistic  # no ties, so tau-b is tau-a
    assert find_concordance(ratings, values).mean() == pytest.approx((tau + 1) / 2, abs=1e-12)


def test_for_two_labels_it_is_the_area_under_the_curve() -> None:
    labels = np.array([0.0, 0.0, 0.0, 1.0, 1.0])
    values = np.array([0.1, 0.4, 0.2, 0.4, 0.9])
    # By hand: pairs (1, 0) won 3+3 of 6, one of them level: 5.5 / 6.
    shares = find_concordance(labels, values)
    assert shares[labels == 1].mean() == pytest.approx(5.5 / 6)
    assert shares[labels == 0].mean() == pytest.approx(5.5 / 6)


def test_judgements_are_made_within_a_condition() -> None:
    items = pl.DataFrame(
        {
            "item": ["1", "2", "1", "2"],
            "suite": "s",
            "phenomenon": "p",
            "condition": ["none", "none", "real", "real"],
            "rating": [1.0, 2.0, 2.0, 1.0],
        }
    )
    requests = items.select("item", "condition", pl.format("{}/{}", "item", "condition").alias("request"))
    scores = pl.DataFrame(
        {
            "request": ["1/none", "2/none", "1/real", "2/real"],
            "measure": "lp",
            "value": [1.0, 2.0, 1.0, 2.0],
            "error": 0.0,
        }
    )
    judged = judge_ratings(items, requests, scores)
    assert judged.select("rule", "passed").rows() == [
        ("rating/none", 1.0),
        ("rating/none", 1.0),
        ("rating/real", 0.0),
        ("rating/real", 0.0),
    ]


def test_two_scores_of_minus_infinity_are_level() -> None:
    ratings, values = np.array([1.0, 2.0, 3.0]), np.array([-np.inf, -np.inf, -1.0])
    assert find_concordance(ratings, values).tolist() == [0.75, 0.75, 1.0]


def test_a_score_that_is_not_a_number_is_refused_by_name() -> None:
    items = pl.DataFrame(
        {"item": ["1", "2"], "suite": "s", "phenomenon": "p", "condition": "c", "rating": [1.0, 2.0]}
    )
    requests = items.select("item", "condition", pl.col("item").alias("request"))
    scores = pl.DataFrame({"request": ["1", "2"], "measure": "lp", "value": [-1.0, float("nan")]})
    with pytest.raises(BadInput, match="Item '2' has a score"):
        judge_ratings(items, requests, scores)
