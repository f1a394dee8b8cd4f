"""The output of a check of claims: JSON, CSV, and a page in the paper's own layout."""

import csv
import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from felicity.core.files import replacing
from felicity.core.wording import count, counted
from felicity.papers.reproduce.checking import Checked, Verdict, find_function
from felicity.papers.reproduce.claims import CHANGED, FAILS, HOLDS, NOT_RUN, SLIP, PaperTable, shorten_title
from felicity.papers.reproduce.computations import show_source
from felicity.papers.reproduce.inputs import SAME
from felicity.report import MISSING, Page, Provenance, Section, write_page
from felicity.run import command_line, installed

STATUSES = (HOLDS, SLIP, FAILS, NOT_RUN, CHANGED)
# Class names and signs on the page, so that a status does not depend on colour alone.
MARKS = {
    HOLDS: ("holds", "✓"),
    SLIP: ("slip", "≈"),
    FAILS: ("fails", "✗"),
    NOT_RUN: ("idle", "–"),
    CHANGED: ("changed", "!"),
}
EVERYTHING = "all claims"
FILES = ("claims.json", "claims.csv", "report.html")


def describe(checked: Checked) -> dict[str, Any]:
    """A check as a JSON document."""
    return {
        "paper": checked.paper.name,
        "title": checked.paper.title,
        "level": checked.level,
        "as_expected": checked.as_expected,
        "seconds": round(checked.seconds, 2),
        "models": dict(checked.models),
        "counts": count_statuses(checked),
        "claims": [describe_claim(verdict) for verdict in checked.verdicts],
        "inputs": [
            {"path": one.name, "sha256": one.expected, "found": one.found, "state": one.state}
            for one in checked.inputs.values()
        ],
    }


def describe_claim(verdict: Verdict) -> dict[str, Any]:
    """A claim as a row of the JSON document and of the CSV file."""
    claim = verdict.claim
    return {
        "id": claim.id,
        "where": claim.where,
        "printed": claim.printed.text,
        "computed": _finite(verdict.computed),
        "status": verdict.status,
        "expected": verdict.expected,
        "why": verdict.why,
        "as_expected": verdict.as_expected,
        "corrected": _finite(verdict.corrected),
        "tolerance": claim.printed.unit / 2 if claim.tolerance is None else claim.tolerance,
        "because": claim.because,
        "read_in": claim.read_in,
        "needs": claim.needs,
        "source": verdict.source,
        "compute": claim.run if verdict.source != "data" else claim.compute or claim.run,
        "group": claim.group,
    }


def _finite(value: float | None) -> float | None:
    """JSON knows neither NaN nor infinity."""
    return value if value is not None and math.isfinite(value) else None


def count_statuses(checked: Checked) -> dict[str, dict[str, int]]:
    """Claims by group and status; one group if the claims have none."""
    groups = list(dict.fromkeys(verdict.claim.group or "" for verdict in checked.verdicts))
    counted = {}
    for group in groups:
        found = Counter(v.status for v in checked.verdicts if (v.claim.group or "") == group)
        name = group or (EVERYTHING if len(groups) == 1 else "other claims")
        counted[name] = {status: found[status] for status in STATUSES if found[status]}
    return counted


def write_check(checked: Checked, folder: Path) -> list[Path]:
    """Write claims.json, claims.csv and report.html; gives their paths.

    Raises FelicityError if the folder cannot be written.
    """
    paths = [folder / name for name in FILES]
    with replacing(paths[0]) as part:
        part.write_text(json.dumps(describe(checked), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    rows = [describe_claim(verdict) for verdict in checked.verdicts]
    with replacing(paths[1]) as part, part.open("w", encoding="utf-8", newline="") as handle:
        writer = csv.DictWriter(handle, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    page, more = build_page(checked)
    about = Provenance(
        command=command_line(),
        version=installed("felicity"),
        models=tuple(f"{name} = {spec}" for name, spec in checked.models.items()),
    )
    write_page(page, about, paths[2], eyebrow="felicity reproduce", template="reproduce.html.j2", more=more)
    return paths


def give_answer(checked: Checked) -> str:
    """How many of the printed figures come out, in one sentence."""
    found = Counter(verdict.status for verdict in checked.verdicts)
    run = len(checked.verdicts) - found[NOT_RUN]
    said = [f"{count(found[HOLDS])} of {counted(run, 'figure')} hold"]
    said += [f"{count(found[SLIP])} hold with the authors' slip"] if found[SLIP] else []
    said += [f"{count(found[FAILS])} {'does' if found[FAILS] == 1 else 'do'} not"] if found[FAILS] else []
    said += [f"{count(found[CHANGED])} rest on changed files"] if found[CHANGED] else []
    said += [f"{count(found[NOT_RUN])} not run"] if found[NOT_RUN] else []
    return f"{'; '.join(said)}."


def build_page(checked: Checked) -> tuple[Page, dict[str, Any]]:
    """What the page shows, and what its template needs for the tables and the code behind each figure."""
    shown = [_cell(verdict) for verdict in checked.verdicts]
    by_place = {(c["table"], c["row"], c["column"]): c for c in shown if c["table"]}
    tables = [table for table in (_lay_out(one, by_place) for one in checked.paper.tables) if table["grid"]]
    in_text = [cell for cell in shown if not cell["table"]]
    counts = count_statuses(checked)
    met = [status for status in STATUSES if any(status in found for found in counts.values())]
    page = Page(
        title=checked.paper.title,
        subject="",
        question="Do the figures that the paper prints come out again?",
        answer=give_answer(checked),
        sure=_describe_doubts(checked),
        sections=(_list_inputs(checked),),
        legend=" ".join(
            f"{text.rstrip('.')}." for text in (checked.paper.citation, checked.paper.note) if text
        ),
    )
    return page, {
        "statuses": [(status, *MARKS[status]) for status in met],
        "counts": [(group, [found.get(status, 0) for status in met]) for group, found in counts.items()],
        "tables": tables,
        "figures_in_text": in_text,
        "code": _sources(checked),
        "links": [
            *((f"table-{place}", table["short"]) for place, table in enumerate(tables, start=1)),
            *([("text", "Figures in the text")] if in_text else []),
            ("code", "Code"),
            ("inputs", "Inputs"),
        ],
    }


def _describe_doubts(checked: Checked) -> tuple[str, ...]:
    """What the figures were computed from, and which of them did not come out as expected."""
    found = "published data" if checked.level == "data" else "published data and with models"
    unexpected = [verdict for verdict in checked.verdicts if not verdict.as_expected]
    status = (
        f"{counted(len(unexpected), 'claim')} without the expected status."
        if unexpected
        else "Every claim that could be checked has its expected status."
    )
    return (
        f"Computed from {found}. A figure holds if the computed one differs from it by no more than half its "
        "last digit, unless another tolerance is argued for.",
        status,
        *(
            f"{one.claim.where}: printed {one.claim.printed.text}, computed {one.shown or MISSING}; "
            f"{one.status}, expected: {one.expected}. {one.why}".strip()
            for one in unexpected
        ),
    )


def _list_inputs(checked: Checked) -> Section:
    inputs = list(checked.inputs.values())
    changed = sum(one.state != SAME for one in inputs)
    state = f"{changed} missing or changed" if changed else "each has the sha256 of the claims file"
    return Section(
        name="inputs",
        title="Inputs",
        lede=f"{counted(len(inputs), 'file')}; {state}.",
        columns=("File", "State", "sha256"),
        rows=tuple((one.name, one.state, one.found or one.expected) for one in inputs),
        names=3,
        folded=not changed,
    )


def _cell(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    css, sign = MARKS[verdict.status]
    return {
        "id": claim.id,
        "where": claim.where,
        "table": claim.table,
        "row": claim.row,
        "column": claim.column,
        "printed": claim.printed.text,
        "computed": verdict.shown or "–",
        "corrected": _differing(verdict),
        "status": verdict.status,
        "css": css,
        "sign": sign,
        "why": verdict.why,
        "because": claim.because,
        "read_in": claim.read_in,
        "tolerance": claim.tolerance,
        "expected": verdict.expected,
        "as_expected": verdict.as_expected,
        "source": verdict.source,
        "code": _anchor(*_function(verdict)),
    }


def _differing(verdict: Verdict) -> str:
    """The corrected reading if it differs from the computed figure."""
    if verdict.corrected is None:
        return ""
    shown = verdict.claim.printed.show(verdict.corrected)
    return "" if shown == verdict.shown else shown


def _lay_out(table: PaperTable, cells: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    grid = [(row, [cells.get((table.id, row, column)) for column in table.columns]) for row in table.rows]
    present = [cell for _, row in grid for cell in row if cell]
    reasons: dict[tuple[str, str], list[str]] = {}
    for cell in present:
        if cell["status"] != HOLDS:
            reasons.setdefault((cell["sign"], cell["why"]), []).append(f"{cell['row']}, {cell['column']}")
    argued = {cell["because"]: cell["tolerance"] for cell in present if cell["because"]}
    return {
        "id": table.id,
        "title": table.title,
        "short": shorten_title(table.title),
        "columns": table.columns,
        "grid": [(row, line) for row, line in grid if any(line)],
        "reasons": [(sign, why, named) for (sign, why), named in reasons.items()],
        "argued": list(argued.items()),
        "read_in": list(dict.fromkeys(cell["read_in"] for cell in present if cell["read_in"])),
        "corrected": any(cell["corrected"] for cell in present),
    }


def _function(verdict: Verdict) -> tuple[str, bool]:
    claim = verdict.claim
    with_model = verdict.source != "data" or claim.compute is None
    return (str(claim.run), True) if with_model else (str(claim.compute), False)


def _sources(checked: Checked) -> Sequence[tuple[str, str, str]]:
    """Anchor, name and source code of every function that a claim names."""
    named = dict.fromkeys(_function(verdict) for verdict in checked.verdicts)
    beside = checked.paper.path.parent
    return [
        (_anchor(name, model), name, show_source(find_function(name, beside, model=model)))
        for name, model in named
    ]


def _anchor(name: str, model: bool) -> str:
    plain = "".join(letter if letter.isalnum() else "-" for letter in name)
    return f"code-{'model-' if model else ''}{plain}"
