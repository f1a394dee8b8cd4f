"""A user's own files: long tables, and suites in TOML and JSON; every error names line and field."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from felicity.core.contrasts import Contrast
from felicity.core.documents import locate_json, locate_toml
from felicity.core.errors import BadInput, FelicityError
from felicity.data.catalogue import read_dataset
from felicity.data.pairs import Columns

SUITE = """\
name = "agreement"
phenomenon = "number agreement"
regions = ["subject", "verb", "end"]
predictions = [
  "(verb;%match%) < (verb;%mismatch%)",
  "(2;%match%) + (3;%match%) < (2;%mismatch%) + (3;%mismatch%)",
]

[[items]]
match = ["The cats", "annoy", "Tim ."]
mismatch = ["The cats", "annoys", "Tim ."]

[[items]]
match = ["The dog", "barks", ", then sleeps."]
mismatch = ["The dog", "bark", ", then sleeps."]
"""


def write(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_a_suite_becomes_sentences_with_regions_by_character(tmp_path: Path) -> None:
    data = read_dataset(write(tmp_path, "agreement.toml", SUITE))
    assert (data.rule, data.items.height) == ("formula", 4)
    row = data.items.row(2, named=True)
    assert row["text"] == "The dog barks, then sleeps."
    assert [row["text"][r["start"] : r["end"]] for r in row["regions"]] == [
        "The dog",
        "barks",
        ", then sleeps.",
    ]
    assert (row["suite"], row["phenomenon"], row["metric"]) == ("agreement", "number agreement", "sum")
    assert row["line"] == 13


def test_the_same_suite_in_json_gives_the_same_items(tmp_path: Path) -> None:
    import tomllib

    text = json.dumps(tomllib.loads(SUITE), indent=1)
    one = read_dataset(write(tmp_path, "a.toml", SUITE)).items
    other = read_dataset(write(tmp_path, "a.json", text)).items
    assert one.drop("line").equals(other.drop("line"))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "agreement"\n', "", r"line 1: 'name' is missing"),
        ("phenomenon =", "phenomena =", r"line 2: 'phenomena' is not a known field"),
        (
            'regions = ["subject", "verb"',
            'regions = ["verb", "verb"',
            r"line 3: 'regions' names a region twice",
        ),
        ("(verb;%match%) <", "(vreb;%match%) <", r"line 4: 'predictions.1' does not work: .* region 'vreb'"),
        (
            '%mismatch%)",\n]',
            '%mismtch%)",\n]',
            r"line 4: 'predictions.2' does not work: .* condition 'mismtch'",
        ),
        ("(2;%match%) +", "(2;%match%) + +", r"line 4: 'predictions.2' does not work: .*character 15"),
        (
            'mismatch = ["The cats", "annoys", "Tim ."]',
            'mismatch = ["The cats", "annoys"]',
            r"line 11: 'items.1.mismatch' has 2 regions where there should be 3",
        ),
        ('match = ["The dog", "barks"', 'match = ["The dog", 7', r"line 14: 'items.2.match.2' is not a text"),
        (
            '\nmismatch = ["The dog", "bark", ", then sleeps."]',
            "",
            r"line 9: 'items.1' has a condition 'mismatch' that another item lacks",
        ),
        ('name = "agreement"', 'name = "agreement', r"line 1: not TOML"),
        (
            'name = "agreement"',
            'name = "agreement"\nmetric = "most"',
            r"line 2: 'metric' is 'most', not one of",
        ),
    ],
)
def test_what_is_wrong_with_a_suite_is_said_by_line_and_field(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in SUITE
    with pytest.raises(BadInput, match=said):
        read_dataset(write(tmp_path, "agreement.toml", SUITE.replace(old, new)))


def test_a_wrong_field_of_a_json_suite_is_found_on_its_line(tmp_path: Path) -> None:
    text = '{"name": "a", "predictions": ["(1;%x%) < (1;%y%)"],\n "items": [\n  {"x": ["A b."],\n   "y": 3}]}'
    with pytest.raises(BadInput, match=r"line 4: 'items.1.y' is not a list of regions"):
        read_dataset(write(tmp_path, "a.json", text))


LONG = "item,condition,text,context,suite\n1,good,chess,She plays,games\n1,near,poker,She plays,games\n"
LONG += (
    "1,far,soccer,She plays,games\n2,good,tea,He drinks,food\n2,near,milk,He drinks,food\n2,far,ink,,food\n"
)


def test_a_long_table_is_a_choice_of_several(tmp_path: Path) -> None:
    data = read_dataset(write(tmp_path, "long.csv", LONG))
    assert data.contrasts == (Contrast(name="choice", better="good", worse=("near", "far")),)
    assert data.items["context_text"].to_list()[:3] == ["She plays"] * 3
    assert data.items["context_text"][5] is None
    other = read_dataset(write(tmp_path, "long.csv", LONG), Columns(good="near"))
    assert other.contrasts[0].better == "near"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("2,far,ink", "2,near,ink", r"line 7: 'condition' is 'near' for item 'food/2', as on line 6"),
        ("2,far,ink,,food\n", "", r"line 5: item 'food/2' lacks the condition 'far'"),
        ("1,near,poker", "1,near,", r"line 3: 'text' is empty"),
        ("good", "right", r"no condition 'good'; name the right one with --good"),
    ],
)
def test_what_is_wrong_with_a_long_table_is_said_by_line(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        read_dataset(write(tmp_path, "long.csv", LONG.replace(old, new)))


def test_a_rule_for_a_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="omit --rule"):
        read_dataset(write(tmp_path, "long.csv", LONG), rule="pair")


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


@given(value=st.dictionaries(st.text(max_size=4), VALUES, max_size=4), indent=st.sampled_from([None, 0, 2]))
def test_every_value_of_any_json_has_a_line(value: dict[str, object], indent: int | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    lines = locate_json(text)

    def walk(part: object, where: tuple[str | int, ...]) -> None:
        assert 1 <= lines[where] <= text.count("\n") + 1
        if isinstance(part, dict):
            for key, inner in part.items():
                walk(inner, (*where, key))
        elif isinstance(part, list):
            for place, inner in enumerate(part):
                walk(inner, (*where, place))

    walk(value, ())


def test_toml_lines_are_not_fooled_by_texts_that_look_like_keys() -> None:
    text = 'a = """\nb = 1\n[[items]]\n"""\n\n[[items]] # one\n"x y" = [\n  "c = 2", # [\n]\n'
    text += "d = '['\n[items.e]\nf = 1\n"
    lines = locate_toml(text)
    assert lines[("items", 0)] == 6
    assert lines[("items", 0, "x y")] == 7
    assert lines[("items", 0, "d")] == 10
    assert lines[("items", 0, "e", "f")] == 12
    assert ("b",) not in lines


@settings(deadline=None)
@given(value=st.dictionaries(st.sampled_from(["name", "items", "predictions", "regions", "meta"]), VALUES))
def test_no_content_brings_the_suite_reader_down(
    value: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("suite") / "any.json"
    path.write_text(json.dumps(value), encoding="utf-8", errors="surrogatepass")
    with pytest.raises(FelicityError, match=r"line \d+"):
        read_dataset(str(path))


@pytest.mark.parametrize("names", ['["2", "1", "end"]', '["subject", "1", "end"]', '["subject", "*", "end"]'])
def test_a_region_name_that_is_another_regions_number_is_refused(tmp_path: Path, names: str) -> None:
    text = SUITE.replace('["subject", "verb", "end"]', names).replace("(verb;", "(2;")
    with pytest.raises(BadInput, match="the number of another"):
        read_dataset(write(tmp_path, "a.toml", text))


def syntaxgym(**changes: object) -> str:
    regions = [{"region_number": n, "content": word} for n, word in ((1, "The cats"), (2, "annoy"))]
    condition = {"condition_name": "a", "regions": regions}
    content = {
        "meta": {"name": "s", "metric": "sum"},
        "region_meta": {"1": "np", "2": "vp"},
        "predictions": [{"type": "formula", "formula": "(1;%a%) < (2;%a%)"}],
        "items": [{"item_number": 1, "conditions": [condition]}],
    }
    return json.dumps(content | changes)


def test_a_region_number_given_twice_is_refused(tmp_path: Path) -> None:
    assert read_dataset(write(tmp_path, "a.json", syntaxgym())).items["text"].to_list() == ["The cats annoy"]
    regions = [{"region_number": n, "content": word} for n, word in ((1, "The"), (1, "cats"), (2, "annoy"))]
    items = [{"item_number": 1, "conditions": [{"condition_name": "a", "regions": regions}]}]
    with pytest.raises(BadInput, match="is 1 for the second time"):
        read_dataset(write(tmp_path, "a.json", syntaxgym(items=items)))


def test_a_name_that_several_regions_have_cannot_be_used_in_a_formula(tmp_path: Path) -> None:
    formula = [{"type": "formula", "formula": "(np;%a%) < (2;%a%)"}]
    text = syntaxgym(region_meta={"1": "np", "2": "np"}, predictions=formula)
    with pytest.raises(BadInput, match="several have that name"):
        read_dataset(write(tmp_path, "a.json", text))


def test_a_field_given_twice_is_refused(tmp_path: Path) -> None:
    text = syntaxgym().replace('"metric": "sum"', '"metric": "sum", "metric": "mean"')
    with pytest.raises(BadInput, match="the field 'metric' twice"):
        read_dataset(write(tmp_path, "a.json", text))
    rows = '{"good": "He left.", "bad": "Him left.", "bad": "He leave."}\n'
    with pytest.raises(BadInput, match="line 1 has the field 'bad' twice"):
        read_dataset(write(tmp_path, "a.jsonl", rows))
