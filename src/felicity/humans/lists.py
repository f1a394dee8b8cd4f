"""Lists of stimuli and the order of their trials: Latin squares, parts, blocks, counterbalanced sides."""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from felicity.core.errors import BadInput
from felicity.humans.ordering import Constraints, Infeasible, Labels, find_order
from felicity.humans.stimuli import Stimulus
from felicity.humans.study import RatingStudy

ORDERS_TRIED = 5


@dataclass(frozen=True)
class StimulusList:
    """What one rater is shown: the rows of targets, fillers and checks, in the table's order."""

    name: str
    rows: tuple[int, ...]
    levels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Trial:
    """One trial of one rater: a row of the stimuli, and whether its two sides are exchanged."""

    row: int
    flipped: bool


def build_lists(study: RatingStudy) -> list[StimulusList]:
    """Every list of a study.

    Latin: within each level of the between-participant factors, list r shows item i in condition
    (i + r) modulo the number of conditions; with `parts`, items are dealt out to that many lists.

    Raises BadInput if an item lacks a condition that others have.
    """
    targets = [stimulus for stimulus in study.stimuli if stimulus.role == "target"]
    shared = [stimulus.row for stimulus in study.stimuli if stimulus.role in ("filler", "check")]
    if study.design.lists == "all":
        return [StimulusList("1", tuple(sorted([*shared, *(stimulus.row for stimulus in targets)])))]
    if study.design.lists == "column":
        return _by_column(study, targets)
    lists: list[StimulusList] = []
    levels = dict.fromkeys(_levels(stimulus, study.design.between) for stimulus in targets)
    for level in levels:
        here = [stimulus for stimulus in targets if _levels(stimulus, study.design.between) == level]
        for rows in _squares(here, study.design.parts, study):
            name = str(len(lists) + 1)
            lists.append(StimulusList(name, tuple(sorted([*shared, *rows])), level))
    return lists


def _levels(stimulus: Stimulus, factors: Sequence[str]) -> tuple[str, ...]:
    return tuple(stimulus.level(factor) for factor in factors)


def _by_column(study: RatingStudy, targets: list[Stimulus]) -> list[StimulusList]:
    unnamed = [stimulus for stimulus in targets if not stimulus.list_name]
    if unnamed:
        raise BadInput(f"The stimulus on line {unnamed[0].line} has no list; fill its column 'list'.")
    shared = [stimulus for stimulus in study.stimuli if stimulus.role in ("filler", "check")]
    lists = []
    for name in dict.fromkeys(stimulus.list_name for stimulus in targets):
        rows = [stimulus.row for stimulus in targets if stimulus.list_name == name]
        rows += [stimulus.row for stimulus in shared if stimulus.list_name in ("", name)]
        lists.append(StimulusList(name, tuple(sorted(rows))))
    return lists


def _squares(targets: list[Stimulus], parts: int, study: RatingStudy) -> list[list[int]]:
    """Rows of each list: for every part, one rotation per condition."""
    cells: dict[str, dict[tuple[str, ...], Stimulus]] = {}
    within = [name for name in _factors(targets) if name not in study.design.between]
    for stimulus in targets:
        cells.setdefault(stimulus.item, {})[_levels(stimulus, within)] = stimulus
    conditions = list(dict.fromkeys(key for cell in cells.values() for key in cell))
    square = all(len(cell) == len(conditions) for cell in cells.values())
    if not square and not all(len(cell) == 1 for cell in cells.values()):
        item, cell = next((item, cell) for item, cell in cells.items() if len(cell) != len(conditions))
        lacking = next(key for key in conditions if key not in cell)
        line = next(iter(cell.values())).line
        raise BadInput(
            f"Item '{item}' (line {line} of the stimuli) lacks the condition '{' / '.join(lacking)}' that "
            "other items have; a Latin square needs every item in every condition."
        )
    if parts > len(cells):
        raise BadInput(f"design.parts is {parts}, but there are only {len(cells)} items to divide.")
    items = list(cells)
    squares = []
    for part in range(parts):
        members = items[part::parts]
        if not square:
            squares.append([next(iter(cells[item].values())).row for item in members])
            continue
        for turn in range(len(conditions)):
            chosen = [conditions[(place + turn) % len(conditions)] for place in range(len(members))]
            squares.append([cells[item][key].row for item, key in zip(members, chosen, strict=True)])
    return squares


def _factors(targets: list[Stimulus]) -> list[str]:
    """The condition, and each further column that varies within an item."""
    names = dict.fromkeys(name for stimulus in targets for name in stimulus.factors)
    values: dict[tuple[str, str], set[str]] = {}
    for stimulus in targets:
        for name in names:
            values.setdefault((name, stimulus.item), set()).add(stimulus.level(name))
    conditions_alone = {(stimulus.item, stimulus.condition) for stimulus in targets}
    if len(conditions_alone) == len(targets):
        return ["condition"]
    return ["condition", *(name for name in names if any(len(values[name, item]) > 1 for _, item in values))]


def draw_order(study: RatingStudy, drawn: StimulusList, *, seed: int, turn: int) -> list[Trial]:
    """A random order of practice and main trials that meets the study's constraints.

    seed: of this rater. turn: how many raters had this list before, which exchanges the sides of every
    trial from one rater to the next.

    Raises Infeasible.
    """
    rng = random.Random(_mix(study.seed, drawn.name, seed))
    by_row = {stimulus.row: stimulus for stimulus in study.stimuli}
    practice = [stimulus for stimulus in study.stimuli if stimulus.role == "practice"]
    main = [by_row[row] for row in drawn.rows]
    ordered = _shuffle(study, main, rng) if study.order.shuffle else _in_blocks(study, main, rng)
    sides = _sides(study, drawn, turn)
    return [Trial(stimulus.row, sides.get(stimulus.row, False)) for stimulus in [*practice, *ordered]]


def _in_blocks(study: RatingStudy, main: list[Stimulus], rng: random.Random) -> list[Stimulus]:
    return [stimulus for block in _blocks(study, main, rng) for stimulus in block]


def _blocks(study: RatingStudy, main: list[Stimulus], rng: random.Random) -> list[list[Stimulus]]:
    names = list(dict.fromkeys(stimulus.block for stimulus in main))
    if study.order.blocks == "random":
        rng.shuffle(names)
    return [[stimulus for stimulus in main if stimulus.block == name] for name in names]


def _shuffle(study: RatingStudy, main: list[Stimulus], rng: random.Random) -> list[Stimulus]:
    order = study.order
    constraints = Constraints(order.most_same_condition, order.most_same_type, order.least_distance)
    first = _open_with_fillers(study, main, constraints, rng)
    taken = {stimulus.row for stimulus in first}
    done = list(first)
    for block in _blocks(study, [stimulus for stimulus in main if stimulus.row not in taken], rng):
        labels = [_label(stimulus) for stimulus in block]
        places = find_order(labels, constraints, rng, before=[_label(one) for one in done])
        done += [block[place] for place in places]
    return done


def _open_with_fillers(
    study: RatingStudy, main: list[Stimulus], constraints: Constraints, rng: random.Random
) -> list[Stimulus]:
    count = study.order.fillers_first
    if not count:
        return []
    fillers = [stimulus for stimulus in main if stimulus.role == "filler"]
    if len(fillers) < count:
        raise Infeasible(proven=True)
    chosen = rng.sample(fillers, count)
    # The opening may not be longer than the runs allow; the search then refuses it with a proof.
    places = find_order([_label(one) for one in chosen], constraints, rng)
    return [chosen[place] for place in places]


def _label(stimulus: Stimulus) -> Labels:
    return Labels(stimulus.condition, stimulus.type, stimulus.group)


def _sides(study: RatingStudy, drawn: StimulusList, turn: int) -> dict[int, bool]:
    """Which trials are flipped: half of a list, and the other half for the next rater."""
    if study.task.kind == "binary":
        # A button that changes its side from trial to trial is pressed wrongly; it changes by rater.
        return dict.fromkeys(drawn.rows, bool(turn % 2) and study.task.flip)
    if study.task.kind != "maze" and not (study.task.kind == "choice" and study.task.flip):
        return {}
    rows = list(drawn.rows)
    random.Random(_mix(study.seed, drawn.name, -1)).shuffle(rows)
    return {row: (place + turn) % 2 == 1 for place, row in enumerate(rows)}


def _mix(seed: int, name: str, level: int) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}\0{name}\0{level}".encode()).digest()[:8])


def check_orders(study: RatingStudy, lists: Sequence[StimulusList]) -> None:
    """Refuse, before launch, a study whose order constraints cannot be met.

    Raises BadInput naming the list and a constraint without which an order would exist.
    """
    # Lists with the same labels are equally hard, so one of them is enough.
    by_row = {stimulus.row: stimulus for stimulus in study.stimuli}
    seen = set()
    for drawn in lists:
        labels = sorted((by_row[row].block, repr(_label(by_row[row]))) for row in drawn.rows)
        kinds = tuple((kind, len(list(group))) for kind, group in groupby(labels))
        if kinds in seen:
            continue
        seen.add(kinds)
        try:
            for seed in range(ORDERS_TRIED):
                draw_order(study, drawn, seed=seed, turn=0)
        except Infeasible as error:
            how = "no order meets" if error.proven else "no order was found that meets"
            raise BadInput(
                f"{study.folder / 'study.toml'}: in list {drawn.name}, {how} the constraints of [order]; "
                f"{_culprit(study, drawn)}."
            ) from error


def _culprit(study: RatingStudy, drawn: StimulusList) -> str:
    names = ("fillers_first", "most_same_condition", "most_same_type", "least_distance")
    for name in names:
        value = getattr(study.order, name)
        if not value:
            continue
        change: dict[str, Any] = {name: 0 if name == "fillers_first" else None}
        eased = replace(study, order=replace(study.order, **change))
        try:
            draw_order(eased, drawn, seed=0, turn=0)
        except Infeasible:
            continue
        return f"it is possible without {name} = {value}"
    return "it needs more than one of them eased"
