import random
from collections import Counter
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicity.core.errors import BadInput
from felicity.humans import build_lists, check_orders, draw_order
from felicity.humans.ordering import Constraints, Infeasible, Labels, breaks, find_order
from tests.humans.studies import make_study, stimulus_rows

LABELS = st.builds(Labels, st.sampled_from("ab"), st.sampled_from("tf"), st.sampled_from(["", "g", "h"]))
CONSTRAINTS = st.builds(
    Constraints,
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([None, 2, 3]),
)


@given(st.lists(LABELS, min_size=1, max_size=6), CONSTRAINTS, st.integers(0, 99))
def test_an_order_is_found_exactly_when_one_exists(
    trials: list[Labels], constraints: Constraints, seed: int
) -> None:
    exists = any(not breaks(order, constraints) for order in permutations(trials))
    try:
        places = find_order(trials, constraints, random.Random(seed))
    except Infeasible as error:
        assert error.proven
        assert not exists
        return
    assert sorted(places) == list(range(len(trials)))
    assert not breaks([trials[place] for place in places], constraints)


def test_constraints_hold_across_the_border_of_blocks() -> None:
    before = [Labels("a", "t"), Labels("a", "t")]
    trials = [Labels("a", "t"), Labels("b", "t")]
    places = find_order(trials, Constraints(most_same_condition=2), random.Random(0), before=before)
    assert places == [1, 0]


def test_a_long_list_with_tight_constraints_is_ordered() -> None:
    trials = [Labels(c, "target", f"g{i}") for c in "abcd" for i in range(24)] + [
        Labels("", "filler", "") for _ in range(96)
    ]
    constraints = Constraints(most_same_condition=1, most_same_type=2, least_distance=12)
    places = find_order(trials, constraints, random.Random(3))
    assert not breaks([trials[place] for place in places], constraints)


def test_a_latin_square_shows_each_item_once_and_each_condition_equally(tmp_path: Path) -> None:
    rows = stimulus_rows("likert", items=8, conditions=("a", "b", "c", "d"))
    study = make_study(tmp_path, rows=[*rows, {"item": "f1", "text": "A filler.", "role": "filler"}])
    lists = build_lists(study)
    assert len(lists) == 4
    seen: Counter[tuple[str, str]] = Counter()
    for drawn in lists:
        shown = [study.stimuli[row] for row in drawn.rows]
        targets = [stimulus for stimulus in shown if stimulus.role == "target"]
        assert Counter(stimulus.item for stimulus in targets) == {str(item): 1 for item in range(8)}
        assert set(Counter(stimulus.condition for stimulus in targets).values()) == {2}
        assert [stimulus.item for stimulus in shown if stimulus.role == "filler"] == ["f1"]
        seen.update((stimulus.item, stimulus.condition) for stimulus in targets)
    assert set(seen.values()) == {1}
    assert len(seen) == 32


def test_a_between_factor_is_constant_within_a_list(tmp_path: Path) -> None:
    rows = [
        {**row, "setting": setting}
        for row in stimulus_rows("likert", items=4)
        for setting in ("real", "none")
    ]
    study = make_study(tmp_path, rows=rows, more='[design]\nbetween = ["setting"]\n')
    lists = build_lists(study)
    assert [drawn.levels for drawn in lists] == [("real",), ("real",), ("none",), ("none",)]
    for drawn in lists:
        assert {study.stimuli[row].factors["setting"] for row in drawn.rows} == set(drawn.levels)


def test_parts_divide_a_thousand_items_into_lists_of_forty(tmp_path: Path) -> None:
    study = make_study(
        tmp_path, rows=stimulus_rows("likert", items=1000, conditions=("",)), more="[design]\nparts = 25\n"
    )
    lists = build_lists(study)
    assert [len(drawn.rows) for drawn in lists] == [40] * 25
    assert sorted(row for drawn in lists for row in drawn.rows) == list(range(1000))


def test_an_item_without_a_condition_is_refused(tmp_path: Path) -> None:
    study = make_study(tmp_path, rows=stimulus_rows("likert")[:-1])
    with pytest.raises(BadInput, match=r"Item '3' \(line 8 of the stimuli\) lacks the condition 'b'"):
        build_lists(study)


def test_infeasible_constraints_are_refused_before_launch_and_named(tmp_path: Path) -> None:
    study = make_study(tmp_path, more="[order]\nmost_same_condition = 3\nmost_same_type = 2\n")
    with pytest.raises(BadInput, match="no order meets.*possible without most_same_type = 2"):
        check_orders(study, build_lists(study))


def test_orders_differ_between_raters_and_repeat_with_the_seed(tmp_path: Path) -> None:
    study = make_study(tmp_path, items=12, more="[order]\nmost_same_condition = 2\n")
    drawn = build_lists(study)[0]
    orders = [draw_order(study, drawn, seed=seed, turn=0) for seed in range(20)]
    assert len({tuple(order) for order in orders}) == 20
    assert orders[3] == draw_order(study, drawn, seed=3, turn=0)


def test_sides_of_a_forced_choice_are_balanced_within_and_across_raters(tmp_path: Path) -> None:
    study = make_study(tmp_path, "choice", items=12)
    drawn = build_lists(study)[0]
    first, second = (
        {trial.row: trial.flipped for trial in draw_order(study, drawn, seed=turn, turn=turn)}
        for turn in (0, 1)
    )
    assert sum(first.values()) == 6
    assert all(second[row] != flipped for row, flipped in first.items())


def test_blocks_stay_together_and_practice_comes_first(tmp_path: Path) -> None:
    rows = [{**row, "block": "two" if int(row["item"]) > 1 else "one"} for row in stimulus_rows("likert")]
    rows.append({"item": "p", "text": "Practice.", "role": "practice"})
    study = make_study(tmp_path, rows=rows, more='[order]\nblocks = "random"\n')
    starts = set()
    for seed in range(10):
        order = draw_order(study, build_lists(study)[0], seed=seed, turn=0)
        shown = [study.stimuli[trial.row] for trial in order]
        assert shown[0].item == "p"
        blocks = [stimulus.block for stimulus in shown[1:]]
        assert blocks in (["one", "one", "two", "two"], ["two", "two", "one", "one"])
        starts.add(blocks[0])
    assert starts == {"one", "two"}
