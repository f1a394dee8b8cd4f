"""The driver of every study: begins, resumes or refuses, scores, analyses, writes tables and page."""

import inspect
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput
from felicity.core.files import clear_leftovers, replacing
from felicity.core.policy import Policy
from felicity.core.progress import Progress, notebook_progress, rename_step
from felicity.core.settings import check_settings, find_other, list_options, record_settings
from felicity.design import build_prompts
from felicity.engines import has_weights, list_checkpoints
from felicity.run import (
    Model,
    RunFolder,
    StudyFolder,
    carry_out,
    check_record,
    describe_study,
    is_study,
    open_model,
    read_record,
    refuse_namesakes,
    write_record,
    write_table,
)
from felicity.studies.definition import Forecast, Job, NamedModel, Planned, StudyDefinition
from felicity.studies.study import Study, read_study
from felicity.studies.study_registry import STUDIES

# Opens a model by name, with a policy or that of the command.
Opener = Callable[[str, Policy | None], Model]
Given = str | Model


def carry_out_study(
    name: str,
    given: Mapping[str, Any],
    models: Given | Sequence[Given] | None = None,
    *,
    out: str | Path | None = None,
    open_one: Opener | None = None,
    policy: Policy | None = None,
    report: bool = True,
    progress: Progress | None = None,
    notify: Callable[[str], None] | None = None,
    tokenizer: str | None = None,
) -> Study:
    """A whole study: what is missing is scored, then everything is analysed; the folder `out` keeps it.

    given: the settings by name. open_one: opens a model that is given by name, with `policy` unless the study
    asks for another. notify: told what a user should know before scoring starts, and how long it will take.
    tokenizer: the local tokenizer of served models. Without `out` the study is kept as long as the returned
    object.

    Raises BadInput if the folder contains another study, and whatever its settings, data or models give
    reason for.
    """
    definition = STUDIES[name]
    folder = Path(tempfile.mkdtemp(prefix="felicity-") if out is None else out)
    try:
        settings = check_settings(definition.settings, _recall(definition, folder, given))
        listed = _as_list(models, definition, given)
        if definition.checkpoints:
            named = name_checkpoints(listed, open_one or _open, policy or Policy())
        else:
            named = name_models(listed, open_one or _open, policy or Policy(), tokenizer=tokenizer)
        planned = begin_study(definition, settings, named, folder)
        if notify:
            begun = dict.fromkeys(model.info.begin_line for model in named if model.info)
            for line in (*filter(None, begun), *(f"Note: {note}" for note in planned.notes)):
                notify(line)
        for job in planned.jobs:
            place = StudyFolder(folder, {}).run(job.model, job.part)
            shown = rename_step(progress or notebook_progress(), job.label)
            told = partial(_tell_forecast, job, notify) if job.forecast and notify else None
            carry_out(job.lm, job.plan, place, progress=shown, on_pending=told)
        analyse_study(folder)
        study = read_study(folder)
    except BaseException:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    if out is None:
        weakref.finalize(study, shutil.rmtree, folder, ignore_errors=True)
    if report:
        study.report()
    return study


def _tell_forecast(job: Job, notify: Callable[[str], None], waiting: Mapping[str, pl.DataFrame]) -> int:
    """Say how long a job will take; the number of texts that were scored to find out."""
    if job.forecast is None:
        return 0
    found = job.forecast(waiting)
    if found.texts:
        notify(f"{job.label}: {found}")
    return found.scored


def _recall(definition: StudyDefinition, folder: Path, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings, and those that the study in the folder was analysed with and that are not given now.

    These are the ones of the analysis without a default, such as people's ratings, which may have been
    added after the models were scored.
    """
    old = read_record(folder) if is_study(folder) else {}
    if old.get("study") != definition.name:
        return dict(given)
    added = {
        name: old["settings"][name]
        for name, (one, about, _) in list_options(definition.settings).items()
        if about.analysis and not one.default and old.get("settings", {}).get(name)
    }
    return added | dict(given)


def begin_study(
    definition: StudyDefinition, settings: Any, models: Sequence[NamedModel], folder: Path
) -> Planned:
    """Plan a study in its folder, new or resumed, and keep its record and tables.

    Raises BadInput if the folder contains another study or a run.
    """
    asked = record_settings(settings)
    old = _find_begun(folder, definition, asked)
    RunFolder(folder).prepare()
    record = describe_study(definition.name) | {
        "settings": asked,
        "models": [model.name for model in models],
    }
    planned: Planned = definition.load("plan")(settings, models, StudyFolder(folder, old or record))
    if old and old.get("inputs") != planned.inputs:
        raise BadInput(
            f"The data of the study in {folder} has changed since it began; choose another folder with -o, "
            "or remove it."
        )
    for name, table in planned.tables.items():
        with replacing(folder / f"{name}.parquet") as part:
            table.write_parquet(part, compression="zstd")
    record |= {
        "created": old.get("created", record["created"]),
        "inputs": planned.inputs,
        "facts": dict(planned.facts),
        "notes": list(planned.notes),
        "kept": list(planned.tables),
    }
    write_record(folder, record, [f"{name}.parquet" for name in planned.tables])
    return planned


def _find_begun(folder: Path, definition: StudyDefinition, asked: Mapping[str, Any]) -> dict[str, Any]:
    """The record of the same study in a folder; empty if there is none.

    Raises BadInput if there is another.
    """
    if not is_study(folder):
        if RunFolder(folder).has_manifest():
            raise BadInput(f"{folder} contains a run; choose another folder for the study with -o.")
        return {}
    old = read_record(folder)
    elsewhere = "choose another folder with -o, or remove it"
    if old.get("study") != definition.name:
        raise BadInput(f"{folder} contains a study of another kind ({old.get('study')}); {elsewhere}.")
    before = old.get("settings", {})
    other = find_other(definition.settings, before, asked)
    if other:
        raise BadInput(
            f"{folder} contains a study with another {other.replace('_', ' ')} ({_show(before.get(other))}, "
            f"now {_show(asked.get(other))}); {elsewhere}."
        )
    check_record(
        folder,
        [f"{name}.parquet" for name in old.get("kept", ())],
        advice=f"remove {folder} and run the study again",
    )
    return old


def _show(value: Any) -> str:
    if value is None:
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def analyse_study(path: str | Path, *, check: bool = True, **changes: Any) -> None:
    """Compute the tables of a study from what its folder holds, and write them as CSV.

    changes: other values of settings that affect only the analysis.

    Raises BadInput if a setting affects the scores, or the study's files have changed.
    """
    folder = open_study(path, check=check)
    definition = STUDIES[folder.kind]
    if changes:
        asked = folder.record["settings"] | record_settings(
            check_settings(definition.settings, folder.record["settings"] | changes)
        )
        other = find_other(definition.settings, folder.record["settings"], asked)
        if other:
            raise BadInput(f"The setting '{other}' affects the scores; run the study again with it.")
        folder = StudyFolder(folder.path, folder.record | {"settings": asked})
    tables: dict[str, pl.DataFrame] = definition.load("analyse")(folder)
    for stale in set(folder.record.get("tables", {})) - set(tables):
        (folder.path / f"{stale}.csv").unlink(missing_ok=True)
    for name, table in tables.items():
        write_table(table, folder.path / f"{name}.csv")
    clear_leftovers(folder.path)
    names = [f"{name}.parquet" for name in folder.record["kept"]] + [f"{name}.csv" for name in tables]
    write_record(folder.path, folder.record | {"tables": folder.describe_types(tables)}, names)


def report_study(path: str | Path, *, check: bool = True, **changes: Any) -> Path:
    """Write report.html and the figures of a study again, without a model; returns the page's path.

    check: refuse a study whose files have changed since it wrote them. changes: other values of settings that
    affect only the analysis, which is then made again and kept.

    Raises BadInput if the folder is not that of a finished study or a setting affects the scores, UnknownName
    for a setting, or a kind of study, that there is not.
    """
    open_study(path, check=check)
    if changes:
        analyse_study(path, check=check, **changes)
    return read_study(path, check=check).report()


def open_study(path: str | Path, *, check: bool = True) -> StudyFolder:
    """The folder of a study that one of STUDIES made.

    check: refuse one whose files have changed since.

    Raises BadInput, or UnknownName for a study of a kind that is not installed.
    """
    folder = Path(path)
    record = check_record(folder) if check else read_record(folder, check=False)
    STUDIES[str(record.get("study"))]
    return StudyFolder(folder, record)


def name_models(
    given: Sequence[Given], open_one: Opener, policy: Policy | None = None, *, tokenizer: str | None = None
) -> list[NamedModel]:
    """The models of a study by name; each is opened for its name, before the first is scored.

    policy: the one that `open_one` opens models with. tokenizer: that of served models. Of several models no
    more than one is in memory at a time. A folder with only a tokenizer has the folder's name and cannot be
    opened.

    Raises BadInput if two have the same name.
    """
    found = []
    for one in given:
        if isinstance(one, str) and not has_weights(one):
            found.append(NamedModel(name=Path(one).name, spec=one, opener=partial(open_one, one)))
            continue
        lm = one if isinstance(one, Model) else open_one(one, None)
        keep = isinstance(one, Model) or len(given) == 1
        opener = partial(_reopen, lm, open_one) if keep else partial(open_one, lm.spec)
        asked = None if isinstance(one, Model) else policy
        served = lm.spec.startswith("openai:")
        found.append(
            NamedModel(
                name=lm.info.name,
                spec=lm.spec,
                opener=opener,
                info=lm.info,
                tokenizer=tokenizer if served else None,
                policy=asked,
            )
        )
    refuse_namesakes([model.name for model in found])
    return found


def name_checkpoints(given: Sequence[Given], open_one: Opener, policy: Policy) -> list[NamedModel]:
    """The checkpoints of every training that is given, by name; none is opened before it is scored.

    Raises BadInput for a model that is given opened, or has no checkpoints.
    """
    found = []
    for one in given:
        if isinstance(one, Model):
            raise BadInput(
                "A learning curve needs checkpoints by name: a folder, a pattern, or org/model@a,b."
            )
        found += [
            NamedModel(name=point.name, spec=point.spec, opener=partial(open_one, point.spec), policy=policy)
            for point in list_checkpoints(one)
        ]
    refuse_namesakes([model.name for model in found])
    return found


def _reopen(lm: Model, open_one: Opener, policy: Policy | None) -> Model:
    """A model that is open already, unless it is asked for with another policy."""
    return lm if policy is None else open_one(lm.spec, policy)


def _open(spec: str, policy: Policy | None) -> Model:
    return open_model(spec) if policy is None else open_model(spec, policy=policy)


def _as_list(
    models: Given | Sequence[Given] | None, definition: StudyDefinition, given: Mapping[str, Any]
) -> list[Given]:
    if models is None:
        return list(definition.choose_default(given))
    chosen = [models] if isinstance(models, str | Model) else list(models)
    return list(dict.fromkeys(chosen))


def forecast_study(
    name: str,
    given: Mapping[str, Any],
    models: Sequence[Given],
    *,
    open_one: Opener | None = None,
    tokenizer: str | None = None,
) -> Iterator[tuple[Job, Forecast]]:
    """Plan a study in a temporary folder and predict, job by job, how long what is not cached would take."""
    definition = STUDIES[name]
    settings = check_settings(definition.settings, given)
    named = name_models(_as_list(models, definition, given), open_one or _open, tokenizer=tokenizer)
    with tempfile.TemporaryDirectory(prefix="felicity-") as folder:
        planned = begin_study(definition, settings, named, Path(folder))
        for job in planned.jobs:
            if job.forecast:
                yield job, job.forecast({"": build_prompts(job.plan.requests, job.plan.contexts)})


def study_function(name: str) -> Callable[..., Study]:
    """The Python call of a study: its settings as keywords, the positional ones first.

    >>> study_function("bias").__name__
    'bias'
    """
    definition = STUDIES[name]
    described = list_options(definition.settings)
    positional = [field for field, (_, about, _) in described.items() if about.positional]

    def carry(
        *given: Any,
        models: Given | Sequence[Given] | None = None,
        out: str | Path | None = None,
        report: bool = True,
        progress: Progress | None = None,
        **settings: Any,
    ) -> Study:
        taken = dict(zip(positional, given, strict=False))
        if len(given) > len(positional) or set(taken) & set(settings):
            raise BadInput(f"{name}() takes {', '.join(positional) or 'nothing'} by position, each once.")
        return carry_out_study(
            name, taken | settings, models, out=out, report=report and out is not None, progress=progress
        )

    carry.__name__, carry.__qualname__, carry.__doc__ = name, name, _describe_call(definition)
    keywords = [
        inspect.Parameter(
            field,
            inspect.Parameter.POSITIONAL_OR_KEYWORD if about.positional else inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if one.default is MISSING else one.default,
            annotation=kind,
        )
        for field, (one, about, kind) in described.items()
    ]
    shared = [one for one in inspect.signature(carry).parameters.values() if one.kind is one.KEYWORD_ONLY]
    carry.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        sorted([*keywords, *shared], key=lambda one: (one.kind, one.default is not one.empty)),
        return_annotation=Study,
    )
    return carry


def _describe_call(definition: StudyDefinition) -> str:
    """The docstring of a study's function: what it does, then every keyword."""
    about = inspect.cleandoc(definition.settings.__doc__ or "").partition("\b")[0].strip()
    lines = [f"    {name}: {one.help}" for name, (_, one, _) in list_options(definition.settings).items()]
    shared = (
        "    models: names or opened models, one or several. out: the study's folder, where it resumes;\n"
        "    without it, the study lives as long as the object that is returned."
    )
    return "\n".join([about, "", *lines, shared])
