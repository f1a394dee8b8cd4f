"""A finished study as Python sees it: tables, page, figures, and itself in a notebook."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import UnknownName
from felicity.core.settings import check_settings, list_changed
from felicity.report import (
    EXPLORER,
    Figure,
    Page,
    Provenance,
    leave_note,
    link_items,
    render_snippet,
    unlink_spec,
    write_page,
)
from felicity.run import Run, StudyFolder, read_policies, read_run
from felicity.studies.study_registry import STUDIES


@dataclass(frozen=True)
class Study:
    """A study: `study["name"]` is a table, `study.plot("name")` a chart, `study.report()` writes the page."""

    place: StudyFolder
    tables: Mapping[str, pl.DataFrame]

    def __repr__(self) -> str:
        return f"Study({self.kind} in {self.folder}: {', '.join(self.models)}; {', '.join(self.tables)})"

    def __getitem__(self, name: str) -> pl.DataFrame:
        """A table by name, as its file is called."""
        if name not in self.tables:
            raise UnknownName("table", name, self.tables)
        return self.tables[name]

    @property
    def kind(self) -> str:
        """The command that made it, such as context or cloze."""
        return self.place.kind

    @property
    def folder(self) -> Path:
        """Where it is kept."""
        return self.place.path

    @property
    def record(self) -> dict[str, Any]:
        """What `study.json` holds."""
        return self.place.record

    @property
    def facts(self) -> dict[str, Any]:
        """What the plan noted for analysis and page."""
        return dict(self.record["facts"])

    @property
    def models(self) -> list[str]:
        """The names of its models."""
        return self.place.models

    @cached_property
    def settings(self) -> Any:
        """The settings it was carried out with."""
        return check_settings(STUDIES[self.kind].settings, self.record["settings"])

    @property
    def runs(self) -> dict[str, Path]:
        """The folders of its runs, by name."""
        return self.place.runs

    def run(self, name: str) -> Run:
        """One of its runs."""
        if name not in self.runs:
            raise UnknownName("run", name, self.runs)
        return read_run(self.runs[name])

    def link(self, model: str, part: str = "", *, view: str = "items", **filters: str | Sequence[str]) -> str:
        """The address of the explorer with the items of a model's run that have these properties.

        Empty if there is no such run. part: which of several runs. view: another view than that of items.
        """
        run = self._name_run(model, part)
        return link_items(EXPLORER, view, run=run, **filters) if run else ""

    def link_pair(self, first: str, second: str, part: str = "", **filters: str | Sequence[str]) -> str:
        """The address of the explorer's comparison of two models; empty if a run is missing."""
        runs = [self._name_run(model, part) for model in (first, second)]
        named = {"run": runs[0], "run_b": runs[1]}
        return link_items(EXPLORER, "compare", **named, **filters) if all(runs) else ""

    def _name_run(self, model: str, part: str) -> str:
        """A run as seen from the folder of the study; empty if it was not made."""
        run = self.place.run(model, part)
        return run.path.relative_to(self.folder).as_posix() if run.has_manifest() else ""

    @property
    def policies(self) -> str:
        """How the models were scored, in words."""
        return read_policies(self.folder)

    @property
    def notes(self) -> list[str]:
        """What a reader must know: from the plan, then from the analysis."""
        found = self.tables["notes"]["note"].to_list() if "notes" in self.tables else []
        return list(dict.fromkeys([*self.record["notes"], *found]))

    @cached_property
    def page(self) -> Page:
        """What the report shows."""
        page: Page = STUDIES[self.kind].load("sections")(self)
        return page

    def summary(self) -> str:
        """The question, the answer and what is found, in sentences."""
        return "\n".join([self.page.question, self.page.answer, *self.page.findings])

    def report(self) -> Path:
        """Write report.html and its figures into the study's folder; returns the page's path.

        Figures and cells lead to explore.html; if that is not there, a note is, which says how to write it.
        """
        about = Provenance(
            command=self.record["command"],
            created=self.record["created"],
            version=self.record["felicity"],
            policies=self.policies,
            settings=list_changed(STUDIES[self.kind].settings, self.record["settings"]),
            models=tuple(self.models),
            notes=tuple(self.notes),
        )
        leave_note(self.folder)
        return write_page(self.page, about, self.folder / "report.html", eyebrow=f"felicity {self.kind}")

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures of the page, by name."""
        return {figure.name: figure for figure in self.page.figures}

    def plot(self, name: str | None = None) -> Any:
        """A figure of the page as an altair chart; by default the main one."""
        import altair

        figures = self.figures
        chosen = name or next(iter(figures), "")
        if chosen not in figures:
            raise UnknownName("figure", chosen, figures)
        return altair.Chart.from_dict(unlink_spec(figures[chosen].slide()))

    def as_json(self) -> dict[str, Any]:
        """Everything that `--json` prints."""
        return {
            "study": self.kind,
            "folder": str(self.folder),
            "question": self.page.question,
            "answer": self.page.answer,
            "findings": list(self.page.findings),
            "models": self.models,
            "settings": self.record["settings"],
            "facts": self.facts,
            "notes": self.notes,
            "policies": self.policies,
            "tables": {name: table.to_dicts() for name, table in self.tables.items() if name != "notes"},
        }

    def _repr_html_(self) -> str:
        return render_snippet(self.page)


def read_study(path: str | Path, *, check: bool = True) -> Study:
    """The study in a folder, with its tables.

    check: refuse a study whose files have changed since it wrote them.

    Raises BadInput if the folder is not that of a finished study.
    """
    place = StudyFolder.open(Path(path), check=check)
    return Study(place, place.read_tables())
