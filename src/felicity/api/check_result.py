"""What a check of stimuli gives: problems of the file, findings of the rules, and what needs no model."""

from dataclasses import dataclass, field
from typing import Any

import polars as pl

from felicity.core.schemas import BASELINES
from felicity.core.wording import percent
from felicity.data import PROBLEMS
from felicity.report import render_result
from felicity.stimuli.review import LogCheck

FINDINGS = {"line": pl.Int64(), "item": pl.String(), "rule": pl.String(), "detail": pl.String()}


@dataclass(frozen=True, kw_only=True)
class Checked:
    """What a check of stimuli found.

    items, rows: how many items there are, in how many rows of the kind `counted`. problems: what is to be
    corrected in the file (line, problem, column, detail). findings: what the rules found, for a person to
    decide (line, item, rule, detail; `item` is a suite if most of its pairs have it). baselines: what word
    frequency, length and a 5-gram alone would score (baseline, level, name, n, accuracy). decided: the suites
    of which one of them judges more than 90% or fewer than 10% right. notes: what was not checked, and what
    the 5-gram was trained on. log: what became of the log of an extension.
    """

    name: str
    items: int
    rows: int
    counted: str = "stimuli"
    problems: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=PROBLEMS))
    findings: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=FINDINGS))
    baselines: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=BASELINES))
    decided: pl.DataFrame = field(default_factory=lambda: pl.DataFrame(schema=BASELINES))
    notes: tuple[str, ...] = ()
    log: LogCheck | None = None

    def __repr__(self) -> str:
        return f"Checked({self.name}: {self.summary()})"

    @property
    def usable(self) -> bool:
        """Whether nothing is to be corrected: neither in the file nor in the log."""
        return self.problems.is_empty() and (self.log is None or self.log.whole)

    @property
    def counts(self) -> dict[str, int]:
        """How often each rule found something, the most frequent first."""
        return dict(
            self.findings["rule"]
            .value_counts(sort=True)
            .sort("count", "rule", descending=[True, False])
            .iter_rows()
        )

    def summary(self) -> str:
        """What was found, in one sentence or two."""
        size = f"{self.items:,} items in {self.rows:,} {self.counted}"
        if self.problems.is_empty():
            said = f"{size}, nothing to fix."
        else:
            noun = "problem" if len(self.problems) == 1 else "problems"
            said = f"{len(self.problems):,} {noun} in {self.items:,} items."
        if len(self.findings):
            told = ", ".join(f"{rule} {count:,}" for rule, count in self.counts.items())
            said += f" To look at: {told}."
        return said

    def describe_baselines(self) -> str:
        """What needs no model, in words: the accuracy on all pairs, and the suites that it decides."""
        overall = self.baselines.filter(level="overall")
        if overall.is_empty():
            return ""
        told = ", ".join(f"{row['baseline']} {percent(row['accuracy'])}%" for row in overall.to_dicts())
        said = f"Judged right without a model: {told}."
        if len(self.decided):
            named = [
                f"{row['name']} ({row['baseline']} {percent(row['accuracy'], 0)}%)"
                for row in self.decided.to_dicts()
            ]
            said += f" Above 90% or below 10%: {', '.join(named)}."
        return said

    def table_of_baselines(self) -> pl.DataFrame:
        """One row per suite, one column per baseline, in percent."""
        suites = self.baselines.filter(level="suite")
        wide = suites.with_columns((pl.col("accuracy") * 100).round(1)).pivot(
            "baseline", index=["name", "n"], values="accuracy"
        )
        return wide.rename({"name": "suite"}) if len(wide) else wide

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        log = None if self.log is None else vars(self.log) | {"whole": self.log.whole}
        return {
            "name": self.name,
            "items": self.items,
            self.counted: self.rows,
            "problems": self.problems.to_dicts(),
            "counts": self.counts,
            "findings": self.findings.to_dicts(),
            "baselines": self.baselines.to_dicts(),
            "decided": self.decided.to_dicts(),
            "notes": list(self.notes),
            "log": log,
        }

    def _repr_html_(self) -> str:
        table = self.findings if self.problems.is_empty() else self.problems
        return render_result(
            f"Check of {self.name}", self.summary(), self.describe_baselines(), *self.notes, table=table
        )
