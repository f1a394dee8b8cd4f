"""The page of a context study: what contexts change, in one sentence and one figure; then the evidence."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from felicity.core.contrasts import Headline
from felicity.core.sweep import FROM_KINDS
from felicity.core.wording import NO_DIFFERENCE, format_p, is_detected
from felicity.report import Figure, Page, Section, count, counted, format_interval, percent, points, signed
from felicity.stats.mixed import DEGENERATE
from felicity.studies.context.regressions import BY_ITEM, CONTEXT, UNRELATED
from felicity.studies.context.report.accuracy import (
    build_change,
    build_margins,
    build_models,
    build_numbers,
    build_perturbations,
    build_phenomena,
    build_ratio,
    build_regions,
    draw_change,
    draw_models,
    find_longest,
)
from felicity.studies.context.report.coefficients import (
    build_correlations,
    build_regression,
    build_unrelated,
    write_term,
)
from felicity.studies.context.report.context_tables import ContextTables, sort_kinds
from felicity.studies.context.report.suites import build_matrices, build_suite_changes
from felicity.studies.study import Study

Build = Callable[[ContextTables], Section | None]
BEFORE_CORRELATIONS: tuple[Build, ...] = (
    build_change,
    build_phenomena,
    build_models,
    build_ratio,
    build_regression,
    build_unrelated,
)
AFTER_CORRELATIONS: tuple[Build, ...] = (
    build_margins,
    build_suite_changes,
    build_perturbations,
    build_matrices,
    build_regions,
    build_numbers,
)
# Kinds of context that a sentence names.
MOST_NAMED = 5
# What the intervals are over, by the units that are drawn.
UNITS = {
    "suites": "over suites, since the items of one suite are not independent",
    "contexts": "over the contexts that items share",
    "items": "over items",
}


def sections(study: Study) -> Page:
    """The page of a finished study."""
    return build_page(read_tables(study))


def read_tables(study: Study) -> ContextTables:
    """What the page is made of."""
    facts = study.facts
    design, sizes = facts["design"], facts["sizes"]
    shared = design["contexts_per_suite"]
    drawn = (
        "each item with its own contexts"
        if shared is None
        else f"{counted(shared, 'context')} per suite, each shared by many items"
    )
    return ContextTables(
        dataset=facts["dataset"],
        tables=study.tables,
        unit=design["unit"],
        headline=Headline.read(facts["score"]),
        address=study.link,
        facts=(
            ("Dataset", f"{facts['dataset']} ({facts['method']}, measure {facts['measure']})"),
            ("Items", f"{count(sizes['items'])} in {counted(sizes['suites'], 'suite')}"),
            ("Design", f"{drawn}, {design['draws']} drawn for each"),
            ("Contexts", f"{count(sizes['contexts'])}, measured in tokens of {design['tokenizer']}"),
            ("Texts scored", f"{count(sizes['texts'])} for each model"),
            ("Seed", str(design["seed"])),
        ),
    )


def build_page(study: ContextTables) -> Page:
    """The answer, the change of accuracy with zero marked, how sure it is, then the sections that apply."""
    rows = list(_list_longest(study))
    score, hero = study.headline, _hero(study)
    return Page(
        title="Context and acceptability",
        subject=study.dataset,
        question=f"Does a preceding context change {score.noun}?",
        answer=_answer(study, rows),
        hero=hero,
        sure=tuple(_doubts(study, rows)),
        findings=(*_compare_kinds(study, rows), *_describe_terms(study)),
        sections=tuple(_without_figure(section, hero) for section in build_sections(study)),
        legend="" if score.graded else score.describe(),
        summary="change" if not study.contexts("overall").is_empty() else "numbers",
    )


def build_sections(study: ContextTables) -> list[Section]:
    """The sections that apply to this study, in the order of the page."""
    built = [
        *(build(study) for build in BEFORE_CORRELATIONS),
        *build_correlations(study),
        *(build(study) for build in AFTER_CORRELATIONS),
        _design(study),
    ]
    found = [section for section in built if section is not None]
    return found if len(study.models) > 1 else [_without_model(section) for section in found]


def _without_model(section: Section) -> Section:
    """A section whose table does not repeat the name of the only model in every row."""
    if section.columns[:1] != ("Model",):
        return section
    rows = tuple(row[1:] for row in section.rows)
    return replace(section, columns=section.columns[1:], rows=rows, names=section.names - 1)


def _without_figure(section: Section, hero: Figure | None) -> Section:
    """A section that does not show the main figure of the page again."""
    return replace(
        section, figures=tuple(one for one in section.figures if not hero or one.name != hero.name)
    )


def _hero(study: ContextTables) -> Figure | None:
    """The change by length with zero marked, of one model or of each; of a matrix alone, its first one."""
    if study.contexts("overall").is_empty():
        matrices = build_matrices(study)
        return matrices.figures[0] if matrices else None
    return draw_models(study) if len(study.models) > 1 else draw_change(study)[0]


def _list_longest(study: ContextTables) -> Iterator[dict[str, Any]]:
    """The longest contexts of each model and kind; of contexts from single suites, of each suite."""
    rows = study.contexts("overall")
    if rows.is_empty():
        level = study.estimates.filter(pl.col("level") == "overall")
        rows = level.filter(pl.col("kind").is_in(list(FROM_KINDS)))
    for model in study.models:
        own = sort_kinds(find_longest(rows.filter(pl.col("model") == model)))
        yield from own.iter_rows(named=True)


def _is_detected(row: dict[str, Any]) -> bool:
    """Whether the interval of a change excludes zero."""
    low, high = row["delta_low"], row["delta_high"]
    return low is not None and high is not None and (low > 0 or high < 0)


def _name(study: ContextTables, row: dict[str, Any]) -> str:
    """A kind of context inside a sentence."""
    return study.name_kind(row["kind"], row["source"]).replace(",", "", 1)


def _points(row: dict[str, Any]) -> str:
    """A change in points with its interval."""
    return f"{points(row['delta'])} {format_interval(row['delta_low'], row['delta_high'], points)}"


def _answer(study: ContextTables, rows: list[dict[str, Any]]) -> str:
    """The largest change in the longest contexts whose interval excludes zero."""
    noun = study.headline.noun
    detected = [row for row in rows if _is_detected(row)]
    if not detected:
        return f"{NO_DIFFERENCE.capitalize()}: no kind of context, at its longest, changes {noun} detectably."
    most = max(detected, key=lambda row: abs(row["delta"]))
    verb = "raise" if most["delta"] > 0 else "lower"
    largest = "" if len(detected) == 1 else " most"
    whole = study.baselines("overall").filter(pl.col("model") == most["model"])["n"]
    fewer = any(most["n"] < n for n in whole)
    reached = f", on the {counted(most['n'], 'item')} that reach this length" if fewer else ""
    kind, _, source = _name(study, most).partition(" from ")
    origin = f" from {source}" if source else ""
    return (
        f"Yes: {kind} contexts of {count(most['length'])} {study.unit}{origin} {verb} the {noun} of "
        f"{most['model']}{largest}, from {percent(most['accuracy'] - most['delta'])}% without a context to "
        f"{percent(most['accuracy'])}% ({_points(most)} points){reached}."
    )


def _compare_kinds(study: ContextTables, rows: list[dict[str, Any]]) -> Iterator[str]:
    """A sentence per model: where accuracy rises, where it falls, and where no difference is detectable."""
    for model in study.models:
        own = [row for row in rows if row["model"] == model]
        base = study.baselines("overall").filter(pl.col("model") == model).to_dicts()
        told = [
            f"{model}: {study.headline.noun} without context is {percent(row['accuracy'])}% "
            f"{format_interval(row['low'], row['high'], percent)}"
            for row in base
        ] or [model]
        for verb, chosen in (
            ("it rises in", [row for row in own if _is_detected(row) and row["delta"] > 0]),
            ("it falls in", [row for row in own if _is_detected(row) and row["delta"] < 0]),
            (f"{NO_DIFFERENCE} in", [row for row in own if not _is_detected(row)]),
        ):
            if chosen:
                largest = sorted(chosen, key=lambda row: -abs(row["delta"]))[:MOST_NAMED]
                named = [f"{_name(study, row)} ({_points(row)})" for row in chosen if row in largest]
                left = len(chosen) - len(named)
                more = f" and {counted(left, 'other kind')}" if left else ""
                told.append(f"{verb} {', '.join(named)} contexts{more}")
        yield "; ".join(told) + "."


def _describe_terms(study: ContextTables) -> Iterator[str]:
    """Whether length, match and acceptability depend on one another, and whether unrelated length counts."""
    terms = study.table("regressions").drop_nulls(["term", "p"])
    for model in study.models:
        for analysis in (CONTEXT, UNRELATED):
            own = _choose_fit(terms.filter(model=model), analysis)
            slopes = own.filter(~pl.col("term").str.to_lowercase().str.contains("intercept"))
            if slopes.is_empty():
                continue
            row = slopes.sort(pl.col("term").str.count_matches(":"), maintain_order=True).row(-1, named=True)
            found = "a detectable" if is_detected(row["p"]) else "no detectable"
            what = "interaction" if ":" in row["term"] else "effect"
            where = " in unrelated contexts" if analysis == UNRELATED else ""
            yield (
                f"{model}: {found} {what} of {write_term(row['term'])}{where} (mixed logistic model, "
                f"log-odds {signed(row['estimate'])}, {format_p(row['p'])})."
            )


def _choose_fit(terms: pl.DataFrame, analysis: str) -> pl.DataFrame:
    """The model that knows that items recur, unless it is degenerate or there is none."""
    repeated = terms.filter(analysis=f"{analysis} ({BY_ITEM})")
    sound = repeated.filter(~pl.col("note").str.contains(DEGENERATE, literal=True))
    return terms.filter(analysis=analysis) if sound.is_empty() else sound


def _doubts(study: ContextTables, rows: list[dict[str, Any]]) -> Iterator[str]:
    """How sure the answer is: over what the intervals are, how many items, what is doubtful."""
    drawn = list(dict.fromkeys(row["drawn"] for row in rows if row["drawn"]))
    if drawn:
        yield (
            f"95% intervals are {'; '.join(UNITS[unit] for unit in drawn)}. They are of single changes, not "
            "adjusted for the number of kinds and lengths."
        )
    whole = study.baselines("overall")
    for row in whole.head(1).iter_rows(named=True):
        yield (
            f"{counted(row['n'], 'item')} in {counted(row['suites'], 'suite')}, each judged without a "
            "context and again in contexts; only items that reach a length count at that length."
        )
        short = [other for other in rows if other["n"] < row["n"] and other["model"] == study.models[0]]
        if short:
            named = ", ".join(f"{_name(study, other)} {count(other['n'])}" for other in short)
            yield f"Fewer items reach the longest contexts: {named} of {count(row['n'])}."
    judged = study.estimates.filter(pl.col("level") == "overall")
    ties, unstable = int(judged["ties"].sum()), int(judged["unstable"].sum())
    if ties:
        yield f"Ties, which count one half: {counted(ties, 'judgement')}."
    if unstable:
        yield f"Margins no larger than the possible rounding error: {counted(unstable, 'judgement')}."


def _design(study: ContextTables) -> Section | None:
    if not study.facts:
        return None
    return Section(
        name="design",
        title="What was done",
        lede="Each item is judged without a context and again in growing contexts. Each context starts with "
        "the next shorter one, and both sentences of an item have the same context. No context contains a "
        "sentence of its own item.",
        columns=("Part", "In this study"),
        rows=tuple(study.facts),
        names=2,
    )
