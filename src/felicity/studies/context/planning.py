"""From a setting to what is to be scored: items, contexts, and every item in every context of its group."""

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput, NotPossible
from felicity.core.schemas import check_schema
from felicity.core.sweep import SWEEP_CONTEXTS, UNPERTURBED
from felicity.data.catalogue import Dataset, read_dataset
from felicity.data.sample import sample_items
from felicity.design.contexts.conditions import find_sides
from felicity.design.contexts.drawing import draw_contexts
from felicity.design.contexts.in_context import put_in_context
from felicity.design.contexts.plan import assign_groups
from felicity.design.contexts.pool import build_pool
from felicity.design.contexts.sentences import read_text_file
from felicity.design.contexts.tables import describe_short
from felicity.design.perturbations import perturb
from felicity.studies.context.setting import Setting, find_text
from felicity.studies.tokenizers import CountTokens

JUDGED = ("contrast", "formula")


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A study before any model is asked.

    items: the stimuli, sampled. contexts: rows of SWEEP_CONTEXTS. requests: rows of SWEEP_REQUESTS. short:
    where a suite has too few sentences for a length. sides: which conditions are acceptable. notes: what a
    reader must be told.
    """

    dataset: Dataset
    items: pl.DataFrame
    contexts: pl.DataFrame
    requests: pl.DataFrame
    short: pl.DataFrame
    sides: pl.DataFrame
    notes: tuple[str, ...]


def plan_study(setting: Setting, count: CountTokens, *, given: Path | None = None) -> Planned:
    """Draw contexts for the items of a study, or take them from the table of another study.

    Raises BadInput, NotPossible or UnknownName where the dataset, the text or the contexts do not serve.
    """
    data = read_dataset(setting.dataset, setting.columns, rule=setting.chosen_rule, folder=setting.source)
    if data.rule not in JUDGED or data.cross:
        raise NotPossible(
            f"The rule '{data.method}' of {data.name} cannot be judged in contexts; choose one that compares "
            "sentences or regions with --rule."
        )
    sides = find_sides(data.items, contrasts=data.contrasts)
    known = data.items.filter(pl.col("suite").is_in(sides.suites))
    if known.is_empty():
        reason = next(iter(sides.left_out.values()), "it has no suites")
        raise NotPossible(f"No suite of {data.name} can give contexts: {reason}.")
    items = sample_items(known, setting.sample, seed=setting.seed)
    notes = [*data.notes, *sides.notes]
    groups = assign_groups(items, setting.plan(tuple(sides.suites)))
    if given is not None:
        contexts, short = _read_contexts(given, items), pl.DataFrame()
    else:
        contexts, short = _draw(setting, items, build_pool(known, sides.table), tuple(sides.suites), count)
        notes += describe_short(short, setting.unit)
    if contexts.is_empty():
        raise NotPossible(
            f"No context of {min(setting.lengths)} to {max(setting.lengths)} {setting.unit} can be made of "
            f"the sentences of {data.name}; ask for shorter ones."
        )
    return Planned(
        dataset=replace(data, items=known),
        items=items,
        contexts=contexts,
        requests=put_in_context(items, contexts, groups),
        short=short,
        sides=sides.table,
        notes=tuple(notes),
    )


def _draw(
    setting: Setting, items: pl.DataFrame, pool: pl.DataFrame, suites: tuple[str, ...], count: CountTokens
) -> tuple[pl.DataFrame, pl.DataFrame]:
    text = find_text(setting.text, setting.kinds)
    unrelated = read_text_file(text) if text is not None and "unrelated" in setting.kinds else []
    tables, shorts = [], []
    for name in (UNPERTURBED, *setting.perturbations):
        plan = setting.plan(suites, perturb=name)
        changed = None if name == UNPERTURBED else perturb(name, sentences=pool["sentence"])
        if changed is not None:
            # Running text is no stimulus, and is left as it stands.
            plan = replace(plan, kinds=tuple(kind for kind in plan.kinds if kind != "unrelated"))
        drawn = draw_contexts(items, pool, unrelated, plan, count, perturb=changed)
        tables.append(drawn.table)
        shorts.append(drawn.short)
    return pl.concat(tables), pl.concat(shorts)


def _read_contexts(path: Path, items: pl.DataFrame) -> pl.DataFrame:
    """The contexts of another study, for the suites at hand.

    Raises BadInput where the file is no such table, or is of another dataset.
    """
    try:
        table = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise BadInput(f"{path} is no table of contexts; name a study's contexts.parquet.") from error
    check_schema(table, SWEEP_CONTEXTS, str(path))
    missing = sorted(set(items["suite"]) - set(table["suite"]))
    if missing:
        raise BadInput(f"{path} has no contexts for the suite '{missing[0]}'; draw new ones without it.")
    return table.filter(pl.col("suite").is_in(items["suite"].unique().implode()))
