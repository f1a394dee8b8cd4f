"""The page about methods: do a model's answers say what its probabilities say?"""

from functools import partial
from typing import Any

import polars as pl

from felicity.core.contrasts import Headline
from felicity.core.wording import format_interval, share_interval
from felicity.report import Figure, Linked, Page, Section, count, decimal, percent_interval
from felicity.report.charts import Row, chart_accuracy
from felicity.studies.study import Study

DIRECT = "direct"
MEANINGS = {
    "direct": "the probability of the sentence, or of the word after its context",
    "in_template": "the same, after a sentence that presents it",
    "question": "which of the two is better, asked in either order",
    "yes_no": "whether each is acceptable: the log-probability of Yes minus that of No",
}


def sections(study: Study) -> Page:
    """The answer, accuracy by method as the main figure, then agreement, prompts and suites."""
    headline = Headline.read(study.facts["score"])
    accuracy, agreement = study["accuracy"], study["agreement"]
    overall = accuracy.filter(level="overall")
    subject = study.facts["dataset"]
    return Page(
        title="Direct and metalinguistic judgements",
        subject=subject,
        question="Do a model's answers say what its probabilities say?",
        answer=_answer(overall, agreement, headline),
        hero=_chart(study, overall, headline),
        sure=(
            "Intervals of accuracy are 95%, over suites where the pairs come from several; those of "
            "agreement are over pairs.",
            "Another wording may give other answers; the prompts are below, and --prompts takes your own.",
        ),
        sections=(
            _methods(study, overall, headline),
            *_agreement(agreement),
            _prompts(study.facts),
            _suites(study, accuracy.filter(level="suite")),
        ),
        summary="accuracy",
    )


def _answer(overall: pl.DataFrame, agreement: pl.DataFrame, headline: Headline) -> str:
    best = overall.sort("accuracy", descending=True, maintain_order=True).row(0, named=True)
    shown = share_interval(best["accuracy"], best["low"], best["high"])
    first = (
        f"{headline.name} is highest by the method '{best['method']}': {shown} of {count(best['n'])} pairs "
        f"({best['model']})."
    )
    asked = agreement.filter(pl.col("first") == DIRECT).drop_nulls("agreement")
    if asked.is_empty():
        return first
    least = asked.sort("agreement", maintain_order=True).row(0, named=True)
    shared = share_interval(least["agreement"], least["low"], least["high"])
    verdict = "Yes" if least["agreement"] == 1 else "Not always"
    return (
        f"{verdict}: answers by '{least['second']}' agree with the direct probabilities of {least['model']} "
        f"on {shared} of {count(least['n'])} pairs. {first}"
    )


def _chart(study: Study, overall: pl.DataFrame, headline: Headline) -> Figure | None:
    several = overall["model"].n_unique() > 1
    rows = [
        Row(
            f"{row['model']}, {row['method']}" if several else row["method"],
            row["accuracy"],
            row["low"],
            row["high"],
            row["n"],
            link=study.link(row["model"], row["method"]),
        )
        for row in overall.iter_rows(named=True)
    ]
    if len(rows) < 2:
        return None
    return Figure(
        name="methods",
        title=f"{headline.name} by method",
        subtitle=study.facts["dataset"],
        label=f"{headline.name} of each method with its 95% interval; the numbers are in the table.",
        chart=partial(chart_accuracy, rows, chance=headline.chance, noun="pairs"),
    )


def _methods(study: Study, overall: pl.DataFrame, headline: Headline) -> Section:
    return Section(
        name="accuracy",
        title="Methods",
        lede=f"{headline.name}, %, by method.",
        columns=("Model", "Method", "What is compared", headline.name, "n"),
        rows=tuple(
            (
                row["model"],
                row["method"],
                MEANINGS[row["method"]],
                *(
                    Linked(text, study.link(row["model"], row["method"]))
                    for text in (
                        percent_interval(row["accuracy"], row["low"], row["high"]),
                        count(row["n"]),
                    )
                ),
            )
            for row in overall.iter_rows(named=True)
        ),
        names=3,
    )


def _agreement(agreement: pl.DataFrame) -> tuple[Section, ...]:
    if agreement.is_empty():
        return ()
    return (
        Section(
            name="agreement",
            title="Agreement",
            lede="The share of pairs with the same verdict, %, Cohen's kappa, and the correlation of "
            "margins, of every two methods on the same pairs; ties are left out.",
            columns=("Model", "Methods", "Same verdict", "Kappa", "r of margins", "n"),
            rows=tuple(
                (
                    row["model"],
                    f"{row['first']}, {row['second']}",
                    "N/A"
                    if row["agreement"] is None
                    else percent_interval(row["agreement"], row["low"], row["high"]),
                    _estimate(row, "kappa"),
                    _estimate(row, "r"),
                    count(row["n"]),
                )
                for row in agreement.iter_rows(named=True)
            ),
            names=2,
        ),
    )


def _estimate(row: dict[str, Any], name: str) -> str:
    if row[name] is None:
        return "N/A"
    return f"{decimal(row[name])} {format_interval(row[f'{name}_low'], row[f'{name}_high'])}"


def _prompts(facts: dict[str, Any]) -> Section:
    """The prompts as they were given."""
    prompts = facts["prompts"]
    chosen = {name: text for name, text in prompts[facts["kind"]].items() if name in facts["methods"]}
    answers = ", ".join(f"{name}: {text}" for name, text in prompts["answers"].items())
    return Section(
        name="prompts",
        title="Prompts",
        lede=f"Source: {prompts['source']}. Answers that are scored: {answers}.",
        columns=("Method", "Prompt"),
        rows=tuple((name, text.replace("\n", " / ")) for name, text in chosen.items()),
        names=2,
    )


def _suites(study: Study, suites: pl.DataFrame) -> Section:
    return Section(
        name="suites",
        title="By suite",
        folded=True,
        lede="The same for every suite; intervals are over its pairs.",
        columns=("Suite", "Model", "Method", "%", "n"),
        rows=tuple(
            (
                row["name"],
                row["model"],
                row["method"],
                *(
                    Linked(text, study.link(row["model"], row["method"], suite=row["name"]))
                    for text in (
                        percent_interval(row["accuracy"], row["low"], row["high"]),
                        count(row["n"]),
                    )
                ),
            )
            for row in suites.sort("name", maintain_order=True).iter_rows(named=True)
        ),
        names=3,
    )
