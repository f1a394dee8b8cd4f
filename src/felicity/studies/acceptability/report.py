"""The report of the study: what was found, tables and figures, sentences, and how to reproduce it."""

from functools import partial
from pathlib import Path

from felicity.core.schemas import SIMULATED_MARK, SIMULATED_NOTE
from felicity.report import Extra, Figure, count, counted, decimal, mark_figures, signed, write_sections
from felicity.report.charts import Dot, chart_scatter
from felicity.run import read_policies
from felicity.studies.acceptability.correlations import pick_disagreements
from felicity.studies.acceptability.findings import describe_findings, name_measure
from felicity.studies.acceptability.people_sections import (
    shorten_sentence,
    show_cleaning,
    show_distribution,
    show_ordinal,
    show_people,
)
from felicity.studies.acceptability.ratings import label_setting
from felicity.studies.acceptability.study import AcceptabilityStudy
from felicity.studies.acceptability.table_sections import show_ceilings, show_effects, show_table, show_tests

EXAMPLES = 6


def write_acceptability_report(study: AcceptabilityStudy, folder: Path) -> Path:
    """Write report.html and its figures into `folder`; gives the page's path."""
    found = [
        _findings(study),
        show_table(study),
        show_ceilings(study),
        show_tests(study),
        show_people(study),
        show_distribution(study),
        show_cleaning(study),
        show_ordinal(study),
        show_effects(study),
        _scatter(study),
        *_examples(study),
        _reproduce(study),
    ]
    sentences = study.ratings.sentences.height
    sections = [section for section in found if section is not None]
    simulated = SIMULATED_NOTE in study.ratings.notes
    return write_sections(
        mark_figures(sections, SIMULATED_MARK) if simulated else sections,
        folder / "report.html",
        eyebrow="felicity acceptability",
        title="Acceptability in context",
        subject=study.ratings.name,
        meta=f"{counted(sentences, 'sentence')}, {counted(study.models.height, 'model')}; settings "
        + ", ".join(f"{label_setting(name)} ({name})" for name in study.ratings.settings)
        + f". {read_policies(folder)}",
        simulated=simulated,
    )


def _findings(study: AcceptabilityStudy) -> Extra:
    return Extra(
        name="findings",
        title="What was found",
        lede="Pearson correlations of scores with mean ratings over sentences, with bootstrap intervals over "
        "sentences.",
        columns=("Finding",),
        rows=tuple((text,) for text in describe_findings(study)),
    )


def _scatter(study: AcceptabilityStudy) -> Extra:
    texts = study.ratings.sentences["text"].to_list()
    figures = []
    for setting in study.ratings.settings:
        dots, corners = [], {}
        rating = study.ratings.mean(setting)
        for model in study.models["model"]:
            known = study.correlations.filter(model=model, setting=setting)["context"].unique().to_list()
            if not known:
                continue
            context = setting if setting in known else known[0]
            cell = study.best(setting, model=model, context=context)
            values = study.vectors[cell]
            spread = (values - values.mean()) / values.std()
            panel = f"{model}, {name_measure(cell.measure)}, context {context}"
            found = study.correlations.filter(
                model=model, setting=setting, context=context, measure=cell.measure
            )
            corners[panel] = f"r = {decimal(found['r'].item(), 3)}"
            dots += [
                Dot(panel, "", a, b, hover=f"rated {a:.2f}: {shorten_sentence(text)}")
                for a, b, text in zip(rating.tolist(), spread.tolist(), texts, strict=True)
            ]
        figures.append(
            Figure(
                name=f"scatter_{setting}",
                title=f"Scores against {label_setting(setting)}",
                subtitle=f"{study.ratings.name}: the highest r of every model, in the raters' context",
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
    return Extra(
        name="scatter",
        title="Sentence by sentence",
        lede="The measure with the highest correlation of every model in the context that the raters saw. "
        "Hold the pointer over a dot to read its sentence.",
        figures=tuple(figures),
    )


def _examples(study: AcceptabilityStudy) -> list[Extra]:
    setting = study.ratings.settings[0]
    found: list[Extra] = []
    for model in study.models["model"]:
        known = study.correlations.filter(model=model, setting=setting)["context"].unique(maintain_order=True)
        if known.is_empty():
            continue
        cell = study.best(setting, model=model, context=setting if setting in known else str(known[0]))
        picked = pick_disagreements(study.vectors, study.ratings, cell, setting, k=EXAMPLES)
        found.append(
            Extra(
                name=f"differ-{len(found) + 1}",
                title=f"Where people and {model} differ most",
                lede=f"{name_measure(cell.measure)} with context '{cell.context}' against "
                f"{label_setting(setting)}: first "
                "the sentences that people find better than the model does, then the reverse; z-scores.",
                columns=("Sentence", "Rating", "People, z", "Model, z"),
                rows=tuple(
                    (
                        row["text"],
                        decimal(row["rating"]),
                        signed(row["rating_z"], 1),
                        signed(row["value_z"], 1),
                    )
                    for row in picked.iter_rows(named=True)
                ),
            )
        )
    return found


def _reproduce(study: AcceptabilityStudy) -> Extra:
    rows = [
        (
            row["model"],
            row["family"],
            count(row["parameters"]),
            row["unigram"] or "–",
            row["policy"],
        )
        for row in study.models.iter_rows(named=True)
    ]
    record = study.record
    told = [
        f"Command: {record.get('command') or 'called from Python'}",
        f"Ratings: {record.get('ratings', study.ratings.name)}, digest "
        f"{str(record.get('digest', study.ratings.key))[:16]}.",
        f"Seed {record.get('seed', 0)}; felicity {record.get('felicity', '')}; "
        f"{str(record.get('created', ''))[:10]}.",
        "The run of each model, with every token, is in models/; the tables of this page are the CSV files "
        "beside it.",
    ]
    return Extra(
        name="reproduce",
        title="How to reproduce this",
        lede="Which models were scored, under which policy.",
        columns=("Model", "Family", "Parameters", "Unigram counts", "Policy"),
        rows=tuple(rows),
        names=2,
        notes=(*told, *study.notes),
    )
