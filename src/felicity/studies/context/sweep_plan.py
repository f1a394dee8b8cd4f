"""Planning a context study: items, contexts and requests, drawn, resumed, or taken from another study."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from felicity.core.errors import BadInput, NotPossible
from felicity.core.files import read_frame
from felicity.core.ids import fingerprint, hash_file
from felicity.core.schemas import check_schema
from felicity.core.sweep import SWEEP_CONTEXTS, UNPERTURBED
from felicity.data import Dataset, sample_items
from felicity.design import describe_parser, perturb, put_in_context
from felicity.design.contexts import (
    assign_groups,
    build_pool,
    describe_short,
    draw_contexts,
    find_sides,
    read_rules,
    read_text_file,
)
from felicity.engines import CountTokens, open_counter
from felicity.measures import check_measures, needs_unigram
from felicity.run import RULES, StudyFolder, digest_items
from felicity.studies.context.settings import ContextSettings
from felicity.studies.context.sweep_design import (
    UNRELATED,
    Sweep,
    SweepDesign,
    choose_design,
    describe_text,
    find_text,
    read_drawn,
    refuse_drawing,
)
from felicity.studies.context.sweep_scoring import make_jobs
from felicity.studies.data_settings import name_data
from felicity.studies.definition import Models, Planned

JUDGED = ("contrast", "formula")
# The rule that this study uses for datasets whose default rule has the opposite direction.
OPPOSITE_RULES = {"crows_pairs": "less"}
CONTEXT_TABLE = "contexts"


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Where contexts come from.

    table: contexts that exist already, in the folder of a resumed study or in another's; None if they are to
    be drawn. items: the digest of the items that they were drawn for. notes: what was said about them.
    """

    table: Path | None = None
    items: str = ""
    notes: tuple[str, ...] = ()


def plan(settings: ContextSettings, models: Models, folder: StudyFolder) -> Planned:
    """Items, contexts and requests of every length, and a run of every model on them.

    An interrupted study resumes with its contexts; those of another study bring its items and design along.

    Raises BadInput, NotPossible or UnknownName if the dataset, the text or the contexts cannot be used.
    """
    design, origin = _choose_contexts(settings, models, folder)
    parser = describe_parser() if settings.parse or "nonsense" in design.perturbations else {}
    text = find_text(settings.text, design.kinds) if settings.contexts is None else None
    sweep = plan_sweep(settings, design, text=text, origin=origin)
    items = digest_items(sweep.items)
    if settings.contexts is not None and origin.items != items:
        raise BadInput(
            f"{settings.contexts} was drawn for other items; use the same dataset, suite and phenomenon, "
            "or draw new contexts in another folder."
        )
    read = [path for path in (text if UNRELATED in design.kinds else None, settings.contexts) if path]
    return Planned(
        jobs=make_jobs(sweep, models),
        tables={
            "items": sweep.items,
            CONTEXT_TABLE: sweep.contexts,
            "requests": sweep.requests,
            "sides": sweep.sides,
        },
        facts={
            "dataset": name_data(settings.dataset),
            "method": sweep.dataset.method,
            "measure": sweep.measures[0],
            "score": sweep.headline.as_dict(),
            "design": design.as_dict(),
            "items": items,
            "sizes": {
                "items": sweep.items["item"].n_unique(),
                "suites": sweep.items["suite"].n_unique(),
                "contexts": sweep.contexts["context"].n_unique(),
                "texts": len(sweep.requests),
            },
        }
        | parser,
        inputs=fingerprint([items, *(hash_file(path) for path in [*read, *_list_tables(settings)])]),
        notes=tuple(dict.fromkeys([*origin.notes, *sweep.notes])),
    )


def _list_tables(settings: ContextSettings) -> list[Path]:
    """The table of conditions, if one is given.

    Raises BadInput if it is missing.
    """
    if settings.conditions is None:
        return []
    if not settings.conditions.is_file():
        raise BadInput(
            f"There is no file {settings.conditions}; give a table of conditions with --conditions."
        )
    return [settings.conditions]


def _choose_contexts(
    settings: ContextSettings, models: Models, folder: StudyFolder
) -> tuple[SweepDesign, Origin]:
    """The design of the study, and the contexts that exist already.

    Raises BadInput if the folder's contexts are measured in other tokens.
    """
    begun: dict[str, Any] = folder.record if "kept" in folder.record else {}
    kept = folder.path / f"{CONTEXT_TABLE}.parquet" if begun else None
    if settings.contexts is not None:
        refuse_drawing(settings)
        drawn = read_drawn(settings.contexts)
        origin = Origin(
            table=kept or settings.contexts, items=drawn["facts"]["items"], notes=tuple(drawn["notes"])
        )
        return SweepDesign.read(drawn["facts"]["design"]), origin
    design = choose_design(settings, models[0] if models else None)
    if not begun:
        return design, Origin()
    before = SweepDesign.read(begun["facts"]["design"]).tokenizer
    if before != design.tokenizer:
        raise BadInput(
            f"{folder.path} contains a study with another length tokenizer ({before}, now "
            f"{design.tokenizer}); choose another folder with -o, or remove it."
        )
    return design, Origin(table=kept, items=begun["facts"]["items"], notes=tuple(begun["notes"]))


def plan_sweep(settings: ContextSettings, design: SweepDesign, *, text: Path | None, origin: Origin) -> Sweep:
    """Draw contexts for the items of a study, or reuse contexts that exist.

    Raises BadInput, NotPossible or UnknownName if the dataset, the text or the contexts cannot be used.
    """
    named = settings.dataset if isinstance(settings.dataset, str) else ""
    data = settings.read_whole(rule=settings.rule or OPPOSITE_RULES.get(named))
    if data.rule not in JUDGED or data.cross:
        raise NotPossible(
            f"The rule '{data.method}' of {data.name} cannot be judged in contexts; choose one that compares "
            "sentences or regions with --rule."
        )
    measures = _choose_measures(settings.measure, data)
    tables = _list_tables(settings)
    rules = read_rules(tables[0]) if tables else ()
    sides = find_sides(data.items, contrasts=data.contrasts, rules=rules)
    if set(design.kinds) == {UNRELATED} and not design.from_suites:
        # Running text has no side and can precede every suite.
        sides = replace(sides, left_out={}, notes=())
    known = data.items.filter(~pl.col("suite").is_in(list(sides.left_out)))
    if known.is_empty():
        reason = next(iter(sides.left_out.values()), "it has no suites")
        raise NotPossible(
            f"No suite of {data.name} can provide contexts: {reason}; give a table with --conditions."
        )
    items = sample_items(known, design.sample, seed=design.seed)
    notes = [*data.notes, *sides.notes]
    suites = tuple(sides.suites)
    groups = assign_groups(items, design.plan(suites))
    if origin.table is not None:
        contexts = check_schema(read_frame(origin.table), SWEEP_CONTEXTS, str(origin.table))
    else:
        count = open_counter(design.tokenizer)
        contexts, short = _draw(design, items, build_pool(known, sides.table), suites, count, text)
        notes += [
            *(describe_text(text) if UNRELATED in design.kinds else ()),
            *describe_short(short, design.unit),
        ]
    if contexts.is_empty():
        raise NotPossible(
            f"No context of {min(design.lengths)} to {max(design.lengths)} {design.unit} can be made of "
            f"the sentences of {data.name}; request shorter ones."
        )
    return Sweep(
        design=design,
        measures=measures,
        dataset=replace(data, items=known),
        items=items,
        contexts=contexts,
        requests=put_in_context(items, contexts, groups),
        sides=sides.table,
        notes=tuple(notes),
    )


def _draw(
    design: SweepDesign,
    items: pl.DataFrame,
    pool: pl.DataFrame,
    suites: tuple[str, ...],
    count: CountTokens,
    text: Path | None,
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The contexts, and the suites that have too few sentences for a length."""
    unrelated = read_text_file(text) if text is not None and UNRELATED in design.kinds else []
    tables, shorts = [], []
    for name in (UNPERTURBED, *design.perturbations):
        planned = design.plan(suites, perturb=name)
        changed = None if name == UNPERTURBED else perturb(name, sentences=pool["sentence"])
        if changed is not None:
            # Running text is not a stimulus and stays unperturbed.
            planned = replace(planned, kinds=tuple(kind for kind in planned.kinds if kind != UNRELATED))
        drawn = draw_contexts(items, pool, unrelated, planned, count, perturb=changed)
        tables.append(drawn.table)
        shorts.append(drawn.short)
    return pl.concat(tables), pl.concat(shorts)


def _choose_measures(measure: str | None, data: Dataset) -> tuple[str, ...]:
    """The measures of the rule; mistakes are reported before anything is scored."""
    rule = RULES[data.rule]
    chosen = rule.choose_measures(data.method, (measure,) if measure else None)
    if not rule.fixed and needs_unigram(chosen):
        raise NotPossible(
            f"'{chosen[0]}' needs unigram counts, which a context study does not have; choose lp, "
            "mean_lp or pen_lp."
        )
    if not rule.fixed:
        check_measures(chosen, has_unigram=False)
    return chosen
