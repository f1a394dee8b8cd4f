"""The page of the study: how closely scores follow ratings, beside what people reach, then the evidence."""

import json
from functools import partial

from felicity.core.policy import describe_policy
from felicity.core.schemas import SIMULATED_NOTE
from felicity.core.wording import format_interval
from felicity.report import Figure, Linked, Page, Section, count, counted, decimal, signed
from felicity.report.charts import Dot, chart_scatter
from felicity.studies.acceptability.analysis import Results
from felicity.studies.acceptability.correlations import Cell, pick_disagreements
from felicity.studies.acceptability.findings import (
    answer_question,
    describe_findings,
    name_measure,
    rank_cells,
)
from felicity.studies.acceptability.people_sections import (
    shorten_sentence,
    show_cleaning,
    show_distribution,
    show_ordinal,
    show_people,
)
from felicity.studies.acceptability.ratings import label_setting
from felicity.studies.acceptability.table_sections import (
    draw_ceilings,
    show_ceilings,
    show_effects,
    show_table,
    show_tests,
)
from felicity.studies.study import Study

EXAMPLES = 6
# With more sentences than this, dots would make the page large by what they lead to.
MOST_LINKED = 500


def sections(study: Study) -> Page:
    """The closest score beside the ceilings, then correlations, tests, people, contexts and sentences."""
    results = Results.of(study)
    settings = results.ratings.settings
    contexts = ", with and without context" if len(settings) > 1 else ""
    shown = [
        show_table(results),
        show_ceilings(results),
        show_tests(results),
        show_people(results),
        show_distribution(results),
        show_cleaning(results),
        show_ordinal(results),
        show_effects(results),
        _scatter(results),
        *_examples(results),
        _models(results),
    ]
    return Page(
        title="Acceptability in context",
        subject=results.ratings.name,
        question=f"How closely do models' scores follow people's ratings of sentences{contexts}?",
        answer=answer_question(results),
        hero=draw_ceilings(results, settings[0]),
        sure=tuple(_doubts(results)),
        findings=tuple(describe_findings(results)),
        sections=tuple(section for section in shown if section is not None),
        legend="Settings, what stood before a sentence: "
        + ", ".join(f"{label_setting(name)} ({name})" for name in settings)
        + ". UB1: one rating against the mean of the rest; UB2: random halves of the ratings.",
        summary="table",
        simulated=SIMULATED_NOTE in study.notes,
    )


def _doubts(results: Results) -> list[str]:
    setting = results.ratings.settings[0]
    ranked = rank_cells(results, setting=setting)
    sentences = []
    if ranked:
        best = ranked[0]
        sentences.append(
            f"r = {decimal(best['r'], 3)}, 95% CI {format_interval(best['low'], best['high'], places=3)}: "
            f"bootstrap over {counted(best['n'], 'sentence')}, not corrected for "
            f"choosing the highest of {len(ranked)} correlations."
        )
    bounds = [
        f"{row['bound']} = {decimal(row['r'], 3)} {format_interval(row['low'], row['high'], places=3)}"
        for row in results["ceilings"].filter(setting=setting).iter_rows(named=True)
    ]
    if bounds:
        sentences.append(
            f"The agreement among people bounds what a score can reach: {', '.join(bounds)}; the ranges hold "
            "95% of random draws of the ratings."
        )
    else:
        sentences.append("There are no single ratings, so it is unknown how well people agree.")
    if not results["tests"].is_empty():
        sentences.append(
            "Two correlations are compared by Williams' test, p Holm-adjusted over all comparisons of the "
            "same kind in the study; what is not significant reads no detectable difference."
        )
    return sentences


def _scatter(results: Results) -> Section:
    texts = results.ratings.sentences["text"].to_list()
    figures = []
    for setting in results.ratings.settings:
        dots, corners = [], {}
        rating = results.ratings.mean(setting)
        for model in results.models:
            cell = results.best(setting, model)
            if cell is None:
                continue
            values = results.vectors[cell]
            spread = (values - values.mean()) / values.std()
            panel = f"{model}, {name_measure(cell.measure)}, context {cell.context}"
            r = results["correlations"].filter(setting=setting, **cell._asdict())["r"].item()
            corners[panel] = f"r = {decimal(r, 3)}"
            dots += [
                Dot(
                    panel,
                    "",
                    a,
                    b,
                    hover=f"rated {decimal(a)}: {shorten_sentence(text)}",
                    link=_link_sentence(results, cell, text) if len(texts) <= MOST_LINKED else "",
                )
                for a, b, text in zip(rating.tolist(), spread.tolist(), texts, strict=True)
            ]
        figures.append(
            Figure(
                name=f"scatter_{setting}",
                title=f"Scores against {label_setting(setting)}",
                subtitle=f"{results.ratings.name}: the highest r of every model, in the raters' context",
                label=f"Scatter plots of scores against {label_setting(setting)}.",
                chart=partial(
                    chart_scatter,
                    dots,
                    x_title="mean rating",
                    y_title="score, in standard deviations",
                    corners=corners,
                ),
            )
        )
    return Section(
        name="scatter",
        title="Sentence by sentence",
        lede="The measure with the highest correlation of every model in the context that the raters saw. "
        "Hold the pointer over a dot to read its sentence.",
        figures=tuple(figures),
    )


def _link_sentence(results: Results, cell: Cell, text: str) -> str:
    """Where one sentence is, as the model scores it in the context of a cell."""
    phrase = text.replace('"', " ").strip()
    return results.link(cell.model, measure=cell.measure, condition=cell.context, q=f'"{phrase}"')


def _examples(results: Results) -> list[Section]:
    setting = results.ratings.settings[0]
    shown: list[Section] = []
    for model in results.models:
        cell = results.best(setting, model)
        if cell is None:
            continue
        picked = pick_disagreements(results.vectors, results.ratings, cell, setting, k=EXAMPLES)
        shown.append(
            Section(
                name=f"differ-{len(shown) + 1}",
                title=f"Where people and {model} differ most",
                lede=f"{name_measure(cell.measure)} with context '{cell.context}' against "
                f"{label_setting(setting)}: first "
                "the sentences that people find better than the model does, then the reverse; z-scores.",
                columns=("Sentence", "Rating", "People, z", "Model, z"),
                rows=tuple(
                    (
                        row["text"],
                        Linked(decimal(row["rating"]), _link_sentence(results, cell, row["text"])),
                        signed(row["rating_z"], 1),
                        signed(row["value_z"], 1),
                    )
                    for row in picked.iter_rows(named=True)
                ),
            )
        )
    return shown


def _models(results: Results) -> Section:
    return Section(
        name="models",
        title="Models",
        lede="What was scored; the run of each model, with every token, is in models/.",
        columns=("Model", "Family", "Unigram counts", "Policy", "Parameters"),
        rows=tuple(
            (
                row["model"],
                row["family"],
                row["unigram"] or "–",
                describe_policy(json.loads(row["policy"])),
                count(row["parameters"]),
            )
            for row in results["models"].iter_rows(named=True)
        ),
        names=4,
    )
