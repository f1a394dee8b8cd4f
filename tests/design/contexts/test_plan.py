"""What may be asked for, and who shares a context."""

from typing import Any

import polars as pl
import pytest

from felicity.core.errors import FelicityError
from felicity.design.contexts.plan import ContextPlan, assign_groups
from tests.design.contexts.conftest import make_ground

ITEMS = make_ground(size=23).items


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"kinds": ("matched_good",)}, "There is no kind of context 'matched_good'"),
        ({"kinds": ()}, "No kind of context is requested"),
        ({"kinds": ("unrelated", "unrelated")}, "requested twice"),
        ({"unit": "words"}, "There is no unit of length 'words'"),
        ({"lengths": ()}, "The lengths are empty; they must be"),
        ({"lengths": (100, 50)}, "The lengths are 100, 50; they must be"),
        ({"lengths": (0, 50, 50)}, "strictly ascending"),
        ({"lengths": (-1, 50)}, "must be 0 or more"),
        ({"draws": 0}, "0 draws give no context"),
        ({"contexts_per_suite": 0}, "0 contexts per suite are too few"),
        ({"kinds": ("from_acceptable",)}, "from one suite need its name"),
        ({"from_suites": ("s1",)}, "no kind that uses them: from_acceptable, from_unacceptable"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(FelicityError, match=message):
        ContextPlan(**({"lengths": (0, 100)} | asked))


def test_items_with_contexts_of_their_own_are_groups_of_one() -> None:
    groups = assign_groups(ITEMS, ContextPlan(lengths=(5,)))
    assert (groups["group"] == groups["item"]).all()
    assert set(groups["item"]) == set(ITEMS["item"])


def test_items_are_dealt_into_groups_that_differ_by_one_at_most() -> None:
    plan = ContextPlan(lengths=(5,), contexts_per_suite=5)
    groups = assign_groups(ITEMS, plan)
    assert len(groups) == groups["item"].n_unique() == 3 * 23
    sizes = groups.group_by("suite", "group").len()["len"].sort().to_list()
    assert sizes == [4] * 6 + [5] * 9
    assert set(groups["group"]) == {"1", "2", "3", "4", "5"}


def test_groups_depend_on_the_seed_and_not_on_the_order_of_items() -> None:
    plan = ContextPlan(lengths=(5,), contexts_per_suite=5)
    groups = assign_groups(ITEMS, plan)
    assert assign_groups(ITEMS.reverse(), plan).equals(groups)
    alone = assign_groups(ITEMS.filter(pl.col("suite") == "s1"), plan)
    assert alone.equals(groups.filter(pl.col("suite") == "s1"))
    other = assign_groups(ITEMS, ContextPlan(lengths=(5,), contexts_per_suite=5, seed=1))
    assert (other["group"] != groups["group"]).mean() > 0.5


def test_more_groups_than_items_leave_one_item_to_a_group() -> None:
    groups = assign_groups(ITEMS, ContextPlan(lengths=(5,), contexts_per_suite=100))
    assert not groups.select("suite", "group").is_duplicated().any()
