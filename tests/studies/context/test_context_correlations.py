import numpy as np
import polars as pl
import pytest
from scipy import stats

from felicity.core.errors import BadInput
from felicity.stats import adjust_holm
from felicity.studies.context.context_correlations import (
    baseline_points,
    build_matrix,
    correctness_points,
    correlate_points,
    matrix_points,
    perturbation_points,
)
from felicity.studies.context.context_curves import draw_curves
from felicity.studies.context.sweep_tables import CORRELATIONS, MATRIX, PERTURBATION_SIMILARITY, SIMILARITY
from tests.studies.context.sweeps import judge, spread, sweep, table

MATCHED = "matched_acceptable"


def similar(rows: list[tuple[str, str, float, float | None]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SIMILARITY, orient="row")


def similarities(judgements: pl.DataFrame) -> pl.DataFrame:
    pairs = judgements.filter(pl.col("kind") != "none").select("item", "context").unique(maintain_order=True)
    return similar(
        [(item, context, spread(i, 5), None) for i, (item, context) in enumerate(pairs.iter_rows())]
    )


def test_baseline_and_longest_context_correlate_over_suites_as_scipy_says() -> None:
    judgements = sweep(suites=9, items=11)
    correlations = correlate_points(baseline_points(draw_curves(judgements)))
    accuracy = judgements.group_by("suite", "kind", "length").agg(pl.col("passed").mean())
    x = accuracy.filter(kind="none").sort("suite")["passed"].to_numpy()
    y = accuracy.filter(kind="unrelated", length=900).sort("suite")["passed"].to_numpy()
    found = correlations.filter(kind="unrelated")
    assert found["method"].to_list() == ["pearson", "spearman"]
    for row, expected in zip(found.to_dicts(), (stats.pearsonr(x, y), stats.spearmanr(x, y)), strict=True):
        assert (row["n"], row["r"], row["p"]) == pytest.approx((9, *expected))
    interval = stats.pearsonr(x, y).confidence_interval()
    assert (found["low"][0], found["high"][0]) == pytest.approx((interval.low, interval.high))


def test_each_suite_stands_at_the_longest_context_it_reaches() -> None:
    rows = [judge("a/1", 0.0), judge("b/1", 1.0)]
    rows += [judge("a/1", 1.0, MATCHED, 10), judge("a/1", 0.0, MATCHED, 20), judge("b/1", 1.0, MATCHED, 10)]
    points = baseline_points(draw_curves(table(rows)))
    assert points.select("kind", "name", "x", "y").rows() == [
        (MATCHED, "a", 0.0, 0.0),
        (MATCHED, "b", 1.0, 1.0),
    ]


def test_too_few_suites_give_no_correlation_but_a_reason() -> None:
    correlations = correlate_points(baseline_points(draw_curves(sweep(suites=3, items=2))))
    assert correlations["r"].null_count() == correlations.height == 10
    assert "at least 4 are needed" in correlations["note"][0]


def test_similarity_and_correctness_correlate_at_the_longest_length_of_each_kind() -> None:
    judgements = sweep(suites=3, items=20, tie_every=13)
    correlations = correlate_points(correctness_points(judgements, similarities(judgements)))
    pairs = similarities(judgements)
    joined = judgements.filter(kind="mismatched_acceptable", length=900).join(pairs, on=["item", "context"])
    expected = stats.pointbiserialr(joined["passed"].to_numpy() == 1.0, joined["token_f1"].to_numpy())
    found = correlations.filter(kind="mismatched_acceptable").row(0, named=True)
    assert (found["n"], found["r"], found["p"]) == pytest.approx((60, *expected))
    assert (found["variables"], found["method"]) == ("token F1 and correctness", "point_biserial")
    # Dependency labels were not compared, so there is nothing to say of them.
    assert correlations["variables"].unique().to_list() == ["token F1 and correctness"]


def test_another_length_may_be_asked_for() -> None:
    judgements = sweep(suites=2, items=4)
    points = correctness_points(judgements, similarities(judgements), length=100)
    wanted = judgements.filter(length=100, kind="unrelated")
    assert points.filter(kind="unrelated")["y"].to_list() == wanted["passed"].to_list()


def test_two_similarities_of_one_pair_are_refused() -> None:
    judgements = table([judge("a/1", 1.0), judge("a/1", 1.0, MATCHED, 10)])
    context = judgements["context"][1]
    with pytest.raises(BadInput, match="Item 'a/1' has two similarities with one context"):
        correctness_points(judgements, similar([("a/1", context, 0.1, None), ("a/1", context, 0.2, None)]))


def crossed() -> pl.DataFrame:
    """Contexts of a and b before the items of a and b; the longer ones count."""
    rows = [judge("a/1", 1.0), judge("a/2", 0.0), judge("b/1", 1.0)]
    for source, answers in (("a", (1.0, 1.0, 0.0)), ("b", (0.0, 0.0, 1.0))):
        for item, passed in zip(("a/1", "a/2", "b/1"), answers, strict=True):
            for length in (5, 10):
                more = {"source": source, "context": f"{source}{item}{length}", "series": f"{source}{item}"}
                answer = passed if length == 10 else 0.5
                rows.append(judge(item, answer, "from_acceptable", length, **more))
    return table(rows)


def test_the_matrix_holds_the_mean_change_of_each_suite_in_contexts_of_each() -> None:
    matrix = build_matrix(crossed())
    assert matrix.schema == pl.Schema(MATRIX)
    assert matrix.select("source", "suite", "length", "n", "delta").rows() == [
        ("a", "a", 10, 2, 0.5),
        ("a", "b", 10, 1, -1.0),
        ("b", "a", 10, 2, -0.5),
        ("b", "b", 10, 1, 0.0),
    ]
    assert matrix["token_f1"].null_count() == 4


def test_the_matrix_averages_similarity_over_items_at_the_length_it_is_about() -> None:
    pairs = [("a/1", "aa/110", 0.2, 0.5), ("a/2", "aa/210", 0.4, 0.7), ("a/1", "aa/15", 0.9, 0.9)]
    first = build_matrix(crossed(), similar(pairs)).row(0, named=True)
    assert (first["token_f1"], first["dependency_f1"]) == pytest.approx((0.3, 0.6))
    assert build_matrix(crossed(), similar(pairs), length=5)["token_f1"][0] == pytest.approx(0.9)


def test_the_draws_of_an_item_count_once_in_the_matrix() -> None:
    rows = [judge("a/1", 0.0), judge("a/2", 0.0)]
    rows += [
        judge("a/1", 1.0, "from_acceptable", 10, source="b", draw=draw, context=f"c{draw}") for draw in (0, 1)
    ]
    rows += [judge("a/2", 0.0, "from_acceptable", 10, source="b", context="c0")]
    pairs = [("a/1", "c0", 0.2, None), ("a/1", "c1", 0.4, None), ("a/2", "c0", 0.9, None)]
    cell = build_matrix(table(rows), similar(pairs)).row(0, named=True)
    assert (cell["n"], cell["delta"], cell["token_f1"]) == pytest.approx((2, 0.5, (0.3 + 0.9) / 2))


def test_the_cells_of_the_matrix_correlate_with_similarity_by_rank() -> None:
    rng = np.random.default_rng(2)
    cells = [
        ("m", "from_acceptable", f"s{i}", f"s{j}", 10, 5, rng.normal(), rng.random(), rng.random())
        for i in range(5)
        for j in range(5)
    ]
    matrix = pl.DataFrame(cells, schema=MATRIX, orient="row")
    correlations = correlate_points(matrix_points(matrix))
    assert correlations["variables"].to_list() == ["token F1 and change", "dependency F1 and change"]
    for found, column in zip(correlations.to_dicts(), ("token_f1", "dependency_f1"), strict=True):
        expected = stats.spearmanr(matrix[column].to_numpy(), matrix["delta"].to_numpy())
        assert (found["n"], found["r"]) == pytest.approx((25, expected.statistic))
        # Over the five suites, each of which is in nine cells, p is never smaller.
        assert found["p"] >= expected.pvalue
        assert found["suites"] == 5
    assert correlations["p_holm"].to_list() == pytest.approx(
        adjust_holm(correlations["p"].to_list()).tolist()
    )
    assert matrix_points(matrix)["name"][1] == "s0 > s1"


def test_perturbations_correlate_by_their_mean_change_kinds_apart() -> None:
    names = ["none", "quotation", "adverb_before", "all", "clause_after"]
    kinds = (MATCHED, "matched_unacceptable")
    rows = [judge(f"a/{i}", 0.0) for i in range(10)]
    # How many of ten items turn right, at two lengths.
    turned = {
        "none": (9, 8),
        "quotation": (5, 4),
        "adverb_before": (8, 8),
        "all": (1, 2),
        "clause_after": (4, 6),
    }
    for kind in kinds:
        for name in names:
            for length, right in zip((10, 20), turned[name], strict=True):
                hits = right if kind == MATCHED else 10 - right
                rows += [judge(f"a/{i}", float(i < hits), kind, length, perturbation=name) for i in range(10)]
    f1 = [1.0, 0.7, 0.9, 0.4, 0.6]
    similarity = pl.DataFrame(
        [(kind, name, value) for kind in kinds for name, value in zip(names, f1, strict=True)],
        schema=PERTURBATION_SIMILARITY,
        orient="row",
    )
    points = perturbation_points(draw_curves(table(rows)), similarity)
    assert points.filter(kind=MATCHED, name="clause_after").select("x", "y").row(0) == pytest.approx(
        (0.6, 0.5)
    )
    correlations = correlate_points(points)
    # Mean changes .85 .45 .8 .15 .5 rank 5 2 4 1 3, similarities 5 3 4 1 2: rho = 1 - 6 * 2 / 120.
    assert correlations.select("kind", "n", "r").rows() == [
        (MATCHED, 5, pytest.approx(0.9)),
        ("matched_unacceptable", 5, pytest.approx(-0.9)),
    ]


def test_no_points_give_no_correlations() -> None:
    correlations = correlate_points(baseline_points(draw_curves(table([judge("a/1", 1.0)]))))
    assert correlations.is_empty()
    assert correlations.schema == pl.Schema(CORRELATIONS)
    assert build_matrix(table([judge("a/1", 1.0)])).is_empty()


def test_points_of_suites_are_correlated_over_suites_and_all_p_are_adjusted() -> None:
    # Six suites whose items are alike: 60 points that say no more than 6.
    rows, pairs = [], []
    for suite, (right, likeness) in enumerate([(1, 0.9), (1, 0.7), (1, 0.6), (0, 0.5), (0, 0.3), (1, 0.2)]):
        for i in range(10):
            item = f"s{suite}/{i}"
            passed = float(right) if i else 1.0 - right
            rows += [judge(item, 0.0), judge(item, passed, MATCHED, 10)]
            pairs.append((item, f"{item} {MATCHED} 10 0", likeness + i / 1000, None))
    judgements = table(rows)
    points = correctness_points(judgements, similar(pairs))
    plain, over = (
        correlate_points(points, suites).row(0, named=True)
        for suites in (None, dict(judgements.select("item", "suite").unique().iter_rows()))
    )
    assert (plain["suites"], over["suites"]) == (None, 6)
    assert over["r"] == plain["r"]
    assert over["p"] > 10 * plain["p"]
    assert over["high"] - over["low"] > 1.5 * (plain["high"] - plain["low"])
    assert over["p_holm"] == over["p"]
    # The jackknife by hand: Fisher's z without each suite in turn, t with 5 degrees of freedom.
    left = points.with_columns(suite=pl.col("name").str.split("/").list.first())
    z = [
        np.arctanh(stats.pearsonr(*(left.filter(pl.col("suite") != f"s{s}")[c] for c in "xy")).statistic)
        for s in range(6)
    ]
    error = np.sqrt(5 / 6 * np.sum((np.array(z) - np.mean(z)) ** 2))
    assert over["p"] == pytest.approx(2 * stats.t.sf(abs(np.arctanh(over["r"])) / error, 5))
