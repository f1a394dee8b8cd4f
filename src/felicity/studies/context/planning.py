"""From a setting to what is to be scored: items, contexts, and every item in every context of its group."""

from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from felicity.core.errors import BadInput, NotPossible
from felicity.core.schemas import check_schema
from felicity.core.sweep import SWEEP_CONTEXTS, UNPERTURBED
from felicity.data.catalogue import Dataset, read_dataset
from felicity.data.sample import sample_items
from felicity.design.contexts.conditions import find_sides, read_rules
from felicity.design.contexts.drawing import draw_contexts
from felicity.design.contexts.in_context import put_in_context
from felicity.design.contexts.plan import assign_groups
from felicity.design.contexts.pool import build_pool
from felicity.design.contexts.sentences import read_text_file
from felicity.design.contexts.tables import describe_short
from felicity.design.perturbations import perturb
from felicity.measures.scoring import check_measures
from felicity.measures.sentence import UNIGRAM_MEASURES
from felicity.run.rules import RULES
from felicity.studies.context.setting import Setting, find_text
from felicity.studies.tokenizers import CountTokens

JUDGED = ("contrast", "formula")


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A study before any model is asked.

    items: the stimuli, sampled. contexts: rows of SWEEP_CONTEXTS. requests: rows of SWEEP_REQUESTS. short:
    where a suite has too few sentences for a length. sides: which conditions are acceptable. notes: what a
    reader must be told. setting: what was asked. measures: what the rule reads.
    """

    setting: Setting
    dataset: Dataset
    items: pl.DataFrame
    contexts: pl.DataFrame
    requests: pl.DataFrame
    short: pl.DataFrame
    sides: pl.DataFrame
    notes: tuple[str, ...]
    measures: tuple[str, ...]


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
    measures = _choose_measures(setting, data)
    rules = read_rules(setting.conditions) if setting.conditions else ()
    sides = find_sides(data.items, contrasts=data.contrasts, rules=rules)
    if set(setting.kinds) == {"unrelated"} and not setting.from_suites:
        # Running text has no side, and every suite can stand behind it.
        sides = replace(sides, left_out={}, notes=())
    known = data.items.filter(~pl.col("suite").is_in(list(sides.left_out)))
    if known.is_empty():
        reason = next(iter(sides.left_out.values()), "it has no suites")
        raise NotPossible(
            f"No suite of {data.name} can give contexts: {reason}; name them in a table with --conditions."
        )
    items = sample_items(known, setting.sample, seed=setting.seed)
    notes = [*data.notes, *sides.notes]
    groups = assign_groups(items, setting.plan(tuple(sides.suites)))
    if given is not None:
        contexts, short = _read_contexts(given), pl.DataFrame()
    else:
        contexts, short = _draw(setting, items, build_pool(known, sides.table), tuple(sides.suites), count)
        notes += describe_short(short, setting.unit)
    if contexts.is_empty():
        raise NotPossible(
            f"No context of {min(setting.lengths)} to {max(setting.lengths)} {setting.unit} can be made of "
            f"the sentences of {data.name}; ask for shorter ones."
        )
    return Planned(
        setting=setting,
        measures=measures,
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


def _choose_measures(setting: Setting, data: Dataset) -> tuple[str, ...]:
    """What the rule is to read; a mistake is told before anything is scored."""
    rule = RULES[data.rule]
    chosen = rule.choose_measures(data.method, (setting.measure,) if setting.measure else None)
    if not rule.fixed and set(chosen) & UNIGRAM_MEASURES:
        raise NotPossible(
            f"'{chosen[0]}' needs unigram counts, which a study of contexts has none of; choose lp, "
            "mean_lp or pen_lp."
        )
    if not rule.fixed:
        check_measures(chosen, has_unigram=False)
    return chosen


def _read_contexts(path: Path) -> pl.DataFrame:
    """The contexts of a study.

    Raises BadInput where the file is no such table.
    """
    try:
        table = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise BadInput(f"{path} is no table of contexts; name a study's contexts.parquet.") from error
    check_schema(table, SWEEP_CONTEXTS, str(path))
    return table
