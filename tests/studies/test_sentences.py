"""No generated sentence claims what its table does not show, whatever the table: properties over random ones.

The rule that is stated everywhere: a difference is claimed if its p, adjusted where there are several, is at
most .05; any other reads "no detectable difference".
"""

import math
import re
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from felicity.stats import compare_all, compare_conclusions, describe_comparison
from felicity.studies.acceptability import Results
from felicity.studies.acceptability.findings import answer_question, describe_findings
from felicity.studies.causality.findings import ABSENT, FOUND, REVERSED, check_preference
from felicity.studies.cloze.size_comparison import conclude

ALPHA = 0.05
# Words that rank or praise; a sentence that states figures needs none of them.
RANKING = re.compile(
    r"\b(better|worse|best|worst|helps?|harms?|strongest|strongly|outperforms?|superior)\b", re.I
)
NOTHING = "no detectable difference"

P = st.one_of(st.none(), st.just(math.nan), st.floats(0, 1), st.sampled_from([0.0, 0.05, 0.0500001, 1.0]))
R = st.one_of(st.floats(-1, 1), st.sampled_from([-0.123, -0.259, 0.0]))
MEASURES = ("lp", "mean_lp", "slor")


def is_shown(p: float | None) -> bool:
    """The rule, written again: a missing p shows nothing."""
    return p is not None and not math.isnan(p) and p <= ALPHA


@given(
    st.lists(st.tuples(*[st.sampled_from([0.0, 0.5, 1.0])] * 3), min_size=2, max_size=12), st.integers(2, 3)
)
def test_compare_claims_a_difference_only_if_it_is_significant(rows: list[tuple[float, ...]], n: int) -> None:
    runs = {
        name: pl.DataFrame(
            {"item": [str(i) for i in range(len(rows))], "passed": [row[place] for row in rows]}
        )
        for place, name in enumerate("abc"[:n])
    }
    table = compare_all(runs)
    column = "p_holm" if table.height > 1 else "p"
    said = re.split(r"(?<=[.])\s+(?=[abc]: )", describe_comparison(table))
    assert len(said) == table.height
    for text, row in zip(said, table.to_dicts(), strict=True):
        assert (NOTHING in text) == (not is_shown(row[column])), text
        assert not RANKING.search(text), text
        higher = row["first"] if row["difference"] >= 0 else row["second"]
        assert text.startswith(f"{higher}: "), text


@st.composite
def studies(draw: st.DrawFn) -> Results:
    """Tables of an acceptability study of two models, in two settings and two contexts."""
    cells = [
        {"setting": setting, "model": model, "context": context, "measure": measure, "r": draw(R)}
        | {"low": -1.0, "high": 1.0}
        for setting in ("none", "real")
        for model in ("m", "n")
        for context in ("none", "real")
        for measure in MEASURES
    ]
    shared = {"t": draw(st.floats(-9, 9)), "df": 97}
    tests: list[dict[str, Any]] = []
    for model in ("m", "n"):
        for setting in ("none", "real"):
            for first, second in (("lp", "mean_lp"), ("lp", "slor"), ("slor", "mean_lp")):
                tests.append(
                    {"compares": "measure", "model": model, "context": "none", "measure": None}
                    | {"setting": setting, "first": first, "second": second, "p": draw(P)}
                    | {"p_holm": draw(P), "p_holm_within": draw(P)}
                    | shared
                )
            for measure in MEASURES:
                p = draw(st.floats(0, 1))
                tests.append(
                    {"compares": "context", "model": model, "context": None, "measure": measure}
                    | {"setting": setting, "first": "none", "second": "real", "p": p}
                    | {"p_holm": draw(st.floats(p, 1)), "p_holm_within": p}
                    | shared
                )
    ceilings = pl.DataFrame({"setting": ["none"], "bound": ["UB1"], "r": [draw(R)]})
    ratings: Any = SimpleNamespace(settings=("none", "real"), in_context=("real",))
    return Results(
        ratings,
        {
            "models": pl.DataFrame({"model": ["m", "n"]}),
            "correlations": pl.DataFrame(cells),
            "tests": pl.DataFrame(tests, infer_schema_length=None),
            "ceilings": ceilings,
            "effects": pl.DataFrame(),
        },
    )


@settings(max_examples=30)
@given(studies())
def test_findings_on_acceptability_say_what_the_tables_show(study: Results) -> None:
    said = [answer_question(study), *describe_findings(study)]
    for text in said:
        assert not RANKING.search(text), text
        assert not re.search(r"(^|[^(])H0 ", text), "a bare H0 reads as the null hypothesis"
    cells = study["correlations"]
    names = {"LP": "lp", "MeanLP": "mean_lp", "SLOR": "slor"}
    for setting, pattern in (
        ("none", r"highest correlation with .* r = (-?\d\.\d+)"),
        ("real", r"The highest of 12 correlations .* r = (-?\d\.\d+)"),
    ):
        text = next(text for text in said if re.search(pattern, text))
        r = re.search(pattern, text)[1]  # type: ignore[index]
        own = cells.filter(setting=setting)
        assert float(r) == pytest.approx(own["r"].max(), abs=6e-3 if setting == "none" else 6e-4)
        assert ("no score correlates positively" in text) == (own["r"].max() <= 0)
        bound = study["ceilings"].filter(setting=setting)["r"].to_list()
        for r in bound if own["r"].max() > 0 else ():
            assert (", below the" in text) == (own["r"].max() < r), text
    for model in ("m", "n"):
        (text,) = [text for text in said if text.startswith(f"Of the measures of {model} ")]
        own = cells.filter(model=model, context="none", setting="none")
        best = names[re.search(r"context, (\w+) has the highest", text)[1]]  # type: ignore[index]
        assert own.filter(measure=best)["r"].item() == own["r"].max()
        above = re.search(r"detectably above ([^;(]+)", text)
        claimed = {names[name] for name in re.findall(r"\w+", above[1]) if name in names} if above else set()
        for measure in set(MEASURES) - {best}:
            row = (
                study["tests"]
                .filter(
                    pl.col("compares") == "measure",
                    pl.col("model") == model,
                    pl.col("setting") == "none",
                    pl.col("first").is_in([best, measure]),
                    pl.col("second").is_in([best, measure]),
                )
                .row(0, named=True)
            )
            higher = own["r"].max() > own.filter(measure=measure)["r"].item()
            assert (measure in claimed) == (higher and is_shown(row["p_holm"])), text


@settings(max_examples=30)
@given(studies())
def test_a_context_raises_or_lowers_a_correlation_only_detectably(study: Results) -> None:
    for text in describe_findings(study):
        found = re.search(r"The context 'real' (raises|lowers|makes no detectable .* to) .* of (\w) ", text)
        if not found:
            continue
        own = study["correlations"].filter(model=found[2], setting="real")
        given = own.filter(context="real").sort("r", descending=True).row(0, named=True)
        bare = own.filter(context="none", measure=given["measure"])["r"].item()
        row = (
            study["tests"]
            .filter(compares="context", model=found[2], setting="real", measure=given["measure"])
            .row(0, named=True)
        )
        shown = is_shown(row["p_holm"]) and given["r"] != bare
        assert found[1].startswith("makes") == (not shown), text
        if shown:
            assert (found[1] == "raises") == (given["r"] > bare), text


@given(*[st.fixed_dictionaries({"p": P, "difference": st.floats(-1, 1)})] * 2)
def test_a_size_detects_only_what_its_p_shows(small: dict[str, Any], large: dict[str, Any]) -> None:
    said = conclude(small, large)
    shown = is_shown(small["p"]), is_shown(large["p"])
    assert (NOTHING in said) == (shown == (False, False))
    assert ("both sizes" in said) == all(shown)
    assert ("small set only" in said) == (shown == (True, False))
    assert ("extension only" in said) == (shown == (False, True))
    opposite = small["difference"] * large["difference"] < 0
    assert ("opposite" in said or "against" in said) == (opposite and shown[1])


@given(P, st.floats(-1, 1), st.booleans())
def test_a_finding_of_the_paper_is_found_only_if_significant(
    p: float | None, b: float, singular: bool
) -> None:
    told = {"model": ["preference"], "term": ["bias"], "singular": [singular]}
    models = pl.DataFrame(told | {"estimate": [b], "se": [0.1], "p": [1.0 if p is None else p]})
    empty = pl.DataFrame(
        schema={"bias_bin": pl.Int64, "subject_gender": pl.String, "counting": pl.String, "low": pl.Float64}
    )
    (finding, *_) = check_preference(models, empty)
    if not is_shown(p):
        assert finding.verdict == ABSENT == NOTHING
        assert finding.sentence.startswith("No detectable difference")
    else:
        assert finding.verdict == (FOUND if b > 0 else REVERSED)


@given(st.lists(st.tuples(P, P, st.floats(-1, 1), st.floats(-1, 1)), min_size=1, max_size=4))
def test_a_changed_conclusion_is_never_called_unchanged(rows: list[Any]) -> None:
    names = [f"t{place}" for place in range(len(rows))]
    kinds = {"term": pl.String, "p": pl.Float64, "estimate": pl.Float64}
    plain, other = (
        pl.DataFrame(
            {"term": names, "p": [row[place] for row in rows], "estimate": [row[2 + place] for row in rows]},
            schema=kinds,
        )
        for place in (0, 1)
    )
    said = compare_conclusions(plain, other, against="the model without items")
    known = [row for row in rows if row[0] is not None and row[1] is not None]
    changed = [
        row
        for row in known
        if is_shown(row[0]) != is_shown(row[1]) or (is_shown(row[0]) and row[2] * row[3] < 0)
    ]
    assert ("no conclusion changes" in said) == (bool(known) and not changed)
