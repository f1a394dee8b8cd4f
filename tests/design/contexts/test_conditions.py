"""Which conditions are acceptable, and what pools are made of them."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from felicity.core.contrasts import Contrast
from felicity.core.errors import BadInput
from felicity.core.schemas import ITEMS
from felicity.data.catalogue import read_dataset
from felicity.design.contexts.conditions import SuiteSides, find_sides, read_rules
from felicity.design.contexts.sentence_pools import build_pool


def make_items(*rows: tuple[str, str, str, str]) -> pl.DataFrame:
    """Items of rows item, suite, condition, text."""
    return pl.DataFrame(
        [(item, suite, suite, condition, text) for item, suite, condition, text in rows],
        schema=ITEMS,
        orient="row",
    )


PAIRS = make_items(
    ("a/1", "a", "good", "It rains."),
    ("a/1", "a", "bad", "It rain."),
    ("a/2", "a", "good", "It  rains"),
    ("a/2", "a", "bad", "Rain it."),
    ("a/3", "a", "good", "It was so."),
    ("a/3", "a", "bad", "It was so."),
)
OWN = make_items(("own/1", "own", "short", "It rains."), ("own/1", "own", "long", "It rains and rains."))


def test_pairs_have_their_good_and_their_bad_side() -> None:
    sides = find_sides(PAIRS)
    assert sorted(sides.table.rows()) == [("a", "bad", False), ("a", "good", True)]
    assert sides.suites == ["a"]
    assert sides.notes == ()


def test_contrasts_of_an_own_dataset_say_which_side_a_condition_is_on() -> None:
    contrast = Contrast(name="length", better="short", worse=("long",))
    assert sorted(find_sides(OWN, contrasts=[contrast]).table.rows()) == [
        ("own", "long", False),
        ("own", "short", True),
    ]


def test_contrasts_that_contradict_each_other_leave_the_suite_out() -> None:
    contrasts = [
        Contrast(name="one", better="short", worse=("long",)),
        Contrast(name="two", better="long", worse=("short",)),
    ]
    sides = find_sides(OWN, contrasts=contrasts)
    assert sides.table.is_empty()
    assert sides.notes == (
        "Left out: own; a condition is the better one in one contrast and the worse one in another.",
    )


def test_a_suite_of_which_nothing_is_known_is_left_out_and_said() -> None:
    sides = find_sides(pl.concat([PAIRS, OWN]))
    assert sides.suites == ["a"]
    assert sides.notes == ("Left out: own; no table says which of its conditions are acceptable.",)


def test_a_rule_of_the_user_stands_before_all_others(tmp_path: Path) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(
        '[[suites]]\nnames = ["own", "a"]\nacceptable = ["long"]\nunacceptable = ["short"]\n'
        'note = "length was taken for acceptability"\n',
        encoding="utf-8",
    )
    sides = find_sides(OWN, rules=read_rules(path))
    assert sorted(sides.table.rows()) == [("own", "long", True), ("own", "short", False)]
    assert sides.notes == ("In own length was taken for acceptability.",)


def test_a_rule_that_names_a_condition_that_is_not_there_is_refused() -> None:
    rule = SuiteSides(names=("own",), acceptable=("short",), unacceptable=("longest",))
    with pytest.raises(BadInput, match="Suite 'own' has no condition 'longest'; it has long, short"):
        find_sides(OWN, rules=[rule])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = ", "rules.toml, line 1: not TOML"),
        ("x = 1", "rules.toml, line 1: 'x' is not a known field"),
        ("# nothing yet", r"rules.toml has no \[\[suites\]\]"),
        ("[suites]", "line 1: 'suites' is not a list"),
        ('[[suites]]\nnames = "a"', "line 2: 'suites.1.names' is not a list"),
        ('[[suites]]\nnames = ["a"]\nacceptable = [1]', "line 3: 'suites.1.acceptable.1' is not a text"),
        ("[[suites]]\nnames = []", "line 2: 'suites.1.names' is empty"),
        ('[[suites]]\nnames = ["a"]\nacceptable = ["x"]', "line 1: 'suites.1.unacceptable' is missing"),
        (
            '[[suites]]\nnames = ["a"]\nacceptable = ["x"]\nunacceptable = ["x"]',
            "line 1: 'suites.1' has 'x' on both sides",
        ),
    ],
)
def test_a_file_of_rules_that_cannot_be_used_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rules.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=message):
        read_rules(path)


def test_a_pool_holds_a_shared_sentence_once_and_one_on_both_sides_never() -> None:
    pool = build_pool(PAIRS, find_sides(PAIRS).table)
    assert pool.rows() == [
        ("It rain.", "a", "a/1", False),
        ("Rain it.", "a", "a/2", False),
        ("It rains.", "a", "a/1", True),
    ]


def test_a_pool_does_not_depend_on_the_order_of_items() -> None:
    sides = find_sides(PAIRS).table
    assert build_pool(PAIRS.reverse(), sides).equals(build_pool(PAIRS, sides))


# The suites of Sinha et al. 2023.
THE_23 = [
    *["fgd_object", "fgd_pp", "fgd_subject", "mvrr", "mvrr_mod"],
    *["npi_orc_any", "npi_orc_ever", "npi_src_any", "npi_src_ever", "npz_obj", "npz_obj_mod"],
    *["number_orc", "number_prep", "number_src"],
    *[f"reflexive_{kind}_{gender}" for kind in ("orc", "prep", "src") for gender in ("fem", "masc")],
    *["subordination_orc-orc", "subordination_pp-pp", "subordination_src-src"],
]


@pytest.mark.data
def test_of_syntaxgym_the_23_suites_of_the_paper_are_known(published: Callable[[str], Path]) -> None:
    published("syntaxgym")
    items = read_dataset("syntaxgym").items
    sides = find_sides(items)
    assert sides.suites == THE_23
    assert len(sides.left_out) == 34 - 23
    assert sides.notes[0].startswith("In mvrr and mvrr_mod every condition is grammatical; the garden path")
    assert sides.notes[1].startswith("In npz_obj and npz_obj_mod every condition is grammatical")
    assert sides.notes[2].startswith("Left out: center_embed, center_embed_mod, cleft,")
    on_sides = items.join(sides.table, on=["suite", "condition"])
    assert len(on_sides) == len(items.filter(pl.col("suite").is_in(THE_23)))


@pytest.mark.data
@pytest.mark.parametrize(("dataset", "rule", "suites"), [("blimp", None, 67), ("crows_pairs", "less", 9)])
def test_pools_of_published_pairs_lose_hardly_a_sentence(
    published: Callable[[str], Path], dataset: str, rule: str | None, suites: int
) -> None:
    published(dataset)
    whole = read_dataset(dataset, rule=rule)
    sides = find_sides(whole.items, contrasts=whole.contrasts)
    assert len(sides.suites) == suites
    pool = build_pool(whole.items, sides.table)
    assert 0.999 < len(pool) / len(whole.items) <= 1
