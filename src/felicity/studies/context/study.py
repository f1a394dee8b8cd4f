"""The context study: plan, score with every model, analyse, and report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.contrasts import Headline
from felicity.core.errors import BadInput
from felicity.core.files import clear_leftovers, replacing
from felicity.core.ids import hash_file
from felicity.core.progress import Progress
from felicity.design import describe_parser
from felicity.engines import CountTokens, open_counter
from felicity.run import (
    Model,
    RunFolder,
    check_record,
    describe_study,
    digest_items,
    name_folder,
    name_models,
    open_model,
    read_policies,
    read_record,
    write_record,
)
from felicity.studies.context.analysis import FILES, Findings, analyse
from felicity.studies.context.plan import (
    Planned,
    find_record,
    plan_study,
    read_drawn,
    refuse_items,
    refuse_other,
)
from felicity.studies.context.report import ContextPage, write_context_page
from felicity.studies.context.scoring import Forecast, score_model
from felicity.studies.context.settings import Setting, find_text, refuse_drawing

KIND = "context"
PATHS = ("text", "source", "conditions")
LISTS = ("kinds", "from_suites", "perturbations")
PLANNED = ("items", "contexts", "requests")
LENGTHS = tuple(range(0, 1000, 100))


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A finished study: its plan, judgements and findings, and its folder."""

    planned: Planned
    judgements: pl.DataFrame
    findings: Findings
    folder: Path
    report: Path | None


def plan_in(
    folder: Path, setting: Setting, open_counter: Callable[[], CountTokens], *, given: Path | None = None
) -> Planned:
    """The plan of a study, kept in its folder; an interrupted study resumes with its contexts.

    given: another study's table of contexts, which brings its items and settings along.

    Raises BadInput if the folder contains another study, or contexts were drawn for other items.
    """
    old = find_record(folder)
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
    if taken == own:
        check_record(folder, [own.name], advice=f"remove {folder} and run the study again")
    RunFolder(folder).prepare()
    planned = plan_study(setting, _nothing if taken else open_counter(), given=taken)
    items = digest_items(planned.items)
    if taken is not None:
        refuse_items(drawn, items, taken)
    planned = replace(planned, notes=tuple(dict.fromkeys([*drawn.get("notes", []), *planned.notes])))
    for name in PLANNED:
        with replacing(folder / f"{name}.parquet") as part:
            getattr(planned, name).write_parquet(part, compression="zstd")
    known = describe_study(KIND)
    record = known | {
        "created": old.get("created", known["created"]),
        "setting": told,
        "items": items,
        "notes": list(planned.notes),
        "method": planned.dataset.method,
        "measure": planned.measures[0],
        "score": planned.headline.as_dict(),
        "facts": [list(fact) for fact in list_facts(planned)],
    }
    write_record(folder, record | parser, [f"{name}.parquet" for name in PLANNED])
    return planned


def run_study(
    planned: Planned,
    models: Sequence[Callable[[], Model]],
    folder: Path,
    *,
    progress: Callable[[str], Progress | None] | None = None,
    on_forecast: Callable[[str, Forecast], None] | None = None,
    report: bool = True,
    formula: str | None = None,
) -> Finished:
    """Score and judge with each model in turn, analyse them together, write tables and the report.

    Models are opened one at a time.

    Raises BadInput if two models have the same name.
    """
    setting = planned.setting
    judged, surprisals = [], []
    for name, open_one in name_models(models).items():
        lm = open_one()
        judgements, regions = score_model(
            lm,
            planned,
            RunFolder(folder / "models" / name_folder(name)),
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
        formula=formula,
    )
    write_findings(findings, folder)
    planned_files = [f"{name}.parquet" for name in PLANNED]
    write_record(folder, read_record(folder), [*planned_files, *FILES.values()])
    tables = {"curves": findings.curves} | findings.tables()
    page = write_context_page(build_page(tables, folder), folder) if report else None
    return Finished(planned=planned, judgements=everything, findings=findings, folder=folder, report=page)


def write_findings(findings: Findings, folder: Path) -> None:
    """Write every table that has rows as CSV; remove files of an earlier study."""
    tables = findings.tables()
    for name, file in FILES.items():
        if name not in tables:
            (folder / file).unlink(missing_ok=True)
            continue
        with replacing(folder / file) as part:
            tables[name].write_csv(part)
    clear_leftovers(folder)


def list_facts(planned: Planned) -> list[tuple[str, str]]:
    """What the report says about the design."""
    setting = planned.setting
    design = (
        "each item with its own contexts"
        if setting.contexts_per_suite is None
        else f"{setting.contexts_per_suite} contexts per suite, each shared by many items"
    )
    return [
        ("Dataset", f"{planned.dataset.name} ({planned.dataset.method})"),
        ("Items", f"{planned.items['item'].n_unique():,} in {planned.items['suite'].n_unique()} suites"),
        ("Design", f"{design}, {setting.draws} drawn for each"),
        (
            "Contexts",
            f"{planned.contexts['context'].n_unique():,}, measured in tokens of {setting.tokenizer}",
        ),
        ("Texts scored", f"{len(planned.requests):,} for each model"),
        ("Seed", str(setting.seed)),
    ]


def build_page(tables: Mapping[str, pl.DataFrame], folder: Path) -> ContextPage:
    """The content of the report: the tables of the findings, and the record of the study."""
    record = read_record(folder, check=False)
    return ContextPage(
        dataset=record["setting"]["dataset"],
        **tables,
        unit=record["setting"]["unit"],
        measure=record["measure"],
        facts=[(name, value) for name, value in record["facts"]],
        notes=record["notes"],
        command=record["command"],
        created=record["created"],
        version=record["felicity"],
        headline=Headline.read(record.get("score", {})),
        policies=read_policies(folder),
    )


def report_context(folder: Path, *, check: bool = True) -> Path:
    """Write the page again from the tables in the folder; returns its path.

    check: refuse tables that have changed since.

    Raises BadInput if the study is not finished.
    """
    record = check_record(folder) if check else read_record(folder, check=False)
    if "facts" not in record or not (folder / FILES["curves"]).exists():
        raise BadInput(
            f"The study in {folder} is not finished; run `felicity context` with -o {folder} again."
        )
    place = RunFolder(folder)
    tables = {
        name: place.read_file(folder / file, {}) for name, file in FILES.items() if (folder / file).exists()
    }
    return write_context_page(build_page(tables, folder), folder)


def _nothing(_: Sequence[str]) -> list[int]:
    raise RuntimeError("contexts that are given are not counted")


def study_context(
    dataset: str,
    models: str | Model | Sequence[str | Model] = "smollm2",
    *,
    out: str | Path,
    lengths: Sequence[int] | None = None,
    tokenizer: str | None = None,
    contexts: str | Path | None = None,
    report: bool = True,
    **asked: Any,
) -> Finished:
    """The effect of growing contexts on acceptability (Sinha et al. 2023), kept in the folder `out`.

    lengths: tokens of context, counted by the first model or by `tokenizer`; 0 is the baseline; by default
    0, 100 and so on to 900. contexts: another study's contexts.parquet, which brings its items and
    settings along. Further options are the fields of Setting: kinds, unit, draws, contexts_per_suite,
    from_suites, perturbations, text, sample, seed, measure, rule, source, columns, conditions, parse.

    The resulting tables are `findings.curves`, `.terms`, `.links`, `.gains`, `.matrix`, `.regions`.
    """
    chosen = [models] if isinstance(models, (str, Model)) else list(models)
    specs = [one if isinstance(one, str) else one.spec for one in chosen]
    given = Path(contexts) if contexts else None
    if given is not None:
        refuse_drawing(asked | {"lengths": lengths, "tokenizer": tokenizer})
    setting = Setting(
        dataset=dataset,
        lengths=tuple(LENGTHS if lengths is None else lengths),
        tokenizer=tokenizer or specs[0],
        **{name: _normalize(name, value) for name, value in asked.items()},
    )
    if given is None:
        setting = setting.replace(text=find_text(setting.text, setting.kinds))
    planned = plan_in(Path(out), setting, lambda: open_counter(setting.tokenizer), given=given)
    opened = [partial(_open, one) for one in chosen]
    return run_study(planned, opened, Path(out), report=report)


def _open(one: str | Model) -> Model:
    return open_model(one) if isinstance(one, str) else one


def _normalize(name: str, value: Any) -> Any:
    """Paths from strings, and tuples from lists or from a single name."""
    if name in PATHS and value is not None:
        return Path(value)
    if name in LISTS:
        return (value,) if isinstance(value, str) else tuple(value)
    return value
