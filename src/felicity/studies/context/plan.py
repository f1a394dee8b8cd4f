"""Planning a context study: items, contexts and requests, and the record of the study, study.json."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.contrasts import Headline
from felicity.core.errors import BadInput, NotPossible
from felicity.core.files import read_frame
from felicity.core.schemas import check_schema
from felicity.core.sweep import SWEEP_CONTEXTS, UNPERTURBED
from felicity.data import Dataset, read_dataset, sample_items
from felicity.design import perturb, put_in_context
from felicity.design.contexts import (
    assign_groups,
    build_pool,
    describe_short,
    draw_contexts,
    find_sides,
    read_rules,
    read_text_file,
)
from felicity.engines import CountTokens
from felicity.measures import check_measures, needs_unigram
from felicity.run import RECORD, RULES, RunFolder, check_record, is_study, read_record
from felicity.studies.context.settings import DRAWN, Setting, describe_text, find_text

JUDGED = ("contrast", "formula")


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A study before any model is scored.

    items: the stimuli, sampled. contexts: rows of SWEEP_CONTEXTS. requests: rows of SWEEP_REQUESTS. short:
    suites with too few sentences for a length. sides: which conditions are acceptable. notes: remarks for
    the reader. setting: the user's settings. measures: those of the rule.
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

    @property
    def headline(self) -> Headline:
        """What the share and the sentences are called, in the dataset's words."""
        return Headline.read(self.dataset.score, default=RULES[self.dataset.rule].headline)


def plan_study(setting: Setting, count: CountTokens, *, given: Path | None = None) -> Planned:
    """Draw contexts for the items of a study, or reuse the contexts of another study.

    Raises BadInput, NotPossible or UnknownName if the dataset, the text or the contexts cannot be used.
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
        # Running text has no side and can precede every suite.
        sides = replace(sides, left_out={}, notes=())
    known = data.items.filter(~pl.col("suite").is_in(list(sides.left_out)))
    if known.is_empty():
        reason = next(iter(sides.left_out.values()), "it has no suites")
        raise NotPossible(
            f"No suite of {data.name} can provide contexts: {reason}; give a table with --conditions."
        )
    items = sample_items(known, setting.sample, seed=setting.seed)
    notes = [*data.notes, *sides.notes]
    groups = assign_groups(items, setting.plan(tuple(sides.suites)))
    if given is not None:
        contexts, short = _read_contexts(given), pl.DataFrame()
    else:
        contexts, short = _draw(setting, items, build_pool(known, sides.table), tuple(sides.suites), count)
        notes += [*describe_text(setting), *describe_short(short, setting.unit)]
    if contexts.is_empty():
        raise NotPossible(
            f"No context of {min(setting.lengths)} to {max(setting.lengths)} {setting.unit} can be made of "
            f"the sentences of {data.name}; request shorter ones."
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
            # Running text is not a stimulus and stays unperturbed.
            plan = replace(plan, kinds=tuple(kind for kind in plan.kinds if kind != "unrelated"))
        drawn = draw_contexts(items, pool, unrelated, plan, count, perturb=changed)
        tables.append(drawn.table)
        shorts.append(drawn.short)
    return pl.concat(tables), pl.concat(shorts)


def _choose_measures(setting: Setting, data: Dataset) -> tuple[str, ...]:
    """The measures of the rule; mistakes are reported before anything is scored."""
    rule = RULES[data.rule]
    chosen = rule.choose_measures(data.method, (setting.measure,) if setting.measure else None)
    if not rule.fixed and needs_unigram(chosen):
        raise NotPossible(
            f"'{chosen[0]}' needs unigram counts, which a context study does not have; choose lp, "
            "mean_lp or pen_lp."
        )
    if not rule.fixed:
        check_measures(chosen, has_unigram=False)
    return chosen


def _read_contexts(path: Path) -> pl.DataFrame:
    """The contexts of a study.

    Raises BadInput if the file is not such a table.
    """
    return check_schema(read_frame(path), SWEEP_CONTEXTS, str(path))


def find_record(folder: Path) -> dict[str, Any]:
    """The record of the study in a folder; empty if there is none.

    Raises BadInput if it cannot be read, or the folder is that of a run.
    """
    if is_study(folder):
        return read_record(folder)
    if RunFolder(folder).has_manifest():
        raise BadInput(
            f"{folder} contains a run, which the study would overwrite; choose another folder with -o."
        )
    return {}


def read_drawn(contexts: Path) -> dict[str, Any]:
    """The record beside another study's table of contexts.

    Raises BadInput if there is none, or it is not that of a study.
    """
    path = contexts.parent / RECORD
    if not contexts.is_file():
        raise BadInput(f"There is no file {contexts}; give the contexts.parquet in a study's folder.")
    if not path.is_file():
        raise BadInput(
            f"{contexts} has no {RECORD} beside it, which says how it was drawn; give the "
            "contexts.parquet in a study's folder."
        )
    told = check_record(contexts.parent, [contexts.name], advice="run that study again in another folder")
    known = told.get("setting")
    if not isinstance(known, dict) or not {*DRAWN, "text"} <= set(known) or "items" not in told:
        raise BadInput(f"{path} does not say how the contexts were drawn; run that study again.")
    return told


def refuse_other(old: dict[str, Any], new: dict[str, Any], folder: Path) -> None:
    """Refuse to continue one study in the folder of another.

    Raises BadInput naming what differs.
    """
    for name in (*new, *(name for name in old if name not in new)):
        if old.get(name) != new.get(name):
            what = f"{name.replace('_', ' ')} ({old.get(name)}, not {new.get(name)})"
            raise BadInput(
                f"{folder} contains a study with another {what}; choose another folder with -o, or remove it."
            )


def refuse_items(told: dict[str, Any], items: str, contexts: Path) -> None:
    """Refuse contexts drawn for other items, since an item could occur in its own context.

    Raises BadInput.
    """
    if told.get("items") != items:
        raise BadInput(
            f"{contexts} was drawn for other items; use the same dataset, suite and phenomenon, "
            "or draw new contexts in another folder."
        )
