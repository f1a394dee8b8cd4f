"""What the tests promise, simulated: Type-I error near .05, coverage near .95.

Each simulation has its own seed and so many draws that the promised range, .04 to .06 or .93 to .97, is
two standard errors or more on either side of the truth.
"""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from felicity.stats.agreement import cohen_kappa, fleiss_kappa, krippendorff_alpha
from felicity.stats.bootstrap import bootstrap_mean
from felicity.stats.correlation import Method, compare_correlations, correlate
from felicity.stats.fit import compare_lines
from felicity.stats.mixed.binomial import fit_glmm
from felicity.stats.mixed.compare_models import lr_test
from felicity.stats.mixed.cumulative import fit_clmm
from felicity.stats.mixed.linear import fit_linear_frame
from felicity.stats.mixed.model_frame import ModelFrame, build_model_frame
from felicity.stats.paired_tests import mcnemar_p, permute_differences, signed_rank, sum_by_cluster

pytestmark = pytest.mark.slow


def share(outcomes: list[bool]) -> float:
    return float(np.mean(outcomes))


def assert_level(outcomes: list[bool]) -> None:
    assert 0.04 <= share(outcomes) <= 0.06, share(outcomes)


def assert_coverage(outcomes: list[bool]) -> None:
    assert 0.93 <= share(outcomes) <= 0.97, share(outcomes)


def covered(row: dict[str, float], truth: float) -> bool:
    return row["low"] <= truth <= row["high"]


def crossed_frame(random: str = "(1 | subject) + (1 | item)", fixed: str = "x") -> ModelFrame:
    """12 subjects by 8 items; x differs between subjects, so its df are few."""
    subject, item = (grid.ravel() for grid in np.meshgrid(np.arange(12), np.arange(8), indexing="ij"))
    frame = pl.DataFrame({"subject": subject, "item": item, "x": subject % 2, "y": np.random.rand(96)})
    return build_model_frame(f"y ~ {fixed} + {random}", frame)


def crossed_response(rng: np.random.Generator, effect: float = 0.0) -> np.ndarray:
    subject, item = (grid.ravel() for grid in np.meshgrid(np.arange(12), np.arange(8), indexing="ij"))
    noise = rng.normal(size=12)[subject] + 0.7 * rng.normal(size=8)[item] + rng.normal(size=96)
    return noise + effect * (subject % 2)


def test_satterthwaite_t_level_and_coverage() -> None:
    rng, frame = np.random.default_rng(101), crossed_frame()
    rows = [
        fit_linear_frame(replace(frame, y=crossed_response(rng)), reml=True).fixed.row(1, named=True)
        for _ in range(2000)
    ]
    assert_level([row["p"] <= 0.05 for row in rows])
    assert_coverage([covered(row, 0.0) for row in rows])


def test_likelihood_ratio_level() -> None:
    # Asymptotic too, so a predictor that varies within 96 rows.
    rng = np.random.default_rng(103)
    group = np.repeat(np.arange(30), 6)
    base = pl.DataFrame({"g": group, "x": np.tile([0.0, 1.0], 90), "y": rng.normal(size=180)})
    small, large = (build_model_frame(f"y ~ {side} + (1 | g)", base) for side in ("1", "x"))
    outcomes = []
    for _ in range(2000):
        y = rng.normal(size=30)[group] + rng.normal(size=180)
        fits = [fit_linear_frame(replace(frame, y=y), reml=False) for frame in (small, large)]
        outcomes.append(lr_test(fits[0], fits[1])[2] <= 0.05)
    assert_level(outcomes)


def test_satterthwaite_p_is_close_to_a_parametric_bootstrap() -> None:
    rng, frame = np.random.default_rng(104), crossed_frame()
    null = crossed_frame(fixed="1")
    y = crossed_response(rng, effect=1.5)
    observed = fit_linear_frame(replace(frame, y=y), reml=True)
    row = observed.fixed.row(1, named=True)
    at_null = fit_linear_frame(replace(null, y=y), reml=True)
    sds = [at_null.random["sd"][i] for i in range(3)]
    blocks = {block.group: block.codes for block in null.effects.blocks}
    statistics = []
    for _ in range(1500):
        drawn = sds[0] * rng.normal(size=12)[blocks["subject"]] + sds[1] * rng.normal(size=8)[blocks["item"]]
        drawn = drawn + sds[2] * rng.normal(size=96)
        fit = fit_linear_frame(replace(frame, y=drawn), reml=True)
        statistics.append(abs(fit.fixed["statistic"][1]))
    bootstrap = share([statistic >= abs(row["statistic"]) for statistic in statistics])
    # 1500 draws leave a standard error below .01 for p near .1.
    assert row["p"] == pytest.approx(bootstrap, abs=0.025)
    assert 0.01 < bootstrap < 0.5


def test_binomial_wald_z_level_and_coverage() -> None:
    rng = np.random.default_rng(105)
    group, cell = (grid.ravel() for grid in np.meshgrid(np.arange(40), np.arange(2), indexing="ij"))
    rows = []
    for _ in range(1500):
        eta = 0.5 + 0.8 * rng.normal(size=40)[group]
        hits = rng.binomial(15, 1 / (1 + np.exp(-eta)))
        frame = pl.DataFrame({"g": group, "x": cell, "hits": hits, "misses": 15 - hits})
        rows.append(fit_glmm("cbind(hits, misses) ~ x + (1 | g)", frame).fixed.row(1, named=True))
    assert_level([row["p"] <= 0.05 for row in rows])
    assert_coverage([covered(row, 0.0) for row in rows])


def test_ordinal_wald_z_level_and_coverage() -> None:
    rng = np.random.default_rng(121)
    group, cell = (grid.ravel() for grid in np.meshgrid(np.arange(40), np.tile([0.0, 1.0], 6), indexing="ij"))
    rows = []
    for _ in range(1500):
        latent = 0.8 * rng.normal(size=40)[group] + rng.logistic(size=480)
        frame = pl.DataFrame({"g": group, "x": cell, "rating": np.digitize(latent, [-1.5, -0.3, 0.4, 2.0])})
        rows.append(fit_clmm("rating ~ x + (1 | g)", frame).fixed.row(0, named=True))
    assert_level([row["p"] <= 0.05 for row in rows])
    assert_coverage([covered(row, 0.0) for row in rows])


def test_mcnemar_and_permutation_levels() -> None:
    # The exact test is below its level where discordant items are few; with 2000 it is not by much.
    rng = np.random.default_rng(106)
    first = rng.binomial(2000, 0.5, size=20_000)
    table, counts = np.unique(first, return_counts=True)
    for mid in (False, True):
        below = [mcnemar_p(int(b), 2000 - int(b), mid=mid) <= 0.05 for b in table]
        rejected = counts[below].sum()
        assert 0.04 <= rejected / 20_000 <= 0.06
    # Suites lean one way or the other; sums over suites are large enough to be nearly continuous.
    outcomes = []
    clusters = np.repeat(np.arange(15), 200)
    for _ in range(3000):
        lean = rng.uniform(-0.15, 0.15, 15)[clusters]
        draw = rng.random(3000)
        values = (draw < 0.2 + lean).astype(float) - (draw > 0.8 + lean)
        outcomes.append(permute_differences(sum_by_cluster(values, clusters)).p <= 0.05)
    assert_level(outcomes)


def test_permutation_level_of_any_numbers() -> None:
    rng = np.random.default_rng(107)
    assert_level([permute_differences(rng.normal(size=12)).p <= 0.05 for _ in range(3000)])


def test_bootstrap_coverage_by_item_and_by_suite() -> None:
    rng = np.random.default_rng(108)
    suites = np.repeat(np.arange(20), 15)
    items, clustered = [], []
    for i in range(2000):
        values = rng.choice([-1.0, 0.0, 1.0], 200, p=[0.1, 0.7, 0.2])
        items.append(covered(vars(bootstrap_mean(values, draws=400, seed=i)), 0.1))
        lean = rng.normal(0.1, 0.2, 20)[suites] + rng.normal(size=300)
        clustered.append(covered(vars(bootstrap_mean(lean, clusters=suites, draws=400, seed=i)), 0.1))
    assert_coverage(items)
    assert_coverage(clustered)


@pytest.mark.parametrize("method", ["pearson", "spearman", "kendall"])
def test_correlation_level_and_coverage(method: Method) -> None:
    rng = np.random.default_rng(109)
    # True values for a bivariate normal with correlation .5.
    truth = {"pearson": 0.5, "spearman": 6 / np.pi * np.arcsin(0.25), "kendall": 2 / np.pi * np.arcsin(0.5)}
    null, cover = [], []
    for _ in range(2500):
        x, noise = rng.normal(size=(2, 60))
        null.append(correlate(x, noise, method=method)["p"][0] <= 0.05)
        row = correlate(x, 0.5 * x + np.sqrt(0.75) * noise, method=method).row(0, named=True)
        cover.append(covered(row, truth[method]))
    assert_level(null)
    assert_coverage(cover)


def test_bootstrap_correlation_coverage() -> None:
    rng, outcomes = np.random.default_rng(110), []
    for i in range(1000):
        x, noise = rng.normal(size=(2, 80))
        y = 0.5 * x + np.sqrt(0.75) * noise
        row = correlate(x, y, interval="bootstrap", draws=300, seed=i).row(0, named=True)
        outcomes.append(covered(row, 0.5))
    assert_coverage(outcomes)


def test_dependent_correlations_levels() -> None:
    rng = np.random.default_rng(111)
    outcomes: dict[str, list[bool]] = {"williams": [], "steiger": []}
    for _ in range(3000):
        target = rng.normal(size=60)
        first, second = (target + rng.normal(size=60) for _ in range(2))
        for row in compare_correlations(target, first, second).to_dicts():
            outcomes[row["test"]].append(row["p"] <= 0.05)
    for found in outcomes.values():
        assert_level(found)


def test_regression_line_levels() -> None:
    rng = np.random.default_rng(112)
    offset, slope = [], []
    for _ in range(1500):
        x = rng.normal(size=40)
        fit = compare_lines(x, x + rng.normal(size=40), x + rng.normal(size=40))
        offset.append(fit.fixed["p"][2] <= 0.05)
        slope.append(fit.fixed["p"][3] <= 0.05)
    assert_level(offset)
    assert_level(slope)


@pytest.mark.parametrize("n", [25, 120])
def test_signed_rank_level(n: int) -> None:
    rng = np.random.default_rng(113)
    outcomes = [signed_rank(rng.normal(size=n), rng.normal(size=n))["p"][0] <= 0.05 for _ in range(4000)]
    assert_level(outcomes)


def test_kappa_level_and_coverage() -> None:
    rng = np.random.default_rng(114)
    null, cover = [], []
    for _ in range(2500):
        first = rng.integers(0, 3, 200)
        null.append(cohen_kappa(first.tolist(), rng.integers(0, 3, 200).tolist())["p"][0] <= 0.05)
        second = np.where(rng.random(200) < 0.4, first, rng.integers(0, 3, 200))
        cover.append(covered(cohen_kappa(first.tolist(), second.tolist()).row(0, named=True), 0.4))
    assert_level(null)
    assert_coverage(cover)


def draw_ratings(rng: np.random.Generator, items: int, raters: int, agree: float) -> pl.DataFrame:
    truth = rng.integers(0, 3, (items, 1))
    values = np.where(rng.random((items, raters)) < agree, truth, rng.integers(0, 3, (items, raters)))
    return pl.DataFrame({"item": np.repeat(np.arange(items), raters), "rating": values.ravel()})


def test_many_raters_level_and_coverage() -> None:
    rng = np.random.default_rng(115)
    null, cover, alpha = [], [], []
    for i in range(1000):
        null.append(fleiss_kappa(draw_ratings(rng, 60, 4, 0.0))["p"][0] <= 0.05)
        # Two raters who copy the truth with chance .6 agree beyond chance with probability .36.
        frame = draw_ratings(rng, 80, 4, 0.6)
        cover.append(covered(fleiss_kappa(frame).row(0, named=True), 0.36))
        row = krippendorff_alpha(frame, scale="nominal", draws=300, seed=i).row(0, named=True)
        alpha.append(covered(row, 0.36))
    assert_level(null)
    assert_coverage(cover)
    assert_coverage(alpha)
