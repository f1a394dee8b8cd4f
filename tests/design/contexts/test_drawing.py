"""What must hold of contexts, whatever was asked for."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from felicity.core.errors import BadInput, UnknownName
from felicity.core.ids import fingerprint
from felicity.core.schemas import check_schema
from felicity.core.sweep import FROM_KINDS, KINDS, SWEEP_CONTEXTS
from felicity.data.catalogue import sample_items
from felicity.design.contexts.drawing import Contexts, describe_short, draw_contexts, shuffle
from felicity.design.contexts.growth import LEAD, Count
from felicity.design.contexts.plan import ContextPlan, assign_groups
from felicity.design.contexts.sentence_pools import join_sentences, sentence_identity
from tests.design.contexts.conftest import Ground, count_words, make_ground

ALL_KINDS = (*KINDS, *FROM_KINDS)
GROUND = make_ground()


def draw(ground: Ground, plan: ContextPlan, count: Count = count_words, **more: object) -> Contexts:
    return draw_contexts(ground.items, ground.pool, ground.unrelated, plan, count, **more)  # type: ignore[arg-type]


def by_series(table: pl.DataFrame) -> list[list[dict[str, object]]]:
    parts = table.sort("length").partition_by("series", maintain_order=True)
    return [part.to_dicts() for part in parts]


def check_properties(ground: Ground, plan: ContextPlan, drawn: Contexts, count: Count) -> None:
    """Every property of the issue, on tables alone."""
    table = check_schema(drawn.table, SWEEP_CONTEXTS, "contexts")
    groups = assign_groups(ground.items, plan)
    texts = ground.items.join(groups, on=["suite", "item"])
    members = {key: set(part["item"]) for key, part in texts.group_by("suite", "group")}
    keys = {key: set(map(sentence_identity, part["text"])) for key, part in texts.group_by("suite", "group")}
    suite_of = dict(ground.pool.select("origin", "suite").iter_rows())
    kept = ground.pool.select(
        pl.col("sentence").map_elements(sentence_identity, return_dtype=pl.String), "suite", "acceptable"
    )
    sided = set(kept.rows())
    assert table["n_tokens"].to_list() == count(table["context_text"].to_list())
    for row in table.iter_rows(named=True):
        group = (row["suite"], row["group"])
        said = [sentence_identity(sentence) for sentence in row["sentences"]]
        assert row["context_text"] == join_sentences(row["sentences"])
        assert row["context"] == fingerprint(row["context_text"])
        assert len(row["sentences"]) == len(row["origins"])
        # never the item itself, never a sentence twice
        assert not members[group] & set(row["origins"])
        assert len(set(said)) == len(said)
        assert not keys[group] & set(said)
        # from where its kind says
        kind = (KINDS | FROM_KINDS)[row["kind"]]
        if kind.acceptable is None:
            numbers = [int(origin.removeprefix("sentence ")) for origin in row["origins"]]
            assert said == [sentence_identity(ground.unrelated[number - 1]) for number in numbers]
        else:
            sources = {suite_of[origin] for origin in row["origins"]}
            if kind.matched:
                assert sources == {row["suite"]}
            elif row["source"] is not None:
                assert sources == {row["source"]}
            else:
                assert row["suite"] not in sources
            pairs = zip(said, row["origins"], strict=True)
            assert all((key, suite_of[origin], kind.acceptable) in sided for key, origin in pairs)
        # as long as asked for, and no sentence longer
        size = {"tokens": row["n_tokens"], "sentences": len(row["sentences"])}[plan.unit]
        shorter = join_sentences(row["sentences"][:-1])
        before = {"tokens": count([shorter])[0] if shorter else 0, "sentences": len(said) - 1}[plan.unit]
        assert before < row["length"] <= size
        assert plan.unit == "tokens" or size == row["length"]
    for rows in by_series(table):
        for short, long in pairwise(rows):
            assert str(long["context_text"]).startswith(str(short["context_text"]))
    # every length of every series stands in one of the two tables
    series = len(groups.select("suite", "group").unique()) * plan.draws
    kinds = sum(len(plan.from_suites) if kind in FROM_KINDS else 1 for kind in plan.kinds)
    assert len(table) + drawn.short["series"].sum() == series * kinds * len(plan.grown)
    assert table["series"].n_unique() <= series * kinds
    assert not table.select("series", "length").is_duplicated().any()


@settings(max_examples=40)
@given(data=st.data())
def test_contexts_have_every_property_whatever_is_asked(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(ALL_KINDS), min_size=1, unique=True))
    unit = data.draw(st.sampled_from(["tokens", "sentences"]))
    plan = ContextPlan(
        kinds=tuple(kinds),
        lengths=tuple(sorted(data.draw(st.sets(st.integers(0, 90), min_size=1, max_size=6)))),
        unit=unit,
        draws=data.draw(st.integers(1, 3)),
        contexts_per_suite=data.draw(st.none() | st.integers(1, 13)),
        from_suites=("s2", "s0") if set(kinds) & set(FROM_KINDS) else (),
        seed=data.draw(st.integers(0, 2**31)),
    )
    check_properties(GROUND, plan, draw(GROUND, plan), count_words)


PLAN = ContextPlan(lengths=(0, 10, 20, 30), draws=2)


def with_specials(texts: list[str]) -> list[int]:
    """A tokenizer that puts a mark at the beginning and the end."""
    return [len(text.split()) + 2 for text in texts]


def across_spaces(texts: list[str]) -> list[int]:
    """A tokenizer that looks across spaces: four characters a token, wherever they stand."""
    return [-(-len(text) // 4) for text in texts]


def one_for_an_end(texts: list[str]) -> list[int]:
    """A tokenizer for which the end of the text is one token more where it ends in `well.`"""
    return [len(text.split()) + text.endswith("well.") for text in texts]


def one_for_a_pair(texts: list[str]) -> list[int]:
    """A tokenizer whose sums are right for all texts but those of two sentences of the pool."""
    pairs = [text.count(".") == 2 and not text.startswith(LEAD) for text in texts]
    return [len(text.split()) + pair for text, pair in zip(texts, pairs, strict=True)]


@pytest.mark.parametrize("count", [with_specials, across_spaces, one_for_an_end, one_for_a_pair])
def test_counts_are_true_even_where_they_are_not_sums(count: Count) -> None:
    for plan in (PLAN, ContextPlan(lengths=(1, 3, 5), unit="sentences")):
        check_properties(GROUND, plan, draw(GROUND, plan, count), count)


def test_the_tokenizer_is_asked_few_times() -> None:
    calls: list[int] = []

    def count(texts: list[str]) -> list[int]:
        calls.append(len(texts))
        return count_words(texts)

    table = draw(GROUND, PLAN, count).table
    assert len(calls) <= 12
    assert sum(calls) < len(table)


def test_the_same_seed_gives_the_same_contexts_and_another_gives_others() -> None:
    again = draw(GROUND, PLAN).table
    assert draw(GROUND, PLAN).table.equals(again)
    other = draw(GROUND, ContextPlan(lengths=PLAN.lengths, draws=2, seed=1)).table
    assert len(set(other["context"]) & set(again["context"])) < len(again) / 10


def test_draws_differ_from_one_another() -> None:
    table = draw(GROUND, PLAN).table.filter(length=30, kind="mismatched_acceptable")
    assert table["context"].n_unique() > 0.95 * len(table)


def test_contexts_depend_neither_on_order_nor_on_what_else_is_asked() -> None:
    whole = draw(GROUND, PLAN).table
    items = GROUND.items.filter(pl.col("suite") == "s1").sample(fraction=1, shuffle=True, seed=3)
    turned = Ground(items, GROUND.pool.sample(fraction=1, shuffle=True, seed=3), GROUND.unrelated)
    part = draw(
        turned, ContextPlan(kinds=("unrelated", "matched_unacceptable"), lengths=(20,), draws=1)
    ).table
    wanted = whole.filter(suite="s1", length=20, draw=1).filter(
        pl.col("kind").is_in(["unrelated", "matched_unacceptable"])
    )
    assert len(part) == 22
    assert part.sort("series").equals(wanted.sort("series"))


def test_a_suite_too_small_for_a_length_says_how_far_it_got() -> None:
    plan = ContextPlan(
        kinds=("matched_acceptable", "mismatched_acceptable"), lengths=(2, 5, 15, 25), unit="sentences"
    )
    drawn = draw(GROUND, plan)
    # s1 has 11 good sentences, of which items 0 and 1 share one: 10, less the item's own.
    short = drawn.short.filter(suite="s1")
    assert short.rows() == [
        ("s1", "matched_acceptable", None, 15, 9, 11, 11),
        ("s1", "matched_acceptable", None, 25, 9, 11, 11),
        ("s1", "mismatched_acceptable", None, 25, 19, 11, 11),
    ]
    assert describe_short(short, "sentences") == [
        "s1: too few sentences for matched_acceptable contexts of 15 sentences and more; "
        "11 of 11 end sooner, the shortest at 9.",
        "s1: too few sentences for mismatched_acceptable contexts of 25 sentences and more; "
        "11 of 11 end sooner, the shortest at 19.",
    ]


def test_an_item_is_kept_out_with_the_conditions_that_are_not_asked_for_too() -> None:
    good = Ground(GROUND.items.filter(condition="good"), GROUND.pool, ())
    plan = ContextPlan(kinds=("matched_unacceptable",), lengths=(10,), unit="sentences")
    table = draw(good, plan).table
    assert len(table) == 33
    assert not [row for row in table.iter_rows(named=True) if row["group"] in row["origins"]]


def test_a_group_of_the_whole_suite_leaves_nothing_to_draw_from() -> None:
    drawn = draw(GROUND, ContextPlan(kinds=("matched_acceptable",), lengths=(5,), contexts_per_suite=1))
    assert drawn.table.is_empty()
    assert drawn.short.select("wanted", "reached", "series", "of").rows() == [(5, 0, 1, 1)] * 3


def test_with_no_length_above_the_baseline_there_is_no_context() -> None:
    drawn = draw(GROUND, ContextPlan(lengths=(0,)))
    assert drawn.table.is_empty()
    assert drawn.short.is_empty()
    check_schema(drawn.table, SWEEP_CONTEXTS, "contexts")


def shout(sentence: str, rng: np.random.Generator) -> str:
    return f"{'Oh' if rng.random() < 0.5 else 'Ah'}, {sentence}"


def test_a_perturbed_context_is_made_of_the_sentences_of_the_plain_one() -> None:
    ground = make_ground(size=3, lines=300)
    asked = ContextPlan(kinds=("matched_acceptable", "unrelated"), lengths=(1, 200), unit="sentences")
    plain = draw(ground, asked).table
    plan = replace(asked, perturb="shout")
    table = draw(ground, plan, perturb=shout).table
    assert table["origins"].to_list() == plain["origins"].to_list()
    assert table["perturbation"].unique().to_list() == ["shout"]
    assert table["series"][0] == f"{plain['series'][0]}/shout"
    openings = {sentence[:4] for sentences in table["sentences"] for sentence in sentences}
    assert openings == {"Oh, ", "Ah, "}
    assert draw(ground, plan, perturb=shout).table.equals(table)


def test_sentences_that_a_perturbation_makes_equal_stand_once() -> None:
    plan = ContextPlan(kinds=("unrelated",), lengths=(1, 2), unit="sentences", perturb="same")
    drawn = draw(GROUND, plan, perturb=lambda sentence, rng: "It is all the same.")
    assert set(drawn.table["length"]) == {1}
    assert set(drawn.short["wanted"]) == {2}


def test_the_series_is_named_by_what_it_is() -> None:
    plan = ContextPlan(
        kinds=("from_acceptable", "unrelated"), lengths=(5,), from_suites=("s2",), contexts_per_suite=2
    )
    names = draw(GROUND, plan).table.filter(suite="s0")["series"].sort().to_list()
    assert names == [
        "s0/1/from_acceptable/s2/1",
        "s0/1/unrelated/1",
        "s0/2/from_acceptable/s2/1",
        "s0/2/unrelated/1",
    ]


def test_refusals_are_said() -> None:
    with pytest.raises(UnknownName, match="no suite 's9'"):
        draw(GROUND, ContextPlan(kinds=("from_acceptable",), lengths=(5,), from_suites=("s9",)))
    with pytest.raises(BadInput, match="Unrelated contexts need running text"):
        draw(Ground(GROUND.items, GROUND.pool, ()), PLAN)
    with pytest.raises(ValueError, match="perturb 'none'"):
        draw(GROUND, PLAN, perturb=shout)


@given(st.integers(0, 400), st.integers(0, 99))
def test_a_shuffle_gives_every_number_once(size: int, seed: int) -> None:
    assert sorted(shuffle(size, np.random.default_rng(seed))) == list(range(size))


def test_a_shuffle_puts_every_number_everywhere_alike() -> None:
    # Chi-squared over 5 x 5 places of 4,000 shuffles: 16 degrees of freedom, 99.9% quantile 39.25
    # (scipy.stats.chi2.ppf(.999, 16)).
    counts = np.zeros((5, 5))
    for seed in range(4000):
        for place, number in enumerate(shuffle(5, np.random.default_rng(seed))):
            counts[place, number] += 1
    assert ((counts - 800) ** 2 / 800).sum() < 39.25


@pytest.mark.data
@pytest.mark.parametrize(
    ("dataset", "rule", "per_suite"),
    [
        pytest.param("blimp", None, None, marks=pytest.mark.slow),
        pytest.param("blimp", None, 2, marks=pytest.mark.slow),
        ("syntaxgym", None, 4),
        ("crows_pairs", "less", None),
    ],
)
def test_published_datasets_give_contexts_with_every_property(
    published_ground: Callable[[str, str | None], Ground],
    gpt2_count: Count,
    dataset: str,
    rule: str | None,
    per_suite: int | None,
) -> None:
    whole = published_ground(dataset, rule)
    few = Ground(sample_items(whole.items, 4 if per_suite else 1, seed=1), whole.pool, whole.unrelated)
    plan = ContextPlan(lengths=(0, 50, 100, 300), contexts_per_suite=per_suite)
    for count in (gpt2_count, count_words):
        check_properties(few, plan, draw(few, plan, count), count)
