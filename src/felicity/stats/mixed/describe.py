"""A fitted mixed model in plain words, the way a paper states it."""

from typing import Any

from felicity.stats.mixed.fitted import FittedModel
from felicity.stats.wording import say_df, say_number, say_p, say_share


def describe_model(model: FittedModel) -> str:
    """One paragraph: what was fitted, each fixed effect with its test and interval, R2, warnings."""
    kind = "linear mixed model" if model.family == "gaussian" else "logistic mixed model"
    how = {"REML": "by REML", "ML": "by maximum likelihood", "Laplace": "by the Laplace approximation"}
    groups = ", ".join(f"{name} ({count} levels)" for name, count in model.groups.items())
    tests = {
        "gaussian": "t-tests use Satterthwaite's degrees of freedom",
        "binomial": "estimates are log-odds, tests are Wald z",
    }
    sentences = [
        f"A {kind}, {model.formula}, was fitted {how[model.method]} to {model.n} rows; "
        f"random effects vary over {groups}; {tests[model.family]}."
    ]
    sentences += [f"{_effect(row, model.level)}." for row in model.fixed.to_dicts()]
    sentences.append(
        f"The fixed effects explain {say_share(model.r2_marginal)} of the variance, with the random effects "
        f"{say_share(model.r2_conditional)} (Nakagawa's marginal and conditional R2)."
    )
    return " ".join([*sentences, *model.notes])


def _effect(row: dict[str, Any], level: float) -> str:
    name = "Intercept" if row["term"] == "(Intercept)" else row["term"]
    test = f"z = {say_number(row['statistic'])}"
    if row["df"] is not None:
        test = f"t({say_df(row['df'])}) = {say_number(row['statistic'])}"
    return (
        f"{name}: b = {say_number(row['estimate'])}, SE = {say_number(row['se'])}, "
        f"{test}, {say_p(row['p'])}, "
        f"{level:.0%} CI [{say_number(row['low'])}, {say_number(row['high'])}]"
    )
