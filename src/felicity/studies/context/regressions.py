"""The regressions of a context study: logistic mixed models of length, match and acceptability."""

import polars as pl

from felicity.core.errors import FelicityError
from felicity.core.schemas import conform
from felicity.core.sweep import KINDS, UNPERTURBED
from felicity.core.wording import decimal
from felicity.stats import compare_conclusions
from felicity.stats.mixed import DEGENERATE, FittedModel, fit_glmm
from felicity.studies.context.context_curves import check_judgements, share_contexts
from felicity.studies.context.sweep_tables import REGRESSIONS

CONTEXT = "context"
RESPONSE = "accuracy"
UNRELATED = "unrelated"
BY_ITEM, OWN, PENALIZED = "items repeated", "own formula", "penalized"
# Scale of the prior on the SDs of random effects, in log-odds, where a fit without it is degenerate.
PENALTY = 2.0
PREDICTORS = {"log(length)": "length", "matched": "matched", "acceptable": "acceptable"}


def fit_regressions(
    judgements: pl.DataFrame, *, formula: str | None = None, score: str = RESPONSE
) -> pl.DataFrame:
    """Rows of REGRESSIONS: the regressions for every model, and for every perturbation of the contexts.

    The random intercept is by phenomenon, as in the paper; by suite if there is one phenomenon; by item if
    there is one suite. Since each item recurs at every length and kind of context, each model is fitted
    again with a random intercept by item, and a note says which conclusions change; if that fit is
    degenerate it checks nothing, and a penalized one takes its place beside it. A predictor that does not
    vary is left out and noted. formula: another right-hand side for the crossed contexts. score: what the
    dataset calls its share of items, with which the formulas begin that are shown.

    Raises BadInput for judgements of several measures.
    """
    check_judgements(judgements)
    shared = share_contexts(judgements)
    tables = []
    for (model, perturbation), judged in judgements.group_by("model", "perturbation", maintain_order=True):
        suffix = "" if perturbation == UNPERTURBED else str(perturbation)
        for name, part in ((CONTEXT, _crossed(judged)), (UNRELATED, judged.filter(kind=UNRELATED))):
            if part.height:
                tables += _fit_both(part, str(model), name, suffix, shared)
        crossed = _crossed(judged)
        if formula and crossed.height:
            tables.append(_fit_own(crossed, str(model), _name(CONTEXT, suffix, OWN), formula))
    named = pl.col("formula").str.replace(f"{RESPONSE} ~", f"{score} ~", literal=True)
    return pl.concat([pl.DataFrame(schema=REGRESSIONS), *tables]).with_columns(named)


def _name(analysis: str, *parts: str) -> str:
    """An analysis with what is particular to it in brackets."""
    told = ", ".join(part for part in parts if part)
    return f"{analysis} ({told})" if told else analysis


def _fit_both(
    judged: pl.DataFrame, model: str, analysis: str, perturbation: str, shared: bool
) -> list[pl.DataFrame]:
    """The paper's model, and the one that knows that items recur."""
    group = next((name for name in ("phenomenon", "suite") if judged[name].n_unique() > 1), "item")
    groups = [group, "series"] if shared else [group]
    plain = _fit(judged, model, _name(analysis, perturbation), groups)
    if "item" in groups:
        return [plain]
    repeated = _fit(judged, model, _name(analysis, perturbation, BY_ITEM), [*groups, "item"])
    if _is_degenerate(repeated):
        name = _name(analysis, perturbation, BY_ITEM, PENALIZED)
        return [plain, repeated, _note_change(plain, _fit(judged, model, name, [*groups, "item"], PENALTY))]
    return [plain, _note_change(plain, repeated)]


def _is_degenerate(terms: pl.DataFrame) -> bool:
    return bool(terms["note"].str.contains(DEGENERATE, literal=True).any())


def _note_change(plain: pl.DataFrame, repeated: pl.DataFrame) -> pl.DataFrame:
    """The second model with a note on which conclusions of the first change, if both show anything."""
    if _is_degenerate(plain) or _is_degenerate(repeated):
        return repeated
    changed = compare_conclusions(plain, repeated, against="the model without items")
    said = pl.concat_str(pl.col("note"), pl.lit(changed), separator=" ")
    return repeated.with_columns(said.str.strip_chars().alias("note"))


def _fit_own(judged: pl.DataFrame, model: str, analysis: str, formula: str) -> pl.DataFrame:
    """A formula of the user's own, fitted to single judgements."""
    right = formula.partition("~")[2].strip() or formula.strip()
    rows = judged.with_columns(
        (pl.col("passed") == 1.0).cast(pl.Int64).alias("hits"),
        (pl.col("passed") < 1.0).cast(pl.Int64).alias("misses"),
    )
    return _fit_terms(rows, right, model=model, analysis=analysis, n=judged.height, left_out=[])


def _crossed(judged: pl.DataFrame) -> pl.DataFrame:
    """The judgements whose contexts are matched or not and acceptable or not, coded +1 and -1."""
    codes = pl.DataFrame(
        [
            (name, 2 * kind.matched - 1, 2 * kind.acceptable - 1)
            for name, kind in KINDS.items()
            if kind.matched is not None and kind.acceptable is not None
        ],
        schema=["kind", "matched", "acceptable"],
        orient="row",
    )
    return judged.join(codes, on="kind", maintain_order="left")


def _fit(
    judged: pl.DataFrame, model: str, analysis: str, groups: list[str], penalty: float | None = None
) -> pl.DataFrame:
    asked = [term for term, name in PREDICTORS.items() if name in judged.columns]
    varying = [term for term in asked if judged[PREDICTORS[term]].n_unique() > 1]
    cells = judged.group_by(*(PREDICTORS[term] for term in varying), *groups, maintain_order=True).agg(
        (pl.col("passed") == 1.0).sum().alias("hits"), (pl.col("passed") < 1.0).sum().alias("misses")
    )
    right = " + ".join([" * ".join(varying) or "1", *(f"(1 | {name})" for name in groups)])
    left_out = [f"{term} does not vary and is left out." for term in asked if term not in varying]
    return _fit_terms(
        cells, right, model=model, analysis=analysis, n=judged.height, left_out=left_out, penalty=penalty
    )


def _fit_terms(
    cells: pl.DataFrame,
    right: str,
    *,
    model: str,
    analysis: str,
    n: int,
    left_out: list[str],
    penalty: float | None = None,
) -> pl.DataFrame:
    labels = {"model": model, "analysis": analysis, "formula": f"{RESPONSE} ~ {right}", "n": n}
    try:
        fitted = fit_glmm(f"cbind(hits, misses) ~ {right}", cells, penalty=penalty)
    except FelicityError as error:
        row = labels | {"note": " ".join([f"Not fitted: {error}", *left_out])}
        return pl.DataFrame([row], schema_overrides=REGRESSIONS).select(
            pl.col(name) if name in row else pl.lit(None, dtype=dtype).alias(name)
            for name, dtype in REGRESSIONS.items()
        )
    terms = fitted.fixed.rename({"statistic": "z"}).with_columns(
        *(pl.lit(value).alias(name) for name, value in labels.items()),
        pl.lit(_describe_groups(fitted)).alias("groups"),
        pl.lit(" ".join([*fitted.notes, *left_out])).alias("note"),
    )
    return conform(terms, REGRESSIONS)


def _describe_groups(fitted: FittedModel) -> str:
    spread = dict(fitted.random.select("group", "sd").iter_rows())
    return ", ".join(f"{name} {count} (SD {decimal(spread[name])})" for name, count in fitted.groups.items())
