"""Estimates, tests and fitted models: frames in, frames out.

>>> import polars as pl
>>> from felicity import stats
>>> stats.mcnemar_p(12, 4) < 0.1
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from felicity.stats.binomial_intervals import clopper_pearson as clopper_pearson
    from felicity.stats.binomial_intervals import proportion_right as proportion_right
    from felicity.stats.bootstrap import bootstrap_difference as bootstrap_difference
    from felicity.stats.bootstrap import bootstrap_mean as bootstrap_mean
    from felicity.stats.compare import compare_all as compare_all
    from felicity.stats.compare import describe_comparison as describe_comparison
    from felicity.stats.correlation import attenuate as attenuate
    from felicity.stats.correlation import correlate as correlate
    from felicity.stats.correlation import disattenuate as disattenuate
    from felicity.stats.dependent_correlations import compare_correlations as compare_correlations
    from felicity.stats.dependent_correlations import steiger_z as steiger_z
    from felicity.stats.dependent_correlations import steiger_z_apart as steiger_z_apart
    from felicity.stats.dependent_correlations import williams_t as williams_t
    from felicity.stats.fit import describe_fit as describe_fit
    from felicity.stats.fit import fit_model as fit_model
    from felicity.stats.fit import read_table as read_table
    from felicity.stats.kappa import cohen_kappa as cohen_kappa
    from felicity.stats.kappa import fleiss_kappa as fleiss_kappa
    from felicity.stats.krippendorff import krippendorff_alpha as krippendorff_alpha
    from felicity.stats.mcnemar import compare_mcnemar as compare_mcnemar
    from felicity.stats.mcnemar import mcnemar_p as mcnemar_p
    from felicity.stats.mixed.binomial import fit_glmm as fit_glmm
    from felicity.stats.mixed.compare_models import compare_models as compare_models
    from felicity.stats.mixed.describe import describe_model as describe_model
    from felicity.stats.mixed.linear import fit_lmm as fit_lmm
    from felicity.stats.mixed.profile import profile_intervals as profile_intervals
    from felicity.stats.mixed.reduce import drop_random_terms as drop_random_terms
    from felicity.stats.mixed.reduce import reduce_lmm as reduce_lmm
    from felicity.stats.multiplicity import adjust_bh as adjust_bh
    from felicity.stats.multiplicity import adjust_holm as adjust_holm
    from felicity.stats.pairing import pair_answers as pair_answers
    from felicity.stats.permutation import permute_pairs as permute_pairs
    from felicity.stats.power import describe_power as describe_power
    from felicity.stats.power import power_curve as power_curve
    from felicity.stats.power import power_mcnemar as power_mcnemar
    from felicity.stats.power import power_of_pairs as power_of_pairs
    from felicity.stats.power import shares_from_accuracies as shares_from_accuracies
    from felicity.stats.power_planning import items_needed as items_needed
    from felicity.stats.power_planning import simulate_power as simulate_power
    from felicity.stats.power_planning import smallest_difference as smallest_difference
    from felicity.stats.rater_ceilings import half_against_half as half_against_half
    from felicity.stats.rater_ceilings import leave_one_out_reliability as leave_one_out_reliability
    from felicity.stats.rater_ceilings import one_against_rest as one_against_rest
    from felicity.stats.rater_ceilings import ratings_by_item as ratings_by_item
    from felicity.stats.rating_cleaning import clean_ratings as clean_ratings
    from felicity.stats.rating_cleaning import standardize_raters as standardize_raters
    from felicity.stats.regression import compare_lines as compare_lines
    from felicity.stats.regression import describe_regression as describe_regression
    from felicity.stats.regression import fit_ols as fit_ols
    from felicity.stats.wilcoxon import signed_rank as signed_rank

# Loaded when first used, so that scipy and formulaic cost nothing until they are needed.
_MODULES = {
    "binomial_intervals": "clopper_pearson proportion_right",
    "bootstrap": "bootstrap_difference bootstrap_mean",
    "compare": "compare_all describe_comparison",
    "correlation": "attenuate correlate disattenuate",
    "dependent_correlations": "compare_correlations steiger_z steiger_z_apart williams_t",
    "fit": "describe_fit fit_model read_table",
    "kappa": "cohen_kappa fleiss_kappa",
    "krippendorff": "krippendorff_alpha",
    "mcnemar": "compare_mcnemar mcnemar_p",
    "mixed.binomial": "fit_glmm",
    "mixed.compare_models": "compare_models",
    "mixed.describe": "describe_model",
    "mixed.linear": "fit_lmm",
    "mixed.profile": "profile_intervals",
    "mixed.reduce": "drop_random_terms reduce_lmm",
    "multiplicity": "adjust_bh adjust_holm",
    "pairing": "pair_answers",
    "permutation": "permute_pairs",
    "power": "describe_power power_curve power_mcnemar power_of_pairs shares_from_accuracies",
    "power_planning": "items_needed simulate_power smallest_difference",
    "rater_ceilings": "half_against_half leave_one_out_reliability one_against_rest ratings_by_item",
    "rating_cleaning": "clean_ratings standardize_raters",
    "regression": "compare_lines describe_regression fit_ols",
    "wilcoxon": "signed_rank",
}
_PUBLIC = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'felicity.stats' has no attribute '{name}'")
    return getattr(import_module(f"felicity.stats.{_PUBLIC[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_PUBLIC])
