"""The report of the study: whether the paper's findings hold here, and the page around all sections.

A flagged continuation is counted in the report, but its text is never shown.
"""

from pathlib import Path

from felicity.core.schemas import SIMULATED_MARK, SIMULATED_NOTE
from felicity.report import Section, count, mark_figures, write_sections
from felicity.run import read_policies
from felicity.studies.causality.findings import Finding, check_preference, check_ratings
from felicity.studies.causality.report_preference import report_preference
from felicity.studies.causality.report_texts import report_continuations, report_ratings
from felicity.studies.causality.study import CausalityStudy, read_causality


def write_causality_report(study: CausalityStudy, folder: Path) -> Path:
    """Write report.html and its figures into the folder; gives the page's path."""
    names = ", ".join(one.name for one in study.models)
    sections = [_findings(study), *report_preference(study), *report_continuations(study)]
    simulated = study.ratings is not None and SIMULATED_NOTE in study.ratings.notes
    if study.ratings is not None:
        rated = report_ratings(study.ratings)
        sections += mark_figures(rated, SIMULATED_MARK) if simulated else rated
    prompts = study.stimuli.height
    return write_sections(
        sections,
        folder / "report.html",
        eyebrow="Implicit causality",
        title=f"Implicit causality: {names}",
        subject=str(study.record["source"]),
        meta=f"{count(prompts)} prompts with {count(_verbs(study))} verbs · after Huynh et al. (2022). "
        f"{read_policies(folder)}",
        simulated=simulated,
    )


def _verbs(study: CausalityStudy) -> int:
    return study.stimuli["verb"].n_unique()


def report_causality(folder: Path, *, check: bool = True) -> Path:
    """Write the tables and the page again from what is in the folder; returns the page's path."""
    return write_causality_report(read_causality(folder, check=check), folder)


def _findings(study: CausalityStudy) -> Section:
    rows = []
    for one in study.models:
        table = study.tables["agreement"].filter(lm=one.name)
        rows += [_told(one.name, found) for found in check_preference(one.fitted.models, table)]
    if study.ratings is not None:
        rows += [_told("ratings", found) for found in check_ratings(study.ratings)]
    notes = [*study.record.get("notes", [])]
    notes += [note for one in study.models for note in one.fitted.notes]
    return Section(
        name="findings",
        title="The paper's findings",
        lede="Whether each finding of Huynh et al. (2022) holds here, at the level .05.",
        columns=("", "Finding", "Here", "Figures"),
        rows=tuple(rows),
        names=4,
        notes=tuple(notes),
    )


def _told(name: str, found: Finding) -> tuple[str, ...]:
    return (name, found.claim, found.verdict, found.figures)
