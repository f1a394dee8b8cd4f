"""The study's mixed logistic regressions, fitted on counts per cell.

`context`: accuracy ~ log(length) * matched * acceptable + (1 | phenomenon). Both factors are sum-coded:
matched +1, mismatched -1; acceptable +1, unacceptable -1. Log is natural, length is what was asked for.
`unrelated`: accuracy ~ log(length) + (1 | phenomenon), for contexts that should change nothing.
The baseline is left out, ties count as wrong. As in the paper, judgements of one item at several lengths
are taken to be independent; where several items read one context, the series of contexts that grow out
of one another is a random effect too.
"""

import polars as pl

from felicity.core.errors import FelicityError
from felicity.core.schemas import conform
from felicity.core.sweep import KINDS, UNPERTURBED
from felicity.stats.mixed.binomial import fit_glmm
from felicity.stats.mixed.fitted import FittedModel
from felicity.studies.context.pairing import check_judgements, share_contexts
from felicity.studies.context.tables import TERMS

CONTEXT = "context"
UNRELATED = "unrelated"
PREDICTORS = {"log(length)": "length", "matched": "matched", "acceptable": "acceptable"}


def fit_regressions(judgements: pl.DataFrame) -> pl.DataFrame:
    """Rows of TERMS: both regressions for every model, and for every perturbation of the contexts.

    The random intercept is that of phenomena; of suites where there is one phenomenon; of items where
    there is one suite. A predictor that does not vary is left out, and the note says so.

    Raises BadInput for judgements of several measures.
    """
    check_judgements(judgements)
    shared = share_contexts(judgements)
    tables = [
        _fit(part, str(model), name if perturbation == UNPERTURBED else f"{name} ({perturbation})", shared)
        for (model, perturbation), judged in judgements.group_by("model", "perturbation", maintain_order=True)
        for name, part in ((CONTEXT, _crossed(judged)), (UNRELATED, judged.filter(kind=UNRELATED)))
        if part.height
    ]
    return pl.concat([pl.DataFrame(schema=TERMS), *tables])


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


def _fit(judged: pl.DataFrame, model: str, analysis: str, shared: bool) -> pl.DataFrame:
    asked = [term for term, name in PREDICTORS.items() if name in judged.columns]
    varying = [term for term in asked if judged[PREDICTORS[term]].n_unique() > 1]
    group = next((name for name in ("phenomenon", "suite") if judged[name].n_unique() > 1), "item")
    groups = [group, "series"] if shared else [group]
    cells = judged.group_by(*(PREDICTORS[term] for term in varying), *groups, maintain_order=True).agg(
        (pl.col("passed") == 1.0).sum().alias("hits"), (pl.col("passed") < 1.0).sum().alias("misses")
    )
    right = " + ".join([" * ".join(varying) or "1", *(f"(1 | {name})" for name in groups)])
    labels = {"model": model, "analysis": analysis, "formula": f"accuracy ~ {right}", "n": judged.height}
    left_out = [f"{term} does not vary and is left out." for term in asked if term not in varying]
    try:
        fitted = fit_glmm(f"cbind(hits, misses) ~ {right}", cells)
    except FelicityError as error:
        row = labels | {"note": " ".join([f"Not fitted: {error}", *left_out])}
        return pl.DataFrame([row], schema_overrides=TERMS).select(
            pl.col(name) if name in row else pl.lit(None, dtype=dtype).alias(name)
            for name, dtype in TERMS.items()
        )
    terms = fitted.fixed.rename({"statistic": "z"}).with_columns(
        *(pl.lit(value).alias(name) for name, value in labels.items()),
        pl.lit(_describe_groups(fitted)).alias("groups"),
        pl.lit(" ".join([*fitted.notes, *left_out])).alias("note"),
    )
    return conform(terms, TERMS)


def _describe_groups(fitted: FittedModel) -> str:
    spread = dict(fitted.random.select("group", "sd").iter_rows())
    return ", ".join(f"{name} {count} (SD {spread[name]:.2f})" for name, count in fitted.groups.items())
