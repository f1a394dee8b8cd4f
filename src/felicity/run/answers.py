"""Judgements of finished runs, checked to be comparable: the same measure, the same stimuli."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

import polars as pl

from felicity.core.contrasts import ACCURACY, Headline
from felicity.core.errors import BadInput, NotPossible, UnknownName
from felicity.core.ids import fingerprint
from felicity.core.policy import describe_policies
from felicity.core.schemas import ITEMS
from felicity.core.units import NATS_PER_BIT
from felicity.core.wording import counted
from felicity.run.evaluate import Run, read_run
from felicity.run.study_folder import list_runs

# What distinguishes the judgements of one item: its prediction, and the factors of a context.
DESIGN = ("rule", "kind", "source", "perturbation", "draw", "series", "length")


@dataclass(frozen=True, kw_only=True)
class RunJudgements:
    """Judgements by name, of a model or of a measure, and what they have in common.

    measure: the measure that all are judged by; None if the measures themselves are compared.
    unchecked: names of the runs whose stimuli have no texts to compare, as in replayed numbers.
    headline: what is compared, in the dataset's words. policies: how the models were scored, in words.
    folders: where the run of a name is, if it is in a folder.
    """

    frames: Mapping[str, pl.DataFrame]
    measure: str | None
    unchecked: tuple[str, ...] = ()
    headline: Headline = ACCURACY
    policies: str = ""
    folders: Mapping[str, str] = field(default_factory=dict)

    def refuse_missing(self) -> None:
        """Refuse runs of which one has no answer to an item of another.

        Raises BadInput naming both runs and the first such item.
        """
        for (first, mine), (second, theirs) in permutations(self.frames.items(), 2):
            lacking = mine.join(theirs, on="item", how="anti")
            if len(lacking):
                one, other = (self.folders.get(name) or name for name in (first, second))
                raise BadInput(
                    f"{other} has no answer to {counted(len(lacking), 'item')} of {one}, such as "
                    f"'{lacking['item'][0]}'; compare runs of the same stimuli (dataset, --sample, --seed)."
                )

    def stack(self) -> pl.DataFrame:
        """One table with a column `model`."""
        parts = [frame.with_columns(pl.lit(name).alias("model")) for name, frame in self.frames.items()]
        return pl.concat(parts, how="diagonal_relaxed")


def read_run_judgements(sources: Sequence[str | Path | Run], *, measure: str | None = None) -> RunJudgements:
    """Judgements of runs on the same items; for a single run, by each of its measures.

    Without `measure`, all runs are judged by the main measure of the first run that has one all share.

    Raises BadInput if the runs are not of the same stimuli, UnknownName for a measure that a run
    lacks, NotPossible if no measure is shared or one run has nothing to compare.
    """
    runs = name_runs(sources)
    if len(runs) == 1:
        return _between_measures(*runs.items())
    chosen = choose_measure(runs, measure)
    headline = find_shared_headline(runs)
    unchecked = refuse_other_items(runs)
    groups = join_datasets(runs)
    frames = {
        name: pl.concat([_name_answers(judgements_by(run, chosen)) for run in group], how="diagonal_relaxed")
        for name, group in groups.items()
    }
    return RunJudgements(
        frames=frames,
        measure=chosen,
        unchecked=unchecked,
        headline=headline,
        policies=say_policies(runs),
        folders={
            name: " and ".join(str(run.folder) for run in group if run.folder)
            for name, group in groups.items()
        },
    )


def say_policies(runs: Mapping[str, Run]) -> str:
    """How the models of runs were scored, and whether that differs."""
    return describe_policies({name: run.manifest["model"] for name, run in runs.items()})


def find_shared_headline(runs: Mapping[str, Run]) -> Headline:
    """What the runs report; of several datasets that are called differently, only the share of items.

    Raises BadInput if two runs of one dataset report different numbers.
    """
    known: dict[str, tuple[str, Headline]] = {}
    for name, run in runs.items():
        dataset = str(run.manifest["dataset"].get("name"))
        first, headline = known.setdefault(dataset, (name, run.headline))
        if headline.name != run.headline.name:
            raise BadInput(
                f"{first} reports the {headline.noun} of {dataset} and {name} the {run.headline.noun}; "
                "compare runs with the same --rule."
            )
    headlines = [headline for _, headline in known.values()]
    same = all(each == headlines[0] for each in headlines)
    return headlines[0] if same else Headline(name="Share of items passed", passed="that pass their rule")


def _name_answers(judged: pl.DataFrame) -> pl.DataFrame:
    """Judgements in which every row has a name of its own in `item`, so that two runs can be paired.

    In a context study an item is judged in each of its contexts; in a cloze study in each condition.
    """
    if judged["item"].is_unique().all():
        return judged
    design = [name for name in DESIGN if name in judged.columns]
    named = judged.with_columns(
        pl.concat_str(
            "item", *(pl.col(name).cast(pl.String).fill_null("-") for name in design), separator=" "
        )
    )
    place = pl.int_range(pl.len()).over("item").cast(pl.String)
    repeated = pl.col("item").is_duplicated()
    return named.with_columns(
        pl.when(repeated).then(pl.concat_str("item", place, separator=" #")).otherwise("item").alias("item")
    )


def name_runs(sources: Sequence[str | Path | Run]) -> dict[str, Run]:
    """Runs by the name of their model, or by folder if two have the same model; a study is all its runs.

    Raises BadInput if a run is named twice.
    """
    runs = [run for source in sources for run in _open_runs(source)]
    models = [str(run.manifest["model"].get("name")) for run in runs]
    names = models if len(set(models)) == len(models) else [_name_run(run) for run in runs]
    if len(set(names)) < len(names):
        raise BadInput("A run is named twice; compare different runs.")
    return dict(zip(names, runs, strict=True))


def _open_runs(source: str | Path | Run) -> list[Run]:
    return [source] if isinstance(source, Run) else [read_run(folder) for folder in list_runs(Path(source))]


def _name_run(run: Run) -> str:
    """A run's folder, or for one that is not kept its model and dataset."""
    if run.folder is not None:
        return str(run.folder)
    return " on ".join(str(run.manifest[part].get("name")) for part in ("model", "dataset"))


def join_datasets(runs: Mapping[str, Run]) -> dict[str, list[Run]]:
    """Runs by model: if each model has one run on each of several datasets, these are combined."""
    of: dict[str, list[Run]] = {}
    for run in runs.values():
        of.setdefault(str(run.manifest["model"].get("name")), []).append(run)
    datasets = [sorted(str(run.manifest["dataset"].get("digest")) for run in group) for group in of.values()]
    complete = all(known == datasets[0] and len(set(known)) == len(known) for known in datasets)
    return of if complete and 1 < len(of) < len(runs) else {name: [run] for name, run in runs.items()}


def list_measures(run: Run) -> list[str]:
    """The measures that a run is judged by, the main one first."""
    judged = run["judgements"]["measure"].unique(maintain_order=True).to_list()
    asked = [name for name in run.manifest.get("measures", []) if name in judged]
    return [*asked, *(name for name in judged if name not in asked)]


def choose_measure(runs: Mapping[str, Run], measure: str | None) -> str:
    """The measure to compare runs by.

    Raises UnknownName if a run lacks the requested one, NotPossible if no measure is shared.
    """
    known = {name: list_measures(run) for name, run in runs.items()}
    if measure is not None:
        for name, measures in known.items():
            if measure not in measures:
                raise UnknownName("measure", measure, measures, where=name)
        return measure
    first, *others = known.values()
    shared = [name for name in first if all(name in measures for measures in others)]
    if not shared:
        have = "; ".join(f"{name} has {', '.join(measures)}" for name, measures in known.items())
        raise NotPossible(
            f"No measure is shared by all runs: {have}. Run them again with a common --measure."
        )
    return shared[0]


def judgements_by(run: Run, measure: str | None = None) -> pl.DataFrame:
    """A run's judgements by one measure, by default its main one, with the columns of its items.

    Raises UnknownName.
    """
    known = list_measures(run)
    if measure is not None and measure not in known:
        raise UnknownName("measure", measure, known)
    return run["judgements"].filter(pl.col("measure") == (measure or known[0]))


def analysis_table(
    sources: Sequence[str | Path | Run], response: str, *, measure: str | None = None
) -> pl.DataFrame:
    """The table of one or several runs that holds `response`, for a regression.

    Judgements (one row per item) if they have that column, else stimuli (one row per condition) with
    their measures, `surprisal` in bits and every further column that the stimuli came with. Several runs
    are stacked, with a column `model`.

    Raises UnknownName if neither has it.
    """
    runs = name_runs(sources)
    chosen = choose_measure(runs, measure)
    refuse_other_items(runs)
    judged = _stack([(run, _with_item_columns(run, judgements_by(run, chosen))) for run in runs.values()])
    if response in judged.columns:
        return judged
    stimuli = _stack([(run, stimuli_table(run)) for run in runs.values()])
    if response not in stimuli.columns:
        known = dict.fromkeys([*judged.columns, *stimuli.columns])
        raise UnknownName("column", response, list(known), where=_name_run(next(iter(runs.values()))))
    return stimuli


def _stack(tables: list[tuple[Run, pl.DataFrame]]) -> pl.DataFrame:
    """One table with the columns `model` and, of runs on several datasets, `dataset`."""
    names = [str(run.manifest["dataset"].get("name")) for run, _ in tables]
    parts = []
    for (run, table), dataset in zip(tables, names, strict=True):
        told = {"model": str(run.manifest["model"].get("name"))}
        told |= {"dataset": dataset} if len(set(names)) > 1 else {}
        parts.append(table.with_columns(pl.lit(value).alias(name) for name, value in told.items()))
    return pl.concat(parts, how="diagonal_relaxed")


def stimuli_table(run: Run) -> pl.DataFrame:
    """One row per stimulus: its columns, each measure, and its surprisal in bits if lp is known."""
    wide = run["scores"].pivot("measure", index="request", values="value", aggregate_function="first")
    asked = run["requests"].select("request", "item", "condition")
    scored = asked.join(wide, on="request", maintain_order="left").drop("request")
    table = run["items"].join(scored, on=["item", "condition"], how="left", maintain_order="left")
    if "lp" in table.columns and "surprisal" not in table.columns:
        table = table.with_columns((-pl.col("lp") / NATS_PER_BIT).alias("surprisal"))
    return table


def _with_item_columns(run: Run, judged: pl.DataFrame) -> pl.DataFrame:
    """Judgements with those further columns of the stimuli that are the same for a whole item."""
    items = run["items"]
    extra = [name for name in items.columns if name not in ITEMS and name not in judged.columns]
    same = [
        name for name in extra if not items[name].dtype.is_nested() and _constant_within(items, "item", name)
    ]
    if not same:
        return judged
    return judged.join(
        items.select("item", *same).unique("item", maintain_order=True), on="item", maintain_order="left"
    )


def _constant_within(items: pl.DataFrame, group: str, name: str) -> bool:
    return bool((items.group_by(group).agg(pl.col(name).n_unique())[name] == 1).all())


def refuse_other_items(runs: Mapping[str, Run]) -> tuple[str, ...]:
    """Refuse runs with different texts for the same item; returns the runs that have no texts.

    Raises BadInput naming the first item that differs.
    """
    digests = {name: _digest_items(run) for name, run in runs.items()}
    unchecked = tuple(name for name, table in digests.items() if not table)
    checked = {name: table for name, table in digests.items() if table}
    if len(checked) < 2:
        return unchecked
    (first, mine), *others = checked.items()
    for name, theirs in others:
        for item, digest in mine.items():
            if item in theirs and theirs[item] != digest:
                raise BadInput(
                    f"Item '{item}' is not the same in {first} and {name}: its texts differ; compare runs of "
                    "the same stimuli."
                )
    return unchecked


def _digest_items(run: Run) -> dict[str, str]:
    items = run["items"]
    if not (items["text"].str.len_chars() > 0).any():
        return {}
    columns = [name for name in ("condition", "text", "context_text") if name in items.columns]
    digests = {}
    for (item,), part in items.group_by("item", maintain_order=True):
        digests[str(item)] = fingerprint(sorted(list(map(str, row)) for row in part.select(columns).rows()))
    return digests


def _between_measures(named: tuple[str, Run]) -> RunJudgements:
    name, run = named
    measures = list_measures(run)
    if len(measures) < 2:
        raise NotPossible(
            f"{name} is judged by one measure only ({measures[0]}); give two runs, or add one with --measure."
        )
    return RunJudgements(
        frames={each: judgements_by(run, each) for each in measures},
        measure=None,
        headline=run.headline,
        policies=say_policies({name: run}),
    )
