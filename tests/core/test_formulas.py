"""The prediction language: what it reads, what it refuses, and that nothing brings it down."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from felicity.core.errors import BadInput
from felicity.core.formulas import Region, RegionNumber, RegionOperation, list_regions, parse_prediction

A, B, C = Region("1", "a"), Region("1", "b"), Region("1", "c")


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("(1;%a%)<(1;%b%)", RegionOperation("<", A, B)),
        ("[(1;%a%)] > ((1;%b%))", RegionOperation(">", A, B)),
        (
            "(1;%a%) - (1;%b%) - (1;%c%) > 0",
            RegionOperation(">", RegionOperation("-", RegionOperation("-", A, B), C), RegionNumber(0)),
        ),
        ("(1;%a%) + (1;%b%) = 2.5", RegionOperation("=", RegionOperation("+", A, B), RegionNumber(2.5))),
        # & and | are taken left to right, neither binds closer.
        (
            "(1;%a%) > 1 | (1;%b%) > 1 & (1;%c%) > 1",
            RegionOperation(
                "&",
                RegionOperation(
                    "|", RegionOperation(">", A, RegionNumber(1)), RegionOperation(">", B, RegionNumber(1))
                ),
                RegionOperation(">", C, RegionNumber(1)),
            ),
        ),
        (
            " [ ( 1 ; %a% ) ] < -1 ",
            RegionOperation("<", A, RegionOperation("-", RegionNumber(0), RegionNumber(1))),
        ),
        ("(*;%a-b_c%) < (verb 2;%b%)", RegionOperation("<", Region("*", "a-b_c"), Region("verb 2", "b"))),
    ],
)
def test_formulas_bind_as_in_syntaxgym(text: str, tree: RegionOperation) -> None:
    assert parse_prediction(text) == tree


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "character 1: something is missing at the end"),
        ("(1;%a%)", "nothing is compared"),
        ("(1;%a%) <", "character 10: something is missing at the end"),
        ("[(1;%a%) < (1;%b%)", "']' is missing for the '[' at character 1"),
        ("[(1;%a%) < (1;%b%))", "character 19: ']' is missing for the '[' at character 1"),
        ("(1;%a%) < (1;%b%)]", "character 18: ']' follows a complete formula"),
        ("(1;%a%) < (1;%b%) < (1;%c%)", "a second comparison; join two comparisons with &"),
        ("(1;%a%) & (1;%b%) > 1", "'&' joins comparisons, not numbers"),
        ("[(1;%a%) < 1] + 2 > 3", "'+' needs numbers on both sides"),
        ("[(1;%a%) < 1] < 2", "'<' compares numbers, not comparisons"),
        ("(1;%a%) < (1;%%)", "a region without a condition"),
        ("(1;%a%) ~ 2", "'~' is not part of a formula"),
        ("(1;a) < 2", "is not part of a formula"),
        ("< 1", "character 1: '<' is where a region or number should be"),
        ("(" * 200 + "1" + ")" * 200 + " < 2", "nested too deeply"),
    ],
)
def test_a_broken_formula_is_refused_where_it_breaks(text: str, said: str) -> None:
    with pytest.raises(BadInput, match=re.escape(said)):
        parse_prediction(text)


@given(st.text(alphabet="()[];%ab12*+-<>=&|. ", max_size=40))
def test_any_text_is_a_formula_or_is_refused_in_one_sentence(text: str) -> None:
    try:
        tree = parse_prediction(text)
    except BadInput as error:
        assert "character" in str(error)
    else:
        assert tree.mark in "<>=&|"


@st.composite
def sums(draw: st.DrawFn, depth: int = 2) -> str:
    if not depth or draw(st.booleans()):
        return draw(st.sampled_from(["(1;%a%)", "(2;%b-c%)", "(*;%a%)", "3", "0.5"]))
    parts = draw(sums(depth - 1)), draw(st.sampled_from("+-")), draw(sums(depth - 1))
    return draw(st.sampled_from(["[{} {} {}]", "({} {} {})"])).format(*parts)


@given(sums(), st.sampled_from("<>="), sums(), st.sampled_from("&|"), sums(), sums())
def test_every_well_formed_formula_parses_with_all_its_regions(
    a: str, mark: str, b: str, joint: str, c: str, d: str
) -> None:
    text = f"[{a} {mark} {b}]{joint}[{c}>{d}]"
    assert len(list(list_regions(parse_prediction(text)))) == text.count(";")


@pytest.mark.data
def test_all_36_formulas_of_the_34_suites_parse(published: Callable[[str], Path]) -> None:
    import json

    found = [
        prediction["formula"]
        for path in sorted(published("syntaxgym/json").glob("*.json"))
        for prediction in json.loads(path.read_text(encoding="utf-8"))["predictions"]
    ]
    assert len(found) == 36
    for text in found:
        assert len(list(list_regions(parse_prediction(text)))) == text.count(";")
