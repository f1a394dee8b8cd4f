"""The study of protocol Sinha et al. 2023 from a dataset to a report, for any number of models."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import read_text, replacing
from felicity.report.context_page import ContextPage, write_context_page
from felicity.run.folder import RunFolder
from felicity.run.manifest import command_line, digest_items, installed, now
from felicity.run.model import Model
from felicity.studies.context.analysis import FILES, Findings, analyse
from felicity.studies.context.forecast import Forecast
from felicity.studies.context.planning import Planned, plan_study
from felicity.studies.context.scoring import SuiteProgress, score_model
from felicity.studies.context.setting import Setting
from felicity.studies.tokenizers import CountTokens

MANIFEST = "study.json"


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A finished study: what was planned, what was judged, what was found, and where it is kept."""

    planned: Planned
    judgements: pl.DataFrame
    findings: Findings
    folder: Path
    report: Path | None


def plan_in(
    folder: Path, setting: Setting, open_counter: Callable[[], CountTokens], *, given: Path | None = None
) -> Planned:
    """The plan of a study, kept in its folder; a study broken off goes on with the contexts it had.

    Raises BadInput where the folder holds another study.
    """
    RunFolder(folder).prepare()
    told = setting.as_dict() | ({"contexts": given.name} if given else {})
    path = folder / MANIFEST
    old: dict[str, Any] = {}
    if path.exists():
        old = _read_json(path)
        _refuse_other(old.get("setting", {}), told, folder)
        given = folder / "contexts.parquet" if (folder / "contexts.parquet").exists() else given
    planned = plan_study(setting, _nothing if given else open_counter(), given=given)
    notes = list(dict.fromkeys([*old.get("notes", []), *planned.notes]))
    for name in ("items", "contexts", "requests"):
        with replacing(folder / f"{name}.parquet") as part:
            getattr(planned, name).write_parquet(part, compression="zstd")
    _write_json(
        path,
        {
            "felicity": installed("felicity"),
            "created": old.get("created", now()),
            "command": command_line(),
            "setting": told,
            "items": digest_items(planned.items),
            "notes": notes,
        },
    )
    return planned


def run_study(
    setting: Setting,
    planned: Planned,
    models: Sequence[Callable[[], Model]],
    folder: Path,
    *,
    progress: Callable[[str], SuiteProgress | None] | None = None,
    on_forecast: Callable[[str, Forecast], None] | None = None,
    report: bool = True,
) -> Finished:
    """Score and judge with each model in turn, analyse them together, write tables and the report.

    Models are opened one at a time, when their turn comes.

    Raises BadInput where two models go by one name.
    """
    judged, surprisals, names = [], [], []
    for open_one in models:
        lm = open_one()
        name = lm.info.name
        if name in names:
            raise BadInput(f"Two models go by the name '{name}'; name each model once.")
        names.append(name)
        judgements, regions = score_model(
            lm,
            planned,
            RunFolder(folder / "models" / name.replace("/", "--")),
            measure=setting.measure,
            seed=setting.seed,
            options=setting.as_dict(),
            progress=progress(name) if progress else None,
            on_forecast=partial(on_forecast, name) if on_forecast else None,
        )
        judged.append(judgements.with_columns(pl.lit(name).alias("model")))
        if regions is not None:
            surprisals.append(regions.with_columns(pl.lit(name).alias("model")))
    everything = pl.concat(judged)
    findings = analyse(
        planned,
        everything,
        pl.concat(surprisals) if surprisals else None,
        perturbed=bool(setting.perturbations),
        parse=setting.parse,
        seed=setting.seed,
    )
    write_findings(findings, folder)
    page = write_context_page(build_page(setting, planned, findings, folder), folder) if report else None
    return Finished(planned=planned, judgements=everything, findings=findings, folder=folder, report=page)


def write_findings(findings: Findings, folder: Path) -> None:
    """Every table that has rows as CSV; what an earlier study left is removed."""
    tables = findings.tables()
    for name, file in FILES.items():
        if name not in tables:
            (folder / file).unlink(missing_ok=True)
            continue
        with replacing(folder / file) as part:
            tables[name].write_csv(part)


def build_page(setting: Setting, planned: Planned, findings: Findings, folder: Path) -> ContextPage:
    """What the report shows."""
    manifest = _read_json(folder / MANIFEST)
    design = (
        "each item behind contexts of its own"
        if setting.contexts_per_suite is None
        else f"{setting.contexts_per_suite} contexts a suite, each before many items"
    )
    facts = (
        ("Dataset", f"{planned.dataset.name} ({planned.dataset.method})"),
        ("Items", f"{planned.items['item'].n_unique():,} in {planned.items['suite'].n_unique()} suites"),
        ("Design", f"{design}, {setting.draws} drawn for each"),
        ("Contexts", f"{planned.contexts['context'].n_unique():,}, cut by the tokens of {setting.tokenizer}"),
        ("Texts scored", f"{len(planned.requests):,} for each model"),
        ("Seed", str(setting.seed)),
    )
    tables = findings.tables()
    return ContextPage(
        dataset=planned.dataset.name,
        **{"curves": findings.curves} | tables,
        unit=setting.unit,
        measure=setting.measure,
        facts=facts,
        notes=manifest["notes"],
        command=manifest["command"],
        created=manifest["created"],
        version=manifest["felicity"],
    )


def _nothing(_: Sequence[str]) -> list[int]:
    raise RuntimeError("contexts that are given are not counted")


def _refuse_other(old: dict[str, Any], new: dict[str, Any], folder: Path) -> None:
    for name in new:
        if old.get(name) != new[name]:
            what = f"{name.replace('_', ' ')} ({old.get(name)}, not {new[name]})"
            raise BadInput(
                f"{folder} holds a study with another {what}; choose another folder with -o, or remove it."
            )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(read_text(path)))
    except (json.JSONDecodeError, TypeError, ValueError) as error:
        raise BadInput(f"{path} is not JSON; remove that folder and run the study again.") from error


def _write_json(path: Path, content: dict[str, Any]) -> None:
    with replacing(path) as part:
        part.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
