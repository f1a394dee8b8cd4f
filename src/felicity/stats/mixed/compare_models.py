"""Likelihood-ratio tests between models fitted to the same rows, as R's anova() prints them."""

from collections.abc import Sequence

import polars as pl
from scipy import stats

from felicity.core.errors import BadInput
from felicity.stats.mixed.fitted import FittedModel
from felicity.stats.mixed.linear import fit_linear_frame


def compare_models(models: Sequence[FittedModel], *, refit: bool = True) -> pl.DataFrame:
    """A row per model, from fewest to most parameters, each tested against the one before it.

    refit: models fitted by REML are fitted again by ML first, since REML criteria of models with
        different fixed effects cannot be compared.

    Raises BadInput for fewer than two models, or models of different rows, responses or families.
    """
    if len(models) < 2:
        raise BadInput("A likelihood-ratio test needs at least two models.")
    first = models[0]
    for other in models[1:]:
        if (other.family, other.link, other.n, other.frame.formula.response) != (
            first.family,
            first.link,
            first.n,
            first.frame.formula.response,
        ):
            raise BadInput(f"'{first.formula}' and '{other.formula}' are not models of the same rows.")
        if not refit and other.method != first.method:
            raise BadInput("One model is fitted by REML and one by ML; fit both in one way.")
        if not refit and first.method == "REML" and other.frame.names != first.frame.names:
            raise BadInput(
                "REML criteria of models with different fixed effects do not compare; refit by ML."
            )
    ready = [refit_by_ml(model) if refit else model for model in models]
    ready.sort(key=lambda model: model.n_parameters)
    rows = []
    for i, model in enumerate(ready):
        chisq, df, p = lr_test(ready[i - 1], model) if i else (None, None, None)
        rows.append(
            {
                "model": model.formula,
                "n_parameters": model.n_parameters,
                "aic": model.aic,
                "bic": model.bic,
                "log_likelihood": model.log_likelihood,
                "deviance": -2.0 * model.log_likelihood,
                "chisq": chisq,
                "df": df,
                "p": p,
            }
        )
    return pl.DataFrame(rows)


def lr_test(smaller: FittedModel, larger: FittedModel) -> tuple[float, int, float]:
    """Chi-squared, degrees of freedom and p of the larger model's improvement."""
    chisq = max(0.0, smaller.criterion - larger.criterion)
    df = larger.n_parameters - smaller.n_parameters
    return chisq, df, float(stats.chi2.sf(chisq, df)) if df else 1.0


def refit_by_ml(model: FittedModel) -> FittedModel:
    """The model fitted by maximum likelihood; itself if it already is."""
    if model.method != "REML":
        return model
    return fit_linear_frame(model.frame, reml=False, level=model.level)


def compare_conclusions(
    plain: pl.DataFrame, fuller: pl.DataFrame, *, against: str, alpha: float = 0.05
) -> str:
    """Which terms are significant in one of two fits only, or in both with opposite signs: a sentence.

    plain, fuller: columns term, estimate and p. against: what the first fit is called in the sentence.
    """
    both = plain.join(fuller, on="term", suffix="_fuller").drop_nulls(["p", "p_fuller"])
    if both.is_empty():
        return ""
    # A p that is not a number shows nothing.
    first, second = (pl.col(name).fill_nan(1.0) <= alpha for name in ("p", "p_fuller"))
    lost = both.filter(first & ~second)["term"].to_list()
    won = both.filter(~first & second)["term"].to_list()
    turned = both.filter(first & second & (pl.col("estimate") * pl.col("estimate_fuller") < 0))[
        "term"
    ].to_list()
    said = [f"no longer significant: {', '.join(lost)}"] if lost else []
    said += [f"newly significant: {', '.join(won)}"] if won else []
    said += [f"significant with the opposite sign: {', '.join(turned)}"] if turned else []
    return f"Against {against}, {'; '.join(said) or 'no conclusion changes'}."
