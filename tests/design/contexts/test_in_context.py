"""Items before nothing, and behind every context of their group."""

import polars as pl
import pytest

from felicity.core.errors import NotPossible
from felicity.core.schemas import CONTEXTS, check_schema
from felicity.core.sweep import SWEEP_REQUESTS
from felicity.design.contexts.drawing import draw_contexts
from felicity.design.contexts.plan import ContextPlan, assign_groups
from felicity.design.requests import list_texts, put_in_context
from tests.design.contexts.conftest import count_words, make_ground

GROUND = make_ground()
PLAN = ContextPlan(
    kinds=("matched_acceptable", "unrelated"), lengths=(0, 5, 20), contexts_per_suite=2, draws=2
)
TABLE = draw_contexts(GROUND.items, GROUND.pool, GROUND.unrelated, PLAN, count_words).table
GROUPS = assign_groups(GROUND.items, PLAN)
REQUESTS = put_in_context(GROUND.items, TABLE, GROUPS)


def test_requests_have_the_columns_of_a_sweep_and_ids_of_their_own() -> None:
    check_schema(REQUESTS, SWEEP_REQUESTS, "requests")
    assert REQUESTS["request"].n_unique() == len(REQUESTS)


def test_every_stimulus_stands_once_without_a_context() -> None:
    baseline = REQUESTS.filter(kind="none")
    assert baseline.select("item", "condition", "text").equals(
        GROUND.items.select("item", "condition", "text")
    )
    assert baseline["context"].null_count() == baseline["series"].null_count() == len(baseline)
    assert baseline.select("case", "request", "length", "n_tokens", "draw").row(0) == (
        "s0/0",
        "s0/0/good",
        0,
        0,
        0,
    )


def test_every_item_stands_in_every_context_of_its_group_and_in_no_other() -> None:
    group_of = {item: (suite, group) for suite, item, group in GROUPS.iter_rows()}
    contexts: dict[tuple[str, str], set[str]] = {}
    for row in TABLE.iter_rows(named=True):
        contexts.setdefault((row["suite"], row["group"]), set()).add(row["context"])
    inside = REQUESTS.filter(pl.col("kind") != "none")
    for (item, condition), part in inside.group_by("item", "condition"):
        assert condition in ("good", "bad")
        assert set(part["context"]) == contexts[group_of[str(item)]]
    sizes = TABLE.join(GROUPS, on=["suite", "group"])
    assert len(inside) == 2 * len(sizes)


def test_a_case_names_the_item_the_series_and_the_length() -> None:
    row = REQUESTS.filter(item="s1/3", condition="bad", kind="unrelated", length=20, draw=2).row(
        0, named=True
    )
    assert row["case"] == f"s1/3@{row['series']}/20"
    assert row["request"] == f"{row['case']}/bad"
    assert row["series"] == f"s1/{dict(GROUPS.select('item', 'group').iter_rows())['s1/3']}/unrelated/2"


def test_each_text_of_a_context_is_listed_once() -> None:
    texts = check_schema(list_texts(pl.concat([TABLE, TABLE])), CONTEXTS, "contexts")
    assert texts["context"].n_unique() == len(texts) == TABLE["context"].n_unique()


def test_items_that_have_contexts_already_are_refused() -> None:
    with pytest.raises(NotPossible, match="contexts of their own"):
        put_in_context(GROUND.items.with_columns(context_text=pl.lit("Once.")), TABLE, GROUPS)
