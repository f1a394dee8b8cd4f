"""The study of protocol Sinha et al. 2023 from a dataset to a report, for any number of models."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import replacing
from felicity.core.ids import hash_file
from felicity.design.parsing import describe_parser
from felicity.report.context_page import ContextPage, write_context_page
from felicity.run.folder import RunFolder
from felicity.run.manifest import command_line, digest_items, installed, now
from felicity.run.model import Model
from felicity.studies.context.analysis import FILES, Findings, analyse
from felicity.studies.context.forecast import Forecast
from felicity.studies.context.planning import Planned, plan_study
from felicity.studies.context.record import (
    read_drawn,
    read_record,
    refuse_items,
    refuse_other,
    write_record,
)
from felicity.studies.context.scoring import SuiteProgress, score_model
from felicity.studies.context.setting import Setting
from felicity.studies.tokenizers import CountTokens


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

    given: another study's table of contexts, with which come its items and all that decided the two.

    Raises BadInput where the folder holds another study, or contexts were drawn for other items.
    """
    old = read_record(folder)
    drawn, told = old, setting.as_dict()
    if given is not None:
        drawn = read_drawn(given)
        setting = setting.like(drawn["setting"])
        told = setting.as_dict() | {"text": drawn["setting"]["text"], "contexts": hash_file(given)}
    if old:
        refuse_other(old.get("setting", {}), told, folder)
    parser = describe_parser() if setting.parse or "nonsense" in setting.perturbations else {}
    own = folder / "contexts.parquet"
    taken = own if old and own.exists() else given
    RunFolder(folder).prepare()
    planned = plan_study(setting, _nothing if taken else open_counter(), given=taken)
    items = digest_items(planned.items)
    if taken is not None:
        refuse_items(drawn, items, taken)
    planned = replace(planned, notes=tuple(dict.fromkeys([*drawn.get("notes", []), *planned.notes])))
    for name in ("items", "contexts", "requests"):
        with replacing(folder / f"{name}.parquet") as part:
            getattr(planned, name).write_parquet(part, compression="zstd")
    record = {
        "felicity": installed("felicity"),
        "created": old.get("created", now()),
        "command": command_line(),
        "setting": told,
        "items": items,
        "notes": list(planned.notes),
    }
    write_record(folder, record | parser)
    return planned


def run_study(
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
    setting = planned.setting
    _refuse_namesakes(models)
    judged, surprisals = [], []
    for open_one in models:
        lm = open_one()
        name = lm.info.name
        judgements, regions = score_model(
            lm,
            planned,
            RunFolder(folder / "models" / name.replace("/", "--")),
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
    page = write_context_page(build_page(planned, findings, folder), folder) if report else None
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


def build_page(planned: Planned, findings: Findings, folder: Path) -> ContextPage:
    """What the report shows."""
    setting, manifest = planned.setting, read_record(folder)
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
        measure=planned.measures[0],
        facts=facts,
        notes=manifest["notes"],
        command=manifest["command"],
        created=manifest["created"],
        version=manifest["felicity"],
    )


def _nothing(_: Sequence[str]) -> list[int]:
    raise RuntimeError("contexts that are given are not counted")


def _refuse_namesakes(models: Sequence[Callable[[], Model]]) -> None:
    """Two models of one name would share a folder; told before the first is scored."""
    names = [open_one().info.name for open_one in models] if len(models) > 1 else []
    for name in names:
        if names.count(name) > 1:
            raise BadInput(f"Two models go by the name '{name}'; name each once, or rename a folder.")
